import json
import os
import signal
from dataclasses import replace

import pytest

from kmrun.cli.companion import Companion
from kmrun.cli.interrupts import interrupt_once
from kmrun.cli.session import Job, Session
from kmrun.core.card import Card
from kmrun.core.case import Implementation, Peak
from kmrun.core.measurement import Bandwidth, Finding
from kmrun.core.score import score
from kmrun.errors import EnvironmentLacks
from kmrun.measure.side import SideBug
from kmrun.report.progress import Progress
from kmrun.store import results
from support.cases import CEILINGS, GPU, clause, make_case, make_found
from support.supervisors import FakeSupervisor

CARD = Card("test-card", "Test", "nvidia", "t", "t", llc_bytes=64 << 20, bus_bits=5120, pin_bits_per_s=5e9)


def cases(*names, **changes):
    return [make_case(id=f"add[n={name}]", axes={"n": name}, shown_axes=("n",), **changes) for name in names]


def job(name="adding", folder="suites", of=None):
    chosen = cases(1, 2) if of is None else of
    return Job(name, f"{folder}/{name}.yaml", "d" * 64, folder, lambda device, card: chosen)


class Watched:
    """A session with a fake supervisor, and what it saved."""

    def __init__(self, *supervisors, card=None):
        self.supervisors = list(supervisors) or [FakeSupervisor()]
        self.folders = []
        self.saved = []
        self.session = Session(
            self.open, lambda device: card, lambda total: Progress(), self.saved.append, ("kmrun", "x")
        )

    def open(self, folder):
        self.folders.append(folder)
        return self.supervisors[len(self.folders) - 1]

    def run(self, *jobs):
        return self.session.run(jobs)


def test_a_run_ends_in_complete_documents():
    watched = Watched()
    outcome = watched.run(job())
    (result,) = outcome.results
    assert (result.complete, result.seed, result.suite.name) == (True, 7, "adding")
    assert [entry.id for entry in result.cases] == ["add[n=1]", "add[n=2]"]
    assert [judgement.verdict for judgement in outcome.judgements] == ["pass", "pass"]
    assert (outcome.interrupted, outcome.stopped) == (False, None)
    assert result.environment["torch"] == "2.13.0"
    assert {"kmrun", "python", "os", "machine", "git"} <= set(result.environment)
    assert watched.supervisors[0].asked == [
        *("enter", ("open", ("fp32",)), "add[n=1]", "add[n=2]", "close", "exit")
    ]


def test_a_document_is_saved_after_every_case_and_at_the_end():
    watched = Watched()
    watched.run(job())
    assert [(len(one.cases), one.complete) for (one,) in watched.saved] == [(1, False), (2, False), (2, True)]


def test_what_a_run_finds_out_of_its_environment_stands_in_the_document():
    class Moving(FakeSupervisor):
        def measure(self, case, progress):
            self.environment = {**self.environment, "clocks_locked": False}
            return super().measure(case, progress)

    (result,) = Watched(Moving()).run(job()).results
    assert (result.environment["clocks_locked"], result.environment["torch"]) == (False, "2.13.0")
    assert {"kmrun", "git"} <= set(result.environment)


def test_the_ceilings_of_the_whole_run_count():
    after = replace(CEILINGS, bandwidths=(Bandwidth("read", 1 << 30, 40e9),))
    (result,) = Watched(FakeSupervisor(after=after)).run(job()).results
    assert result.cases[0].ceiling_fraction == pytest.approx(0.25)
    assert result.ceilings.bandwidths[0].gb_per_s == 40.0


def mistyped(case):
    return replace(case, folder="/", implementation=Implementation("add", "kmrun/no/such.py:add"))


MISSING = make_found(
    samples_ns=(), rivals=(), correct=None, findings=(Finding("target_missing", "no file", "suite", "error"),)
)


def test_where_no_case_s_code_is_there_nobody_waits_for_ceilings():
    fake = FakeSupervisor({"add[n=1]": MISSING, "add[n=2]": MISSING})
    outcome = Watched(fake).run(job(of=[mistyped(case) for case in cases(1, 2)]))
    assert fake.asked == ["enter", "add[n=1]", "add[n=2]", "exit"]
    (result,) = outcome.results
    assert (result.complete, result.ceilings.bandwidths) == (True, ())
    assert [entry.verdict for entry in result.cases] == ["error", "error"]
    assert results.parse(json.loads(results.render([result])), "saved") == result


