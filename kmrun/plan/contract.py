"""The clauses of a kernel: which of them apply to a case on paper, and what is wrong with them."""

import fnmatch
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kmrun.core.case import Clause, Path
from kmrun.core.formula import Scope
from kmrun.core.formula_error import did_you_mean
from kmrun.plan.expression import Expression, Expressions
from kmrun.plan.report import NO_RIVAL, UNKNOWN_CARD, UNUSED_CLAUSE, Report
from kmrun.schema.suite import Kernel

ANY_DEVICE = "*"
_GLOB = frozenset("*?[")


@dataclass(slots=True)
class Promise:
    """A clause, its condition, and whether it applied anywhere."""

    clause: Clause
    when: Expression | None
    tags_fit: bool
    sound: bool
    applied: bool = False


class Contract:
    """All clauses of a kernel. One with `tags` concerns kernels that carry one of them."""

    def __init__(
        self, kernel: Kernel, path: Path, known_cards: Collection[str] | None, expressions: Expressions
    ) -> None:
        self.promises: list[Promise] = []
        self._always: tuple[Clause, ...] | None = None
        has_rival = bool(kernel.versus) or kernel.reference is not None
        for index, written in enumerate(kernel.contract):
            place = (*path, "contract", index)
            bound = written.bound
            bounds = dict(bound) if isinstance(bound, dict) else {ANY_DEVICE: bound}
            if isinstance(bound, dict) and known_cards is not None:
                _check_cards(bound, (*place, written.kind), known_cards, expressions.report)
            if written.kind == "min_speedup" and not has_rival:
                expressions.report.error(
                    NO_RIVAL,
                    (*place, written.kind),
                    "there is nothing to be faster than",
                    "give the kernel a 'reference' or a 'versus'",
                    on_key=True,
                )
            when = None
            if written.when is not None:
                when = expressions.condition((*place, "when"), written.when)
            self.promises.append(
                Promise(
                    clause=Clause(written.kind, bounds, written.xfail, place),
                    when=when,
                    tags_fit=not written.tags or bool(set(written.tags) & set(kernel.tags)),
                    sound=written.when is None or when is not None,
                )
            )

    def applying(self, scope: Scope) -> tuple[Clause, ...]:
        """Return the clauses that apply at one point, in order.

        Raises:
            Failure: a condition has no value there.
        """
        if self._always is not None:
            return self._always
        found: list[Clause] = []
        for promise in self.promises:
            if not promise.sound or not promise.tags_fit:
                continue
            if promise.when is None or promise.when.holds(scope):
                promise.applied = True
                found.append(promise.clause)
        if all(promise.when is None for promise in self.promises):
            self._always = tuple(found)
        return tuple(found)

    def report_unused(self, report: Report) -> None:
        """Report the clauses that applied to no case."""
        for promise in self.promises:
            if promise.applied:
                continue
            key = "when" if promise.tags_fit else "tags"
            message = "this clause applies to no case"
            hint = "its condition is never true" if promise.tags_fit else "the kernel has none of these tags"
            report.error(UNUSED_CLAUSE, (*promise.clause.place, key), message, hint)


def _check_cards(bounds: Iterable[str], path: Path, known_cards: Collection[str], report: Report) -> None:
    for name in bounds:
        if name in ("cpu", "gpu") or name in known_cards:
            continue
        if _GLOB & set(name):
            if not any(fnmatch.fnmatchcase(card, name) for card in known_cards):
                report.error(
                    UNKNOWN_CARD,
                    (*path, name),
                    f"'{name}' fits no card",
                    "`kmrun gpus` lists them",
                    on_key=True,
                )
            continue
        kinds = ("cpu", "gpu")
        hint = (
            did_you_mean(name, kinds if name.casefold() in kinds else (*known_cards, *kinds))
            or "`kmrun gpus` lists the cards"
        )
        report.error(UNKNOWN_CARD, (*path, name), f"unknown card '{name}'", hint, on_key=True)
