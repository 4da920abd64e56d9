"""What the torch that is installed was built for, without importing it, which takes seconds."""

import importlib.util
import re
from pathlib import Path
from typing import Literal

Kind = Literal["cpu", "cuda", "rocm"]
"""Of a device, as torch's build tells it."""
_BUILT_FOR: tuple[tuple[str, Kind], ...] = (("hip", "rocm"), ("cuda", "cuda"))


def torch_folder() -> Path | None:
    """Return where torch is installed; None where it is not."""
    try:
        found = importlib.util.find_spec("torch")
    except (ImportError, ValueError):  # something that is no package goes by its name
        return None
    return Path(found.origin).parent if found is not None and found.origin else None


def torch_kind() -> Kind | None:
    """Return the kind of device that torch runs on where there is one; None without torch, or if it does not say."""
    folder = torch_folder()
    try:
        text = (folder / "version.py").read_text(encoding="utf-8", errors="replace") if folder else ""
    except OSError:
        return None
    if not re.search(r"^cuda\b", text, re.MULTILINE):
        return None
    for name, kind in _BUILT_FOR:
        if re.search(rf"^{name}\b[^=\n]*=\s*['\"]", text, re.MULTILINE):
            return kind
    return "cpu"
