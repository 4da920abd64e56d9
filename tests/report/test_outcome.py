"""A verdict over a whole run says no more than is known."""

from dataclasses import replace

import pytest

from kmrun.core.result import ClauseEntry
from kmrun.report.outcome import outcome_of
from kmrun.report.view import view
from support.gpu_results import broken
from support.results import make_entry, make_result

RIGHT = make_entry()
UNJUDGED = ClauseEntry("min_roof", 0.5, None, None, None, "not judged", "no roof is known", "a.yaml", 3)


def many(*cases, **changes):
    return make_result(*(replace(case, id=f"k{at}") for at, case in enumerate(cases)), **changes)


def skipped(count):
    return [replace(RIGHT, verdict="skipped", correct=None, clauses=())] * count


@pytest.mark.parametrize(
    ("result", "headline", "colour"),
    [
        (many(RIGHT, RIGHT), "All contracts hold", "pass"),
        (many(RIGHT, complete=False), "Interrupted: only a part was measured", "warn"),
        (many(*skipped(2), complete=False), "Interrupted: nothing was measured", "warn"),
        (many(broken(RIGHT), complete=False), "A contract is broken", "fail"),
        (many(replace(RIGHT, clauses=(UNJUDGED,))), "No clause was judged", "skip"),
        (many(replace(RIGHT, clauses=())), "No clause was judged", "skip"),
        (
            many(replace(RIGHT, clauses=(*RIGHT.clauses, UNJUDGED))),
            "Every clause that was judged holds",
            "pass",
        ),
        (many(RIGHT, *skipped(13)), "Only 1 of 14 cases measured: what was judged holds", "warn"),
        (many(*skipped(3)), "Nothing was measured", "skip"),
    ],
)
def test_the_headline(result, headline, colour):
    outcome = outcome_of(result)
    assert (outcome.headline, outcome.colour) == (headline, colour)


def test_the_sentence_counts_each_kind_of_failure():
    wrong = replace(RIGHT, verdict="fail", correct=False)
    error = replace(RIGHT, verdict="error")
    outcome = outcome_of(many(wrong, broken(RIGHT), broken(RIGHT), error, RIGHT, wall_s=83.0))
    assert outcome.headline == "A result is wrong"
    assert outcome.sentence == "2 fail, 1 wrong, 1 error of 5 cases in 83 s."


def test_what_was_not_judged_and_what_is_missing_is_in_the_sentence():
    unjudged = replace(RIGHT, clauses=(*RIGHT.clauses, UNJUDGED))
    outcome = outcome_of(many(unjudged, RIGHT, *skipped(1), complete=False, wall_s=9.0))
    assert outcome.sentence == (
        "1 skipped of 3 cases in 9.0 s. 1 clause could not be judged. "
        "The run was interrupted: this is a part of it."
    )


def test_the_terminal_says_the_same_as_the_page():
    assert view(many(replace(RIGHT, clauses=()))).summary == "1 case in 12 s: 1 pass, no clause judged"
    for result in (many(RIGHT), many(RIGHT, *skipped(2)), many(broken(RIGHT), complete=False)):
        assert view(result).summary == outcome_of(result).summary
