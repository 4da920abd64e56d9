"""The operations of a side that hosts one of two versions: settle in its tree, show where its code came from."""

import os
import sys
from pathlib import Path
from typing import Any

from kmrun.core.plain import to_plain
from kmrun.measure.origin import Origin
from kmrun.measure.placement import settle_on
from kmrun.measure.provenance import Provenance, separate_caches


class VersionOperations:
    """A side's place among two versions. Public methods are operations."""

    _provenance: Provenance | None = None
    _cache_bytes: int

    def use_tree(
        self, root: str, other: str, caches: str | None, folder: str, cores: list[int] | None = None
    ) -> None:
        """Settle in one version's tree: import from it, work in its suite's folder, compile into its own caches.

        For good: such a side hosts nothing else, and runs on no other cores where some are given.
        """
        if cores:
            settle_on(set(cores))
        self._provenance = Provenance(root, other)
        self._provenance.turn_imports()
        if caches is not None:
            separate_caches(caches)
        os.chdir(folder)

    def share_cache(self, users: int) -> None:
        """Take a share of the last-level cache for all of it: others send as much through it between two turns."""
        self._cache_bytes //= users

    def _origin_of(self, target: str, folder: str) -> dict[str, Any]:
        provenance = self._provenance
        if provenance is None:
            raise ValueError("the side is in no tree")
        place = target.rpartition(":")[0]
        if place.endswith(".py"):
            file: str | None = str(Path(folder, place).resolve())
            own_copy = None
        else:
            module = sys.modules.get(place)
            found = getattr(module, "__file__", None)
            file = str(Path(found).resolve()) if found else None
            package = place.partition(".")[0]
            own_copy = package if provenance.holds(package) else None
        home = provenance.home(file) if file else "elsewhere"
        plain: dict[str, Any] = to_plain(
            Origin(
                file,
                home,
                tuple(provenance.foreign()),
                own_copy,
                str(provenance.own),
                provenance.loads_own(),
                tuple(provenance.installed()),
            )
        )
        return plain
