"""`kmrun llm`: does a language model fit on a card, and how fast can it be there at the very best."""

from typing import Annotated

import typer

from kmrun.cli import options


def command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A size (70b), a name (llama-3.1-70b), a config.json, a folder, a .gguf file.",
        ),
    ],
    more_cards: Annotated[
        list[str] | None,
        typer.Argument(metavar="CARD...", help="Further cards after --gpus, or CARD=X after --cost."),
    ] = None,
    quant: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT", help="q4 (= q4_k_m), q8, fp8, int4-g128, nvfp4, mxfp4, mlx-4bit, bf16, ..."
        ),
    ] = None,
    bytes_per_param: Annotated[
        float | None, typer.Option(metavar="X", help="Bytes of a parameter; counts before a format.")
    ] = None,
    gpus: Annotated[
        list[str] | None,
        typer.Option(metavar="CARD", help="Cards, by id or everyday name; several may follow."),
    ] = None,
    num_gpus: Annotated[int, typer.Option(metavar="N", help="So many of each card together.")] = 1,
    context: Annotated[
        str | None, typer.Option("--ctx", metavar="N", help="Tokens in the context: 4096, 32k.")
    ] = None,
    batch: Annotated[int, typer.Option(metavar="N", help="Sequences decoded together.")] = 1,
    kv: Annotated[
        str, typer.Option(metavar="FORMAT", help="Of the cache: fp16, fp8, q8_0, q4_0, ...")
    ] = "fp16",
    draft: Annotated[int, typer.Option(metavar="G", help="Tokens drafted for each pass (speculation).")] = 0,
    active_params: Annotated[
        str | None,
        typer.Option(metavar="N", help="Parameters that a token reads, of a size that is a mixture."),
    ] = None,
    overhead_gb: Annotated[
        float | None, typer.Option(metavar="GB", help="What the runtime takes on each card; 0.5 by default.")
    ] = None,
    cost: Annotated[
        list[str] | None, typer.Option(metavar="CARD=X,...", help="Price of one card in $ per hour.")
    ] = None,
    per_watt: Annotated[bool, typer.Option("--per-watt", help="Tokens per joule at TDP.")] = False,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="decode, prefill, fits, context, cost, value, watt, name; -KEY turns it round.",
        ),
    ] = None,
    device: Annotated[
        int | None, typer.Option(metavar="N", help="The device of this machine; the first if there is one.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the arithmetic, number by number.")
    ] = False,
    cards_file: options.CardFiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Bounds on a language model's speed that no published result beats, and whether it fits.

    \b
    kmrun llm 70b --quant q4
    kmrun llm gpt-oss-120b --gpus h100-sxm mi300x --ctx 32k --batch 16 --cost h100-sxm=2.69
    """  # noqa: D301 (Click wants the control character)
    import gc

    from kmrun.cli import llm_question

    # This process ends at once: a last collection would only add to the user's waiting.
    gc.disable()
    inquiry = llm_question.inquiry(
        llm_question.Options(
            model=model,
            quant=quant,
            bytes_per_param=bytes_per_param,
            active_params=active_params,
            gpus=(*(gpus or ()), *(word for word in more_cards or () if "=" not in word)),
            num_gpus=num_gpus,
            context=context,
            batch=batch,
            kv=kv,
            draft=draft,
            overhead_gb=overhead_gb,
            cost=(*(cost or ()), *(word for word in more_cards or () if "=" in word)),
            device=device,
            overlays=tuple(cards_file or ()),
        )
    )
    answers = llm_question.ordered(inquiry, sort)
    if as_json:
        import json

        from kmrun.report.llm_document import document

        typer.echo(
            json.dumps(document(inquiry.subject, inquiry.question, answers, inquiry.assumptions), indent=2)
        )
        return
    from kmrun.report.llm_table import text

    typer.echo(text(inquiry.subject, inquiry.question, answers, inquiry.assumptions, per_watt), nl=False)
    if explain:
        from kmrun.report.llm_explanation import explanation

        typer.echo(explanation(inquiry.subject, inquiry.question, answers), nl=False)
