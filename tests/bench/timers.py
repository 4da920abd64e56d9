"""How far is a median from the truth? Busy-waits that write down how long they really waited, beside the timer.

    python tests/bench/timers.py [--calls-us 5 20 100 1000]

The kernel waits on the clock and notes its own duration in shared memory; kmrun times it as it times any kernel,
in a side of its own with cold inputs. The deviation is kmrun's median less the noted median, less what an empty
kernel takes. torch.utils.benchmark times the same function in this process, for comparison.
"""

import argparse
import mmap
import statistics
import struct
import sys
import tempfile
from pathlib import Path

from kmrun.core.case import Argument, Case, Implementation, Timing
from kmrun.core.statistics import median
from kmrun.measure.supervisor import RunOptions, Supervisor

KERNEL = """\
import mmap, time, torch
from pathlib import Path

with Path(__file__).with_name("book").open("r+b") as _file:
    _BOOK = mmap.mmap(_file.fileno(), {size})
_VIEW = memoryview(_BOOK).cast("q")
_clock = time.perf_counter_ns
_RESULT = torch.zeros(1)  # made once: an allocation per call would be timed, too


def wait(x):
    begin = _clock()
    end = begin + {wait_ns}
    now = _clock()
    while now < end:
        now = _clock()
    note(now - begin)
    return _RESULT


def empty(x):
    note(0)
    return _RESULT


def note(value):
    count = _VIEW[0]
    _VIEW[1 + count % {entries}] = value
    _VIEW[0] = count + 1
"""
ENTRIES = 1 << 16
SIZE = 8 + 8 * ENTRIES


def main() -> None:
    """Print one row a duration."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls-us", type=float, nargs="+", default=[5, 20, 100, 1000])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(f"{'call':>10} {'noted':>12} {'kmrun off by':>24} {'torch.utils.benchmark off by':>30}")
    for wait_us in options.calls_us:
        ours, theirs, noted = [], [], []
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as folder:
                base = time_with_kmrun(Path(folder), "empty", wait_us)
                found = time_with_kmrun(Path(folder), "wait", wait_us)
                truth = read_book(Path(folder))
                noted.append(truth)
                ours.append(found - base - truth)
                theirs.append(time_with_torch(Path(folder), wait_us) - base - truth)
        truth = statistics.median(noted)
        row = f"{wait_us:>8g}us {truth / 1e3:>10.3f}us"
        for off in (statistics.median(ours), statistics.median(theirs)):
            row += f" {off:>12.0f} ns = {100 * off / truth:>6.2f} %"
        print(row)


def time_with_kmrun(folder: Path, function: str, wait_us: float) -> float:
    """Return kmrun's median in ns per call; the book then holds what the kernel noted."""
    (folder / "waits.py").write_text(KERNEL.format(size=SIZE, entries=ENTRIES, wait_ns=round(wait_us * 1e3)))
    (folder / "book").write_bytes(bytes(SIZE))
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
    return median(found.samples_ns)


def read_book(folder: Path) -> float:
    """Return the median of what the kernel noted, in ns."""
    with (folder / "book").open("rb") as file:
        book = mmap.mmap(file.fileno(), SIZE, access=mmap.ACCESS_READ)
        (count,) = struct.unpack_from("q", book, 0)
        return statistics.median(struct.unpack_from(f"{min(count, ENTRIES)}q", book, 8))


def time_with_torch(folder: Path, wait_us: float) -> float:
    """Return what torch.utils.benchmark makes of the same function, in ns."""
    import importlib.util

    import torch
    from torch.utils import benchmark

    spec = importlib.util.spec_from_file_location("waits", folder / "waits.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    timer = benchmark.Timer("wait(x)", globals={"wait": module.wait, "x": torch.ones(1024)})
    return timer.blocked_autorange(min_run_time=0.3).median * 1e9


if __name__ == "__main__":
    main()
