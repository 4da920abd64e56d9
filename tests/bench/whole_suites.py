"""How often is a whole suite wrong? Real pairs of equal processes, recorded and then dealt to suites without end.

    python tests/bench/whole_suites.py take pairs.json --minutes 10 [--hogs 1 --steps 2]
    python tests/bench/whole_suites.py judge pairs.json --suites 1000 --cases 50

No machine has the time for thousands of suites, and a rate of 1 % a suite is 0.02 % a case. `take` records the log
ratios of fresh pairs in which both processes run the same code. `judge` deals them to cases, with replacement, those
of one case all of one kernel, and lets the gate settle every case, as if screening had cleared none: unchanged, slower
by exactly what the margin allows (any alarm is false there, too), and by `--over` more. Nothing is asserted.
"""

import argparse
import json
import math
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gate import KERNELS, burn, case_of, upper, write_trees

from kmrun.core.gate import LIVE_LOOKS, Gate, Look, Screening, ScreeningOutcome
from kmrun.core.opponent import Opponent, Tree
from kmrun.core.slowdown import Slowdown
from kmrun.measure.run_options import RunOptions
from kmrun.measure.supervisor import Supervisor

PAIRS = 36


@dataclass(frozen=True, slots=True)
class Recorder(Gate):
    """A gate that leaves every case to fresh pairs, and keeps what they come to."""

    kept: list[float] = field(default_factory=list)

    def screened(self, seen: Sequence[Screening]) -> ScreeningOutcome:
        return "suspect"

    def settle(self, pairs: Sequence[float], old_ns: float, blocks: int) -> Slowdown | None:
        self.kept.append(pairs[-1])
        return Gate.settle(self, pairs, old_ns, blocks)


def take(path: Path, minutes: float, hogs: int, steps: float) -> None:
    """Record pairs of each kernel in turn, until the time is up; written after each."""
    recorded: dict[str, list[float]] = {name: [] for name in KERNELS}
    beside = [multiprocessing.Process(target=burn, args=(steps,), daemon=True) for _ in range(hogs)]
    until = time.monotonic() + minutes * 60
    with (
        tempfile.TemporaryDirectory() as place,
        Supervisor("cpu", RunOptions(compared=True), place) as running,
    ):
        folder = Path(place).resolve()
        write_trees(folder, 0.0)
        for hog in beside:
            hog.start()
        try:
            while time.monotonic() < until:
                for name in KERNELS:
                    gate = Recorder("itself", 0.03, 0.01, looks=(Look(PAIRS, 1.0, 1.0),), kept=recorded[name])
                    new, old = (case_of(folder, tree, name, "kernel") for tree in ("new", "old"))
                    trees = Tree(str(folder / "new")), Tree(str(folder / "old"))
                    found = running.measure(new, opponent=Opponent(old, gate, *trees))
                    if found.findings:
                        sys.exit(f"{name}: {found.findings[0].sentence}")
                    path.write_text(json.dumps(recorded))
                    print(f"{name:10} {len(recorded[name]):4} pairs", file=sys.stderr, flush=True)
        finally:
            for hog in beside:
                hog.terminate()


def judge(path: Path, suites: int, cases: int, margin: float, over: float, seed: int) -> None:
    """Print in how many of so many suites a case was called too slow, and what of all cases stayed open."""
    recorded = [pairs for pairs in json.loads(path.read_text()).values() if pairs]
    gate = Gate("itself", margin, 0.01 / cases, looks=LIVE_LOOKS)
    chance = random.Random(seed)
    print(
        f"{sum(map(len, recorded))} pairs of {len(recorded)} kernels, margin {margin:.1%}, {cases} cases a suite"
    )
    for what, slower, number in (
        ("unchanged", 0.0, suites),
        ("slower by the margin", margin, max(1, suites // 10)),
        (f"slower by {margin + over:.1%}", margin + over, max(1, suites // 10)),
    ):
        verdicts = [
            [settled(gate, chance.choice(recorded), math.log1p(slower), chance) for _ in range(cases)]
            for _ in range(number)
        ]
        alarmed = sum("broken" in suite for suite in verdicts)
        shares = {
            verdict: sum(suite.count(verdict) for suite in verdicts) / (number * cases)
            for verdict in ("holds", "broken", "inconclusive")
        }
        print(
            f"{what:24} suites with a case called too slow: {alarmed} of {number} (<= {upper(alarmed, number):.2%}); "
            f"cases: " + ", ".join(f"{share:.2%} {verdict}" for verdict, share in shares.items())
        )


def settled(gate: Gate, recorded: Sequence[float], shift: float, chance: random.Random) -> str:
    """Return the verdict on one case whose pairs are drawn from those of one kernel, moved by a log ratio."""
    pairs: list[float] = []
    while True:
        # Which process is the new one was drawn by lot, so that either sign is as likely.
        pairs.append(shift + chance.choice((-1, 1)) * chance.choice(recorded))
        found = gate.settle(pairs, 1e6, len(pairs))
        if found is not None:
            return found.verdict


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("what", choices=("take", "judge"))
    words.add_argument("file", type=Path)
    words.add_argument("--minutes", type=float, default=10.0)
    words.add_argument("--hogs", type=int, default=0, help="busy loops beside")
    words.add_argument("--steps", type=float, default=0.0, help="seconds after which they rest as long")
    words.add_argument("--suites", type=int, default=1000)
    words.add_argument("--cases", type=int, default=50, help="of a suite, which share 1 %%")
    words.add_argument("--margin", type=float, default=0.03)
    words.add_argument("--over", type=float, default=0.03)
    words.add_argument("--seed", type=int, default=1)
    options = words.parse_args()
    if options.what == "take":
        take(options.file, options.minutes, options.hogs, options.steps)
    else:
        judge(options.file, options.suites, options.cases, options.margin, options.over, options.seed)


if __name__ == "__main__":
    main()
