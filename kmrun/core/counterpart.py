"""Which result of an earlier file is of the same suite as one of today."""

from collections.abc import Sequence

from kmrun.core.result import Result, SuiteEntry


def counterpart(suite: SuiteEntry, among: Sequence[Result]) -> Result | None:
    """Return the result of the same suite, None where there is none or no telling which.

    Two suites of one name are told apart by their files. A file may have been named from another folder, so
    where no file fits the name alone will do, as long as it is of one suite only.
    """
    named = [result for result in among if result.suite.name == suite.name]
    same = [result for result in named if result.suite.file == suite.file]
    if same:
        return same[-1]
    return named[0] if len(named) == 1 else None


def counterparts(before: Sequence[Result], after: Sequence[Result]) -> list[tuple[Result, Result]]:
    """Return the pairs of earlier and later results of one suite, in the order of the later; none is in two pairs."""
    found = [(then, now) for now in after if (then := counterpart(now.suite, before)) is not None]
    exact = {id(then) for then, now in found if then.suite.file == now.suite.file}
    taken = [id(then) for then, _ in found]
    return [
        (then, now)
        for then, now in found
        if then.suite.file == now.suite.file or (id(then) not in exact and taken.count(id(then)) == 1)
    ]
