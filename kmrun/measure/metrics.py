"""How far an output is from its reference: one function a metric, all in fp64 and in bounded memory."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from kmrun.core.case import Check
from kmrun.measure.dtypes import E8M0
from kmrun.measure.slabs import BLOCK, Pair, Slab


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a metric found. `place` is a flat index; `error` and `allowed` are in the metric's own unit."""

    ok: bool
    error: float | None
    allowed: float | None
    place: int | None = None
    part: str = ""
    """Which part of a metric in several parts decided: `block` or `element`; empty for the whole output."""


def not_finite(pair: Pair) -> Verdict | None:
    """Return the refusal for the first place whose finiteness is wrong; None when all agree."""
    for slab in pair.slabs():
        if slab.bad is not None:
            return Verdict(False, math.inf, None, slab.start + slab.bad)
    return None


WHOLE_TIMES, BLOCK_TIMES, ELEMENT_TIMES = 10.0, 30.0, 60.0
WHOLE_EPS, BLOCK_EPS, ELEMENT_EPS = 4.0, 32.0, 64.0
WHOLE_CAP, BLOCK_CAP, ELEMENT_CAP = 0.25, 0.5, 0.5
"""8-bit formats have an eps of 1/8 or 1/4: without caps, 32 eps would let a missing block pass."""

FEW = 64
"""With fewer elements than this, the one error of the reference says little about its usual one."""
FEW_EPS = 64.0
FEW_CAP = 2.0**-10
TINY = 1e-300
"""Stands for 0 under a division."""
FLOOR = 1e-2
"""A block far below the output's general level is held against this share of that level."""


@dataclass(slots=True)
class _Sums:
    """What is known of each block: norms of reference, error and the reference's own error, worst element."""

    want: list[torch.Tensor] = field(default_factory=list)
    error: list[torch.Tensor] = field(default_factory=list)
    own: list[torch.Tensor] = field(default_factory=list)
    sizes: list[torch.Tensor] = field(default_factory=list)
    worst: list[torch.Tensor] = field(default_factory=list)
    largest: list[torch.Tensor] = field(default_factory=list)
    own_worst: float = 0.0
    bad: int | None = None


def auto(pair: Pair, eps: float) -> Verdict:
    """Norm-wise check: whole output, blocks of 128 elements in row-major order, and single elements.

    With `R` the error of the reference in the case's own dtype, all relative to the norm of the reference:
    the whole may err by max(10 R, 4 eps), a block by max(30 R, 32 eps) with `R` of the block or of the whole
    (the larger), an element by max(60 R, 64 eps, 10 times the worst element of the reference) of the larger
    of itself and its block's root mean square. Rounding errors grow with norms, not with single elements:
    that is why a result near 0 among large ones is no fault.
    """
    sums = _block_sums(pair)
    if sums.bad is not None:
        return Verdict(False, math.inf, None, sums.bad)
    wants, errors, owns = torch.cat(sums.want), torch.cat(sums.error), torch.cat(sums.own)
    sizes, count = torch.cat(sums.sizes), pair.count
    want, error, own = (float(torch.linalg.vector_norm(norms)) for norms in (wants, errors, owns))
    known = pair.same is not None
    share = own / want if want > 0 else 0.0

    whole_eps = min(WHOLE_EPS * eps, WHOLE_CAP) * (1.0 if known else 16.0)
    if count < FEW:
        whole_eps = max(whole_eps, min(FEW_EPS * eps, FEW_CAP))
    whole_allowed = max(WHOLE_TIMES * own, whole_eps * want)

    floor = FLOOR * want / math.sqrt(max(1, count))
    block_want = torch.maximum(wants, floor * sizes.sqrt())
    block_share = max(BLOCK_TIMES * share, min(BLOCK_EPS * eps, BLOCK_CAP) * (1.0 if known else 4.0))
    block_allowed = torch.maximum(BLOCK_TIMES * owns, block_share * block_want)
    block_excess = errors - block_allowed

    worst = torch.cat(sums.worst)
    if floor > 0:
        worst = torch.minimum(worst, torch.cat(sums.largest) / floor)
    element_allowed = max(
        ELEMENT_TIMES * share, min(ELEMENT_EPS * eps, ELEMENT_CAP), WHOLE_TIMES * sums.own_worst
    )
    block = int(worst.argmax())
    place = _worst_in_block(pair, block, len(worst))

    scale = want if want > 0 else 1.0
    if error > whole_allowed:
        return Verdict(False, error / scale, whole_allowed / scale, place)
    if count >= FEW and bool((block_excess > 0).any()):
        guilty = int((errors / block_allowed.clamp_min(TINY)).argmax())
        level = float(block_want[guilty]) or 1.0
        return Verdict(
            False,
            float(errors[guilty]) / level,
            float(block_allowed[guilty]) / level,
            _worst_in_block(pair, guilty, len(worst)),
            "block",
        )
    if count >= FEW and float(worst[block]) > element_allowed:
        return Verdict(False, float(worst[block]), element_allowed, place, "element")
    return Verdict(True, error / scale, whole_allowed / scale, place)


