"""Is the gate right? Unchanged and slowed kernels, judged by kmrun's gate and by the rules that others use.

    python tests/bench/gate.py --trials 20 --slowdown 0.06 --hogs 1

Each trial is one kernel, once unchanged (every alarm is false) and once slowed by spinning for a share of each
call's own time. The other rules judge what they would see: a run that was saved, and today's run, each in a
process of its own, all samples of both. The gate judges the live comparison, at the error rate of one case of a
suite of `--suite` cases. Nothing is asserted: the table is the result.
"""

import argparse
import json
import math
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kmrun.core.case import Argument, Case, Implementation, Reference, Timing
from kmrun.core.gate import LIVE_LOOKS, Gate
from kmrun.core.measurement import Measurement
from kmrun.core.opponent import Opponent, Tree
from kmrun.measure.run_options import RunOptions
from kmrun.measure.supervisor import Supervisor

KERNELS = {
    "softmax": ("torch.softmax(x, -1)", [("x", (512, 1024))]),
    "add": ("x + y", [("x", (1024, 1024)), ("y", (1024, 1024))]),
    "matmul": ("x @ y", [("x", (384, 384)), ("y", (384, 384))]),
    "sdpa": (
        "torch.nn.functional.scaled_dot_product_attention(x, y, z)",
        [("x", (1, 4, 256, 64)), ("y", (1, 4, 256, 64)), ("z", (1, 4, 256, 64))],
    ),
    "layernorm": ("torch.nn.functional.layer_norm(x, (1024,))", [("x", (512, 1024))]),
    "gelu": ("torch.nn.functional.gelu(x)", [("x", (512, 1024))]),
}

MODULE = """
import time
import torch

def kernel({names}):
    return {body}

def slowed({names}):
    begin = time.perf_counter_ns()
    out = {body}
    end = time.perf_counter_ns()
    until = end + (end - begin) * {slowdown}
    while time.perf_counter_ns() < until:
        pass
    return out
"""

Rule = Callable[[Sequence[float], Sequence[float]], bool]
"""Whether today's samples are slower than the saved ones, by a rule of others."""


def median_over(saved: Sequence[float], today: Sequence[float]) -> bool:
    """kernelmeter: the median is more than 5 % over the saved one."""
    return statistics.median(today) > 1.05 * statistics.median(saved)


def mean_over(saved: Sequence[float], today: Sequence[float]) -> bool:
    """pytest-benchmark: --benchmark-compare-fail=mean:5%."""
    return statistics.fmean(today) > 1.05 * statistics.fmean(saved)


def min_over(saved: Sequence[float], today: Sequence[float]) -> bool:
    """pytest-benchmark: --benchmark-compare-fail=min:5%."""
    return min(today) > 1.05 * min(saved)


def mann_whitney(saved: Sequence[float], today: Sequence[float]) -> bool:
    """google/benchmark's compare.py: two-sided U test, p < 0.05, and today's median is the higher one."""
    pooled = sorted([(value, 0) for value in saved] + [(value, 1) for value in today])
    ranks, ties, place = [0.0, 0.0], 0.0, 0
    while place < len(pooled):
        last = place
        while last + 1 < len(pooled) and pooled[last + 1][0] == pooled[place][0]:
            last += 1
        tied = last - place + 1
        ties += tied**3 - tied
        for _, which in pooled[place : last + 1]:
            ranks[which] += (place + last) / 2 + 1
        place = last + 1
    first, second = len(saved), len(today)
    total = first + second
    u = ranks[1] - second * (second + 1) / 2
    spread = math.sqrt(first * second / 12 * (total + 1 - ties / (total * (total - 1))))
    z = (abs(u - first * second / 2) - 0.5) / spread if spread else 0.0
    p = math.erfc(z / math.sqrt(2))
    return p < 0.05 and statistics.median(today) > statistics.median(saved)