def test_ceilings_wait_for_the_first_case_whose_code_may_be_there():
    one, two, three = cases(1, 2, 3)
    fake = FakeSupervisor({"add[n=1]": MISSING, "add[n=3]": MISSING})
    first, second = (
        Watched(fake).run(job("a", of=[mistyped(one)]), job("b", of=[two, mistyped(three)])).results
    )
    assert fake.asked == ["enter", "add[n=1]", ("open", ("fp32",)), "add[n=2]", "add[n=3]", "close", "exit"]
    assert first.ceilings == second.ceilings
    assert first.ceilings.bandwidths
    assert second.cases[0].ceiling_fraction is not None


def test_a_case_that_is_timed_against_all_expectation_has_its_ceilings():
    given = []

    class Notes(Companion):
        def measured(self, suite, case, found, ceilings, supervisor, phase):
            given.append(ceilings)
            return found

    watched = Watched()
    watched.session._companion = Notes()
    (result,) = watched.run(job(of=[mistyped(case) for case in cases(1, 2)])).results
    assert watched.supervisors[0].asked == [
        *("enter", "add[n=1]", ("open", ("fp32",)), "add[n=2]", "close", "exit")
    ]
    assert given == [CEILINGS, CEILINGS]
    assert all(entry.ceiling_fraction is not None for entry in result.cases)


def test_an_interrupt_of_ceilings_after_a_case_loses_no_case():
    class Impatient(FakeSupervisor):
        def open_ceilings(self, dtypes):
            raise KeyboardInterrupt

    outcome = Watched(Impatient()).run(job(of=[mistyped(case) for case in cases(1, 2)]))
    assert outcome.interrupted
    assert [entry.id for entry in outcome.results[0].cases] == ["add[n=1]"]


