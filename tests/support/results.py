"""Result documents for tests, made the way a run makes them."""

from typing import Any

from kmrun.core.case import Case
from kmrun.core.entries import case_result, ceiling_entry, device_entry
from kmrun.core.measurement import Measurement, RunDevice
from kmrun.core.result import CaseResult, Result, SuiteEntry
from kmrun.core.score import Roofs, score
from kmrun.core.verdict import judge
from support.cases import CEILINGS, CPU, make_case, make_found


def make_entry(
    case: Case | None = None,
    found: Measurement | None = None,
    device: RunDevice = CPU,
    roofs: Roofs | None = None,
) -> CaseResult:
    """The document's entry of a case, scored and judged."""
    case, found, roofs = case or make_case(), found or make_found(), roofs or Roofs()
    ceilings = CEILINGS
    scored = score(case, found, device, ceilings, roofs)
    judged = judge(case, found, scored, device.kind, roofs.card, 0.01)
    return case_result(case, found, scored, judged, lambda path: ("suites/add.yaml", 3 + len(path)))


def make_result(*entries: CaseResult, **changes: Any) -> Result:
    """A complete document of those cases; of one unremarkable case when none is given."""
    fields: dict[str, Any] = {
        "kmrun_result": 1,
        "complete": True,
        "suite": SuiteEntry("adding", "suites/add.yaml", "0" * 64),
        "started": "2026-01-02T03:04:05+00:00",
        "wall_s": 12.5,
        "command": ("kmrun", "suites/add.yaml"),
        "seed": 7,
        "error_rate": 0.01,
        "device": device_entry(CPU, None),
        "environment": {"kmrun": "0.1.0", "python": "3.11.9", "torch": "2.13.0"},
        "ceilings": ceiling_entry(CEILINGS),
        "cases": entries or (make_entry(),),
    }
    return Result(**(fields | changes))
