"""What this machine really delivers, measured in a side that runs no user code: the honest 100 %.

Bandwidths are bytes that the operation must move over its time (STREAM's counting: copy and scale 2 arrays, add
and triad 3, read 1); rates are 2 n^3 flop of a square matmul over its time. The best of several repetitions
counts, since a ceiling is a ceiling. The set for memory is more than twice the last-level cache and streamed
through in turn, so that nothing of it is still cached when it is wanted again; a ladder of smaller sets shows the
caches.
"""

from collections.abc import Callable, Sequence

import torch

from kmrun.core.measurement import Bandwidth, Ceilings, MatmulRate
from kmrun.measure.bound import ran_out_of_memory
from kmrun.measure.dtypes import torch_dtype
from kmrun.measure.faults import SideFault
from kmrun.measure.timer import CpuStopwatch, CudaStopwatch, Stopwatch, quiet_collector

_LADDER = tuple(4**power for power in range(8, 16))
"""64 KiB to 1 GiB."""
IN_RUNS = ("read", "copy", "triad")
"""What every run measures; `kmrun ceiling` measures all that STREAM has."""


def measure(
    buffer: torch.Tensor,
    stopwatch: Stopwatch,
    dtypes: Sequence[str],
    cache_bytes: int,
    budget_ns: float,
    *,
    kinds: Sequence[str] = IN_RUNS,
    sizes: Sequence[int] = (),
) -> Ceilings:
    """Measure bandwidths and, for each dtype, the matmul rate.

    Args:
        buffer: a flat fp32 tensor on the device, over twice the last-level cache where memory allows.
        stopwatch: times the operations.
        dtypes: the dtypes whose matmul rate is wanted, as suites spell them.
        cache_bytes: the last-level cache.
        budget_ns: about how long all of it may take.
        kinds: of bandwidth, out of read, copy, scale, add, triad.
        sizes: of the square matmuls, ascending; by default those that suit the device.
    """
    part = budget_ns / (2 + len(dtypes))
    with quiet_collector():
        buffer.fill_(1.0)
        ladder = [size for size in _LADDER if size <= min(cache_bytes, 4 * buffer.numel())]
        cached = (_kinds(buffer, stopwatch, size, part / len(ladder), IN_RUNS) for size in ladder)
        return Ceilings(
            bandwidths=_kinds(buffer, stopwatch, 4 * buffer.numel(), part, kinds),
            cache_bandwidths=tuple(max(seen, key=lambda each: each.bytes_per_s) for seen in cached),
            matmuls=tuple(
                rate for dtype in dtypes for rate in _matmul(buffer.device, stopwatch, dtype, part, sizes)
            ),
        )


def _kinds(
    buffer: torch.Tensor, stopwatch: Stopwatch, total: int, budget_ns: float, kinds: Sequence[str]
) -> tuple[Bandwidth, ...]:
    """Measure some kinds of bandwidth over the first `total` bytes of the buffer."""
    whole = buffer[: total // 4]
    half_target, half = whole[: total // 8], whole[total // 8 :][: total // 8]
    target, left, right = (whole[part * (total // 12) :][: total // 12] for part in range(3))
    runs: dict[str, tuple[int, Callable[[], object]]] = {
        "read": (4 * whole.numel(), lambda: torch.sum(whole)),
        "copy": (8 * half.numel(), lambda: half_target.copy_(half)),
        "scale": (8 * half.numel(), lambda: torch.mul(half, 0.5, out=half_target)),
        "add": (12 * target.numel(), lambda: torch.add(left, right, out=target)),
        "triad": (12 * target.numel(), lambda: torch.add(left, right, alpha=0.5, out=target)),
    }
    return tuple(
        Bandwidth(kind, total, moved / (_fastest_ns(stopwatch, call, budget_ns / len(kinds)) * 1e-9))
        for kind, (moved, call) in ((kind, runs[kind]) for kind in kinds)
    )


def _matmul(
    device: torch.device, stopwatch: Stopwatch, dtype: str, budget_ns: float, sizes: Sequence[int] = ()
) -> tuple[MatmulRate, ...]:
    """Measure the fastest square matmul of a dtype; none where this torch has none for it."""
    if dtype == "tf32" and device.type == "cpu":
        return ()  # a way of multiplying that no CPU has
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    try:
        return _fastest_matmul(device, stopwatch, dtype, budget_ns, sizes)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def _fastest_matmul(
    device: torch.device, stopwatch: Stopwatch, dtype: str, budget_ns: float, sizes: Sequence[int]
) -> tuple[MatmulRate, ...]:
    found: list[MatmulRate] = []
    for n in sizes or ((512, 1024, 2048) if device.type == "cpu" else (4096, 8192)):
        try:
            call = _matmul_call(device, dtype, torch_dtype(dtype, device), n)
        except SideFault:
            return ()  # no dtype of this torch
        except Exception as error:
            if found and ran_out_of_memory(error):
                break  # the smaller ones fitted
            raise
        if call is None:
            return ()
        took = _fastest_ns(stopwatch, call, budget_ns / 3)
        found.append(MatmulRate(dtype, n, 2.0 * n**3 / (took * 1e-9)))
        if took > budget_ns / 6:
            break  # the next size takes eight times as long, and would not be faster
    return (max(found, key=lambda rate: rate.flop_per_s),) if found else ()


def _matmul_call(
    device: torch.device, dtype: str, storage: torch.dtype, n: int
) -> Callable[[], object] | None:
    with torch.no_grad():
        a, b = (torch.randn(n, n, device=device) for _ in range(2))
        try:
            call = _bound_matmul(a, b, dtype, storage)
            call()
        except (RuntimeError, NotImplementedError) as error:
            if ran_out_of_memory(error):
                raise
            return (
                None  # this torch has no such matrices, or no matmul of them: no ceiling then, never a guess
            )
        return call


def _bound_matmul(a: torch.Tensor, b: torch.Tensor, dtype: str, storage: torch.dtype) -> Callable[[], object]:
    if dtype == "int8":
        return _int8_call(a, b)
    if dtype.startswith("fp8"):
        return _fp8_call(a, b, storage)
    left, right = a.to(storage), b.to(storage)
    return lambda: torch.mm(left, right)


def _int8_call(a: torch.Tensor, b: torch.Tensor) -> Callable[[], object]:
    left, right = (x.mul(32).clamp(-127, 127).to(torch.int8) for x in (a, b))
    return lambda: torch._int_mm(left, right)


def _fp8_call(a: torch.Tensor, b: torch.Tensor, storage: torch.dtype) -> Callable[[], object]:
    left, right = a.to(storage), b.t().contiguous().to(storage).t()
    one = torch.ones((), device=a.device)
    return lambda: torch._scaled_mm(left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def _fastest_ns(stopwatch: Stopwatch, call: Callable[[], object], budget_ns: float) -> float:
    """Return the best time of one call in ns within the budget; short calls are batched."""
    # The least of three: one call that the scheduler interrupted must not set the batch.
    first = min(stopwatch.batch_ns([call], None) for _ in range(3))
    batch = [call] * max(1, min(1000, round(50_000 / max(first, 1.0))))
    fastest, spent, rounds = first, 3 * first, 3 if len(batch) == 1 else 0
    while rounds < 3 or (spent < budget_ns and rounds < 200):
        took = stopwatch.batch_ns(batch, None)
        fastest = min(fastest, took / len(batch))
        spent += took
        rounds += 1
    return fastest


def stopwatch_for(device: torch.device) -> Stopwatch:
    """Return the stopwatch that belongs to a device."""
    return CpuStopwatch() if device.type == "cpu" else CudaStopwatch(device)
