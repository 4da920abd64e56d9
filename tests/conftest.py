"""What holds for all tests."""

import compileall
import os
import signal
from pathlib import Path

import hypothesis
import pytest

# torch's threads spin while they wait for each other. On a busy machine (CI, several runs) that steals the very
# cores they wait for: tests of numerics took ten times as long. Has to be said before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# A property that took longer than hypothesis' 200 ms was held up by the machine: no test asserts a time.
hypothesis.settings.register_profile("kmrun", deadline=None)
hypothesis.settings.load_profile("kmrun")

# In a job of GitHub's, runs speak to GitHub, too; the tests' own runs must not.
for _name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
    os.environ.pop(_name, None)


def pytest_configure(config):
    """Compile kmrun once: hundreds of processes import it, and may be forbidden to keep what they compile."""
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(__file__).resolve().parents[1] / "kmrun", quiet=2)


@pytest.fixture(autouse=True)
def signals_put_back():
    """Undo what the command line, run in this process, does to Ctrl-C."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
