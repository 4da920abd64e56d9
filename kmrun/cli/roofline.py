"""`kmrun roofline`: the picture of a card's two roofs, with kernels on it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kmrun.cli import options

if TYPE_CHECKING:
    from kmrun.core.result import Result


def command(
    gpu: options.Gpu = None,
    device: options.LocalDevice = None,
    peak_bw: Annotated[
        float | None, typer.Option(metavar="GB/s", help="Memory bandwidth, for what is in no database.")
    ] = None,
    peak_tflops: Annotated[
        float | None, typer.Option(metavar="TFLOP/s", help="Compute peak, with --peak-bw or over the card's.")
    ] = None,
    ai: Annotated[
        list[float] | None,
        typer.Option("--ai", metavar="X", help="Mark a kernel at this flop/byte; repeatable."),
    ] = None,
    peak: options.Peak = None,
    tensor: options.Tensor = False,
    result: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The kernels of a result (`--save`) where they landed, under the roofs of that run.",
        ),
    ] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the picture as SVG.")] = None,
    cards_file: options.CardFiles = None,
    as_json: options.Json = False,
) -> None:
    """Draw a roofline in the terminal, say where the ridge is and what a kernel can attain.

    \b
    kmrun roofline --gpu 4090 --ai 0.33 --ai 40
    """  # noqa: D301 (Click wants the control character)
    import json

    from kmrun.cli import roof_views as views
    from kmrun.cli.roof_choice import chosen_roof
    from kmrun.cli.roof_source import roofs_here
    from kmrun.cli.terminal import positive, write_svg

    choice = chosen_roof(peak, tensor)
    if result is not None:
        from kmrun.cli.result_files import read_results

        others = {
            "--gpu": gpu,
            "--device": device,
            "--peak-bw": peak_bw,
            "--peak-tflops": peak_tflops,
            "--peak": peak,
            "--tensor": tensor or None,
            "--ai": ai or None,
        }
        _refuse_beside_result([name for name, given in others.items() if given is not None])
        _show_results(read_results([result]), cards_file or [], svg, as_json=as_json)
        return
    roofs = roofs_here(gpu, device, peak_bw, peak_tflops, choice, cards_file or [])
    marks = views.marks_of([positive(value, "--ai", "flop/byte") for value in ai or []])
    if svg is not None:
        from kmrun.report.svg import roofline_svg

        write_svg(svg, roofline_svg([roofs.curve], marks, roofs.title))
    if as_json:
        typer.echo(json.dumps(views.document(roofs, marks), indent=2))
    else:
        typer.echo("\n".join(views.lines(roofs, marks)))


def _refuse_beside_result(options: list[str]) -> None:
    """Refuse what would put kernels under roofs that are not theirs.

    Raises:
        UsageError: an option names roofs, or marks under one pair of them.
    """
    from kmrun.errors import UsageError

    if options:
        raise UsageError(
            f"--result draws each kernel under the roofs of its own run and dtype, {options[0]} is of others",
            f"leave {' and '.join(options)} out; without --result they draw any card",
        )


def _show_results(results: "list[Result]", overlays: list[Path], svg: Path | None, *, as_json: bool) -> None:
    import json

    from kmrun.cli import roof_result
    from kmrun.cli.terminal import write_svg
    from kmrun.errors import UsageError

    shown = roof_result.pictures(results, overlays)
    if svg is not None:
        from kmrun.report.svg import picture_svg

        if len(shown) > 1:
            raise UsageError(
                f"--svg draws one result, but there are {len(shown)}", "`kmrun report` shows them all"
            )
        title, picture = shown[0]
        write_svg(svg, picture_svg(picture, title))
    if as_json:
        typer.echo(json.dumps(roof_result.document(shown), indent=2))
    else:
        typer.echo("\n".join(roof_result.lines(shown)))
