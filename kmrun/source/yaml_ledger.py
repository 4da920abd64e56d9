"""What reading a document has cost so far, and the mistakes that were found on the way."""

from dataclasses import dataclass
from typing import NoReturn

from kmrun.core.case import Path
from kmrun.source.diagnostics import Diagnostic, InvalidSuite
from kmrun.source.document import Source, Span


@dataclass(frozen=True, slots=True)
class Limits:
    """What a document may cost."""

    file_bytes: int = 2 * 1024 * 1024
    nodes: int = 500_000
    """Values once aliases and merges are expanded."""
    depth: int = 60
    entries: int = 20_000
    """Of one mapping or list as written."""
    mistakes: int = 100
    """After so many the rest is not looked for."""


LIMITS = Limits()


class Ledger:
    """Counts nodes and collects mistakes; ends the reading where a limit is passed.

    `spoiled` are the document paths at which a mistake stands: nothing else is said there.
    """

    def __init__(self, source: Source, limits: Limits) -> None:
        self.source = source
        self.limits = limits
        self.found: list[Diagnostic] = []
        self.spoiled: set[Path] = set()
        self._count = 0

    def spend(self, nodes: int, span: Span) -> None:
        """Pay for nodes. Raises InvalidSuite at `span` where that is too much."""
        self._count += nodes
        if self._count > self.limits.nodes:
            limit = f"{self.limits.nodes:,}"
            self.stop(span, "K107", f"more than {limit} values once aliases and merges are expanded")

    def check_depth(self, levels: int, span: Span, expanded: bool = False) -> None:
        """Raise InvalidSuite where something would lie too deep."""
        if levels > self.limits.depth:
            when = " once aliases are expanded" if expanded else ""
            self.stop(span, "K107", f"nested deeper than {self.limits.depth} levels{when}")

    def check_entries(self, number: int, span: Span) -> None:
        """Raise InvalidSuite where a mapping or a list has too many entries."""
        if number > self.limits.entries:
            self.stop(span, "K107", f"more than {self.limits.entries:,} entries in one place")

    def mistake(self, span: Span, path: Path, code: str, message: str, hint: str = "") -> None:
        """Note a mistake and go on. Raises InvalidSuite when there are too many."""
        self.found.append(self.diagnostic(span, code, message, hint))
        self.spoiled.add(path)
        if len(self.found) >= self.limits.mistakes:
            raise InvalidSuite(self.found)

    def stop(self, span: Span, code: str, message: str, hint: str = "") -> NoReturn:
        """Raise InvalidSuite with this mistake and those before it."""
        raise InvalidSuite([*self.found, self.diagnostic(span, code, message, hint)])

    def diagnostic(self, span: Span, code: str, message: str, hint: str = "") -> Diagnostic:
        """Return a diagnostic of this document."""
        return Diagnostic(self.source.name, span, code, message, hint, source=self.source)
