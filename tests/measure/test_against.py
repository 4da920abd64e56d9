"""Two versions of a case in real processes: what is told apart, what is labelled, what is no comparison."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from kmrun.core.case import Argument, Case, Clause, Implementation, Output, Reference, Timing
from kmrun.core.gate import Gate, undecided
from kmrun.core.opponent import Opponent, Tree
from kmrun.errors import EnvironmentLacks
from kmrun.measure import against
from kmrun.measure.against import Comparison, compare, hurried
from kmrun.measure.run_options import RunOptions
from kmrun.measure.side import Side
from kmrun.measure.supervisor import Supervisor
from kmrun.measure.version import Version
from support.repositories import git

pytest.importorskip("torch")

QUICK = Timing(min_time_ms=5, max_time_ms=60, rel_ci=0.5)

KERNELS = """
import torch
{imports}

def work(x):
    {body}

def reference(x):
    return torch.exp(x)
"""

PLAIN = "return torch.exp(x)"
SLOW = "\n    ".join(["for _ in range(8):", "    torch.exp(x)", "return torch.exp(x)"])


@pytest.fixture(scope="module")
def supervisor():
    with Supervisor("cpu", RunOptions(seed=7, threads=1)) as running:
        running.use_cache_bytes(2**20)
        yield running


@pytest.fixture
def versions(tmp_path):
    """Makes the two trees from two bodies, and returns the new case and its opponent."""

    def make(new: str, old: str, imports: str = "", target: str = "k.py:work", **changes):
        cases = []
        for name, body in (("new", new), ("old", old)):
            tree = tmp_path / name
            tree.mkdir()
            (tree / "k.py").write_text(KERNELS.format(body=body, imports=imports))
            cases.append(case(str(tree), target, **changes))
        gate = Gate("HEAD~1", 0.05, 0.01)
        return cases[0], Opponent(cases[1], gate, Tree(str(tmp_path / "new")), Tree(str(tmp_path / "old")))

    return make


def case(folder: str, target: str, **changes) -> Case:
    plain = Case(
        id="work",
        kernel="work",
        axes={},
        shown_axes=(),
        device=None,
        folder=folder,
        implementation=Implementation("work", target),
        arguments=(Argument("x", "randn", shape=(64, 1024), dtype="fp32"),),
        outputs=None,
        reference=Reference(Implementation("reference", "k.py:reference")),
        bytes_auto=True,
        first_call_timeout_s=20,
        case_timeout_s=60,
        timing=QUICK,
    )
    return replace(plain, **changes)


def test_a_version_that_does_the_work_nine_times_is_slower(supervisor, versions):
    new, opponent = versions(SLOW, PLAIN)
    seen = supervisor.measure(new, opponent=opponent)
    assert seen.findings == ()
    assert seen.correct is True
    assert seen.samples_ns
    assert seen.rivals == ()
    # How sure of it a machine is depends on what else it does; that it is slower, and not by a little, does not.
    assert seen.slowdown.verdict in ("broken", "inconclusive")
    assert seen.slowdown.slowdown > 1.0
    assert (seen.slowdown.against, seen.slowdown.margin) == ("HEAD~1", 0.05)
    assert seen.slowdown.processes >= 10 or "out of time" in seen.slowdown.reason


def test_a_version_that_does_a_ninth_of_the_work_holds(supervisor, versions):
    new, opponent = versions(PLAIN, SLOW)
    seen = supervisor.measure(new, opponent=opponent)
    assert seen.slowdown.verdict == "holds"
    assert seen.slowdown.slowdown < -0.5
    assert seen.slowdown.high <= 0.05
    assert seen.slowdown.median < -0.5
    assert seen.slowdown.p95 is not None
    assert seen.slowdown.blocks >= 7
    # The window is short where versions are only compared: the calls of their own processes count, too.
    assert len(seen.samples_ns) >= 4 * seen.slowdown.blocks
    assert 0 < seen.rechecked_share < 1
    assert supervisor.control is not None
    assert supervisor.control.against == "itself"


@pytest.mark.parametrize("in_place", [False, True])
def test_copies_are_shared_by_all_pairs_unless_they_are_written_to(
    supervisor, versions, monkeypatch, in_place
):
    staged, tell = [], Side.tell

    def spy(self, op, **arguments):
        if op == "stage" and "half" in arguments:  # of a version, not of the kernel's own window
            staged.append((arguments["ready"], arguments["half"], arguments["deal"]))
        tell(self, op, **arguments)

    monkeypatch.setattr(Side, "tell", spy)
    bodies = [
        body.replace("return torch.exp(x)", "return x.exp_()") if in_place else body for body in (PLAIN, SLOW)
    ]
    new, opponent = versions(*bodies, mutates=("x",) if in_place else ())
    seen = supervisor.measure(new, opponent=opponent)
    assert seen.findings == ()
    assert seen.slowdown.verdict == "holds"
    ready = [each for each, _, _ in staged]
    assert len(staged) >= 4
    assert all(each == ready[0] for each in ready)
    assert (ready[0] is None) == in_place
    # A pair deals the two halves, and the same contents in the same order, another one than the pair before.
    deals = [(one[2], other[2]) for one, other in zip(staged[::2], staged[1::2], strict=True)]
    assert all(one == other for one, other in deals)
    assert len(set(deals)) == len(deals)
    assert all({one[1], other[1]} == {0, 1} for one, other in zip(staged[::2], staged[1::2], strict=True))


def test_an_old_version_that_computes_something_else_is_labelled(supervisor, versions):
    new, opponent = versions(PLAIN, SLOW.replace("return torch.exp(x)", "return torch.exp(x) + 1"))
    seen = supervisor.measure(new, opponent=opponent)
    assert seen.correct is True
    assert "HEAD~1 computes something else" in seen.labels
    assert seen.slowdown.slowdown is not None


@pytest.mark.parametrize("checked", [True, False])
def test_an_old_version_that_writes_to_its_inputs_decides_nothing(supervisor, versions, checked):
    """Each of its calls has other inputs than the new version's, which gets its copies in another pair."""
    changes = {} if checked else {"reference": None, "outputs": (Output("y", (64, 1024), "fp32"),)}
    new, opponent = versions(PLAIN, "x.mul_(1e-20); return torch.exp(x)", **changes)
    seen = supervisor.measure(new, opponent=opponent)
    assert seen.findings == ()
    assert (seen.slowdown.verdict, seen.slowdown.slowdown) == ("inconclusive", None)
    assert seen.slowdown.reason.startswith("the other version wrote to its input 'x'")


