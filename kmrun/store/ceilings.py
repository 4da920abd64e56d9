"""Matmul ceilings of GPUs, kept between runs: measuring them anew each time would cost seconds and change nothing.

One small JSON file in the user's cache folder. It is a cache: what cannot be read counts as empty, and what cannot be
written is measured again.
"""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kmrun.core.measurement import MatmulRate

VERSION = 1


@dataclass(frozen=True, slots=True)
class CeilingKey:
    """What a GPU's matmul rate depends on. `ecc` is None where the card has none, `locked`: its clock was held."""

    uuid: str
    driver: str
    torch: str
    power_limit_w: float
    ecc: bool | None
    locked: bool = False


class CeilingCache:
    """The kept rates.

    Args:
        path: of the file, by default in the user's cache folder.
        now: returns the seconds since the epoch.
    """

    def __init__(self, now: Callable[[], float], path: Path | None = None) -> None:
        self._now, self._path = now, path or cache_folder() / "ceilings.json"

    def find(self, key: CeilingKey) -> tuple[MatmulRate, ...]:
        """Return the rates that are known of a GPU, each with its age."""
        now = self._now()
        return tuple(
            MatmulRate(dtype, int(entry["n"]), float(entry["flop_per_s"]), max(now - float(entry["at"]), 0.0))
            for dtype, entry in self._read().get(_name(key), {}).items()
        )

    def keep(self, key: CeilingKey, rates: Sequence[MatmulRate]) -> None:
        """Keep rates that were measured just now, in place of older ones of the same dtypes."""
        machines = dict(self._read())
        known = dict(machines.get(_name(key), {}))
        at = self._now()
        known |= {rate.dtype: {"n": rate.n, "flop_per_s": rate.flop_per_s, "at": at} for rate in rates}
        machines[_name(key)] = known
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._replace(json.dumps({"kmrun_ceilings": VERSION, "machines": machines}, indent=2))

    def _read(self) -> Mapping[str, Any]:
        try:
            plain = json.loads(self._path.read_text(encoding="utf-8"))
            machines = plain["machines"] if plain["kmrun_ceilings"] == VERSION else {}
            # Every figure is looked at here, so that a damaged file is an empty one and never half of one.
            for entries in machines.values():
                for dtype, entry in entries.items():
                    MatmulRate(str(dtype), int(entry["n"]), float(entry["flop_per_s"]), float(entry["at"]))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}
        found: Mapping[str, Any] = machines
        return found

    def _replace(self, text: str) -> None:
        handle, temporary = tempfile.mkstemp(prefix=".kmrun-", dir=self._path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            Path(temporary).replace(self._path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                Path(temporary).unlink()


def cache_folder() -> Path:
    """Return kmrun's folder in the user's cache: `$XDG_CACHE_HOME/kmrun`, else the system's own place."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if Path(named).is_absolute():  # the specification has relative ones ignored
        return Path(named) / "kmrun"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "kmrun"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/kmrun"
    return Path.home() / ".cache/kmrun"


def _name(key: CeilingKey) -> str:
    return json.dumps(asdict(key), sort_keys=True)
