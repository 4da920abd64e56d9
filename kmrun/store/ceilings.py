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
_MOST = 1e20
"""No machine computes, and no clock counts, as far."""


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
        path: of the file, by default in the user's cache folder; nothing is kept for a user who has none.
        now: returns the seconds since the epoch.
    """

    def __init__(self, now: Callable[[], float], path: Path | None = None) -> None:
        folder = None if path else cache_folder()
        self._now, self._path = now, folder / "ceilings.json" if folder else path

    def find(self, key: CeilingKey) -> tuple[MatmulRate, ...]:
        """Return the rates that are known of a GPU, each with its age."""
        now = self._now()
        return tuple(
            MatmulRate(dtype, int(entry["n"]), float(entry["flop_per_s"]), max(now - float(entry["at"]), 0.0))
            for dtype, entry in self._read().get(_name(key), {}).items()
        )

    def keep(self, key: CeilingKey, rates: Sequence[MatmulRate]) -> None:
        """Keep rates that were measured just now, in place of older ones of the same dtypes."""
        if self._path is None:
            return
        machines = dict(self._read())
        known = dict(machines.get(_name(key), {}))
        at = self._now()
        known |= {rate.dtype: {"n": rate.n, "flop_per_s": rate.flop_per_s, "at": at} for rate in rates}
        machines[_name(key)] = known
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            _replace(self._path, json.dumps({"kmrun_ceilings": VERSION, "machines": machines}, indent=2))

    def _read(self) -> Mapping[str, Any]:
        if self._path is None:
            return {}
        try:
            if not self._path.is_file():  # a pipe is never read to its end
                return {}
            plain = json.loads(self._path.read_text(encoding="utf-8"))
            machines = plain["machines"] if plain["kmrun_ceilings"] == VERSION else {}
            # Every figure is looked at here, so that a damaged file is an empty one and never half of one.
            for entries in machines.values():
                for dtype, entry in entries.items():
                    figures = entry["n"], entry["flop_per_s"], entry["at"]
                    if not isinstance(dtype, str) or not all(_is_figure(figure) for figure in figures):
                        return {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}
        found: Mapping[str, Any] = machines
        return found


def _is_figure(value: object) -> bool:
    """Return whether a value is a number that a measurement comes to; JSON as Python reads it has others."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and 0 < value < _MOST  # type: ignore[operator]


def _replace(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(prefix=".kmrun-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(temporary).replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()


def cache_folder() -> Path | None:
    """Return kmrun's folder in the user's cache: `$XDG_CACHE_HOME/kmrun`, else the system's own place.

    None for a user without a home, as containers have them: a folder that all users share is no place for figures
    that are believed later.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    if Path(named).is_absolute():  # the specification has relative ones ignored
        return Path(named) / "kmrun"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "kmrun"
    try:
        home = Path.home()
    except RuntimeError:  # $HOME is not set, and the system's list of users does not have this one
        return None
    if not home.is_absolute() or home == Path(
        home.anchor
    ):  # an empty $HOME reads as the root of the file system
        return None
    return home / ("Library/Caches/kmrun" if sys.platform == "darwin" else ".cache/kmrun")


def _name(key: CeilingKey) -> str:
    return json.dumps(asdict(key), sort_keys=True)
