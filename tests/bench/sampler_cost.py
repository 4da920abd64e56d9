"""Does reading the sensors change what is measured? Blocks of one kernel with the sampler on and off, in turn.

    python tests/bench/sampler_cost.py [--device cpu|cuda] [--blocks 1000] [--block-s 0.05] [--kernels matmul]

A worker process runs the kernel (an elementwise one and a matmul) and times it, on device events where there is a
GPU; this process polls the sensors ten times a second in every other block, in an order drawn at random, and at
least twice in each. On a CPU a run reads twice a second, so this is the harder case. Blocks are short: what the
neighbours of a shared machine do changes within a second, and both blocks of a pair must see the same of it.

Prints the ratio of the medians, on over off, and of the lower quartiles, with their 99 % intervals, which assume no
distribution. The claim is less than 0.2 %: it is shown where the whole interval lies within that, and `not decided`
says that the machine was too noisy to tell. The first line is the CPU time that sampling takes, about what it can
cost a kernel that uses every core; noise moves it little.
"""

import argparse
import multiprocessing
import random
import time
from multiprocessing.connection import Connection

from kmrun.core.statistics import ratio_bounds
from kmrun.device.cpu_sensors import cpu_source
from kmrun.device.sampler import Sampler, Source, nvml_source

KERNELS = ("elementwise", "matmul")
CLAIM = 0.002


def main() -> None:
    """Print two rows a kernel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--blocks", type=int, default=1000, help="pairs of blocks")
    parser.add_argument("--block-s", type=float, default=0.05)
    parser.add_argument(
        "--threads", type=int, default=None, help="of the kernel on a CPU; all cores by default"
    )
    parser.add_argument("--kernels", nargs="+", default=KERNELS, choices=KERNELS)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    worker = context.Process(target=work, args=(theirs, options.device, options.threads), daemon=True)
    worker.start()
    uuid = ours.recv()
    source = cpu_source() if options.device == "cpu" else nvml_source(uuid)
    print(f"sampling takes {own_time(source) * 100:.4f} % of a core, ten times a second\n", flush=True)
    print(f"{'kernel':<14}{'of blocks':<16}{'time':>12}{'on / off':>11}{'99 % interval':>22}   verdict")
    for kernel in options.kernels:
        blocks, readings = [], 0
        for _ in range(options.blocks):
            seen: dict[bool, tuple[float, float]] = {}
            for on in random.sample((True, False), 2):
                with Sampler(source if on else None) as sampler:
                    ours.send((kernel, options.block_s))
                    seen[on] = ours.recv()
                readings += len(sampler.readings)
            blocks.append(seen)
        for at, name in enumerate(("median", "lower quartile")):
            pairs = [(seen[False][at], seen[True][at]) for seen in blocks]
            print(row(kernel, name, pairs), flush=True)
        print(f"{'':<14}{readings} readings, {readings / len(blocks):.1f} in a block", flush=True)
    ours.send(None)
    worker.join(10)


def own_time(source: Source, seconds: float = 5.0) -> float:
    """Return the CPU time of this process while it does nothing but sample, over wall time."""
    with Sampler(source) as sampler:
        wall, used, read = time.perf_counter(), time.process_time(), len(sampler.readings)
        time.sleep(seconds)
        share = (time.process_time() - used) / (time.perf_counter() - wall)
        if len(sampler.readings) < read + 5 * seconds:
            raise SystemExit(f"the sensors are not read: {sampler.telemetry.note}")
    return share


def row(kernel: str, name: str, pairs: list[tuple[float, float]]) -> str:
    """Return a line of the table, of pairs of times (off, on) in ns."""
    ratio = ratio_bounds(pairs, 0.005)
    low, value, high = (each - 1 for each in (ratio.low, ratio.value, ratio.high))
    verdict = "shown" if low > -CLAIM and high < CLAIM else "refuted" if low > CLAIM else "not decided"
    interval = f"{low * 100:+.3f} to {high * 100:+.3f} %"
    usual = sorted(off for off, _ in pairs)[len(pairs) // 2]
    return f"{kernel:<14}{name:<16}{usual / 1e3:>9.1f} us{value * 100:>+9.3f} %{interval:>22}   {verdict}"


def work(pipe: Connection, device: str, threads: int | None) -> None:
    """Answer `(kernel, seconds)` with median and lower quartile of a call's time in ns, until None comes."""
    import torch

    from kmrun.core.statistics import quantile
    from kmrun.measure.ceiling import stopwatch_for

    if threads:
        torch.set_num_threads(threads)
    where = torch.device("cuda:0" if device == "cuda" else "cpu")
    n = 2048 if device == "cuda" else 384
    x, y = (torch.randn(n, n, device=where) for _ in range(2))
    out = torch.empty_like(x)
    calls = {"elementwise": lambda: torch.add(x, y, out=out), "matmul": lambda: torch.mm(x, y, out=out)}
    watch = stopwatch_for(where)
    for call in calls.values():
        watch.batch_ns([call] * 20, None)
    pipe.send(str(torch.cuda.get_device_properties(where).uuid) if device == "cuda" else "")
    while (asked := pipe.recv()) is not None:
        kernel, seconds = asked
        batch, samples, spent = [calls[kernel]] * 10, [], 0.0
        while spent < seconds * 1e9:
            took = watch.batch_ns(batch, None)
            samples.append(took / len(batch))
            spent += took
        pipe.send((quantile(samples, 0.5), quantile(samples, 0.25)))


if __name__ == "__main__":
    main()
