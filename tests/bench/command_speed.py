"""Wall time of whole commands beside kernelmeter's: paired runs, interleaved, median of the ratios.

    python tests/bench/command_speed.py compare|llm [-n 31] [--kmrun PATH --kernelmeter PATH]

Without paths it makes two fresh virtual environments, puts kernelmeter 0.9.0 into one and this checkout's wheel
into the other. Exit status 1: slower than 1.5 times.
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

LIMIT = 1.5
ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = {
    "compare": "4090 a100-80gb h100-sxm --ai 0.33 --cost 4090=0.35,a100-80gb=1.19,h100-sxm=2.69",
    "llm": "70b --quant q4 --gpus 4090 a100-80gb h100-sxm --cost a100-80gb=1.19,h100-sxm=2.69",
}


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=QUESTIONS)
    parser.add_argument("-n", type=int, default=31, help="pairs (31)")
    parser.add_argument("--kmrun", type=Path, help="a kmrun script that is installed already")
    parser.add_argument("--kernelmeter", type=Path, help="a kernelmeter script that is installed already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ours = options.kmrun or install(Path(folder) / "kmrun", [str(ROOT)], "kmrun")
        packages = ["--no-deps", "kernelmeter==0.9.0"]
        theirs = options.kernelmeter or install(Path(folder) / "kernelmeter", packages, "kernelmeter")
        words = [options.command, *QUESTIONS[options.command].split()]
        pairs = measure(ours, theirs, words, options.n)
    ratio = statistics.median(mine / other for mine, other in pairs)
    print(f"kmrun        {1e3 * statistics.median(mine for mine, _ in pairs):7.1f} ms median of {len(pairs)}")
    print(f"kernelmeter  {1e3 * statistics.median(other for _, other in pairs):7.1f} ms")
    print(f"ratio        {ratio:7.2f}    median of the pairs, at most {LIMIT}")
    return int(ratio > LIMIT)


def install(folder: Path, packages: list[str], script: str) -> Path:
    """Return the path of a script in a fresh environment that holds the packages."""
    venv.create(folder, with_pip=True)
    binaries = folder / ("Scripts" if sys.platform == "win32" else "bin")
    subprocess.run([binaries / "python", "-m", "pip", "install", "--quiet", *packages], check=True)
    return binaries / script


def measure(ours: Path, theirs: Path, words: list[str], count: int) -> list[tuple[float, float]]:
    """Return pairs of seconds, ours first; the order within a pair is drawn, two pairs warm the caches up."""
    pairs = []
    for index in range(count + 2):
        programs = [ours, theirs]
        random.shuffle(programs)
        seconds = {program: wall_s([program, *words]) for program in programs}
        if index >= 2:
            pairs.append((seconds[ours], seconds[theirs]))
    return pairs


def wall_s(command: list[str | Path]) -> float:
    """Return the wall time of one run in seconds."""
    begin = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
