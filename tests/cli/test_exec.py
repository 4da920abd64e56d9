"""`kmrun exec` runs user code in the foreground, so it is tested as a process of its own."""

import subprocess
import sys

import pytest

pytest.importorskip("torch")

SUITE = """\
kmrun: 1
suite: alone
kernels:
  - name: count
    target: kernels.py:count
    reference: torch:neg
    matrix: {n: [4, 8]}
    args: {x: {init: randn, shape: [n], dtype: fp32}}
  - name: broken
    target: kernels.py:broken
    reference: torch:neg
    args: {x: {init: randn, shape: [4], dtype: fp32}}
  - name: missing
    target: kernels.py:missing
    reference: torch:neg
    args: {x: {init: randn, shape: [4], dtype: fp32}}
  - name: gradient
    target: torch:square
    reference: torch:square
    mode: backward
    args: {x: {init: randn, shape: [4], dtype: fp32, requires_grad: true}}
"""
KERNELS = """\
from pathlib import Path

CALLS = Path(__file__).with_name("calls")


def count(x):
    with CALLS.open("a") as file:
        file.write(f"{x.numel()}\\n")
    return -x


def broken(x):
    raise ValueError("stop here")
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


def run(folder, *words, interpreter=(sys.executable, "-m", "kmrun"), typed=None):
    command = [*interpreter, "exec", "suite.yaml", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, input=typed, check=False)


def test_it_calls_the_kernel_once_to_warm_up_and_n_times_more_and_says_nothing(folder):
    done = run(folder, "-k", "count[n=8]", "-n", "3", "--device", "cpu")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "calls").read_text().split() == ["8"] * 4


def test_backward_runs(folder):
    done = run(folder, "-k", "gradient", "--device", "cpu")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_more_than_one_case_is_refused_with_their_names(folder):
    done = run(folder, "-k", "count", "--device", "cpu")
    assert done.returncode == 2
    assert done.stderr == (
        "error: -k count matches 2 cases, and exec runs one\nhint: choose with -k: count[n=4], count[n=8]\n"
    )


def test_without_k_a_suite_of_several_cases_is_refused(folder):
    done = run(folder, "--device", "cpu")
    assert done.returncode == 2
    assert done.stderr == (
        "error: suite.yaml has 5 cases, and exec runs one\n"
        "hint: choose with -k: count[n=4], count[n=8], broken, missing, ...\n"
    )


def test_a_kernel_s_exception_keeps_its_traceback(folder):
    done = run(folder, "-k", "broken", "--device", "cpu")
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("ValueError: stop here")
    assert 'raise ValueError("stop here")' in done.stderr
    assert "foreground.py" not in done.stderr  # what leads to the kernel is of no use to its author


def test_a_debugger_stops_where_it_was_raised(folder):
    pdb = (sys.executable, "-m", "pdb", "-c", "continue", "-m", "kmrun")
    done = run(folder, "-k", "broken", "--device", "cpu", interpreter=pdb, typed="where\nquit\n")
    assert 'raise ValueError("stop here")' in done.stdout
    assert "Post mortem debugger" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "start"),
    [
        (("-k", "missing"), 2, "error: target 'kernels.py:missing'"),
        (("-k", "count[n=4]", "--device", "gpu"), 2, "error: --device gpu: not a device"),
        (("-k", "count[n=4]", "--device", "cuda:7"), 3, "error: there is no device cuda:7"),
        (("-k", "nothing"), 2, "error: no case matches -k 'nothing'"),
    ],
)
def test_mistakes_end_without_a_traceback(folder, words, code, start):
    done = run(folder, *words)
    assert done.returncode == code
    assert done.stderr.startswith(start)
    assert "Traceback" not in done.stderr
