"""A suite that stands in no file: text that kmrun wrote itself, read like any other."""

import tempfile
from pathlib import Path

from kmrun.plan import expand
from kmrun.source.diagnostics import InvalidSuite
from kmrun.source.suite_plan import PlannedSuite
from kmrun.source.suite_reader import ReadSuite, examine, to_diagnostics


def plan_text(text: str, name: str, folder: Path) -> PlannedSuite:
    """Return the suite of a text as if it stood in `folder` under `name`. Runs none of its code.

    Raises:
        InvalidSuite: with every mistake in it.
    """
    with tempfile.TemporaryDirectory(prefix="kmrun-") as place:
        path = Path(place, "suite.yaml")
        path.write_text(text, encoding="utf-8")
        examined = examine(path, name)
    found = list(examined.diagnostics)
    if examined.suite is None:
        raise InvalidSuite(found)
    expansion = expand(examined.suite, str(folder.resolve()))
    found += to_diagnostics(expansion.problems, examined.document)
    if any(item.severity == "error" for item in found):
        raise InvalidSuite(found)
    read = ReadSuite(examined.suite, examined.document, folder / "suite.yaml", examined.document.digest)
    return PlannedSuite(read, expansion, tuple(found))
