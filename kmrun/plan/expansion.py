"""A whole suite, expanded: every case of every device row, and every mistake that reading cannot see."""

from collections.abc import Collection
from dataclasses import dataclass

from kmrun.core.case import Case
from kmrun.core.problem import Problem
from kmrun.plan import settings
from kmrun.plan.axes import MAX_POINTS
from kmrun.plan.evaluation import Excluded, PlannedKernel, evaluate
from kmrun.plan.kernel import PreparedKernel
from kmrun.plan.report import SAME_KERNEL, Report
from kmrun.plan.usage import output_dtypes, report_unused_tolerances
from kmrun.schema.suite import Suite


@dataclass(frozen=True, slots=True)
class Expansion:
    """What a suite expands to.

    `cases` in document order, rows for other devices included; a kernel with errors has none. `problems`
    carry document paths. `excluded` are the points that an `exclude` took away, with its reason.
    """

    cases: tuple[Case, ...]
    problems: tuple[Problem, ...]
    excluded: tuple[Excluded, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Whether a problem is more than a warning."""
        return any(problem.severity == "error" for problem in self.problems)


def expand(suite: Suite, folder: str, known_cards: Collection[str] | None = None) -> Expansion:
    """Expand all kernels of a suite; evaluate every formula for every case. Runs no user code.

    Args:
        suite: the validated document.
        folder: the suite's directory, which targets are relative to.
        known_cards: ids and aliases of the card database; None leaves card names unjudged.
    """
    report = Report()
    default_tolerance = settings.tolerances(suite.defaults.tolerance, ("defaults", "tolerance"), report)
    cards = frozenset(known_cards) if known_cards is not None else None
    planned: list[PlannedKernel] = []
    limit = MAX_POINTS
    first_of: dict[str, int] = {}
    for index, kernel in enumerate(suite.kernels):
        path = ("kernels", index)
        if first_of.setdefault(kernel.name, index) != index:
            sentence = f"a second kernel named '{kernel.name}'"
            report.error(SAME_KERNEL, (*path, "name"), sentence, "results are known by it: rename one")
        prepared = PreparedKernel(kernel, path, suite.defaults, default_tolerance, folder, cards, report)
        planned.append(evaluate(prepared, limit))
        limit -= len(planned[-1].cases) + len(planned[-1].excluded)
    cases = tuple(case for one in planned for case in one.cases)
    if suite.defaults.tolerance and not any(one.has_errors for one in planned):
        report_unused_tolerances(
            suite.defaults.tolerance, ("defaults", "tolerance"), output_dtypes(cases), report
        )
    excluded = tuple(point for one in planned for point in one.excluded)
    return Expansion(cases, report.problems, excluded)