COUNTED = """import os
tally = os.open(os.path.join(os.path.dirname(__file__), "tally"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
os.write(tally, b"x")
process = os.fstat(tally).st_size
os.close(tally)
calls = []"""
"""Lets a kernel know which process of its version it is in."""


@pytest.mark.parametrize(
    ("isolation", "mode"), [("paired", "forward"), ("inline", "forward"), ("paired", "backward")]
)
def test_a_version_that_is_wrong_in_a_later_process_alone_is_wrong(versions, isolation, mode):
    """Its faster wrong calls would be called no slowdown, and its right ones were the only ones checked."""
    wrong = "return torch.exp(x) if process < 3 else torch.expm1(2 * x)"
    changes = {}
    if mode == "backward":
        changes["mode"] = mode
        changes["arguments"] = (Argument("x", "randn", shape=(64, 1024), dtype="fp32", requires_grad=True),)
    new, opponent = versions(wrong, SLOW, COUNTED, **changes)
    with Supervisor("cpu", RunOptions(isolation=isolation, threads=1)) as running:
        running.use_cache_bytes(2**20)
        seen = running.measure(new, opponent=opponent)
    (finding,) = seen.findings
    assert (finding.code, finding.fault, finding.outcome) == ("wrong_result", "kernel", "fail")
    assert finding.sentence.startswith("in a call that was timed beside HEAD~1: ")
    assert (seen.correct, seen.slowdown) == (False, None)
    assert len((Path(new.folder) / "tally").read_text()) == 3


REMEMBERED = """
    if not held or not torch.equal(x[0], held[0]):
        for _ in range(8):
            torch.exp(x)
        held[:] = [x[0].clone(), torch.exp(x)]
    return held[1].clone()"""


@pytest.mark.parametrize(("isolation", "l2"), [("paired", "cold"), ("paired", "hot"), ("inline", "cold")])
def test_what_a_version_remembers_of_its_last_call_makes_it_no_faster(versions, isolation, l2):
    new, opponent = versions(REMEMBERED, PLAIN, "held = []", timing=replace(QUICK, l2=l2))
    with Supervisor("cpu", RunOptions(seed=7, threads=1, isolation=isolation)) as running:
        running.use_cache_bytes(2**20)
        seen = running.measure(new, opponent=opponent)
    assert (seen.findings, seen.correct) == ((), True)
    assert seen.slowdown.verdict in ("broken", "inconclusive")
    assert seen.slowdown.slowdown > 1.0


