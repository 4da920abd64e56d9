"""What a side does about its own memory."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")

FAULTS = """
import resource, sys
import torch
from kmrun.measure import lifeline

torch.set_num_threads(1)
if sys.argv[1] == "kept":
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


def faults(mode: str) -> tuple[int, int]:
    """Return the page faults of the same work when all its memory was there before, and after it was given back."""
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, mode], capture_output=True, text=True, check=True, timeout=120
    )
    again, anew = map(int, done.stdout.split())
    return again, anew


def test_what_calls_free_is_kept_for_the_next_ones_until_it_is_given_back():
    again, anew = faults("kept")
    pages = 6 * 512
    assert again < pages / 10
    assert anew > pages * 0.9
    # And this is what the C library does by itself: every round makes its pages anew.
    assert faults("left")[0] > pages