def test_the_wall_time_has_the_ceilings_and_what_the_companion_does_at_the_end(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("kmrun.cli.session.time.monotonic", lambda: now[0])

    class Slow(FakeSupervisor):
        def open_ceilings(self, dtypes):
            now[0] += 4
            return super().open_ceilings(dtypes)

        def measure(self, case, progress):
            now[0] += 0.5
            return super().measure(case, progress)

        def close_ceilings(self):
            now[0] += 2
            return super().close_ceilings()

    class Saves(Companion):
        def close(self, suite, done, supervisor, phase):
            now[0] += 30

    watched = Watched(Slow())
    watched.session._companion = Saves()
    first, second = watched.run(job("a"), job("b")).results
    assert (first.wall_s, second.wall_s) == (4 + 2 * 0.5 + 30, 2 * 0.5 + 30 + 2)


def test_the_error_rate_is_shared_by_the_suite_s_clauses():
    chosen = cases(1, 2, clauses=(clause("min_ceiling", 0.1), clause("min_speedup", 1.0)))
    (result,) = Watched().run(job(of=chosen)).results
    assert result.error_rate == pytest.approx(0.01 / 4)


def test_suites_of_one_folder_share_a_supervisor():
    watched = Watched(FakeSupervisor(), FakeSupervisor())
    outcome = watched.run(job("a"), job("b"), job("c", folder="other"))
    assert watched.folders == ["suites", "other"]
    assert [result.suite.name for result in outcome.results] == ["a", "b", "c"]
    assert all(result.complete for result in outcome.results)


def test_ctrl_c_leaves_what_there_is():
    watched = Watched(FakeSupervisor({"add[n=2]": KeyboardInterrupt()}))
    outcome = watched.run(job(), job("later"))
    assert outcome.interrupted
    (result,) = outcome.results
    assert (result.complete, [entry.id for entry in result.cases]) == (False, ["add[n=1]"])
    assert watched.saved[-1] == outcome.results
    assert watched.supervisors[0].asked[-1] == "exit"


def test_ctrl_c_while_all_is_judged_again_loses_no_case(monkeypatch):
    from kmrun.cli import session

    scored = []

    def interrupted(*arguments):
        scored.append(arguments)
        if len(scored) == 4:  # the second case of the second round
            raise KeyboardInterrupt
        return score(*arguments)

    monkeypatch.setattr(session, "score", interrupted)
    watched = Watched()
    outcome = watched.run(job())
    assert outcome.interrupted
    assert [entry.id for entry in outcome.results[0].cases] == ["add[n=1]", "add[n=2]"]
    assert len(outcome.judgements) == 2


def test_sigterm_is_like_ctrl_c():
    class Terminated(FakeSupervisor):
        def measure(self, case, progress):
            os.kill(os.getpid(), signal.SIGTERM)
            return super().measure(case, progress)

    interrupt_once()
    outcome = Watched(Terminated()).run(job())
    assert outcome.interrupted
    assert outcome.results[0].complete is False


def test_an_interrupt_before_the_first_case_leaves_a_valid_document_too():
    class Impatient(FakeSupervisor):
        def open_ceilings(self, dtypes):
            raise KeyboardInterrupt

    watched = Watched(Impatient())
    outcome = watched.run(job(), job("later"))
    assert outcome.interrupted
    (result,) = watched.saved[-1]
    assert (result.complete, result.cases, result.suite.name) == (False, (), "adding")
    assert results.parse(json.loads(results.render([result])), "saved") == result


def test_an_interrupt_while_the_sides_start_leaves_one_too():
    saved = []

    def interrupted(folder):
        raise KeyboardInterrupt

    session = Session(
        interrupted, lambda device: None, lambda total: Progress(), saved.append, expected=lambda: GPU
    )
    outcome = session.run([job(), job("later")])
    assert outcome.interrupted
    (result,) = saved[-1]
    assert (result.complete, result.cases, result.device.name) == (False, (), GPU.name)
    assert results.parse(json.loads(results.render([result])), "saved") == result


def test_a_machine_that_breaks_ends_the_run_with_what_there_is():
    broken = EnvironmentLacks("the device does not answer")
    outcome = Watched(FakeSupervisor({"add[n=2]": broken})).run(job())
    assert outcome.stopped is broken
    assert len(outcome.results[0].cases) == 1


def test_a_fault_of_kmrun_s_own_loses_no_case_and_is_handed_on_whole():
    bug = SideBug("Traceback of the judge")
    watched = Watched(FakeSupervisor({"add[n=2]": bug}))
    outcome = watched.run(job())
    assert outcome.stopped is bug
    (result,) = watched.saved[-1]
    assert (result.complete, [entry.id for entry in result.cases]) == (False, ["add[n=1]"])


def test_a_supervisor_that_cannot_start_leaves_nothing():
    watched = Watched(FakeSupervisor(entering=EnvironmentLacks("no torch")))
    outcome = watched.run(job())
    assert (outcome.results, watched.saved) == ([], [])
    assert outcome.stopped.sentence == "no torch"


def test_the_matched_card_gives_the_roofs_and_the_cache():
    chosen = cases(1, flops=None, peak=Peak())
    found = {"add[n=1]": make_found(samples_ns=tuple(1e5 + i for i in range(20)), rivals=())}
    watched = Watched(FakeSupervisor(found, device=GPU), card=CARD)
    (result,) = watched.run(job(of=chosen)).results
    assert result.device.card == "test-card"
    assert result.cases[0].roof_fraction == pytest.approx(2e8 / 3.2e12 / 1e-4, rel=1e-3)
    assert ("cache", 64 << 20) in watched.supervisors[0].asked


def test_no_case_for_this_device_measures_nothing():
    watched = Watched()
    outcome = watched.run(job(of=[]))
    assert outcome.judgements == []
    assert outcome.results[0].cases == ()
    assert watched.supervisors[0].asked == ["enter", "exit"]


def test_progress_follows_the_cases():
    told = []

    class Told(Progress):
        def start(self, label):
            told.append(label)

        def phase(self, text):
            told.append(text)

        def finish(self):
            told.append("done")

        def close(self):
            told.append("closed")

    supervisor = FakeSupervisor()
    session = Session(lambda folder: supervisor, lambda device: None, lambda total: Told(), lambda _: None)
    session.run([job(of=cases(1))])
    assert told == [
        "starting the sides",
        "measuring what this machine delivers",
        *("add n=1", "timing 41 samples", "done", "closed"),
        "measuring once more what this machine delivers",
        "closed",
    ]
