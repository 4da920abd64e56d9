"""Small files that would grow: each ends in a clear error, in a process of its own that stays small."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RING = "".join(f"x-{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
MERGES = "".join(f"x-{i}: &a{i} {{<<: [{','.join([f'*a{i - 1}'] * 40)}], k{i}: 1}}\n" for i in range(1, 60))
WIDE = f"x-0: &a0 {{{','.join(f'k{i}: 1' for i in range(1000))}}}\n"
KERNEL = "kmrun: 1\nsuite: s\nkernels: [{name: a, target: 'm:f', "
BOMBS = {
    "aliases": "kmrun: 1\nx-0: &a0 [1,1,1,1,1,1,1,1,1]\n" + RING,
    "merges": "kmrun: 1\nx-0: &a0 {" + ",".join(f"j{i}: 1" for i in range(200)) + "}\n" + MERGES,
    "one wide merge": "kmrun: 1\n" + WIDE + f"x-1: {{<<: [{','.join(['*a0'] * 15000)}]}}\n",
    "flow depth": "kmrun: " + "[" * 500_000,
    "mapping depth": "kmrun: " + "{a: " * 300_000,
    "block depth": "kmrun:\n" + "".join(" " * i + "-\n" for i in range(1, 1200)),
    "question marks": "kmrun: 1\n" + "? " * 500_000,
    "alias depth": "x0: &a0 [1]\n" + "".join(f"x{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 3000)),
    "digits": "kmrun: " + "9" * 5000,
    "two million digits": "kmrun: " + "9" * 2_000_000,
    "a large file": "kmrun: 1\n#" + "x" * 3_000_000,
    "a wide list": "kmrun: [" + "1," * 1_000_000 + "]",
    "a wide mapping": "kmrun: 1\n" + "".join(f"a{i}: 1\n" for i in range(190_000)),
    "refusals": "kmrun: 1\nkernels: [" + "yes," * 400_000 + "]",
    "open brackets": "kmrun: 1\nkernels: [" + "f(a," * 400_000 + "]",
    "open brackets in a mapping": "kmrun: 1\nkernels: {a: " + "f(a, " * 300_000 + "}",
    "a formula tower": "kmrun: 1\nsuite: s\nkernels: [{name: a, target: 'm:f', flops: 9**9**9**9**9}]\n",
    "a deep formula": "kmrun: 1\nsuite: s\nkernels: [{name: a, target: 'm:f', flops: '"
    + "(" * 90_000
    + "'}]\n",
    "a range": KERNEL + "matrix: {n: {linear: [0, 999999999, 1]}}}]\n",
    "crossed axes": "kmrun: 1\nsuite: s\nkernels: [{name: a, target: 'm:f', matrix: {"
    + ", ".join(f"{name}: {{linear: [1, 9999, 1]}}" for name in "abcdefgh")
    + "}}]\n",
}
CHILD = """
import json, resource, sys
from pathlib import Path
from kmrun.source.diagnostics import InvalidSuite
from kmrun.source.suite_plan import read_and_plan
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
try:
    read_and_plan(Path(sys.argv[1]))
    codes = []
except InvalidSuite as error:
    codes = [item.code for item in error.diagnostics]
unit = 1 if sys.platform == "darwin" else 1024
try:
    # Linux: the mark of this process image alone. ru_maxrss would carry over that of the one that forked it.
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
except FileNotFoundError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
print(json.dumps([codes, peak]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs the resource module")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_in_an_error_and_in_little_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(BOMBS[name], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True, timeout=120
    )
    codes, peak_bytes = json.loads(done.stdout)
    assert 1 <= len(codes) <= 100
    assert peak_bytes < 100 * 2**20
