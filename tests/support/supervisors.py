"""A supervisor that measures nothing: it hands back prepared measurements, and notes what it was asked."""

from collections.abc import Callable, Mapping
from typing import Any, Self

from kmrun.core.case import Case
from kmrun.core.measurement import Ceilings, Measurement, RunDevice
from kmrun.core.opponent import Opponent
from support.cases import CEILINGS, CPU, make_found


class FakeSupervisor:
    """Answers a case with what `found` has for it, raised when it is an exception; else an ordinary one."""

    def __init__(
        self,
        found: Mapping[str, Measurement | BaseException] | None = None,
        device: RunDevice = CPU,
        after: Ceilings | None = None,
        entering: BaseException | None = None,
    ) -> None:
        self.found = dict(found or {})
        self.device = device
        self.seed = 7
        self.environment: dict[str, Any] = {"torch": "2.13.0"}
        self.after = after or CEILINGS
        self.entering = entering
        self.asked: list[Any] = []

    def __enter__(self) -> Self:
        if self.entering is not None:
            raise self.entering
        self.asked.append("enter")
        return self

    def __exit__(self, *_: object) -> None:
        self.asked.append("exit")

    def use_cache_bytes(self, cache_bytes: int) -> None:
        self.asked.append(("cache", cache_bytes))

    def open_ceilings(self, dtypes: tuple[str, ...]) -> Ceilings:
        self.asked.append(("open", dtypes))
        return CEILINGS

    def close_ceilings(self) -> Ceilings:
        self.asked.append("close")
        return self.after

    def measure(
        self, case: Case, progress: Callable[[str], None], opponent: Opponent | None = None
    ) -> Measurement:
        self.asked.append(case.id if opponent is None else (case.id, opponent))
        progress("timing 41 samples")
        found = self.found.get(case.id, make_found(case_id=case.id))
        if isinstance(found, BaseException):
            raise found
        return found