OTHERS: dict[str, Rule] = {
    "kernelmeter: median 5 %": median_over,
    "pytest-benchmark: mean 5 %": mean_over,
    "pytest-benchmark: min 5 %": min_over,
    "compare.py: U test": mann_whitney,
}


@dataclass
class Tally:
    """What one rule said in all trials of one kind."""

    trials: int = 0
    alarms: int = 0
    undecided: int = 0
    seconds: list[float] = field(default_factory=list)


def upper(alarms: int, trials: int) -> float:
    """Return the one-sided 95 % bound of a share (Clopper & Pearson)."""
    if alarms >= trials:
        return 1.0
    low, high = alarms / trials, 1.0
    for _ in range(60):
        share = (low + high) / 2
        seen = sum(math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(alarms + 1))
        low, high = (share, high) if seen > 0.05 else (low, share)
    return high


def write_trees(folder: Path, slowdown: float) -> None:
    for tree in ("new", "old"):
        (folder / tree).mkdir()
        for name, (body, inputs) in KERNELS.items():
            names = ", ".join(argument for argument, _ in inputs)
            text = MODULE.format(names=names, body=body, slowdown=slowdown)
            (folder / tree / f"{name}.py").write_text(text)


def case_of(folder: Path, tree: str, name: str, function: str) -> Case:
    return Case(
        id=f"{name}[{function}]",
        kernel=name,
        axes={},
        shown_axes=(),
        device=None,
        folder=str(folder / tree),
        implementation=Implementation(name, f"{name}.py:{function}"),
        arguments=tuple(Argument(n, "randn", shape=shape, dtype="fp32") for n, shape in KERNELS[name][1]),
        outputs=None,
        reference=Reference(Implementation("reference", f"{name}.py:kernel")),
        bytes_auto=True,
        timing=Timing(min_time_ms=100, max_time_ms=1000),
    )


def compared(
    running: Supervisor, folder: Path, name: str, function: str, options: argparse.Namespace
) -> tuple[Measurement, float]:
    """Return the live comparison of a kernel with its old version, and the seconds that it took."""
    old, new = case_of(folder, "old", name, "kernel"), case_of(folder, "new", name, function)
    gate = Gate("the saved version", options.margin, 0.01 / options.suite, looks=LIVE_LOOKS)
    trees = Tree(str(folder / "new")), Tree(str(folder / "old"))
    begin = time.monotonic()
    found = running.measure(new, opponent=Opponent(old, gate, *trees))
    seconds = time.monotonic() - begin
    running.kernel().bury()
    return found, seconds


def saved_and_today(running: Supervisor, folder: Path, name: str, function: str) -> Iterator[Measurement]:
    """Measure both versions in runs of their own, for the rules that judge what was saved."""
    for tree, each in (("old", "kernel"), ("new", function)):
        yield running.measure(case_of(folder, tree, name, each))
        running.kernel().bury()


def burn(steps_s: float) -> None:
    """Keep a core busy, or every other stretch of so many seconds."""
    while True:
        until = time.monotonic() + (steps_s or math.inf)
        while time.monotonic() < until:
            pass
        time.sleep(steps_s)


