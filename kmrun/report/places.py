"""Where a reader is sent for a case: to the clause that decided it, else to its kernel."""

from kmrun.core.result import CaseResult

Place = tuple[str, int]


def place_of(case: CaseResult) -> Place | None:
    """Return file and line of the first clause that is broken or undecided, else of the case's kernel."""
    for clause in case.clauses:
        if clause.verdict in ("fail", "inconclusive") and clause.kind != "correct" and clause.file:
            return clause.file, clause.line or 1
    return (case.file, case.line or 1) if case.file else None


def place_text(case: CaseResult) -> str:
    """Return `file:line`, empty where nothing is known."""
    place = place_of(case)
    return f"{place[0]}:{place[1]}" if place else ""


def place_named(file: str | None, line: int | None) -> str:
    """Return `file:line`, the file alone where the line is unknown, `-` where nothing is."""
    if not file:
        return "-"
    return file if line is None else f"{file}:{line}"
