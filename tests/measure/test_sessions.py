"""Sessions in real fresh processes: what they measure, and how they end when a kernel does not come back."""

import math
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from kmrun.core.case import Argument, Case, Implementation, Reference, Timing
from kmrun.core.measurement import Finding, Measurement
from kmrun.core.yardstick import Session
from kmrun.measure.run_options import RunOptions
from kmrun.measure.sessions import session_of, take_session
from kmrun.measure.supervisor import Supervisor

pytest.importorskip("torch")

FOLDER = str(Path(__file__).parent)
FOUND = Measurement("add[]", samples_ns=(2e6, 3e6), correct=True)


def case(function, **changes):
    plain = Case(
        id=f"{function}[]",
        kernel=function,
        axes={},
        shown_axes=(),
        device=None,
        folder=FOLDER,
        implementation=Implementation(function, f"kernels.py:{function}"),
        arguments=tuple(Argument(name, "randn", shape=(128, 512), dtype="fp32") for name in ("x", "y")),
        outputs=None,
        reference=Reference(Implementation("reference", "torch:add")),
        first_call_timeout_s=20,
        case_timeout_s=20,
        timing=Timing(min_time_ms=1, max_time_ms=20, rel_ci=0.9),
    )
    return replace(plain, **changes)


@pytest.fixture(scope="module")
def supervisor():
    with Supervisor("cpu", RunOptions(seed=7, threads=1)) as running:
        running.use_cache_bytes(4 * 2**20)
        yield running


def take(supervisor, measured, found=FOUND, alone=False, repeats=None):
    return take_session(supervisor, measured, found, lambda _: None, alone, repeats)


def test_a_session_is_a_fresh_process_with_yardsticks(supervisor):
    before = supervisor.kernel().pid
    taken = take(supervisor, case("add"))
    assert isinstance(taken, Session)
    assert min(taken.kernel_ms, taken.memory_ms, taken.compute_ms) > 0
    assert taken.over_memory == pytest.approx(math.log(taken.kernel_ms / taken.memory_ms), abs=1.5)
    assert supervisor.kernel().pid != before
    assert min(taken.repeats) >= 1
    assert max(taken.repeats) > 1  # a kernel of 2 ms takes longer than one call of a yardstick
    assert take(supervisor, case("add"), repeats=(2, 7)).repeats == (2, 7)


def test_outputs_that_were_learned_are_known(supervisor):
    learned = replace(FOUND, learned_outputs={"o": {"shape": [128, 512], "dtype": "fp32"}})
    assert isinstance(take(supervisor, case("add"), learned), Session)


def test_gradients_come_from_the_reference(supervisor):
    arguments = (Argument("x", "randn", shape=(128, 512), dtype="fp32", requires_grad=True),)
    relu = Implementation("relu", "torch:relu")
    assert isinstance(
        take(
            supervisor,
            case(
                "relu", implementation=relu, arguments=arguments, reference=Reference(relu), mode="backward"
            ),
        ),
        Session,
    )


def test_alone_it_is_a_window_without_yardsticks(supervisor):
    taken = take(supervisor, case("add"), alone=True)
    assert (taken.memory_ms, taken.compute_ms) == (1.0, 1.0)
    assert taken.over_memory == math.log(taken.kernel_ms)


def test_inline_and_flushed_cases_have_sessions_too(supervisor):
    assert isinstance(take(supervisor, case("add"), replace(FOUND, isolation="inline")), Session)
    planned = Implementation("add", "kernels.py:add", setup="kernels.py:plan_add")
    flushed = replace(FOUND, extra={"cold_by": "flush"})
    assert isinstance(take(supervisor, case("add", implementation=planned), flushed), Session)


def test_a_kernel_that_dies_is_a_finding_and_the_next_session_stands(supervisor):
    taken = take(supervisor, case("exits"))
    assert isinstance(taken, Finding)
    assert taken.fault == "kernel"
    assert isinstance(take(supervisor, case("add")), Session)


def test_a_host_that_is_killed_costs_one_session_and_is_blamed_for_no_other(supervisor):
    supervisor.kernel()
    supervisor._launcher._zygote.kill()
    supervisor._launcher._zygote.wait()
    take(supervisor, case("add"))  # it may come about: what was idle is replaced
    assert isinstance(take(supervisor, case("add")), Session)
    taken = take(supervisor, case("exits"))
    assert (taken.code, taken.fault) == ("exited", "kernel")


@pytest.mark.parametrize("isolation", ["paired", "inline"])
@pytest.mark.parametrize("alone", [True, False])
def test_a_kernel_that_is_wrong_in_a_fresh_process_has_no_session(supervisor, isolation, alone):
    found = replace(FOUND, isolation=isolation)
    wrong = replace(case("add").reference, implementation=Implementation("reference", "torch:mul"))
    finding = take(supervisor, replace(case("add"), reference=wrong), found, alone)
    assert isinstance(finding, Finding)
    assert (finding.code, finding.fault, finding.outcome) == ("wrong_result", "kernel", "fail")
    assert finding.sentence.startswith("in a fresh process: o")
    assert isinstance(take(supervisor, replace(case("add"), reference=None), found, alone), Session)


def test_serial_isolation_has_no_sessions():
    taken = take(SimpleNamespace(isolation="serial"), case("add"))
    assert (taken.code, taken.outcome) == ("not_alternated", "inconclusive")


def test_no_process_is_left(supervisor):
    pid = supervisor.kernel().pid
    take(supervisor, case("add"))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_session_is_the_medians_of_its_blocks():
    rows = [[2e6, 1e6, 4e6], [2.2e6, 1e6, 4e6], [6e6, 3e6, 4e6]]
    taken = session_of(rows, (3, 5))
    assert taken.repeats == (3, 5)
    assert (taken.kernel_ms, taken.memory_ms, taken.compute_ms) == (2.2, 1.0, 4.0)
    assert taken.over_memory == pytest.approx(math.log(2.0))
    assert taken.over_compute == pytest.approx(math.log(0.55))
    for wrong in ([], [[1.0, 0.0, 1.0]]):
        with pytest.raises(ValueError, match="positive times"):
            session_of(wrong, (1, 1))
