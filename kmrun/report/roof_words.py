"""How roofs read, in legends, beside their lines and aloud."""

from kmrun.report.numbers import percent, readable
from kmrun.report.roofs import Kind, Picture, Roofs
from kmrun.report.terminal_plot import rate_text

KINDS: dict[Kind, str] = {
    "published": "published peaks",
    "driver": "peaks at the driver's highest clocks",
    "held": "at the clocks held",
    "measured": "measured here",
    "cache": "cache, measured here",
    "card": "roofs",
}
"""How a kind of roof reads."""


def description(shown: Picture) -> str:
    """Return what a person who cannot see the picture should know."""
    roofs = "; ".join(roofs_title(each) for each in shown.roofs)
    said = (
        f"Speed in FLOP/s over arithmetic intensity in flop/byte, both logarithmic. Roofs: {roofs or 'none'}."
    )
    if shown.points:
        near = max(shown.points, key=lambda point: point.share or 0.0)
        said += f" {len(shown.points)} cases are marked; the table below has every one."
        if near.share is not None:
            said += f" Nearest to its roof: {near.name}, {percent(near.share)} of the {near.share_of}."
    return said


def roofs_title(roofs: Roofs) -> str:
    """Return how a legend names roofs: `measured here: 3.05 TB/s, 742 TFLOP/s bf16`."""
    if roofs.kind != "card":
        return f"{KINDS[roofs.kind]}: {roofs_text(roofs)}"
    ridge = [
        f"ridge at {readable(value / roofs.bandwidth)} flop/byte"
        for _, value in roofs.peaks
        if roofs.bandwidth
    ]
    return ", ".join([f"{roofs.name}: {roofs_text(roofs)}", *ridge])


def roofs_text(roofs: Roofs) -> str:
    """Return `3.35 TB/s, 989 TFLOP/s bf16 tensor`."""
    memory = memory_text(roofs)
    return ", ".join(memory + [peak_text(name, value) for name, value in roofs.peaks])


def memory_text(roofs: Roofs) -> list[str]:
    """Return the memory roof as one text, none where it is unknown or drawn elsewhere."""
    if roofs.bandwidth is None or not roofs.sloped:
        return []
    return [rate_text(roofs.bandwidth).replace("FLOP/s", "B/s")]


def peak_text(name: str, value: float) -> str:
    """Return `989 TFLOP/s bf16 tensor`; integers make operations, not flop."""
    rate = rate_text(value)
    return f"{rate.replace('FLOP', 'OP') if name.startswith('int') else rate} {name}".rstrip()
