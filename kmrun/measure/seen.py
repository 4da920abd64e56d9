"""Outputs that were compared already. What comes out bit by bit as before, for the same inputs, is as right.

Most kernels give the same bits each time, and looking for them takes a twentieth of a comparison.
"""

from collections.abc import Mapping

import torch

from kmrun.core.measurement import OutputCheck
from kmrun.measure.copies import bytes_in, same_bytes

MOST_BYTES = 64 * 2**20
"""Larger outputs are not held: of those few are compared."""

Named = Mapping[str, torch.Tensor]


class Seen:
    """One set of outputs a slot that passed, and the verdicts on them.

    Only for outputs in memory that the kernel cannot reach: it could make ones that are held right or wrong later.
    """

    def __init__(self) -> None:
        self._held: dict[int, tuple[Named, tuple[OutputCheck, ...]]] = {}

    def verdicts(self, slot: int, outputs: Named) -> tuple[OutputCheck, ...] | None:
        """Return the verdicts on these very outputs, None where no such ones passed."""
        held, found = self._held.get(slot, ({}, None))
        alike = held.keys() == outputs.keys() and all(_same(held[name], outputs[name]) for name in held)
        return found if alike else None

    def hold(self, slot: int, outputs: Named, found: tuple[OutputCheck, ...]) -> None:
        """Take outputs that passed all checks, where they are small enough and nothing but their bits decided."""
        settled = all(check.ok and check.metric != "property" for check in found)
        if settled and bytes_in(outputs) <= MOST_BYTES:
            self._held[slot] = (outputs, found)

    def forget(self, slot: int) -> None:
        """Forget a slot's: something else is expected of it now."""
        self._held.pop(slot, None)

    def clear(self) -> None:
        """Forget all of them."""
        self._held.clear()


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    layouts = [(tensor.dtype, tensor.shape, tensor.stride(), tensor.device) for tensor in (one, other)]
    return layouts[0] == layouts[1] and same_bytes(one, other)