def test_where_memory_is_short_versions_are_compared_on_one_drawing(versions, monkeypatch):
    new, opponent = versions(PLAIN, SLOW)
    free = against.cpu.memory_available_bytes
    with Supervisor("cpu", RunOptions(seed=7, threads=1)) as running:
        running.use_cache_bytes(2**20)
        monkeypatch.setattr(against, "DRAWINGS_ROOM", free())
        seen = running.measure(new, opponent=opponent)
    assert (seen.findings, seen.slowdown.verdict, len(seen.seeds)) == ((), "holds", 3)
    assert "compared on one drawing: memory is short" in seen.labels


@pytest.mark.parametrize("is_new", [True, False])
def test_a_version_that_writes_to_its_inputs_late_is_found_out(supervisor, versions, is_new):
    late = "calls.append(0); out = torch.exp(x); process > 1 and len(calls) > 20 and x[0].zero_(); return out"
    if not is_new:
        late = late.replace("process > 1 and ", "")
    new, opponent = versions(*((late, SLOW) if is_new else (PLAIN, late)), COUNTED)
    seen = supervisor.measure(new, opponent=opponent)
    if is_new:
        (finding,) = seen.findings
        assert (finding.code, finding.outcome) == ("input_mutated", "fail")
        assert seen.slowdown is None
    else:
        assert seen.findings == ()
        assert (seen.slowdown.verdict, seen.slowdown.slowdown) == ("inconclusive", None)
        assert seen.slowdown.reason.startswith("the other version wrote to its input 'x'")


