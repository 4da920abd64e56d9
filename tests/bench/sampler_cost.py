"""Does reading the sensors change what is measured? Blocks of one kernel with the sampler on and off, in turn.

    python tests/bench/sampler_cost.py [--device cpu|cuda] [--blocks 40] [--block-s 0.5]

A worker process runs the kernel (an elementwise one and a matmul) and times it, on device events where there is a
GPU; this process polls the sensors ten times a second in every other block, in an order drawn at random, as a run
does. Prints the ratio of the medians, on over off, with its 99 % interval: the claim is less than 0.2 %.
"""

import argparse
import multiprocessing
import random
from multiprocessing.connection import Connection

from kmrun.core.statistics import ratio_bounds
from kmrun.device.cpu_sensors import CPU_PERIOD_S, cpu_source
from kmrun.device.sampler import PERIOD_S, Sampler, nvml_source

KERNELS = ("elementwise", "matmul")


def main() -> None:
    """Print one row a kernel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--blocks", type=int, default=40, help="pairs of blocks")
    parser.add_argument("--block-s", type=float, default=0.5)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    worker = context.Process(target=work, args=(theirs, options.device), daemon=True)
    worker.start()
    uuid = ours.recv()
    source = cpu_source() if options.device == "cpu" else nvml_source(uuid)
    period = CPU_PERIOD_S if options.device == "cpu" else PERIOD_S
    print(f"{'kernel':<14}{'median':>12}{'on / off':>12}{'99 % interval':>24}   readings")
    for kernel in KERNELS:
        pairs, readings, last = [], 0, 0.0
        for _ in range(options.blocks):
            seen: dict[bool, float] = {}
            for on in random.sample((True, False), 2):
                with Sampler(source if on else None, period) as sampler:
                    ours.send((kernel, options.block_s))
                    seen[on] = ours.recv()
                readings += len(sampler.readings)
            pairs.append((seen[False], seen[True]))
            last = seen[False]
        ratio = ratio_bounds(pairs, 0.005)
        interval = f"{(ratio.low - 1) * 100:+.3f} to {(ratio.high - 1) * 100:+.3f} %"
        shown = f"{(ratio.value - 1) * 100:+.3f} %"
        print(f"{kernel:<14}{last / 1e3:>9.1f} us{shown:>12}{interval:>24}   {readings}", flush=True)
    ours.send(None)
    worker.join(10)


def work(pipe: Connection, device: str) -> None:
    """Answer `(kernel, seconds)` with the median time of a call in ns, until None comes."""
    import torch

    from kmrun.core.statistics import median
    from kmrun.measure.ceiling import stopwatch_for

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
        pipe.send(median(samples))


if __name__ == "__main__":
    main()
