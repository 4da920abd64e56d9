"""Writes core/architectures.py and the compiled catalogues from cards/*.yaml; `--check` only compares.

    python -m kmrun.source.generate [--check]

Both stand in the repository, so that everyday commands need neither yaml nor pydantic; a test runs the check.
"""

import difflib
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from kmrun import resources
from kmrun.core.architecture import Architecture
from kmrun.source import model_catalogue
from kmrun.source.card_files import read_architectures, read_cards
from kmrun.source.catalogue import COMPILED, compiled, sources
from kmrun.source.model_files import read_models, read_quants

_WIDTH = 110
_HEADER = '''"""Architectures by id: rates per unit and clock, and what one SM holds.

GENERATED from cards/architectures.yaml by `python -m kmrun.source.generate`; a test compares it. Do not edit.
"""

from kmrun.core.architecture import Architecture, OccupancyLimits

ARCHITECTURES: dict[str, Architecture] = {
'''
_FOOTER = '''}

BY_COMPUTE_CAPABILITY: dict[str, Architecture] = {
    architecture.compute_capability: architecture
    for architecture in ARCHITECTURES.values()
    if architecture.compute_capability is not None
}
"""NVIDIA's architectures by compute capability (`9.0`)."""
'''


def generated() -> dict[Path, str]:
    """Return the text of every generated file by its path."""
    cards_yaml, architectures_yaml = sources()
    architectures = read_architectures(architectures_yaml)
    cards = read_cards(cards_yaml, architectures=architectures)
    models_yaml, quants_yaml = model_catalogue.sources()
    language_models = model_catalogue.compiled(
        read_models(models_yaml).values(), read_quants(quants_yaml).values()
    )
    package = Path(__file__).resolve().parent.parent
    return {
        package / "core" / "architectures.py": architectures_module(architectures),
        resources.folder("cards") / COMPILED: compiled(cards.values()),
        resources.folder("cards") / model_catalogue.COMPILED: language_models,
    }


def architectures_module(architectures: Mapping[str, Architecture]) -> str:
    """Return the source of `kmrun/core/architectures.py`."""
    body = "".join(
        f'    "{key}": {_literal(value, 4, 8 + len(key))},\n' for key, value in architectures.items()
    )
    return _HEADER + body + _FOOTER


def _literal(value: object, indent: int, before: int) -> str:
    """Return `value` as source, laid out as the formatter would. `before`: characters left of it."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, tuple | Mapping) and value:
        return _container(value, indent, before)
    names = getattr(type(value), "__dataclass_fields__", None)
    if names is None:
        return repr(dict(value)) if isinstance(value, Mapping) else repr(value)
    inner = " " * (indent + 4)
    rows = [
        f"{inner}{name}={_literal(getattr(value, name), indent + 4, indent + 5 + len(name))}"
        for name in names
    ]
    return f"{type(value).__name__}(\n" + ",\n".join(rows) + f",\n{' ' * indent})"


def _container(value: tuple[object, ...] | Mapping[str, object], indent: int, before: int) -> str:
    pairs: list[tuple[str, object]] = (
        [(f"{json.dumps(key)}: ", item) for key, item in value.items()]
        if isinstance(value, Mapping)
        else [("", item) for item in value]
    )
    first, last = "{}" if isinstance(value, Mapping) else "()"
    short = first + ", ".join(head + _literal(item, 0, 0) for head, item in pairs) + last
    if before + len(short) + 1 <= _WIDTH and "\n" not in short:
        return short
    inner = " " * (indent + 4)
    rows = (inner + head + _literal(item, indent + 4, indent + 4 + len(head)) for head, item in pairs)
    return f"{first}\n" + ",\n".join(rows) + f",\n{' ' * indent}{last}"


def main(arguments: list[str]) -> int:
    """Write the generated files, or with `--check` print how they differ; return the exit status."""
    stale = {path: text for path, text in generated().items() if _current(path) != text}
    for path, text in stale.items():
        if "--check" in arguments:
            before, after = _current(path).splitlines(keepends=True), text.splitlines(keepends=True)
            sys.stdout.writelines(difflib.unified_diff(before, after, str(path), "generated", n=0))
        else:
            path.write_text(text, encoding="utf-8", newline="\n")
            sys.stdout.write(f"wrote {path}\n")
    if stale and "--check" in arguments:
        sys.stdout.write("stale: run `python -m kmrun.source.generate`\n")
        return 1
    return 0


def _current(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
