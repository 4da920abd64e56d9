"""How far is a median from the truth? Busy-waits that write down how long they really waited, beside the timer.

    python tests/bench/timers.py [--calls-us 5 20 100 1000]

The kernel waits on the clock and notes its own duration in shared memory; kmrun times it as it times any kernel,
in a side of its own with cold inputs. What lies outside the noted time (the call itself, reading the clock, writing
the note) is in the median, too: it is subtracted as a wait of nothing shows it, timed right before. That call must
be the same code: what a Python function without the clock takes is 200 ns less, twice that while a neighbour
of a shared machine uses the core's other half. The deviation is the rest, the median of the repeats.
torch.utils.benchmark times the same two functions in this process, for comparison, and so does the least that a timer
can be: the clock read before and after each call, the median taken. What that is off by is the machine's: after a wait
the code behind it is no longer in the caches, the more so the longer the wait and the busier the neighbours are.
"""

import argparse
import importlib.util
import mmap
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kmrun.core.case import Argument, Case, Implementation, Timing
from kmrun.core.statistics import median
from kmrun.measure.run_options import RunOptions
from kmrun.measure.supervisor import Supervisor

KERNEL = """\
import mmap, time, torch
from pathlib import Path

with Path(__file__).with_name("book").open("r+b") as _file:
    _BOOK = mmap.mmap(_file.fileno(), {size})
_VIEW = memoryview(_BOOK).cast("q")
_clock = time.perf_counter_ns
_RESULT = torch.zeros(1)  # made once: an allocation per call would be timed, too


def busy(wait_ns):
    def wait(x):
        begin = _clock()
        end = begin + wait_ns
        now = _clock()
        while now < end:
            now = _clock()
        note(now - begin)
        return _RESULT

    return wait


def note(value):
    count = _VIEW[0]
    _VIEW[1 + count % {entries}] = value
    _VIEW[0] = count + 1


wait, empty = busy({wait_ns}), busy(0)
"""
ENTRIES = 1 << 16
SIZE = 8 + 8 * ENTRIES


def main() -> None:
    """Print one row a duration."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls-us", type=float, nargs="+", default=[5, 20, 100, 1000])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"{'call':>10} {'noted':>12}" + "".join(f" {timer + ' off by':>28}" for timer in TIMERS))
    for wait_us in options.calls_us:
        found: dict[str, list[float]] = {timer: [] for timer in TIMERS}
        noted = []
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as folder:
                for timer, time_with in TIMERS.items():
                    empty, nothing = time_with(Path(folder), "empty", wait_us)
                    wait, truth = time_with(Path(folder), "wait", wait_us)
                    found[timer].append((wait - truth) - (empty - nothing))
                noted.append(truth)
        truth = statistics.median(noted)
        row = f"{wait_us:>8g}us {truth / 1e3:>10.3f}us"
        for off in map(statistics.median, found.values()):
            row += f" {off:>14.0f} ns = {100 * off / truth:>6.2f} %"
        print(row, flush=True)


def time_with_kmrun(folder: Path, function: str, wait_us: float) -> tuple[float, float]:
    """Return kmrun's median and the median of what the kernel noted, in ns per call."""
    open_book(folder, wait_us)
    case = Case(
        id=function,
        kernel=function,
        axes={},
        shown_axes=(),
        device="cpu",
        folder=str(folder),
        implementation=Implementation(function, f"waits.py:{function}"),
        arguments=(Argument("x", "randn", shape=(1024,), dtype="fp32"),),
        outputs=None,
        reference=None,
        timing=Timing(min_time_ms=50, max_time_ms=1000),
    )
    with Supervisor("cpu", RunOptions(threads=1)) as supervisor:
        supervisor.use_cache_bytes(1 << 20)
        found = supervisor.measure(case)
    if found.findings:
        sys.exit(f"{function}: {found.findings}")
    return median(found.samples_ns), read_book(folder)


def open_book(folder: Path, wait_us: float) -> None:
    """Write the kernels and an empty book."""
    (folder / "waits.py").write_text(KERNEL.format(size=SIZE, entries=ENTRIES, wait_ns=round(wait_us * 1e3)))
    (folder / "book").write_bytes(bytes(SIZE))


def read_book(folder: Path) -> float:
    """Return the median of what the kernel noted, in ns."""
    with (folder / "book").open("rb") as file:
        book = mmap.mmap(file.fileno(), SIZE, access=mmap.ACCESS_READ)
        (count,) = struct.unpack_from("q", book, 0)
        return statistics.median(struct.unpack_from(f"{min(count, ENTRIES)}q", book, 8))


def time_with_torch(folder: Path, function: str, wait_us: float) -> tuple[float, float]:
    """Return what torch.utils.benchmark makes of the same function, and what that noted, in ns."""
    import torch
    from torch.utils import benchmark

    call = load(folder, function, wait_us)
    timer = benchmark.Timer("call(x)", globals={"call": call, "x": torch.ones(1024)})
    return timer.blocked_autorange(min_run_time=0.3).median * 1e9, read_book(folder)


def time_with_clock(folder: Path, function: str, wait_us: float) -> tuple[float, float]:
    """Return the median of bare clock readings around single calls, and what the function noted, in ns."""
    clock, call = time.perf_counter_ns, load(folder, function, wait_us)
    taken = []
    for _ in range(max(100, min(5000, round(3e5 / wait_us)))):
        begin = clock()
        call(None)
        taken.append(clock() - begin)
    return statistics.median(taken), read_book(folder)


def load(folder: Path, function: str, wait_us: float) -> Callable[[object], object]:
    """Return the function in this process, with an empty book."""
    open_book(folder, wait_us)
    spec = importlib.util.spec_from_file_location("waits", folder / "waits.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, function)


TIMERS = {"kmrun": time_with_kmrun, "bare clock": time_with_clock, "torch's benchmark": time_with_torch}

if __name__ == "__main__":
    main()
