"""What a side does about its own memory."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")

FAULTS = """
import resource
import torch
from kmrun.measure import lifeline

torch.set_num_threads(1)
lifeline.keep_freed()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def work():
    # Outputs of 2 MiB, a few alive at a time; now and then all of them go, and with them the top of the heap.
    for _ in range(4):
        held = [torch.ones(1 << 19) for _ in range(6)]
        del held

work()
begin = faults()
work()
print(faults() - begin)
lifeline.give_back()
begin = faults()
work()
print(faults() - begin)
"""


def test_what_calls_free_is_kept_for_the_next_ones_until_it_is_given_back():
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True, timeout=120
    )
    again, anew = map(int, done.stdout.split())
    pages = 6 * 512
    assert again < pages / 10
    assert anew > pages * 0.9
