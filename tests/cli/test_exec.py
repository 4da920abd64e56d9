"""`kmrun exec` runs user code in the foreground, so it is tested as a process of its own."""

import subprocess
import sys

import pytest

from support.forked import Forking

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
ONE = """\
kmrun: 1
suite: one
kernels:
  - name: it
    target: TARGET
    args: {x: INIT}
"""
ONES = "{init: ones, shape: [4], dtype: fp32}"
KERNELS = """\
from pathlib import Path

CALLS = Path(__file__).with_name("calls")


def count(x):
    with CALLS.open("a") as file:
        file.write(f"{x.numel()}\\n")
    return -x


def broken(x):
    raise ValueError("stop here")


def make(**seen):
    raise ValueError("no such input")


def leave(*_, **__):
    import sys

    sys.exit(7)


def plan_to_leave(x):
    return leave


def detach(x):
    return x.detach() * 2


def mute(x):
    import sys

    sys.stdout = sys.stderr = None
    return x


def shut(x):
    import sys

    sys.stdout.close()
    return x


def mute_and_broken(x):
    mute(x)
    raise ValueError("heard all the same")
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


def run_anew(folder, *words, interpreter=(sys.executable, "-m", "kmrun"), typed=None):
    """In an interpreter that begins with this command, as a user's does."""
    command = [*interpreter, "exec", "suite.yaml", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, input=typed, check=False)


@pytest.fixture(scope="module")
def run():
    """In a process that has torch already, which is most of what `run_anew` takes: `run(folder, *words)`."""
    forking = Forking()
    yield lambda folder, *words: forking(folder, "exec", "suite.yaml", *words)
    forking.close()


def test_it_calls_the_kernel_once_to_warm_up_and_n_times_more_and_says_nothing(folder):
    done = run_anew(folder, "-k", "count[n=8]", "-n", "3", "--device", "cpu")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "calls").read_text().split() == ["8"] * 4


def test_backward_runs(run, folder):
    done = run(folder, "-k", "gradient", "--device", "cpu")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_more_than_one_case_is_refused_with_their_names(run, folder):
    done = run(folder, "-k", "count", "--device", "cpu")
    assert done.returncode == 2
    assert done.stderr == (
        "error: -k count matches 2 cases, and exec runs one\nhint: choose with -k: count[n=4], count[n=8]\n"
    )


def test_without_k_a_suite_of_several_cases_is_refused(run, folder):
    done = run(folder, "--device", "cpu")
    assert done.returncode == 2
    assert done.stderr == (
        "error: suite.yaml has 5 cases, and exec runs one\n"
        "hint: choose with -k: count[n=4], count[n=8], broken, missing, ...\n"
    )


def test_a_kernel_s_exception_keeps_its_traceback(run, folder):
    done = run(folder, "-k", "broken", "--device", "cpu")
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("ValueError: stop here")
    assert 'raise ValueError("stop here")' in done.stderr
    assert "foreground.py" not in done.stderr  # what leads to the kernel is of no use to its author


PDB = (sys.executable, "-m", "pdb", "-c", "continue", "-m", "kmrun")


@pytest.mark.parametrize(
    ("target", "line"), [("broken", 'raise ValueError("stop here")'), ("leave", "sys.exit(7)")]
)
def test_a_debugger_stops_where_the_kernel_ended(folder, target, line):
    (folder / "suite.yaml").write_text(ONE.replace("TARGET", f"kernels.py:{target}").replace("INIT", ONES))
    done = run_anew(folder, "--device", "cpu", interpreter=PDB, typed="where\nquit\n")
    assert "Post mortem debugger" in done.stdout
    assert f"-> {line}" in done.stdout


@pytest.mark.parametrize(
    ("target", "init", "end"),
    [
        ("unclosed.py:f", ONES, "    def f(x:\n         ^\nSyntaxError: '(' was never closed\n"),
        ("raising.py:f", ONES, '    raise ValueError("at import")\nValueError: at import\n'),
        ("kernels.py:broken", "{init: call, target: unclosed.py:f}", "SyntaxError: '(' was never closed\n"),
        ("kernels.py:broken", "{init: call, target: kernels.py:make}", "ValueError: no such input\n"),
        ("kernels.py:mute_and_broken", ONES, "ValueError: heard all the same\n"),
    ],
)
def test_what_user_code_raises_is_shown_from_its_own_code_on(run, folder, target, init, end):
    (folder / "suite.yaml").write_text(ONE.replace("TARGET", target).replace("INIT", init))
    (folder / "unclosed.py").write_text("def f(x:\n")
    (folder / "raising.py").write_text('raise ValueError("at import")\n')
    done = run(folder, "--device", "cpu")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(end)
    for frames in ("foreground.py", "target.py", "importlib", "TargetError"):
        assert frames not in done.stderr