def _block_sums(pair: Pair) -> _Sums:
    sums = _Sums()
    for slab in pair.slabs():
        if slab.bad is not None:
            sums.bad = slab.start + slab.bad
            return sums
        error = (slab.got - slab.want).abs_()
        own = None if slab.same is None else (slab.same - slab.want).abs_()
        full = error.numel() // BLOCK * BLOCK
        # A short rest joins the last whole block: a block of 3 elements has no norm to speak of.
        whole = full if full == error.numel() else max(0, full - BLOCK)
        for start, stop, width in ((0, whole, BLOCK), (whole, error.numel(), error.numel() - whole)):
            if stop > start:
                cut = [
                    None if tensor is None else tensor[start:stop].view(-1, width)
                    for tensor in (slab.want, error, own)
                ]
                _add_blocks(sums, *cut)
    return sums


def _add_blocks(
    sums: _Sums, want: torch.Tensor | None, error: torch.Tensor | None, own: torch.Tensor | None
) -> None:
    """Add blocks, one a row of [blocks, width]; `error` and `own` are magnitudes."""
    assert want is not None
    assert error is not None
    width = want.shape[1]
    norms = torch.linalg.vector_norm(want, dim=1)
    # Level 0 becomes TINY: no error over it is 0, any error is beyond all bounds.
    level = torch.maximum(want.abs(), norms[:, None] * width**-0.5).clamp_min_(TINY)
    sums.want.append(norms)
    sums.sizes.append(torch.full_like(norms, width))
    sums.error.append(torch.linalg.vector_norm(error, dim=1))
    sums.worst.append((error / level).amax(1))
    sums.largest.append(error.amax(1))
    if own is None:
        sums.own.append(torch.zeros_like(norms))
    else:
        sums.own.append(torch.linalg.vector_norm(own, dim=1))
        ratios = own.div_(level)
        sums.own_worst = max(sums.own_worst, float(ratios.where(ratios < 1 / TINY**0.5, 0.0).amax()))


def _worst_in_block(pair: Pair, block: int, blocks: int) -> int:
    start = block * BLOCK
    stop = pair.count if block == blocks - 1 else start + BLOCK
    slab = pair.slab(start, stop)
    return start + int((slab.got - slab.want).abs().argmax())


def _worst(pair: Pair, excess: Callable[[Slab], torch.Tensor]) -> tuple[int, float]:
    """Return the place and value of the largest `excess` over the whole output."""
    best, place = -math.inf, 0
    for slab in pair.slabs():
        values = excess(slab)
        at = int(values.argmax())
        if float(values[at]) > best:
            best, place = float(values[at]), slab.start + at
    return place, best


DEFAULT_TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
}
"""(rtol, atol) of torch.testing.assert_close, for checks that give neither."""


def tolerances(check: Check, dtype: torch.dtype) -> tuple[float, float]:
    """Return (rtol, atol) of a check; one alone makes the other 0, none means the defaults of the dtype."""
    if check.rtol is None and check.atol is None:
        return DEFAULT_TOLERANCES.get(
            dtype, (min(2 * torch.finfo(dtype).eps, 0.5), 1e-5) if dtype.is_floating_point else (0.0, 0.0)
        )
    return check.rtol or 0.0, check.atol or 0.0


def allclose(pair: Pair, check: Check) -> Verdict:
    """|got - want| <= atol + rtol |want|, element by element; the error is that of the worst element."""
    if (refusal := not_finite(pair)) is not None:
        return refusal
    rtol, atol = tolerances(check, pair.got.dtype)
    place, excess = _worst(pair, lambda slab: (slab.got - slab.want).abs() - atol - rtol * slab.want.abs())
    slab = pair.slab(place, place + 1)
    error = float((slab.got - slab.want).abs())
    return Verdict(excess <= 0, error, atol + rtol * float(slab.want.abs()), place)


def exact(pair: Pair) -> Verdict:
    """Equal to the reference rounded to the output's dtype, or to the reference in the case's own dtype.

    The error is the number of elements that differ. NaN equals NaN.
    """
    different, first = 0, None
    dtype = pair.got.dtype
    step = 1 << 21
    for start in range(0, pair.count, step):
        got, want = pair.got[start : start + step], pair.want[start : start + step]
        equal = _same_values(got, want if want.dtype == dtype else want.to(dtype))
        if pair.same is not None:
            equal |= _same_values(got, pair.same[start : start + step].to(dtype))
        wrong = int((~equal).sum())
        if wrong and first is None:
            first = start + int((~equal).to(torch.uint8).argmax())
        different += wrong
    return Verdict(different == 0, float(different), 0.0, first)


