"""Baseline files: `baselines/<suite>.<device>.json` beside the suite; written whole, newer formats refused."""

import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kmrun.core.baseline import VERSION, Baseline
from kmrun.core.plain import from_plain, to_plain
from kmrun.errors import InvalidInput, UsageError
from kmrun.schema import baseline as schema
from kmrun.store.results import no_constant
from kmrun.store.targets import TargetFile

FOLDER = "baselines"
_DAMAGE = "take the file away and save anew"
_SESSION = re.compile(r"\{\n\s+(\"kernel_ms\":[^{}]*?)\n\s+\}")


class DamagedBaseline(InvalidInput):
    """A baseline file that says nothing any more: a merge conflict, a part of one, a format that never was."""


def file_of(folder: Path, suite: str, key: str) -> Path:
    """Return where the baseline of a suite on a device lies; `folder` is the suite's own.

    What may stand in a suite's name and in no file's is replaced.
    """
    return folder / FOLDER / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', suite)}.{key}.json"


def others(folder: Path, suite: str, key: str) -> list[str]:
    """Return the device keys that there are other baselines of the suite for."""
    own = file_of(folder, suite, key)
    stem = own.name.removesuffix(f"{key}.json")
    found = (folder / FOLDER).glob(f"{stem}*.json") if (folder / FOLDER).is_dir() else []
    return sorted(path.name.removeprefix(stem).removesuffix(".json") for path in found if path != own)


def target(path: Path) -> TargetFile:
    """Return the file to write, found writable; its folder is made.

    Raises:
        UsageError: it cannot be written, or something else is there.
    """
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"--save-baseline {path.parent}: cannot be made: {reason}") from error
    return TargetFile(path, "--save-baseline", "baseline of kmrun", _is_baseline)


def render(baseline: Baseline) -> str:
    """Return the JSON text; a session stands on one line, so that a change is easy to read."""
    text = json.dumps(_rounded(to_plain(baseline)), indent=2, ensure_ascii=False, allow_nan=False)
    return _SESSION.sub(lambda match: "{" + " ".join(match[1].split()) + "}", text) + "\n"


def read(path: Path) -> Baseline | None:
    """Return the baseline of a file, None where there is none.

    Raises:
        DamagedBaseline: it is no baseline document.
        InvalidInput: it cannot be read, or was written by a newer kmrun.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(f"{path}: {(error.strerror or str(error)).lower()}") from error
    hint = "--save-baseline writes it anew" if _is_baseline(content) else _DAMAGE
    try:
        plain = json.loads(content.decode("utf-8"), parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise DamagedBaseline(f"{path}: not JSON: {error}", hint) from error
    version = plain.get("kmrun_baseline") if isinstance(plain, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise DamagedBaseline(f"{path}: no baseline document", hint)
    if version > VERSION:
        newer = "a newer kmrun wrote it: upgrade this one"
        raise InvalidInput(f"{path}: baseline format {version}, this kmrun reads {VERSION}", newer)
    try:
        schema.Baseline.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DamagedBaseline(f"{path}: damaged baseline: {where}: {first['msg'].lower()}", hint) from error
    return from_plain(Baseline, plain)


def _is_baseline(content: bytes) -> bool:
    """Say whether a file is a baseline, or what may be left of one; somebody's own notes are neither."""
    try:
        plain = json.loads(content)
    except (ValueError, RecursionError):
        return b'"kmrun_baseline"' in content or content.strip(b"\0 \r\n\t")[:1] in (b"", b"{")
    return not plain or (isinstance(plain, dict) and "kmrun_baseline" in plain)


def _rounded(plain: Any) -> Any:
    """Return the values with six digits: what lies below no session reproduces, and only fills files."""
    if isinstance(plain, float):
        return float(f"{plain:.6g}")
    if isinstance(plain, dict):
        return {key: _rounded(value) for key, value in plain.items()}
    return [_rounded(value) for value in plain] if isinstance(plain, list) else plain