def test_a_debugger_stops_in_what_makes_an_input(folder):
    (folder / "suite.yaml").write_text(
        ONE.replace("TARGET", "torch:neg").replace("INIT", "{init: call, target: kernels.py:make}")
    )
    done = run_anew(folder, "--device", "cpu", interpreter=PDB, typed="p sorted(seen)\nquit\n")
    assert "['axes', 'seed']" in done.stdout


@pytest.mark.parametrize("name", ["mute", "shut"])
def test_a_kernel_may_take_standard_output_away(run, folder, name):
    (folder / "suite.yaml").write_text(ONE.replace("TARGET", f"kernels.py:{name}").replace("INIT", ONES))
    done = run(folder, "--device", "cpu")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


LEAVING = "    sys.exit(7)\n"


@pytest.mark.parametrize(
    ("target", "init", "who", "line"),
    [
        ("kernels.py:leave", ONES, "the kernel", LEAVING),
        ("kernels.py:plan_to_leave, setup: kernels.py:plan_to_leave", ONES, "the kernel", LEAVING),
        ("kernels.py:count, setup: kernels.py:leave", ONES, "the kernel", LEAVING),
        ("leaving.py:f", ONES, "importing leaving.py", "sys.exit(7)\n"),
        ("kernels.py:count", "{init: call, target: kernels.py:leave}", "x: kernels.py:leave", LEAVING),
    ],
)
def test_user_code_that_exits_is_told_with_its_place(run, folder, target, init, who, line):
    target, _, setup = target.partition(", ")
    text = ONE.replace("TARGET", f"{target}\n    {setup}").replace("INIT", init)
    (folder / "suite.yaml").write_text(text)
    (folder / "leaving.py").write_text("import sys\nsys.exit(7)\n")
    done = run(folder, "--device", "cpu")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(f"{who} called exit(7)\n")
    assert line in done.stderr
    assert "foreground.py" not in done.stderr


@pytest.mark.parametrize(
    ("target", "init", "start"),
    [
        ("torch:mv", ONES, "TypeError: "),
        ("kernels.py:count, setup: torch:mv", ONES, "TypeError: "),
        ("kernels.py:count", "{init: call, target: torch:mv}", "TypeError: "),
        ("sys:exit", ONES, "kmrun.measure.foreground.Exited: the kernel called exit(tensor("),
    ],
)
def test_an_error_of_a_function_in_c_stands_alone(run, folder, target, init, start):
    target, _, setup = target.partition(", ")
    text = ONE.replace("TARGET", f"{target}\n    {setup}").replace("INIT", init)
    (folder / "suite.yaml").write_text(text)
    done = run(folder, "--device", "cpu")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(start)


def test_a_fault_of_kmrun_s_own_keeps_its_frames(folder):
    broken = (
        "import sys, kmrun.measure.foreground as f\n"
        "f.inputs.build = None\n"
        "from kmrun.cli import main\n"
        "main()\n"
    )
    done = run_anew(folder, "-k", "broken", "--device", "cpu", interpreter=(sys.executable, "-c", broken))
    assert done.returncode == 1
    assert "foreground.py" in done.stderr


def test_what_cannot_be_differentiated_is_the_kernel_s_fault(run, folder):
    text = ONE.replace("TARGET", "kernels.py:detach\n    mode: backward")
    (folder / "suite.yaml").write_text(text.replace("INIT", ONES.replace("}", ", requires_grad: true}")))
    done = run(folder, "--device", "cpu")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: output o carries no graph")


@pytest.mark.parametrize(
    ("words", "code", "start"),
    [
        (("-k", "missing"), 2, "error: target 'kernels.py:missing'"),
        (("-k", "count[n=4]", "--device", "gpu"), 2, "error: --device gpu: not a device"),
        (("-k", "count[n=4]", "--device", "cuda:7"), 3, "error: there is no device cuda:7"),
        (("-k", "nothing"), 2, "error: no case matches -k 'nothing'"),
    ],
)
def test_mistakes_end_without_a_traceback(run, folder, words, code, start):
    done = run(folder, *words)
    assert done.returncode == code
    assert done.stderr.startswith(start)
    assert "Traceback" not in done.stderr
