"""An output beside its reference: flat, in fp64, a bounded piece at a time, non-finite places settled."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from kmrun.measure.dtypes import FP8

BLOCK = 128
"""Consecutive elements (row-major) that make a block: a part of a long row, or a few short rows."""

CPU_SLAB = BLOCK << 11
"""Elements looked at at once: 2 MiB a tensor in fp64, so that the passes over them stay in a CPU's cache."""

GPU_SLAB = BLOCK << 15
"""32 MiB a tensor: launches cost more than passes over memory."""


@dataclass(frozen=True, slots=True)
class Slab:
    """A flat piece. Places that are not finite everywhere hold 0 in all three tensors.

    `got`, `want` and `same` (the reference in its own dtype, None when not known) are fp64. `bad` is the
    first place, relative to the slab, where `got` is not finite and should be, or the other way round.
    """

    start: int
    got: torch.Tensor
    want: torch.Tensor
    same: torch.Tensor | None
    bad: int | None


@dataclass(frozen=True, slots=True)
class Pair:
    """An output and what it is held against: same shape, one device; complex tensors as pairs of reals."""

    got: torch.Tensor
    want: torch.Tensor
    same: torch.Tensor | None

    @staticmethod
    def of(got: torch.Tensor, want: torch.Tensor, same: torch.Tensor | None) -> "Pair":
        """Flatten; `want` and `same` are brought to the device of `got`."""
        return Pair(
            _flat(got), _flat(want.to(got.device)), None if same is None else _flat(same.to(got.device))
        )

    @property
    def count(self) -> int:
        """Elements, real and imaginary parts apart."""
        return int(self.got.numel())

    def slabs(self) -> Iterator[Slab]:
        """Yield the pieces in order; all but the last hold a whole number of blocks."""
        step = CPU_SLAB if self.got.device.type == "cpu" else GPU_SLAB
        for start in range(0, self.count, step):
            yield self.slab(start, min(start + step, self.count))

    def slab(self, start: int, stop: int) -> Slab:
        """Return the elements from `start` to `stop` (excluded)."""
        raw_got = self.got[start:stop]
        got, want = raw_got.to(torch.float64), self.want[start:stop].to(torch.float64)
        same = None if self.same is None else self.same[start:stop].to(torch.float64)
        bad = None
        # A sum is finite only where all its terms are: one cheap pass instead of three for the usual case.
        if not bool((got.sum() + want.sum() + (0.0 if same is None else same.sum())).isfinite()):
            got, want, same, bad = _settle(raw_got.dtype, got, want, same)
        elif raw_got.dtype in FP8:
            want = _saturated(want, raw_got.dtype)
        return Slab(start, got, want, same, bad)


def _saturated(want: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Clamp to what an 8-bit format holds: saturating and overflowing conversions are both in use."""
    limit = torch.finfo(dtype).max
    return want.clamp(-limit, limit)


def _settle(
    dtype: torch.dtype, got: torch.Tensor, want: torch.Tensor, same: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, int | None]:
    """Return the three with 0 wherever one of them is not finite, and the first place that is wrongly so."""
    if dtype in FP8:
        want = torch.where(got.isfinite(), _saturated(want, dtype), want)
    usable = got.isfinite() & want.isfinite()
    wrong = ~usable & ~_excused(got, want, same, dtype)
    bad = int(wrong.to(torch.uint8).argmax()) if bool(wrong.any()) else None
    got, want = got.where(usable, 0.0), want.where(usable, 0.0)
    if same is not None:
        # The reference's own overflow says nothing of its rounding error.
        same = torch.where(usable & same.isfinite(), same, want)
    return got, want, same, bad


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    return (torch.view_as_real(tensor.resolve_conj()) if tensor.dtype.is_complex else tensor).reshape(-1)


def _alike(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return (left == right) | (left.isnan() & right.isnan())


def _excused(
    got: torch.Tensor, want: torch.Tensor, same: torch.Tensor | None, dtype: torch.dtype
) -> torch.Tensor:
    """Return where a non-finite place is right: as in one of the references, or by overflow."""
    right = _alike(got, want)
    if dtype.is_floating_point:
        right |= ~got.isfinite() & _alike(got, want.to(dtype).to(torch.float64))
    if same is not None:
        right |= ~same.isfinite() & _alike(got, same)
        right |= ~want.isfinite() & got.isfinite() & same.isfinite()
    return right
