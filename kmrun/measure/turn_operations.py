"""The operations of a side whose calls are timed in turns with another's, and show what they computed."""

from typing import Any

import torch

from kmrun.measure.bench import Bench
from kmrun.measure.machine_operations import MachineOperations


class TurnOperations(MachineOperations):
    """What a side that is staged can be asked. Public methods are operations."""

    _bench: Bench | None
    _own: dict[str, torch.Tensor]
    """Outputs that this side compares itself."""

    def turn(self, key: str, calls: int, discard: int) -> list[float]:
        """Take one side's turn in an alternated block."""
        return self._benched().slot(key, calls, discard)

    def show_turns(self, key: str, most: int = 0, share: bool = False, at: int = 0) -> list[dict[str, Any]]:
        """Hand over outputs of up to `most` turns, each with its slot; without `share` for this side to compare one.

        Raises:
            SideFault: a call wrote to an input that the suite does not say it mutates.
        """
        shown = []
        for each in self._benched().of_turns(key, most) if most else ():
            self._own, tree = each.outputs, None
            if share:
                tree, at = self._share(each.outputs, at)
            shown.append({"slot": each.slot, "tree": tree})
        self._benched().refuse_written()
        return shown

    def burst(self, key: str, calls: int) -> float:
        """Time calls back to back, for the supervisor to hold against its own clock."""
        return self._benched().burst(key, calls)

    def show_kept(self, index: int, share: bool, at: int = 0) -> dict[str, Any]:
        """Hand over the outputs of a kept timed call and the slot it ran on."""
        kept = self._benched().kept[index]
        if share:
            tree, after = self._share(kept.outputs, at)
            return {"slot": kept.slot, "tree": tree, "next": after}
        self._own = kept.outputs
        return {"slot": kept.slot, "tree": None}

    def _benched(self) -> Bench:
        if self._bench is None:
            raise ValueError("nothing was staged")
        return self._bench
