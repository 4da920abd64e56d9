"""Real sides, real processes: what is measured, and how everything that can go wrong ends."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kmrun.core.case import Argument, Case, Check, Implementation, Output, Reference, Requires, Timing
from kmrun.core.statistics import median
from kmrun.errors import EnvironmentLacks
from kmrun.measure.run_options import RunOptions
from kmrun.measure.supervisor import Supervisor

pytest.importorskip("torch")

FOLDER = str(Path(__file__).parent)
SHAPE = (256, 1024)
QUICK = Timing(min_time_ms=5, max_time_ms=60, rel_ci=0.5)


def case(function: str, **changes: object) -> Case:
    inputs = tuple(Argument(name, "randn", shape=SHAPE, dtype="fp32") for name in ("x", "y"))
    plain = Case(
        id=function,
        kernel=function,
        axes={},
        shown_axes=(),
        device=None,
        folder=FOLDER,
        implementation=Implementation(function, f"kernels.py:{function}"),
        arguments=inputs,
        outputs=None,
        reference=Reference(Implementation("reference", "torch:add")),
        bytes_auto=True,
        first_call_timeout_s=20,
        case_timeout_s=60,
        timing=QUICK,
    )
    return replace(plain, **changes)


@contextlib.contextmanager
def small(device, options):
    """A supervisor that takes the last-level cache for small: copies and flushes cost little then."""
    with Supervisor(device, options) as running:
        running.use_cache_bytes(4 * 2**20)
        yield running


@pytest.fixture(scope="module")
def supervisor():
    with small("cpu", RunOptions(seed=7, threads=1)) as running:
        yield running


def only_finding(supervisor, measured_case):
    measurement = supervisor.measure(measured_case)
    assert len(measurement.findings) == 1, measurement.findings
    assert measurement.samples_ns == ()
    return measurement.findings[0]


def test_only_sides_whose_times_are_compared_go_before_other_load(supervisor):
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    lowered = f"import os; os.setpriority(os.PRIO_PROCESS, 0, {min(-10, usual)})"
    may = subprocess.run([sys.executable, "-c", lowered], capture_output=True).returncode == 0
    assert os.getpriority(os.PRIO_PROCESS, supervisor.judge().pid) == usual
    with small("cpu", RunOptions(threads=1, compared=True)) as running:
        sides = [running.judge(), running.start_another()]
        seen = {os.getpriority(os.PRIO_PROCESS, side.pid) for side in sides}
        assert seen == {min(-10, usual) if may and usual <= 0 else usual}
        sides[1].bury()


def test_an_honest_kernel_is_checked_and_timed(supervisor):
    seen = supervisor.measure(case("add"))
    assert seen.findings == ()
    assert seen.correct is True
    assert len(seen.samples_ns) >= 8
    assert min(seen.samples_ns) > 0
    assert seen.first_call_ns > 0
    assert seen.l2 == "cold"
    assert seen.extra["cold_by"] == "rotation"
    assert seen.isolation == "paired"
    assert seen.exchange == "shm"
    assert len(set(seen.seeds)) == 3
    assert seen.learned_outputs == {"o": {"shape": list(SHAPE), "dtype": "fp32"}}
    assert seen.bytes == 3 * 4 * SHAPE[0] * SHAPE[1]
    assert [check.name for check in seen.checks] == ["o"]
    assert seen.rechecked_share > 0


def test_the_reference_is_timed_beside_the_kernel_in_alternated_blocks(supervisor):
    (rival,) = supervisor.measure(case("slow_add")).rivals
    assert (rival.name, rival.role, rival.alternated) == ("reference", "reference", True)
    assert len(rival.pairs) >= 7
    assert median([theirs / ours for ours, theirs in rival.pairs]) < 1


def test_versus_entries_take_the_place_of_the_reference_and_liars_are_labelled(supervisor):
    entries = (
        Implementation("honest", "kernels.py:slow_add"),
        Implementation("liar", "kernels.py:wrong"),
    )
    seen = supervisor.measure(case("add", versus=entries))
    assert [rival.name for rival in seen.rivals] == ["honest", "liar"]
    assert "liar differs from the reference" in seen.labels
    assert not any("honest" in label for label in seen.labels)


def test_buffers_of_the_caller(supervisor):
    outputs = (Output("o", SHAPE, "fp32", arg="out"),)
    assert supervisor.measure(case("into", outputs=outputs)).correct is True
    finding = only_finding(supervisor, case("forgets_out", outputs=outputs))
    assert finding.code == "wrong_result"


def test_mutated_arguments_are_restored_before_each_call(supervisor):
    mutating = case(
        "accumulate", mutates=("x",), reference=Reference(Implementation("r", "kernels.py:accumulate"))
    )
    seen = supervisor.measure(mutating)
    assert seen.findings == ()
    assert seen.correct is True
    assert seen.extra["cold_by"] == "rotation"
    assert seen.resident_bytes == 2 * 4 * SHAPE[0] * SHAPE[1]  # x and y: x is an output, and no second tensor


def test_setup_returns_what_is_timed(supervisor):
    planned = Implementation("add", "kernels.py:add", setup="kernels.py:plan_add")
    seen = supervisor.measure(case("add", implementation=planned))
    assert seen.correct is True
    assert seen.extra["cold_by"] == "flush"  # what the plan holds is out of sight


def test_backward_checks_gradients(supervisor):
    x = Argument("x", "randn", shape=SHAPE, dtype="fp32", requires_grad=True)
    good = case(
        "square",
        arguments=(x,),
        mode="backward",
        bytes_auto=False,
        reference=Reference(Implementation("r", "torch:square")),
    )
    seen = supervisor.measure(good)
    assert seen.findings == ()
    assert [check.name for check in seen.checks] == ["grad_x"]
    bad = replace(good, implementation=Implementation("square", "kernels.py:square_wrong_gradient"))
    assert only_finding(supervisor, bad).code == "wrong_result"


def test_forward_backward_runs_both(supervisor):
    x = Argument("x", "randn", shape=SHAPE, dtype="fp32", requires_grad=True)
    both = case(
        "square",
        arguments=(x,),
        mode="forward_backward",
        bytes_auto=False,
        reference=Reference(Implementation("r", "torch:square")),
    )
    assert supervisor.measure(both).correct is True


@pytest.mark.parametrize(
    ("function", "code", "fault", "outcome"),
    [
        ("wrong", "wrong_result", "kernel", "fail"),
        ("not_finite", "wrong_result", "kernel", "fail"),
        ("half", "output_dtype", "kernel", "fail"),
        ("writes_input", "input_mutated", "kernel", "fail"),
        ("nothing", "output_none", "kernel", "error"),
        ("raises", "raised", "kernel", "error"),
        ("segfaults", "signal", "kernel", "error"),
        ("exits", "exited", "kernel", "error"),
        ("calls_sys_exit", "exited", "kernel", "error"),
        ("takes_all_memory", "out_of_memory", "kernel", "error"),
        ("raises_unprintable", "raised", "kernel", "error"),
        ("raises_surrogates", "raised", "kernel", "error"),
        ("kills_its_host", "killed_host", "kernel", "error"),
        ("kills_its_group", "killed", "kernel", "error"),
        ("sets_threads", "flags_changed", "kernel", "error"),
        ("sets_default_device", "flags_changed", "kernel", "error"),
        ("breaks_torch", "side_broken", "kernel", "error"),
        ("no_such_function", "target_missing", "suite", "error"),
    ],
)
def test_each_fault_is_that_case_s_verdict_and_the_next_case_goes_on(
    supervisor, function, code, fault, outcome
):
    finding = only_finding(supervisor, case(function))
    assert (finding.code, finding.fault, finding.outcome) == (code, fault, outcome)
    assert supervisor.measure(case("add")).correct is True


def test_an_alarm_that_rings_after_the_call_is_the_kernel_s(supervisor):
    finding = only_finding(supervisor, case("raises_late"))
    # One that rings while the answer is on its way ends the process.
    assert finding.code in ("raised", "exited")
    assert (finding.fault, finding.outcome) == ("kernel", "error")
    assert supervisor.measure(case("add")).correct is True


@pytest.mark.parametrize(
    ("whom", "told"),
    [("host", "was killed (signal 9)"), ("side", "could not start: killed (signal 9)")],
)
def test_what_is_killed_while_a_side_is_started_costs_that_case_and_no_other(
    supervisor, monkeypatch, whom, told
):
    supervisor.kernel().bury()
    launcher = supervisor._launcher
    start = launcher.start

    def killed(arena: int, vault: int) -> object:
        monkeypatch.setattr(launcher, "start", start)
        if whom == "host":
            launcher._zygote.kill()
            launcher._zygote.wait()
            return start(arena, vault)
        side = start(arena, vault)
        os.kill(side.pid, signal.SIGKILL)
        return side

    monkeypatch.setattr(launcher, "start", killed)
    finding = only_finding(supervisor, case("add"))
    assert (finding.code, finding.fault, finding.outcome) == ("no_process", "environment", "error")
    assert told in finding.sentence
    assert supervisor.measure(case("add")).correct is True


@pytest.mark.parametrize("whom", ["judge", "host"])
def test_what_is_killed_while_it_has_nothing_to_do_costs_nothing(supervisor, monkeypatch, whom):
    judge = supervisor.judge()
    if whom == "judge":
        os.kill(judge.pid, signal.SIGKILL)
    else:
        supervisor._launcher._zygote.kill()
        supervisor._launcher._zygote.wait()
    with monkeypatch.context() as patch:
        patch.setattr(Supervisor, "on_cpu", False)  # there the judge says what is free
        assert supervisor._free_bytes() > 0
    assert supervisor.measure(case("add")).correct is True


@pytest.mark.parametrize("function", ["forks_and_returns", "forks_and_exits"])
def test_a_forked_child_never_answers_for_its_parent(supervisor, function):
    finding = only_finding(supervisor, case(function))
    assert (finding.code, finding.fault) == ("forked", "kernel")
    for _ in range(2):
        assert supervisor.measure(case("add")).correct is True
    finding = only_finding(supervisor, case("wrong"))
    assert finding.code == "wrong_result"


def test_the_environment_of_one_kernel_does_not_reach_the_next(supervisor):
    assert supervisor.measure(case("clears_environment")).correct is True
    assert supervisor.measure(case("reads_environment")).correct is True


@pytest.mark.parametrize("isolation", ["paired", "serial"])
def test_hot_and_cold_are_both_timed_and_checked(isolation):
    with small("cpu", RunOptions(isolation=isolation, hot_and_cold=True, threads=1)) as running:
        for _ in range(2):
            seen = running.measure(case("add"))
            assert seen.findings == ()
            assert len(seen.hot_samples_ns) >= 8
            assert seen.l2 == "cold"


def test_what_is_too_small_to_be_cold_is_timed_hot_on_few_copies(supervisor):
    tiny = tuple(Argument(name, "randn", shape=(8, 8), dtype="fp32") for name in ("x", "y"))
    seen = supervisor.measure(case("add", arguments=tiny))
    assert seen.l2 == "hot"
    assert "hot" in seen.labels  # beside others, on a busy machine
    assert seen.extra["copies"] == 8


def test_a_hanging_reference_has_the_time_out_of_the_suite(supervisor):
    hanging = Reference(Implementation("r", "kernels.py:reference_hangs"))
    slow = case("add", reference=hanging, first_call_timeout_s=2, case_timeout_s=3)
    finding = only_finding(supervisor, slow)
    assert (finding.code, finding.fault) == ("timeout", "suite")
    assert supervisor.measure(case("add")).correct is True


def test_a_module_of_the_reference_that_raises_is_the_suite_s_fault(supervisor, tmp_path):
    (tmp_path / "broken.py").write_text("raise RuntimeError('on import')\n")
    broken = Reference(Implementation("r", f"{tmp_path / 'broken.py'}:f"))
    finding = only_finding(supervisor, case("add", reference=broken))
    assert (finding.code, finding.fault) == ("import_raised", "suite")


def test_a_property_is_judged_also_without_a_reference(supervisor):
    def having(function, target):
        check = Check("property", options={"target": f"kernels.py:{target}"})
        return case(function, reference=None, checks={"*": check})

    good = supervisor.measure(having("add", "is_sum"))
    assert good.correct is True
    assert good.samples_ns
    assert only_finding(supervisor, having("wrong", "is_sum")).code == "wrong_result"
    raised = only_finding(supervisor, having("add", "property_raises"))
    assert (raised.code, raised.fault) == ("property_raised", "suite")
    missing = only_finding(supervisor, having("add", "no_such_property"))
    assert (missing.code, missing.fault) == ("target_missing", "suite")


def test_a_resized_buffer_is_the_kernel_s_fault(supervisor):
    outputs = (Output("o", SHAPE, "fp32", arg="out"),)
    measured = supervisor.measure(case("resizes_out", outputs=outputs))
    (finding,) = measured.findings
    assert (finding.code, finding.fault, measured.correct) == ("output_shape", "kernel", False)


def test_shapes_that_the_reference_gave_are_called_so(supervisor):
    small_reference = Reference(Implementation("r", "kernels.py:smaller"))
    sentence = only_finding(supervisor, case("add", reference=small_reference)).sentence
    assert sentence == f"o has shape {list(SHAPE)}, the reference's is {[3, SHAPE[1]]}"


def test_a_buffer_of_the_kernel_s_own_is_allowed(supervisor):
    assert supervisor.measure(case("static_buffer")).correct is True


def test_a_slow_kernel_gets_fewer_samples_rather_than_a_time_out(supervisor):
    two = (Implementation("one", "torch:add"), Implementation("other", "torch:add"))
    seen = supervisor.measure(case("slow", case_timeout_s=5, versus=two, timing=Timing(max_time_ms=3000)))
    assert seen.findings == ()
    assert (seen.correct, len(seen.rivals)) == (True, 2)
    assert 1 <= len(seen.samples_ns) <= 12


def test_a_kernel_whose_time_has_no_room_for_samples_is_undecided_not_broken(supervisor):
    seen = supervisor.measure(case("slow", case_timeout_s=1.5))
    (finding,) = seen.findings
    assert (finding.code, finding.fault, finding.outcome) == ("too_slow", "undecided", "inconclusive")
    assert finding.sentence.startswith("a call takes 0.2")
    assert (seen.correct, seen.samples_ns) == (True, ())


def test_a_hanging_kernel_is_killed_and_its_last_words_are_shown(supervisor):
    finding = only_finding(supervisor, case("hangs", first_call_timeout_s=2))
    assert (finding.code, finding.fault) == ("timeout", "kernel")
    assert "about to sleep" in finding.detail
    assert supervisor.measure(case("add")).correct is True


def test_a_crash_shows_what_was_printed(supervisor):
    assert "about to crash" in only_finding(supervisor, case("segfaults")).detail


def test_a_traceback_names_the_user_s_lines_only(supervisor):
    detail = only_finding(supervisor, case("raises")).detail
    assert "kernels.py" in detail
    assert "worker.py" not in detail


def test_noise_stays_out_of_the_protocol_and_out_of_memory(supervisor):
    assert supervisor.measure(case("prints_a_lot")).correct is True
    assert supervisor.measure(case("forges_stdout")).correct is True
    finding = only_finding(supervisor, case("prints_then_raises"))
    assert finding.code == "exited"
    assert finding.detail.endswith("the last words")
    assert len(finding.detail) < 10_000


def test_a_kernel_that_turns_wrong_while_timed_gets_no_speed(supervisor):
    finding = only_finding(supervisor, case("wrong_later"))
    assert finding.code == "wrong_result"


def test_results_cached_by_pointer_are_found_out(supervisor):
    finding = only_finding(supervisor, case("cached_by_pointer"))
    assert finding.code == "wrong_result"


def test_a_broken_reference_is_the_suite_s_fault(supervisor):
    broken = Reference(Implementation("r", "kernels.py:reference_raises"))
    finding = only_finding(supervisor, case("add", reference=broken))
    assert (finding.code, finding.fault) == ("reference_raised", "suite")
    missing = Reference(Implementation("r", "kernels.py:no_such_reference"))
    finding = only_finding(supervisor, case("add", reference=missing))
    assert (finding.code, finding.fault) == ("target_missing", "suite")


def test_a_worthless_tolerance_is_the_suite_s_fault(supervisor):
    wide = Check("allclose", rtol=0.0, atol=1e6)
    finding = only_finding(supervisor, case("add", tolerance={"fp32": wide}))
    assert (finding.code, finding.fault) == ("tolerance_invalid", "suite")


def test_without_a_reference_nothing_is_called_correct(supervisor):
    seen = supervisor.measure(case("add", reference=None))
    assert seen.correct is None
    assert seen.checks == ()
    assert len(seen.samples_ns) >= 8


def test_what_is_missing_here_is_skipped_with_a_reason(supervisor):
    missing = supervisor.measure(case("add", requires=Requires(module="no_such_module")))
    assert missing.findings[0].outcome == "skipped"
    assert "no_such_module" in missing.findings[0].sentence
    capable = supervisor.measure(case("add", requires=Requires(min_cc="8.0")))
    assert capable.findings[0].outcome == "skipped"
    large = supervisor.measure(case("add", needed_bytes={"kernel": 10**15, "judge": 0}))
    assert large.findings[0].sentence.startswith("skipped: needs 1000 TB of ")


def test_arguments_that_cannot_cross_are_measured_inline(supervisor):
    pair = Argument("pair", "call", options={"target": "kernels.py:make_pair", "from": []})
    y = Argument("y", "randn", shape=(8, 8), dtype="fp32")
    seen = supervisor.measure(
        case(
            "use_pair",
            arguments=(pair, y),
            reference=Reference(Implementation("r", "kernels.py:use_pair")),
        )
    )
    assert seen.findings == ()
    assert seen.isolation == "inline"
    assert "unisolated" in seen.labels
    assert seen.correct is True
    assert len(seen.seeds) == len(set(seen.seeds)) == 3


def called(target: str) -> Case:
    """Return a case whose one argument is made by a function, and whose kernel and reference are `use_made`."""
    made = Argument("made", "call", options={"target": f"kernels.py:{target}", "from": []})
    reference = Reference(Implementation("r", "kernels.py:use_made"))
    return case("use_made", arguments=(made,), reference=reference)


@pytest.mark.parametrize("target", ["make_named", "make_numbered"])
def test_what_would_arrive_as_something_else_stays_in_one_process(supervisor, target):
    seen = supervisor.measure(called(target))
    assert (seen.findings, seen.correct, seen.isolation) == ((), True, "inline")


def test_a_number_that_goes_with_the_seed_arrives_with_its_tensors(supervisor):
    seen = supervisor.measure(called("make_scaled"))
    assert (seen.findings, seen.correct) == ((), True)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (
            "make_longer",
            r"\{q: fp32 \[64, \d+\], scale: a plain value\}, then \{q: fp32 \[64, \d+\], scale: a plain value\}",
        ),
        ("make_more", r"\[(fp32 \[64\](, )?)+\], then \[(fp32 \[64\](, )?)+\]"),
        ("make_other_key", r"\{[0-9]+: fp32 \[64\]\}, then \{[0-9]+: fp32 \[64\]\}"),
    ],
)
def test_inputs_whose_form_goes_with_the_seed_are_the_suite_s_mistake(supervisor, target, told):
    finding = only_finding(supervisor, called(target))
    assert (finding.code, finding.fault, finding.outcome) == ("input_invalid", "suite", "error")
    assert re.fullmatch(
        f"made: its form goes with the seed, which may decide its numbers alone: {told}", finding.sentence
    ), finding.sentence


def test_the_same_seed_draws_the_same_inputs(supervisor):
    first, second = (supervisor.measure(case("add")).seeds for _ in range(2))
    assert first == second
    assert supervisor.measure(replace(case("add"), id="other")).seeds != first


@pytest.mark.parametrize("isolation", ["serial", "inline"])
def test_other_isolations_find_the_same_faults(isolation):
    with small("cpu", RunOptions(isolation=isolation, threads=1)) as running:
        good = running.measure(case("add"))
        assert good.findings == ()
        assert good.correct is True
        assert good.isolation == isolation
        assert len(good.samples_ns) >= 8
        assert [rival.alternated for rival in good.rivals] == [isolation == "inline"]
        wrong = running.measure(case("wrong_later"))
        assert [finding.code for finding in wrong.findings] == ["wrong_result"]
        assert wrong.samples_ns == ()
        assert running.measure(case("segfaults")).findings[0].code == "signal"
        assert running.measure(case("add")).correct is True


def test_ceilings_are_measured_and_the_larger_counts(supervisor):
    before = supervisor.open_ceilings(("fp32", "bf16"))
    both = supervisor.close_ceilings()
    assert {seen.kind for seen in both.bandwidths} == {"read", "copy", "triad"}
    assert {rate.dtype for rate in both.matmuls} == {"fp32", "bf16"}
    for early in before.bandwidths:
        late = next(seen for seen in both.bandwidths if seen.kind == early.kind)
        assert late.bytes_per_s >= early.bytes_per_s > 0


def test_busy_waits_are_timed_for_what_they_are(supervisor):
    x = Argument("x", "randn", shape=(16,), dtype="fp32")
    seen = supervisor.measure(
        case("busy_wait", arguments=(x,), reference=Reference(Implementation("r", "torch:clone")))
    )
    assert min(seen.samples_ns) >= 200_000
    assert seen.time_verified is not False


def test_a_forged_clock_is_found_out(supervisor):
    x = Argument("x", "randn", shape=(16,), dtype="fp32")
    seen = supervisor.measure(
        case(
            "forges_clock",
            arguments=(x,),
            reference=Reference(Implementation("r", "torch:clone")),
            case_timeout_s=180,
        )
    )
    assert [finding.code for finding in seen.findings] == ["time_disagrees"]
    assert seen.findings[0].outcome == "error"
    # The forged clock lives in that process: give the next test a fresh one.
    supervisor.kernel().bury()


def processes_of(marker: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if marker.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
from test_supervisor import case, RunOptions, small
with small("cpu", RunOptions(threads=1)) as running:
    running.measure(case("leaves_a_child"))
    print("ready", flush=True)
    running.measure(case("hangs", first_call_timeout_s=600))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGINT"])
def test_no_process_outlives_the_supervisor(signal_name):
    import signal

    marker = f"KMRUN_TEST_MARKER={os.getpid()}-{signal_name}"
    name, _, value = marker.partition("=")
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(folder=FOLDER)],
        env={**os.environ, name: value},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout.readline() == b"ready\n"
    time.sleep(1)
    child.send_signal(getattr(signal, signal_name))
    child.wait(30)
    child.stdout.close()
    deadline = time.monotonic() + 20
    while processes_of(marker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_of(marker) == []


def test_a_detached_child_is_gone_when_the_supervisor_leaves():
    marker = f"KMRUN_TEST_MARKER={os.getpid()}-leave"
    name, _, value = marker.partition("=")
    os.environ[name] = value
    try:
        with small("cpu", RunOptions(threads=1)) as running:
            assert running.measure(case("leaves_a_child")).correct is True
        left = [pid for pid in processes_of(marker) if pid != os.getpid()]
        assert left == []
    finally:
        del os.environ[name]


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("whom", ["host", "judge"])
def test_whoever_kills_what_the_suite_runs_in_is_no_broken_suite(supervisor, whom):
    """From outside, or for lack of memory: the suite is as right as it was, and the next case goes on."""
    judge = supervisor.judge()
    victim = supervisor._launcher.pids()[0] if whom == "host" else judge.pid
    ordinary = judge.ask

    def ask(op, *given, **arguments):
        if op == "expect":
            os.kill(victim, signal.SIGKILL)
            while is_running(judge.pid):  # its host takes it along; who is asked next must not be another
                time.sleep(0.01)
        return ordinary(op, *given, **arguments)

    judge.ask = ask  # of this judge, which is gone afterwards
    finding = only_finding(supervisor, case("add"))
    assert (finding.fault, finding.outcome) == ("environment", "error")
    assert "killed" in finding.sentence
    assert "from outside" in finding.sentence
    assert supervisor.measure(case("add")).correct is True


def test_a_judge_that_is_killed_in_the_ceilings_is_the_environment_s(supervisor):
    supervisor.open_ceilings(("fp32",))
    os.kill(supervisor.judge().pid, signal.SIGKILL)
    assert supervisor.close_ceilings().bandwidths  # those of before stand
    os.kill(supervisor.judge().pid, signal.SIGKILL)
    with pytest.raises(EnvironmentLacks, match="measuring the ceilings ended"):
        supervisor.open_ceilings(("fp32",))
