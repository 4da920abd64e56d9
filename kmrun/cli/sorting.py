"""`--sort KEY`, and `--sort -KEY` for the other way round."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kmrun.errors import UsageError

Item = TypeVar("Item")


def by_key(
    items: Sequence[Item], key: str, sorts: Mapping[str, tuple[Callable[[Item], Any], bool]]
) -> list[Item]:
    """Return the items in the order of a key, those without the figure last whichever way round.

    Args:
        items: what to sort; those that are equal keep their order.
        key: a name of `sorts`, after a dash for the other way round.
        sorts: name to what it sorts by, and whether the largest comes first.

    Raises:
        UsageError: there is no such key.
    """
    name = key.removeprefix("-")
    if name not in sorts:
        raise UsageError(
            f"cannot sort by {key!r}", f"one of {', '.join(sorts)}, or -KEY for the other way round"
        )
    by, descending = sorts[name]
    known = [item for item in items if by(item) is not None]
    unknown = [item for item in items if by(item) is None]
    return sorted(known, key=by, reverse=descending != (name != key)) + unknown
