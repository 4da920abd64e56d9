"""The corpus of suites with one mistake each, and what `check` says of them.

`python -m support.bad_suites` in tests/ writes the golden files anew; read the difference before committing.
"""

from pathlib import Path

from kmrun.source.diagnostics import Diagnostic, InvalidSuite, render
from kmrun.source.suite_plan import read_and_plan

FOLDER = Path(__file__).resolve().parent.parent / "bad"
SUITES = sorted(FOLDER.glob("*.yaml"))


def diagnosed(path: Path) -> tuple[Diagnostic, ...]:
    """Return all diagnostics of a suite, errors and warnings."""
    try:
        return read_and_plan(path, path.name).warnings
    except InvalidSuite as error:
        return error.diagnostics


def golden(path: Path) -> Path:
    """Return the file that holds what is expected."""
    return path.with_suffix(".expected.txt")


def main() -> None:
    """Write all golden files."""
    for path in SUITES:
        golden(path).write_text(render(diagnosed(path), "text"), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
