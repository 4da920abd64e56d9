"""What a whole run came to, in words: the one place for a terminal's last line, a banner and a table of runs."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from kmrun.core.result import Result
from kmrun.report.numbers import count, duration
from kmrun.report.words import WORDS, word_of

Colour = Literal["pass", "fail", "warn", "skip"]

WORST_FIRST = ("WRONG", "FAIL", "ERROR", "INCONCLUSIVE", "pass", "skipped")
_BROKEN = {
    "WRONG": "A result is wrong",
    "FAIL": "A contract is broken",
    "ERROR": "A case could not be measured",
}
PARTIAL = "interrupted, partial"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict of a run. `headline` promises no more than is known; `counts` has the verdict words found."""

    headline: str
    colour: Colour
    sentence: str
    summary: str
    """On one line: how many cases came to what."""
    counts: Counter[str]


def outcome_of(result: Result) -> Outcome:
    """Return what a run came to: green only where it ended, and every case was measured and kept a promise."""
    found = Counter(word_of(case) for case in result.cases)
    headline, colour = _headline(result, found)
    return Outcome(headline, colour, _sentence(result, found), _summary(result, found), found)


def _headline(result: Result, found: Counter[str]) -> tuple[str, Colour]:
    broken = next((said for word, said in _BROKEN.items() if found[word]), None)
    if broken is not None:
        return broken, "fail"
    if not result.complete:
        some = found["pass"] + found["INCONCLUSIVE"]
        return f"Interrupted: {'only a part' if some else 'nothing'} was measured", "warn"
    if found["INCONCLUSIVE"]:
        return "Nothing broken, something undecided", "warn"
    if not found["pass"]:
        return "Nothing was measured", "skip"
    if not _judged(result):
        return "No clause was judged", "skip"
    if found["skipped"]:
        return (
            f"Only {found['pass']} of {count(len(result.cases), 'case')} measured: what was judged holds",
            "warn",
        )
    if _unjudged(result):
        return "Every clause that was judged holds", "pass"
    return "All contracts hold", "pass"


def _sentence(result: Result, found: Counter[str]) -> str:
    """Return the cases that do not hold by how they do not, of how many, and what else bounds the verdict."""
    told = _counts(found, without="pass")
    cases = f"{count(len(result.cases), 'case')} in {duration(result.wall_s)}."
    said = [f"{told} of {cases}" if told else cases]
    if found["pass"] and (unjudged := _unjudged(result)):
        said.append(f"{count(unjudged, 'clause')} could not be judged.")
    if not result.complete:
        said.append("The run was interrupted: this is a part of it.")
    return " ".join(said)


def _summary(result: Result, found: Counter[str]) -> str:
    told = _counts(found)
    if found["pass"] and not _judged(result):
        told += ", no clause judged"
    partial = "" if result.complete else f"{PARTIAL}: "
    cases = f"{count(len(result.cases), 'case')} in {duration(result.wall_s)}"
    return f"{partial}{cases}" + (f": {told}" if told else "")


def _counts(found: Counter[str], without: str = "") -> str:
    """Return `1 wrong, 3 fail`: verdict words with how often each was found."""
    return ", ".join(
        f"{found[word]} {word.lower()}" for word in WORDS.values() if found[word] and word != without
    )


def _judged(result: Result) -> int:
    return sum(clause.verdict != "not judged" for case in result.cases for clause in case.clauses)


def _unjudged(result: Result) -> int:
    """Return how many clauses of cases that were measured nobody could judge."""
    return sum(
        clause.verdict == "not judged"
        for case in result.cases
        if case.verdict != "skipped"
        for clause in case.clauses
    )
