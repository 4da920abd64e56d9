"""Which compute roof a question is about: a figure by name, or the one that a suite's case asks for."""

from pathlib import Path
from typing import TYPE_CHECKING

from kmrun.core.card import Card
from kmrun.core.compare import PEAK_NAMES, figure_roof, peak_title
from kmrun.core.peaks import rate
from kmrun.errors import UsageError

if TYPE_CHECKING:
    from kmrun.core.case import Case, Peak


class RoofChoice:
    """A compute roof: a card's figure, else `{units, in, acc}` of a case, else the author's flop/s."""

    def __init__(self, figure: str | None = None, peak: "Peak | None" = None, what: str = "") -> None:
        """Take one of both; `what` names the kernel that the question is about."""
        self.figure = figure
        self.peak = peak
        self.what = what

    def roof(self, card: Card) -> float | None:
        """Return the card's compute roof in flop/s, None where unknown."""
        if self.figure is not None:
            return figure_roof(self.figure)(card)
        if self.peak is None:
            return None
        if self.peak.tflops is not None:
            return self.peak.tflops * 1e12
        return rate(card, self.peak.units or "", self.peak.dtype or "", self.peak.acc)

    @property
    def title(self) -> str:
        """How a person calls the roof."""
        if self.figure is not None:
            return peak_title(self.figure)
        if self.peak is None or self.peak.tflops is not None:
            return f"{self.peak.tflops if self.peak else 0:.4g} TFLOP/s"
        accumulate = f" ({self.peak.acc} accumulate)" if self.peak.acc else ""
        return f"{self.peak.dtype} {self.peak.units}{accumulate}"

    @property
    def name(self) -> str:
        """How `--peak` calls the roof; the title where it has no such name."""
        return next((name for name, figure in PEAK_NAMES.items() if figure == self.figure), self.title)

    @property
    def unit(self) -> str:
        """The unit of the roof: integers make operations, not flop."""
        return "TOP/s" if self.figure is not None and self.figure.endswith("_tops") else "TFLOP/s"

    @property
    def column(self) -> str:
        """The figure to show beside fp32."""
        return self.figure if self.figure and self.figure != "fp32_tflops" else "fp16_tensor_tflops"


def chosen_roof(peak: str | None, tensor: bool) -> RoofChoice | None:
    """Return the roof of `--peak` or `--tensor`, None when neither was given.

    Raises:
        UsageError: no such peak, or both.
    """
    if peak is None:
        return RoofChoice(PEAK_NAMES["fp16"]) if tensor else None
    if tensor:
        raise UsageError("--tensor is short for --peak fp16", "leave one out")
    name = peak.lower().replace("_", "-")
    if name not in PEAK_NAMES:
        raise UsageError(f"no peak is called {peak!r}", f"one of {', '.join(PEAK_NAMES)}")
    return RoofChoice(PEAK_NAMES[name])


def case_roof(suite: Path, pattern: str | None) -> tuple[float, RoofChoice]:
    """Return the intensity in flop/byte and the roof of one case of a suite; none of its code is run.

    Raises:
        KmrunError: the suite is wrong, the pattern names no case or several, or the case has no intensity.
    """
    case = _one_case(suite, pattern)
    if not case.bytes or not case.flops:
        missing = "bytes" if not case.bytes else "flops"
        hint = f"say `{missing}:` in the suite"
        if not case.bytes:
            hint += ", or `outputs:`, from which they follow"
        raise UsageError(f"{case.id} has no {missing} before it is run", hint)
    figure = PEAK_NAMES["fp32"] if case.peak is None else None
    return case.flops / case.bytes, RoofChoice(figure, case.peak, case.id)


def _one_case(suite: Path, pattern: str | None) -> "Case":
    from kmrun.plan import select
    from kmrun.source.suite_plan import read_and_plan

    planned = read_and_plan(suite).expansion.cases
    matching = select(planned, pattern=pattern).cases
    on_gpu = select(matching, kind="cuda").cases or select(matching, kind="rocm").cases
    cases = on_gpu or matching
    if not cases:
        raise UsageError(f"{suite} has no case")
    if len(cases) > 1:
        shown = ", ".join(case.id for case in cases[:4]) + (", ..." if len(cases) > 4 else "")
        raise UsageError(f"-k must name one case of {suite}: {len(cases)} fit", shown)
    return cases[0]
