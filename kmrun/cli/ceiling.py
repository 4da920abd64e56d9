"""`kmrun ceiling`: what this machine really delivers, measured now."""

from typing import TYPE_CHECKING, Annotated

import typer

from kmrun.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kmrun.core.measurement import RunDevice
    from kmrun.measure.supervisor import Supervisor

KINDS = ("copy", "scale", "add", "triad", "read")
ON_CPU = ("fp32", "fp64", "bf16", "fp16", "int8")
ON_GPU = ("fp32", "tf32", "fp16", "bf16", "fp8_e4m3", "int8")
SECONDS = 3.0
_LOAD = ("foreign_load", "foreign_load_unknown_because")
LEAST_MB = 0.1
"""Less is over sooner than a clock can tell well."""


def command(
    device: Annotated[
        str,
        typer.Option(
            metavar="auto|cpu|cuda|cuda:N", help="What to measure; auto is the first GPU, else cpu."
        ),
    ] = "auto",
    mb: Annotated[
        float | None, typer.Option("--mb", metavar="MB", help="The memory that bandwidth is measured over.")
    ] = None,
    matmul_n: Annotated[
        int | None, typer.Option("--matmul-n", min=16, metavar="N", help="Only square matmuls of this size.")
    ] = None,
    dtype: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only the matmul of this dtype; may be repeated.")
    ] = None,
    card: options.Card = None,
    cards_file: options.CardFiles = None,
    as_json: options.Json = False,
) -> None:
    """Measure the ceilings: STREAM copy, scale, add, triad, a read-only sum, and matmul in every dtype.

    Spec sheets are never reached; what this prints is the honest 100 %. It takes a few seconds, on an idle machine.

    \b
    kmrun ceiling
    kmrun ceiling --device cuda:1 --dtype bf16 --matmul-n 8192
    """  # noqa: D301 (Click wants the control character)
    import json
    import sys

    from kmrun.cli.running import match_card
    from kmrun.cli.terminal import terminal_width
    from kmrun.core.card import per_device
    from kmrun.report import delivered
    from kmrun.report.table import encodable
    from kmrun.source.catalogue import load_cards

    check_device(device)
    total = None if mb is None else set_bytes(mb)
    asked_dtypes = known_dtypes(dtype or [])
    catalogue = load_cards(cards_file or [])
    asked = per_device(catalogue.find(card)) if card is not None else None
    with make_supervisor(device) as supervisor:
        found = supervisor.device
        matched = match_card(catalogue, found, asked)
        if matched is not None and matched.llc_bytes:
            supervisor.use_cache_bytes(matched.llc_bytes)
        dtypes = asked_dtypes or (ON_CPU if supervisor.on_cpu else ON_GPU)
        with supervisor.watch.stretch() as meanwhile:
            ceilings = supervisor.delivered(
                dtypes, KINDS, SECONDS * 1e9, total, (matmul_n,) if matmul_n else ()
            )
        peaks, remark = theory(found, matched is not None)
        foreign = supervisor.environment.get("foreign_load")
        if foreign:
            remark = f"{remark} Too low, perhaps: {foreign}.".strip()
        unknown = supervisor.environment.get("foreign_load_unknown_because")
        if unknown:
            remark = f"{remark} Whether others used the card is not known: {unknown}.".strip()
        result = delivered.Delivered(
            device=found,
            card=matched,
            ceilings=ceilings,
            missing=tuple(name for name in dtypes if name not in {rate.dtype for rate in ceilings.matmuls}),
            environment={
                key: supervisor.environment[key]
                for key in ("torch", "driver", "cuda", "hip", "python", "threads", *_LOAD)
                if key in supervisor.environment
            },
            telemetry=meanwhile.telemetry,
            vector_peaks=peaks,
            remark=remark,
            cache_bytes=(matched.llc_bytes if matched is not None else None) or found.cache_bytes or 0,
            load=meanwhile.load if supervisor.on_cpu else None,
        )
    if as_json:
        typer.echo(json.dumps(delivered.record(result), indent=2))
    else:
        typer.echo(encodable("\n".join(delivered.lines(result, terminal_width())), sys.stdout.encoding))


def make_supervisor(device: str) -> "Supervisor":
    """Return what measures; the one place where measuring begins."""
    from kmrun.cli.streams import say
    from kmrun.measure.run_options import RunOptions
    from kmrun.measure.supervisor import Supervisor

    return Supervisor(device, RunOptions(), tell=say)


def set_bytes(mb: float) -> int:
    """Return the size in bytes of the set that bandwidth is measured over.

    Raises:
        UsageError: it is no size, or too small to be measured at all.
    """
    from kmrun.cli.terminal import positive
    from kmrun.errors import UsageError

    if 0 < mb < LEAST_MB:
        raise UsageError(f"--mb {mb:g}: too small to be measured", f"at least {LEAST_MB:g}, in MB")
    return int(positive(mb, "--mb", "MB") * 1e6)


def check_device(device: str) -> None:
    """Refuse a device that cannot be meant.

    Raises:
        UsageError: it is none of auto, cpu, cuda, cuda:N.
    """
    import re

    from kmrun.errors import UsageError

    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        hint = "one of auto, cpu, cuda, cuda:N; torch calls AMD cards cuda, too"
        raise UsageError(f"--device {device}: no such device", hint)


def known_dtypes(words: "Sequence[str]") -> tuple[str, ...]:
    """Return the canonical names of dtypes.

    Raises:
        UsageError: a word is none.
    """
    from kmrun.core.dtypes import canonical
    from kmrun.errors import UsageError

    found = []
    for word in words:
        name = canonical(word)
        if name is None:
            raise UsageError(f"--dtype {word}: no such dtype", f"for example {', '.join(ON_GPU)}")
        found.append(name)
    return tuple(dict.fromkeys(found))


def theory(device: "RunDevice", has_card: bool) -> "tuple[Mapping[str, float], str]":
    """Return the derived matmul peaks of a CPU by dtype, and what has to be said of the theoretical figures."""
    from kmrun.device.cpu_facts import cpu_facts

    if device.kind != "cpu":
        if has_card:
            return {}, ""
        slice_of = "A MIG slice has no published roof" if device.is_mig else "No card of the database fits"
        return {}, f"{slice_of}: no share of a theoretical figure is shown."
    cpu = cpu_facts()
    if cpu.vector_peak_fp32 is None or cpu.vector_peak_fp64 is None or cpu.highest_clock_hz is None:
        return (
            {},
            "A CPU has no published roof, and its highest clock is not known: no share of a roof is shown.",
        )
    peaks = {"fp32": cpu.vector_peak_fp32, "fp64": cpu.vector_peak_fp64}
    return peaks, f"The CPU's vector peak is {cpu.peak_note}."
