"""A model in several files: the parts by their names (`model-00002-of-00005.safetensors`), all or none."""

from collections.abc import Sequence
from pathlib import Path

from kmrun.errors import InvalidInput, UsageError

MOST_PARTS = 10_000


def part_of(path: Path) -> int | None:
    """Return which part of a model a file is by its name, None where it is all of it."""
    number, of, total = path.stem[-14:-9], path.stem[-9:-5], path.stem[-5:]
    return int(number) if of == "-of-" and number.isdigit() and total.isdigit() else None


def all_parts(path: Path) -> list[Path]:
    """Return the files of the model that a file belongs to, in their order.

    Raises:
        InvalidInput: one of them is missing, or the name is that of no part.
    """
    if part_of(path) is None:
        return [path]
    stem, total = path.stem[:-14], path.stem[-5:]
    count = int(total)
    if not 0 < count <= MOST_PARTS:
        raise InvalidInput(f"{path.name} is a part of {'nothing' if count == 0 else 'too many'}")
    parts = [path.with_name(f"{stem}{index:05d}-of-{total}{path.suffix}") for index in range(1, count + 1)]
    missing = next((part for part in parts if not part.exists()), None)
    if missing is not None:
        raise InvalidInput(f"{missing} is missing", f"{path.name} is one of {count} parts")
    return parts


def of_one_model(files: Sequence[Path]) -> list[Path]:
    """Return those of the files in a folder that are its model.

    A hub's folder may hold the same weights twice, as `model...` and as `consolidated...`; the former is read.

    Raises:
        InvalidInput: a part is missing.
        UsageError: there are parts of several models.
    """
    usual = [path for path in files if path.name.startswith("model")]
    chosen = usual or list(files)
    whole = [path for path in chosen if path.name == "model.safetensors"]
    if whole:
        return whole
    split = [path for path in chosen if part_of(path) is not None]
    if not split:
        return chosen
    stems = {(path.stem[:-14], path.stem[-5:]) for path in split}
    if len(stems) > 1:
        names = ", ".join(path.name for path in split[:4])
        raise UsageError(f"{split[0].parent} holds parts of {len(stems)} models", f"name one: {names}")
    return all_parts(split[0])