def test_memory_that_waits_for_the_next_copies_skips_no_case(versions, monkeypatch):
    new, opponent = versions(PLAIN, PLAIN)
    with Supervisor("cpu", RunOptions(seed=7, threads=1)) as running:
        running.use_cache_bytes(2**20)
        assert running.measure(new, opponent=opponent).findings == ()
        arena = running._arenas.arena
        waiting = os.fstat(arena).st_size
        assert waiting > 2**20
        monkeypatch.setattr(running, "_free_bytes", lambda: 2**40 - os.fstat(arena).st_size)
        large = replace(new, needed_bytes={"kernel": 2**40 - waiting // 2, "judge": 0})
        assert running.measure(large).findings == ()
        small = replace(new, needed_bytes={"kernel": 2**40 + 1, "judge": 0})
        (skipped,) = running.measure(small).findings
    assert (skipped.code, skipped.outcome) == ("memory", "skipped")


@pytest.mark.parametrize("is_tight", [True, False])
def test_a_pair_is_brought_up_beside_the_one_that_ends_where_memory_allows_that(
    supervisor, versions, monkeypatch, is_tight
):
    events, bury, made = [], Version.bury, Version.__init__

    def spy_on(name, function):
        def spy(self, *arguments):
            events.append(name)
            return function(self, *arguments)

        return spy

    monkeypatch.setattr(Version, "bury", spy_on("buried", bury))
    monkeypatch.setattr(Version, "__init__", spy_on("made", made))
    # A pair takes 2 GiB; then there is room for three more, or for a hundred.
    free = iter([2**40, 2**40, 2**40 - 2**31])
    left = (3 if is_tight else 100) * 2**31
    monkeypatch.setattr(against, "_free_bytes", lambda _: next(free, left))
    new, opponent = versions(PLAIN, SLOW)
    assert supervisor.measure(new, opponent=opponent).slowdown.verdict == "holds"
    assert events[:2] == ["made", "made"]
    assert events[2:4] == (["buried", "buried"] if is_tight else ["made", "made"])


def test_an_old_version_that_fails_decides_nothing_and_breaks_nothing(supervisor, versions):
    new, opponent = versions(PLAIN, "raise ValueError('was broken')")
    seen = supervisor.measure(new, opponent=opponent)
    assert seen.findings == ()
    assert (seen.slowdown.verdict, seen.slowdown.slowdown) == ("inconclusive", None)
    assert seen.slowdown.reason == "the other version raised ValueError: was broken"


def test_a_new_version_that_fails_is_the_kernel_s_fault_and_was_not_compared(supervisor, versions):
    new, opponent = versions("raise ValueError('is broken')", PLAIN)
    seen = supervisor.measure(new, opponent=opponent)
    assert [finding.fault for finding in seen.findings] == ["kernel"]
    assert seen.slowdown is None


def test_the_same_module_on_both_sides_is_told(supervisor, versions):
    new, opponent = versions(PLAIN, PLAIN, target="torch:exp")
    seen = supervisor.measure(new, opponent=opponent)
    assert seen.findings == ()
    assert "same code on both sides" in seen.labels
    assert "not compared: no code of either tree was loaded" in seen.labels
    assert seen.slowdown is None


def test_an_installed_copy_does_not_stand_for_the_two_of_the_trees(
    supervisor, versions, tmp_path, monkeypatch
):
    """The package is installed, not editable, and lies deep in the repository: both sides get the installed one."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "deeppack.py").write_text(KERNELS.format(body=PLAIN, imports=""))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    new, opponent = versions(PLAIN, PLAIN, target="deeppack:work")
    for name, body in (("new", SLOW), ("old", PLAIN)):
        (tmp_path / name / "lib" / "deep").mkdir(parents=True)
        (tmp_path / name / "lib" / "deep" / "deeppack.py").write_text(KERNELS.format(body=body, imports=""))
        git(tmp_path / name, "init", "-q")
        git(tmp_path / name, "add", "-A")
    with Supervisor("cpu", RunOptions(seed=7, threads=1)) as running:
        running.use_cache_bytes(2**20)
        (finding,) = running.measure(new, opponent=opponent).findings
    assert (finding.code, finding.fault, finding.outcome) == ("wrong_tree", "environment", "error")
    assert finding.sentence == (
        f"this version loaded {tmp_path}/site/deeppack.py, not the 'deeppack' that {tmp_path}/new has"
    )


def test_an_installed_copy_behind_a_file_beside_the_suite_is_no_comparison(versions, tmp_path, monkeypatch):
    """The target is each tree's own file, but what it measures is installed once, for both."""
    place = tmp_path / "site-packages"
    trees = [tmp_path / name / "libs" / "deep" / "src" for name in ("new", "old")]
    new, opponent = versions("return behind.work(x)", "return behind.work(x)", imports="import behind")
    for folder, body in ((place, SLOW), (trees[0], SLOW), (trees[1], PLAIN)):
        (folder / "behind").mkdir(parents=True)
        (folder / "behind" / "__init__.py").write_text(KERNELS.format(body=body, imports=""))
    monkeypatch.setenv("PYTHONPATH", str(place), prepend=os.pathsep)
    with Supervisor("cpu", RunOptions(seed=7, threads=1)) as running:
        running.use_cache_bytes(2**20)
        seen = running.measure(new, opponent=opponent)
    (finding,) = seen.findings
    assert (finding.code, finding.fault, finding.outcome) == ("wrong_tree", "environment", "error")
    assert finding.sentence == (
        f"this version loaded {place}/behind/__init__.py, not the 'behind' that {tmp_path}/new has"
    )


def test_a_process_that_cannot_start_costs_its_case_alone(supervisor, versions, monkeypatch):
    new, opponent = versions(PLAIN, PLAIN)

    def refuse(count):
        raise EnvironmentLacks("the process that hosts the sides was killed (signal 9)", "run it again")

    monkeypatch.setattr(supervisor, "start_others", refuse)
    seen = supervisor.measure(new, opponent=opponent)
    (finding,) = seen.findings
    assert (finding.code, finding.fault, finding.outcome) == ("no_process", "environment", "error")
    assert "killed (signal 9)" in finding.sentence


def test_a_suite_whose_folder_the_other_version_lacks_is_not_compared(versions, tmp_path):
    """Its processes start in the new version's folder, out of which the old one must not import."""
    new, opponent = versions(PLAIN, PLAIN, target="k:work")
    bench = tmp_path / "new" / "bench"
    bench.mkdir()
    (tmp_path / "new" / "k.py").rename(bench / "k.py")
    (tmp_path / "old" / "k.py").unlink()
    with Supervisor("cpu", RunOptions(seed=7, threads=1), folder=str(bench)) as running:
        running.use_cache_bytes(2**20)
        seen = running.measure(replace(new, folder=str(bench)), opponent=opponent)
    assert (seen.findings, seen.slowdown) == ((), None)
    assert "not compared: HEAD~1 has no such target" in seen.labels


def test_a_target_that_only_the_new_version_has_is_not_compared(supervisor, versions, tmp_path):
    new, opponent = versions(PLAIN, PLAIN)
    (tmp_path / "old" / "k.py").write_text("")
    seen = supervisor.measure(new, opponent=opponent)
    assert (seen.findings, seen.slowdown) == ((), None)
    assert "not compared: HEAD~1 has no such target" in seen.labels
    (tmp_path / "old" / "k.py").unlink()
    seen = supervisor.measure(new, opponent=opponent)
    assert (seen.findings, seen.slowdown) == ((), None)
    assert seen.samples_ns


def test_code_of_the_other_tree_is_no_comparison(supervisor, versions, tmp_path):
    place = str(tmp_path / "new" / "leak.py")
    loading = f"import importlib.util as u; s = u.spec_from_file_location('leak', {place!r})"
    loading += "; m = u.module_from_spec(s); s.loader.exec_module(m); import sys; sys.modules['leak'] = m"
    new, opponent = versions(PLAIN, PLAIN, imports=loading)
    (tmp_path / "new" / "leak.py").write_text("")
    seen = supervisor.measure(new, opponent=opponent)
    (finding,) = seen.findings
    assert (finding.code, finding.fault, finding.outcome) == ("wrong_tree", "environment", "error")
    assert finding.sentence == f"HEAD~1 loaded {tmp_path}/new/leak.py, which is the other version's code"
    assert seen.slowdown is None


def test_a_module_that_the_other_version_lacks_is_the_environment_s(supervisor, versions):
    new, opponent = versions(PLAIN, "import no_such_module")
    (supervisor_seen,) = supervisor.measure(new, opponent=opponent).findings
    assert (supervisor_seen.code, supervisor_seen.fault) == ("module_missing", "environment")


def test_a_control_that_fires_voids_the_session(supervisor, versions, monkeypatch):
    new, opponent = versions(PLAIN, SLOW)
    fired = replace(supervisor.control, verdict="broken", slowdown=0.2, low=0.1, high=0.3, reason="")
    monkeypatch.setattr(supervisor, "control", fired)
    seen = supervisor.measure(new, opponent=opponent)
    (finding,) = seen.findings
    assert (finding.code, finding.fault) == ("control_fired", "environment")
    assert "20.0 % slower than itself" in finding.sentence
    assert seen.slowdown is None


def test_serial_isolation_does_not_alternate(versions):
    new, opponent = versions(PLAIN, SLOW)
    trial = SimpleNamespace(run=SimpleNamespace(isolation="serial"), case=new)
    seen = compare(trial, opponent)
    assert (seen.verdict, seen.reason) == ("inconclusive", "not alternated: serial isolation")
    assert compare(trial, None) is None


def test_a_case_that_promises_nothing_else_has_a_short_window(versions):
    new, opponent = versions(PLAIN, SLOW)
    slowdown = Clause("max_slowdown", {"*": 0.05})
    assert hurried(replace(new, clauses=(slowdown,)), opponent)
    assert not hurried(replace(new, clauses=(slowdown, Clause("min_speedup", {"*": 1.0}))), opponent)
    assert not hurried(new, None)


def test_inline_versions_draw_the_same_inputs_themselves(versions):
    new, opponent = versions(PLAIN, SLOW)
    with Supervisor("cpu", RunOptions(isolation="inline", threads=1)) as running:
        running.use_cache_bytes(2**20)
        seen = running.measure(new, opponent=opponent)
    assert seen.findings == ()
    assert seen.slowdown.verdict == "holds"


@pytest.mark.parametrize(
    ("means", "is_control", "labelled"),
    [
        ([0.5] * 20, False, True),
        ([0.04] * 20, False, False),
        ([0.5] * 5, False, False),
        ([0.5] * 20, True, False),
    ],
)
def test_a_case_whose_mean_call_alone_became_slower_is_labelled_and_a_control_labels_none(
    means, is_control, labelled
):
    labels = []
    trial = SimpleNamespace(run=SimpleNamespace(device=SimpleNamespace(kind="cpu")), label=labels.append)
    new, old = object(), object()
    comparison = Comparison(trial, Gate("HEAD~1", 0.05, 0.01), (new, new if is_control else old), None)
    comparison.calls[0].extend([2.0] * 19 + [8.0] * 2)
    comparison.calls[1].extend([1.0] * 21)
    comparison._mean_logs.extend(means)
    held = replace(undecided("HEAD~1", 0.05, ""), verdict="holds")
    told = comparison._with_all_calls(held)
    assert (told.median, told.p95) == (1.0, 7.0)
    assert labels == (["some calls slower"] if labelled else [])