def report(tallies: dict[tuple[str, str], Tally], options: argparse.Namespace) -> str:
    lines = [
        f"{'':28}{'false alarms':>22}{'found':>18}{'undecided':>12}{'s a case':>14}",
    ]
    for rule in ("kmrun's gate", *({} if options.gate_only else OTHERS)):
        unchanged, slowed = tallies[rule, "kernel"], tallies[rule, "slowed"]
        at_most = upper(unchanged.alarms, unchanged.trials) * 100
        alarms = f"{unchanged.alarms} of {unchanged.trials} (<= {at_most:.1f} %)" if unchanged.trials else "-"
        found = f"{slowed.alarms} of {slowed.trials}"
        open_ = f"{unchanged.undecided} + {slowed.undecided}"
        times = "-"
        if unchanged.seconds or slowed.seconds:
            times = " / ".join(
                f"{statistics.median(each.seconds):.1f}" if each.seconds else "-"
                for each in (unchanged, slowed)
            )
        lines.append(f"{rule:28}{alarms:>22}{found:>18}{open_:>12}{times:>14}")
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    hogs = f"{options.hogs} busy loops beside{f' in steps of {options.steps:g} s' if options.steps else ''}"
    lines.append(
        f"margin {options.margin:.0%}, slowed by {options.slowdown:.1%}, one of {options.suite} cases, "
        f"{options.threads} threads, {hogs}, {load}"
    )
    lines.append("s a case: unchanged / slowed, median, correctness included. GPU: not yet measured")
    return "\n".join(lines)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--trials", type=int, default=2, help="rounds over the kernels")
    words.add_argument("--kernels", default=",".join(KERNELS))
    words.add_argument("--slowdown", type=float, default=0.06)
    words.add_argument("--margin", type=float, default=0.03)
    words.add_argument("--suite", type=int, default=50, help="cases that share the error rate of 1 %%")
    words.add_argument("--hogs", type=int, default=0, help="busy loops beside")
    words.add_argument(
        "--steps", type=float, default=0.0, help="seconds after which they rest as long: speed in steps"
    )
    words.add_argument(
        "--threads", type=int, default=1, help="more wake up later after the spin, and slow it more"
    )
    words.add_argument("--minutes", type=float, default=math.inf, help="stop after so long")
    words.add_argument("--only", choices=("unchanged", "slowed"), help="one kind of trials")
    words.add_argument(
        "--gate-only", action="store_true", help="without the rules of others: more trials an hour"
    )
    words.add_argument("--json", type=Path, help="write every verdict there")
    options = words.parse_args()
    names = options.kernels.split(",")
    kinds = {"unchanged": ("kernel",), "slowed": ("slowed",)}.get(options.only, ("kernel", "slowed"))
    tallies = {(rule, kind): Tally() for rule in ("kmrun's gate", *OTHERS) for kind in ("kernel", "slowed")}
    verdicts = []
    hogs = [
        multiprocessing.Process(target=burn, args=(options.steps,), daemon=True) for _ in range(options.hogs)
    ]
    deadline = time.monotonic() + options.minutes * 60
    with (
        tempfile.TemporaryDirectory() as place,
        Supervisor("cpu", RunOptions(threads=options.threads, compared=True), place) as running,
    ):
        folder = Path(place).resolve()
        write_trees(folder, options.slowdown)
        for hog in hogs:
            hog.start()
        try:
            for index in range(options.trials):
                for name in random.sample(names, len(names)):
                    for kind in kinds:
                        if time.monotonic() > deadline:
                            print(report(tallies, options))
                            return
                        found, seconds = compared(running, folder, name, kind, options)
                        seen = found.slowdown
                        if seen is None:
                            sys.exit(f"{name}: {found.findings}")
                        gate = tallies["kmrun's gate", kind]
                        gate.trials += 1
                        gate.alarms += seen.verdict == "broken"
                        gate.undecided += seen.verdict == "inconclusive"
                        gate.seconds.append(seconds)
                        if not options.gate_only:
                            saved, today = saved_and_today(running, folder, name, kind)
                            for rule, judge in OTHERS.items():
                                tally = tallies[rule, kind]
                                tally.trials += 1
                                tally.alarms += judge(saved.samples_ns, today.samples_ns)
                        verdicts.append([name, kind, seconds, seen.verdict, seen.slowdown, seen.processes])
                        if options.json:
                            options.json.write_text(json.dumps(verdicts))
                        print(
                            f"{index + 1:3} {name:10} {kind:7} {seen.verdict:13} "
                            f"{(seen.slowdown or 0) * 100:+6.1f} % {seen.processes:3} pairs {seconds:5.1f} s",
                            file=sys.stderr,
                            flush=True,
                        )
        finally:
            for hog in hogs:
                hog.terminate()
    print(report(tallies, options))


if __name__ == "__main__":
    main()
