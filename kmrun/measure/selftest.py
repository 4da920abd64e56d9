"""Would the tolerance notice? Mutants of the reference that a lazy kernel could return must fail."""

import dataclasses
from collections.abc import Iterator, Mapping

import torch

from kmrun.core.case import Case
from kmrun.measure import checks
from kmrun.measure.dtypes import lower, short_name

UNJUDGED = frozenset({"none", "property", "statistical"})
"""Metrics that do not compare element with element: mutants say nothing about them."""

MATERIAL = 0.1
"""A mutant nearer to the reference than this share of its norm is hardly wrong: outputs that are really
constant, really zero, or alike in all rows accuse nobody."""

MATERIAL_8_BIT = 0.3

SAMPLE = 1 << 18
"""Elements that the mutants are tried on."""


def run(case: Case, want_high: Mapping[str, torch.Tensor], ref_same: Mapping[str, torch.Tensor]) -> list[str]:
    """Return a sentence for each output whose tolerance lets a worthless result pass; empty when all is well.

    Args:
        case: with the checks under test.
        want_high: outputs of the reference in high precision.
        ref_same: the same in the case's own dtype; gives the outputs' dtypes.

    The finding is `tolerance_invalid`, the suite's fault.
    """
    found = []
    for name, whole in ref_same.items():
        if checks.check_for(case, name, whole.dtype).metric in UNJUDGED or whole.numel() < 2:
            continue
        want, same = _sample(want_high[name]), _sample(whole)
        passing = [
            what
            for what, mutant in _mutants(want, same.dtype)
            if _is_material(mutant, want, same.dtype) and _passes(case, name, mutant, want, same)
        ]
        if passing:
            metric = checks.check_for(case, name, same.dtype).metric
            found.append(f"the tolerance of {name} ({metric}) is worthless: {_list(passing)} would pass")
    return found


def lower_precision(
    case: Case, want_high: Mapping[str, torch.Tensor], ref_same: Mapping[str, torch.Tensor]
) -> list[str]:
    """Return a sentence for each output whose tolerance, of the suite, lets the next coarser dtype pass.

    Only a remark: coarser arithmetic may be what the author wants to allow.
    """
    found = []
    for name, same in ref_same.items():
        check = checks.check_for(case, name, same.dtype)
        coarser = lower(same.dtype)
        if check.metric in UNJUDGED | {"auto"} or coarser is None or same.numel() == 0:
            continue
        want = _sample(want_high[name])
        if _passes(case, name, want.to(coarser).to(same.dtype), want, _sample(same)):
            found.append(f"the tolerance of {name} is so wide that {short_name(coarser)} would pass")
    return found


def _sample(output: torch.Tensor) -> torch.Tensor:
    """Return [rows, columns]: at most `SAMPLE` elements, of evenly spaced rows. A tolerance needs no more."""
    rows = output.reshape(-1, output.shape[-1]) if output.dim() > 1 else output.reshape(-1, 1)
    if rows.shape[1] > SAMPLE // 2:
        rows = rows[:, : SAMPLE // 2]
    wanted = max(2, SAMPLE // rows.shape[1])
    return rows[:: -(-rows.shape[0] // wanted)]


def _mutants(want: torch.Tensor, dtype: torch.dtype) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield worthless results for a reference [rows, columns]."""
    yield "zeros", torch.zeros_like(want, dtype=dtype)
    if dtype.is_floating_point or dtype.is_complex:
        finite = want.where(want.isfinite(), torch.zeros((), dtype=want.dtype, device=want.device))
        yield "a constant", finite.mean().expand(want.shape).to(dtype)
    if want.shape[0] > 1:
        yield "rows in the wrong order", want.roll(1, dims=0).to(dtype)
    yield "a missing tile", _without_tile(want).to(dtype)


def _without_tile(rows: torch.Tensor) -> torch.Tensor:
    """Return a copy whose largest tile, an eighth of the rows by an eighth of the columns, is 0."""
    height, width = (max(1, -(-size // 8)) for size in rows.shape)
    corners = [
        (top, left) for top in range(0, rows.shape[0], height) for left in range(0, rows.shape[1], width)
    ]

    def strength(corner: tuple[int, int]) -> float:
        tile = rows[corner[0] : corner[0] + height, corner[1] : corner[1] + width]
        magnitudes = tile.abs() if tile.is_floating_point() or tile.is_complex() else tile != 0
        return float(magnitudes.nan_to_num(0, 0, 0).sum())

    top, left = max(corners, key=strength)
    mutant = rows.clone()
    mutant[top : top + height, left : left + width] = 0
    return mutant


def _is_material(mutant: torch.Tensor, want: torch.Tensor, dtype: torch.dtype) -> bool:
    if not (dtype.is_floating_point or dtype.is_complex):
        return not torch.equal(mutant, want.to(dtype))
    wide = torch.complex128 if dtype.is_complex else torch.float64
    finite = want.isfinite()
    reference = want.to(wide).where(finite, 0)
    gap = torch.linalg.vector_norm(mutant.to(wide).where(finite, 0) - reference)
    share = MATERIAL_8_BIT if dtype.itemsize == 1 else MATERIAL
    return bool(gap > share * torch.linalg.vector_norm(reference))


def _passes(case: Case, name: str, mutant: torch.Tensor, want: torch.Tensor, same: torch.Tensor) -> bool:
    # A mutant has the dtype of the output: a reference in high precision must not choose another tolerance.
    alone = dataclasses.replace(case, outputs=None)
    (check,) = checks.compare(alone, {name: mutant.to(same.device)}, {name: want}, {name: same}, seed=0)
    return check.ok


def _list(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
