"""What a side reports when user code, a suite or the machine lets it down: it becomes a Finding."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from kmrun.core.measurement import FaultKind, Finding

Outcome = Literal["fail", "error", "inconclusive", "skipped"]

TAIL_LINES = 12


class SideFault(Exception):
    """Something other than kmrun went wrong inside a side.

    Attributes:
        code: stable name of the reason.
        sentence: what is wrong, for a person, one line.
        fault: whose fault it is: `kernel`, `suite`, `environment`.
        outcome: the verdict that it leads to by itself.
        detail: supporting text, e.g. the tail of a traceback.
    """

    default_fault: FaultKind = "suite"
    default_outcome: Outcome = "error"

    def __init__(
        self,
        code: str,
        sentence: str,
        fault: FaultKind | None = None,
        detail: str = "",
        outcome: Outcome | None = None,
    ) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.fault: FaultKind = fault or self.default_fault
        self.outcome: Outcome = outcome or self.default_outcome
        self.detail = detail

    def blamed_on(self, fault: FaultKind) -> "SideFault":
        """Return the same fault with a kernel's blame passed to another: a reference's module is the suite's."""
        if self.fault != "kernel":
            return self
        return SideFault(self.code, self.sentence, fault, self.detail, "error")

    def finding(self) -> Finding:
        """Return this as the plain record that crosses to the supervisor."""
        return Finding(self.code, self.sentence, self.fault, self.outcome, self.detail)


def written_to(name: str) -> SideFault:
    """Return the fault of a kernel that wrote to an input of its that the suite does not say it mutates."""
    sentence = f"the kernel wrote to its input {name!r}; declare `mutates: [{name}]` if it should"
    return SideFault("input_mutated", sentence, "kernel", outcome="fail")


OWN_CODE = str(Path(__file__).resolve().parents[1])


def traceback_tail(error: BaseException, lines: int = TAIL_LINES) -> str:
    """Return the last `lines` lines of the traceback of `error`, from where kmrun's own frames end."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename.startswith(OWN_CODE):
        frame = frame.tb_next
    text = "".join(traceback.format_exception(type(error), error, frame, chain=False))
    text = text.encode(errors="backslashreplace").decode()
    return "\n".join(text.rstrip().splitlines()[-lines:])


def _text(value: object, show: Callable[[object], str]) -> str:
    """Return a value as text that any stream can carry; what user code made may raise when it is printed."""
    try:
        text = show(value)
    except BaseException as unprintable:  # also an exit() in there
        return f"(printing it raised {type(unprintable).__name__})"
    return text.encode(errors="backslashreplace").decode()


def one_line(error: BaseException) -> str:
    """Return `ValueError: first line of the message`, at most 200 characters."""
    message = _text(error, str).strip().splitlines()
    text = f"{type(error).__name__}: {message[0]}" if message else type(error).__name__
    return _short(text)


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "..."


def what_it_did(error: BaseException) -> str:
    """Return `raised ValueError: ...`, or `called exit(3)`: what a person wrote, not what Python makes of it."""
    if isinstance(error, SystemExit):
        return f"called exit({_short(' '.join(_text(error.code, repr).split()))})"
    return f"raised {one_line(error)}"
