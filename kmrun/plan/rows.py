"""Every row of `cases` binds the same axes, or leaves them to `matrix`; a slip in a key is one mistake."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kmrun.core.case import Path
from kmrun.core.formula_error import did_you_mean
from kmrun.plan.names import DEVICE
from kmrun.plan.report import UNEVEN_ROW, Report
from kmrun.schema.suite import Kernel


def check_rows(
    kernel: Kernel, path: Path, used: Collection[str], unusable: Collection[str], report: Report
) -> bool:
    """Return whether all rows bind the same axes; report each stray key, and rows that lack axes, once.

    What most rows bind is right; where they are split, what the kernel's formulas (`used`) mention. The names
    that are `unusable` were told already; with one of them no rows are right.
    """
    rows = kernel.cases or ()
    expected = [name for name in _expected(rows, kernel, used) if name not in unusable]
    known = {*expected, *unusable, *kernel.matrix, DEVICE}
    told: set[str] = set()
    even = not unusable
    for index, row in enumerate(rows):
        missing = [name for name in expected if name not in row]
        extra = [name for name in row if name not in known]
        even = even and not missing and not extra
        for name in extra:
            if name not in told:
                told.add(name)
                near = did_you_mean(name, missing) or (f"did you mean '{missing[0]}'?" if missing else "")
                report.error(
                    UNEVEN_ROW,
                    (*path, "cases", index, name),
                    f"the other rows have no axis '{name}'",
                    near or "a row binds the same axes as the others",
                    on_key=True,
                )
        if missing and not extra and not told.issuperset(missing):
            told.update(missing)
            names = ", ".join(f"'{name}'" for name in missing)
            report.error(
                UNEVEN_ROW,
                (*path, "cases", index),
                f"this row has no {names}, which the other rows have",
                "a row binds the same axes as the others, or leaves them to 'matrix'",
            )
    return even


def _expected(rows: Sequence[Mapping[str, Any]], kernel: Kernel, used: Collection[str]) -> list[str]:
    counts: dict[str, int] = {}
    for row in rows:
        for name in row:
            if name != DEVICE and name not in kernel.matrix:
                counts[name] = counts.get(name, 0) + 1
    return [
        name
        for name, count in counts.items()
        if 2 * count > len(rows) or (2 * count == len(rows) and name in used)
    ]