def _same_values(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    if left.dtype.is_floating_point and left.dtype.itemsize == 1:
        left, right = left.to(torch.float32), right.to(torch.float32)
    equal = left == right
    return equal | (left.isnan() & right.isnan()) if left.dtype.is_floating_point else equal


def rel_l2(pair: Pair, threshold: float) -> Verdict:
    """Norm of the difference over the norm of the reference (the bare norm where the reference is 0)."""
    if (refusal := not_finite(pair)) is not None:
        return refusal
    error2 = sum(float((slab.got - slab.want).square().sum()) for slab in pair.slabs())
    want2 = sum(float(slab.want.square().sum()) for slab in pair.slabs())
    error = math.sqrt(error2 / want2) if want2 > 0 else math.sqrt(error2)
    place, _ = _worst(pair, lambda slab: (slab.got - slab.want).abs())
    return Verdict(error <= threshold, error, threshold, place)


def cosine(pair: Pair, threshold: float) -> Verdict:
    """Cosine of the angle to the reference; two outputs of 0 are parallel. A larger value is better here."""
    if (refusal := not_finite(pair)) is not None:
        return refusal
    dot = sum(float((slab.got * slab.want).sum()) for slab in pair.slabs())
    got2 = sum(float(slab.got.square().sum()) for slab in pair.slabs())
    want2 = sum(float(slab.want.square().sum()) for slab in pair.slabs())
    norms = math.sqrt(got2) * math.sqrt(want2)
    value = dot / norms if norms > 0 else float(got2 == want2)
    place, _ = _worst(pair, lambda slab: (slab.got - slab.want).abs())
    return Verdict(value >= threshold - 1e-15, value, threshold, place)


def matched_ratio(pair: Pair, check: Check, threshold: float) -> Verdict:
    """Share of the elements that are close (rtol, atol). A larger value is better here."""
    if (refusal := not_finite(pair)) is not None:
        return refusal
    rtol, atol = tolerances(check, pair.got.dtype)

    def excess(slab: Slab) -> torch.Tensor:
        return (slab.got - slab.want).abs() - atol - rtol * slab.want.abs()

    matched = sum(int((excess(slab) <= 0).sum()) for slab in pair.slabs())
    place, _ = _worst(pair, excess)
    ratio = matched / max(1, pair.count)
    return Verdict(ratio >= threshold, ratio, threshold, place)


def ulp(pair: Pair, threshold: float) -> Verdict:
    """Largest distance in representable numbers of the output's dtype to the reference rounded to it."""
    if (refusal := not_finite(pair)) is not None:
        return refusal
    dtype = pair.got.dtype

    def distance(slab: Slab) -> torch.Tensor:
        return (_ordinal(slab.got.to(dtype)) - _ordinal(slab.want.to(dtype))).abs().to(torch.float64)

    place, worst = _worst(pair, distance)
    return Verdict(worst <= threshold, worst, threshold, place)


def _ordinal(tensor: torch.Tensor) -> torch.Tensor:
    """Return int64 numbers that count the representable values in order; +0 and -0 are one."""
    if not tensor.dtype.is_floating_point:
        return tensor.to(torch.int64)
    if tensor.dtype == E8M0:  # powers of two: no sign to take off
        return tensor.view(torch.uint8).to(torch.int64)
    width = tensor.dtype.itemsize
    bits = tensor.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[width]).to(torch.int64)
    magnitude = bits & ((1 << (8 * width - 1)) - 1)
    return torch.where(bits < 0, -magnitude, magnitude)


def statistical(pair: Pair, threshold: float) -> Verdict:
    """Mean and standard deviation against the reference's, for random outputs, in standard errors.

    The standard error of a difference of means is s sqrt(2/n); that of a difference of standard deviations of
    normal samples about s / sqrt(n).
    """
    if (refusal := not_finite(pair)) is not None:
        return refusal
    count = max(2, pair.count)
    got, want = _moments(pair, "got"), _moments(pair, "want")
    spread = max(got[1], want[1])
    if spread == 0:
        return Verdict(got[0] == want[0], abs(got[0] - want[0]), 0.0)
    mean = abs(got[0] - want[0]) / (spread * math.sqrt(2 / count))
    deviation = abs(got[1] - want[1]) / (spread / math.sqrt(count))
    return Verdict(max(mean, deviation) <= threshold, max(mean, deviation), threshold)


def _moments(pair: Pair, which: str) -> tuple[float, float]:
    count = max(1, pair.count)
    mean = sum(float(getattr(slab, which).sum()) for slab in pair.slabs()) / count
    square = sum(float((getattr(slab, which) - mean).square().sum()) for slab in pair.slabs())
    return mean, math.sqrt(square / max(1, count - 1))
