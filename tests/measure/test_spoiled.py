"""A kernel that leaves its process unusable: the next case must not pay for it."""

import gc
import os
import sys
import warnings
from dataclasses import replace

import pytest

pytest.importorskip("torch")

import torch

from kmrun.measure.run_options import RunOptions
from kmrun.measure.spoiled import Interpreter, Standing, limit_fault, limits
from kmrun.measure.supervisor import Supervisor
from support.sides import make_case, randn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sides are forked on Linux")

KERNELS = """\
import builtins, gc, json, os, resource, sys, time, warnings

import torch


def closes_streams(x, y):
    for number in (1, 2):
        try:
            os.close(number)
        except OSError:
            pass
    return x + y


def stops_the_clock(x, y):
    time.monotonic = lambda: 0.0
    return x + y


def traces(x, y):
    sys.settrace(lambda *_: None)
    return x + y


def makes_warnings_errors(x, y):
    warnings.simplefilter("error")
    return x + y


def goes_last(x, y):
    os.nice(5)
    return x + y


def binds_itself(x, y):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return x + y


def notes_its_cores(x, y):
    with open(__file__ + ".cores", "a") as file:
        print(len(os.sched_getaffinity(0)), file=file)
    return x + y


def stands_as_usual(x, y):
    if os.getpriority(os.PRIO_PROCESS, 0) != os.getpriority(os.PRIO_PROCESS, os.getppid()):
        raise RuntimeError("another priority")
    return x + y


def breaks_json_when_it_ends(x, y):
    json.loads = None
    return x + y


def patches_torch(x, y):
    torch.linalg.vector_norm = lambda *_, **__: torch.zeros(())
    return x + y


def small_memory(x, y):
    resource.setrlimit(resource.RLIMIT_AS, (2**20, 2**20))
    return x + y


def no_files(x, y):
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    return x + y


def ordinary(x, y):
    began = time.monotonic()
    while time.monotonic() == began:
        pass
    warnings.warn("nothing to see here", stacklevel=2)
    print("hello", flush=True)
    if sys.gettrace() is not None:
        raise RuntimeError("somebody traces this")
    return x + y
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("spoiled")
    (path / "k.py").write_text(KERNELS)
    return path


@pytest.fixture(scope="module")
def supervisor(folder):
    with Supervisor("cpu", RunOptions(quick=True), str(folder)) as running:
        yield running


def measured(supervisor, folder, name):
    case = make_case(
        randn("x", 8, 8), randn("y", 8, 8), target="torch:add", folder=str(folder), id=name, kernel=name
    )
    kernel = make_case(target=f"k.py:{name}").implementation
    return supervisor.measure(replace(case, implementation=kernel))


@pytest.mark.parametrize(
    "name",
    ["closes_streams", "stops_the_clock", "traces", "makes_warnings_errors", "breaks_json_when_it_ends"],
)
def test_what_a_kernel_does_to_its_process_does_not_reach_the_next(supervisor, folder, name):
    measured(supervisor, folder, name)
    found = measured(supervisor, folder, "ordinary")
    assert [finding.sentence for finding in found.findings] == []
    assert found.correct


def test_the_next_case_has_the_usual_priority(supervisor, folder):
    measured(supervisor, folder, "goes_last")
    assert measured(supervisor, folder, "stands_as_usual").findings == ()


def test_the_next_case_runs_on_all_cores(supervisor, folder):
    measured(supervisor, folder, "binds_itself")
    assert measured(supervisor, folder, "notes_its_cores").findings == ()
    # While it is timed its threads have a core each, while it is checked they have all.
    seen = (folder / "k.py.cores").read_text().split()
    assert max(map(int, seen)) == len(os.sched_getaffinity(0))


def test_what_user_code_did_to_its_standing_is_told():
    before = Standing.now()
    assert before.change() == ""
    assert replace(before, nice=before.nice + 1).change() == "the priority"
    assert replace(before, cores=before.cores | {max(before.cores) + 1}).change() == "the cores to run on"


@pytest.mark.parametrize(("name", "limit"), [("small_memory", "RLIMIT_AS"), ("no_files", "RLIMIT_NOFILE")])
def test_a_kernel_cannot_have_itself_skipped_by_a_limit(supervisor, folder, name, limit):
    (finding,) = measured(supervisor, folder, name).findings
    assert (finding.outcome, finding.fault) == ("error", "kernel")
    assert finding.sentence == f"the kernel lowered a limit of its process ({limit})"
    assert measured(supervisor, folder, "ordinary").findings == ()


def test_a_reference_that_patches_torch_is_the_suite_s_fault(supervisor, folder):
    case = make_case(randn("x", 8, 8), randn("y", 8, 8), folder=str(folder), target="k.py:patches_torch")
    (finding,) = supervisor.measure(
        replace(case, implementation=make_case(target="torch:add").implementation)
    ).findings
    assert (finding.code, finding.outcome, finding.fault) == ("side_broken", "error", "suite")
    assert finding.sentence.endswith("changed torch.linalg.vector_norm")
    assert measured(supervisor, folder, "ordinary").findings == ()


@pytest.fixture
def collecting():
    """The collector is on: a command that another test ran in this process may have switched it off for good."""
    was = gc.isenabled()
    gc.enable()
    yield
    if not was:
        gc.disable()


def test_an_interpreter_as_it_was(collecting):
    before = Interpreter.now()
    assert before.change() == ""
    real = torch.add
    try:
        torch.add = None
        assert before.change() == "torch.add"
    finally:
        torch.add = real
    torch.add = torch.nn.functional.softmax
    try:
        assert (
            before.change() == ""
        )  # what torch puts there itself: it wraps some functions for torch.compile
    finally:
        torch.add = real
    torch.an_addition_of_a_library = len
    del torch.an_addition_of_a_library
    with warnings.catch_warnings():
        warnings.simplefilter("error", ImportWarning)
        assert before.change() == "which warnings are errors"
    gc.disable()
    try:
        assert before.change() == "the garbage collector"
    finally:
        gc.enable()
    deep = sys.getrecursionlimit()
    sys.setrecursionlimit(deep + 1)
    try:
        assert before.change() == "the recursion limit"
    finally:
        sys.setrecursionlimit(deep)
    assert before.change() == ""


def test_a_limit_that_was_raised_is_nobody_s_fault():
    held = limits()
    assert limit_fault(held, True) is None
    fault = limit_fault({**held, "RLIMIT_CORE": 0, "RLIMIT_NOFILE": float("inf")}, False)
    assert (fault is None) == (held["RLIMIT_NOFILE"] == float("inf"))
    if fault is not None:
        assert (fault.code, fault.fault) == ("limits_lowered", "suite")
