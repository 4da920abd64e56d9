"""How long a report of many cases takes, and how large it is: `python tests/bench/report_size.py --cases 2000`."""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kmrun.store.results import render
from support.gpu_results import KERNELS, gpu_result

DTYPES = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--samples", type=int, default=200)
    given = parser.parse_args()
    result = gpu_result(sizes=max(1, given.cases // (len(KERNELS) * DTYPES)), samples=given.samples)
    with tempfile.TemporaryDirectory() as folder:
        document, page = Path(folder) / "r.json", Path(folder) / "r.html"
        document.write_text(render([result]), encoding="utf-8")
        begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "kmrun", "report", document, "--out", page],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        took, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(
            f"{len(result.cases)} cases, {given.samples} samples each: {took:.1f} s, {cpu:.1f} s of them on a CPU"
        )
        print(f"document {document.stat().st_size / 1e6:.1f} MB, page {page.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
