"""What `--against-baseline` comes to on this machine: false alarms, detection, what stays open or hidden.

    python tests/bench/baselines.py take sessions.json --rounds 60 --hogs 1
    python tests/bench/baselines.py judge sessions.json

`take` goes round real CPU kernels of the shipped suites, one fresh process each, and lets so many busy loops run
beside every other phase of ten rounds. `judge` holds stretches of rounds against earlier stretches, as a saved
baseline and a later run are held against each other: unchanged (A/A), and with the kernel's times made slower by
what the margin allows and `--over` more (A/B). No test: it asserts nothing.
"""

import argparse
import json
import math
import multiprocessing
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from kmrun.cli.baselining import SESSIONS
from kmrun.core.baseline_gate import FIRST_SESSIONS, BaselineGate
from kmrun.core.gate import LOOKS
from kmrun.core.yardstick import Session
from kmrun.measure.run_options import RunOptions
from kmrun.measure.sessions import take_session
from kmrun.measure.supervisor import Supervisor
from kmrun.source.suite_plan import read_and_plan

ROOT = Path(__file__).resolve().parents[2]
CASES = (
    ("normalization.yaml", "softmax[rows=2048,columns=1024,dtype=fp32]"),
    ("gemm.yaml", None),
    ("attention.yaml", "sdpa[b=1,h=8,s=512,d=64,dtype=fp32,causal=false]"),
)
PHASE = 10


def chosen():
    """Return one CPU case of each suite."""
    found = []
    for name, wanted in CASES:
        cases = read_and_plan(ROOT / "suites" / name, name).expansion.cases
        here = [case for case in cases if case.device in (None, "cpu")]
        found.append(next((case for case in here if case.id == wanted), here[0]))
    return found


def spin():
    """Keep one core busy."""
    while True:
        pass


def take(path: Path, rounds: int, hogs: int, cache_mb: int) -> None:
    """Take the sessions and write them; a smaller cache than the machine's makes for fewer copies, and less time."""
    rows: list[dict[str, object]] = []
    repeats: dict[str, tuple[int, int]] = {}
    with Supervisor("cpu", RunOptions(compared=True), str(ROOT / "suites")) as supervisor:
        if cache_mb:
            supervisor.use_cache_bytes(cache_mb * 2**20)
        found = {case.id: supervisor.measure(case) for case in chosen()}
        for number in range(rounds):
            busy = [
                multiprocessing.Process(target=spin, daemon=True) for _ in range(hogs * (number // PHASE % 2))
            ]
            for process in busy:
                process.start()
            try:
                for case in chosen():
                    begin = time.monotonic()
                    known = repeats.get(case.id)
                    taken = take_session(supervisor, case, found[case.id], lambda _: None, False, known)
                    took = time.monotonic() - begin
                    if isinstance(taken, Session):
                        repeats[case.id] = taken.repeats
                        row = {"case": case.id, "round": number, "hogs": len(busy), "took_s": took}
                        rows.append({**row, **asdict(taken)})
                    else:
                        print(f"{case.id}: {taken.sentence}", file=sys.stderr)
            finally:
                for process in busy:
                    process.kill()
                    process.join()
            path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def slower(session: Session, factor: float) -> Session:
    """Return the session of a kernel that takes so many times as long."""
    more = math.log(factor)
    return replace(
        session,
        kernel_ms=session.kernel_ms * factor,
        over_memory=session.over_memory + more,
        over_compute=session.over_compute + more,
    )


def decided(then: list[Session], now: list[Session], bound: str, options: argparse.Namespace):
    """Return what a run would come to, and None where the rounds ran out."""
    gate = BaselineGate("before", options.margin, 0.01 / options.cases, bound)
    cleared = gate.clears(then, now[:FIRST_SESSIONS])
    if cleared is not None:
        return cleared
    fresh = now[FIRST_SESSIONS:]
    for look in LOOKS:
        if len(fresh) >= look.pairs and (found := gate.settle(then, fresh[: look.pairs])) is not None:
            return found
    return None


def judge(path: Path, options: argparse.Namespace) -> None:
    """Print the table."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    fields = ("kernel_ms", "memory_ms", "compute_ms", "over_memory", "over_compute")
    heads = f"{'trials':>6} {'alarms':>7} {'found':>7} {'open A/A':>9} {'open A/B':>9} {'visible':>8}"
    print(f"{'case':44} {'load':10} {heads}")
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row for row in rows if row["case"] == case]
        sessions = [Session(*(row[name] for name in fields)) for row in own]
        for load in ("unchanged", "other"):
            outcomes: dict[str, list] = {"A/A": [], "A/B": []}
            for begin in range(0, len(sessions) - SESSIONS - FIRST_SESSIONS - LOOKS[0].pairs):
                then = sessions[begin : begin + SESSIONS]
                for later in range(begin + SESSIONS, len(sessions) - FIRST_SESSIONS - LOOKS[0].pairs, 2):
                    same = own[begin]["hogs"] == own[later]["hogs"]
                    if same != (load == "unchanged"):
                        continue
                    now = sessions[later:]
                    for name, factor in (("A/A", 1.0), ("A/B", 1 + options.margin + options.over)):
                        changed = [slower(each, factor) for each in now]
                        bound = "comp" if "sdpa" in case or "matmul" in case else "mem"
                        found = decided(then, changed, bound, options)
                        if found is not None:
                            outcomes[name].append(found)
            unchanged, changed = outcomes["A/A"], outcomes["A/B"]
            if not unchanged or not changed:
                continue
            visible = sorted(each.visible for each in unchanged if each.visible is not None)
            print(
                f"{case[:44]:44} {load:10} {len(unchanged):6}"
                f" {_share(unchanged, 'broken')} {_share(changed, 'broken')}"
                f"   {_share(unchanged, 'inconclusive')}   {_share(changed, 'inconclusive')}"
                f" {visible[len(visible) // 2] * 100:6.1f} %"
            )


def _share(found, verdict: str) -> str:
    return f"{100 * sum(each.verdict == verdict for each in found) / len(found):5.1f} %"


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("take", "judge"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--hogs", type=int, default=0)
    parser.add_argument("--cache-mb", type=int, default=0, help="taken for the last-level cache")
    parser.add_argument("--margin", type=float, default=0.03)
    parser.add_argument("--over", type=float, default=0.03, help="of a slowdown that is to be found")
    parser.add_argument("--cases", type=int, default=14, help="of the suite that shares the error rate")
    options = parser.parse_args()
    if options.what == "take":
        take(options.file, options.rounds, options.hogs, options.cache_mb)
    else:
        judge(options.file, options)


if __name__ == "__main__":
    main()
