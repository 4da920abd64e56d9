import json
import math
import random
from pathlib import Path

import pytest

from kmrun.cli import baselining, running
from kmrun.cli.baselining import SESSIONS
from kmrun.core.clause import SAVES_BASELINE
from kmrun.core.measurement import Finding
from kmrun.core.yardstick import Session
from kmrun.store import baselines
from kmrun.store.results import read
from support.adding import ONE, TWO, adding
from support.cases import CPU, make_found
from support.supervisors import FakeSupervisor

SUITE = adding("{max_slowdown: 0.03}")
LINE = next(number for number, line in enumerate(SUITE.splitlines(), 1) if "- name:" in line)
FILE = Path("baselines/adding.cpu-test-8c.json")
GONE = Finding("killed", "the kernel was killed", "kernel", "error")


class Machine:
    """Takes sessions of a made-up machine; factors say how many times as long things take than at first."""

    def __init__(self):
        self.kernels = {}
        self.memory = self.compute = 1.0
        self.noise = 0.003
        self.taken, self.repeats = [], []
        self.failing = {}
        self._chance = random.Random(1)

    def take(self, supervisor, case, found, phase, alone, repeats):
        self.taken.append(case.id)
        self.repeats.append(repeats)
        if case.id in self.failing:
            return self.failing[case.id]
        phase("timing")
        kernel = 20 * self.kernels.get(case.id, 1.0) * math.exp(self._chance.gauss(0, self.noise))
        if alone:
            return Session(kernel, 1.0, 1.0, math.log(kernel), math.log(kernel))
        memory, compute = self.memory, self.compute
        return Session(kernel, memory, compute, math.log(kernel / memory), math.log(kernel / compute), 3, 5)


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("adding.yaml").write_text(SUITE)
    return "adding.yaml"


@pytest.fixture
def machine(monkeypatch):
    machine = Machine()
    machine.supervisor = FakeSupervisor()
    monkeypatch.setattr(running, "take_session", machine.take)
    monkeypatch.setattr(running, "make_supervisor", lambda *given: machine.supervisor)
    return machine


def edit(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def slowdowns(ran):
    return {case["id"]: case["slowdown"] for case in json.loads(ran.out)["cases"]}


def test_a_baseline_is_saved_beside_the_suite(kmrun, suite, machine):
    ran = kmrun(suite, "--save-baseline")
    assert (ran.code, ran.err) == (
        0,
        f"baseline of 2 cases, {SESSIONS} processes each: {FILE.resolve()}\n",
    )
    assert machine.taken == [ONE, TWO] * SESSIONS
    assert machine.repeats == [None] * 2 + [(3, 5)] * 2 * (SESSIONS - 1)
    found = baselines.read(FILE)
    assert (found.suite, found.device.key, found.environment["torch"]) == ("adding", "cpu-test-8c", "2.13.0")
    assert [(case.id, len(case.sessions)) for case in found.cases] == [(ONE, SESSIONS), (TWO, SESSIONS)]
    assert found.cases[0].median_ms == pytest.approx(20, rel=0.01)
    assert 0.001 < found.cases[0].spread < 0.008
    assert "not judged" not in ran.out


def test_an_unchanged_suite_holds_after_two_processes_a_case(kmrun, suite, machine):
    kmrun(suite, "--save-baseline")
    machine.taken.clear()
    ran = kmrun(suite, "--against-baseline", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert machine.taken == [ONE, ONE, TWO, TWO]
    assert set(machine.repeats[-4:]) == {(3, 5)}
    for seen in slowdowns(ran).values():
        assert (seen["method"], seen["verdict"], seen["margin"]) == ("baseline", "holds", 0.03)
        assert seen["low"] < 0 < seen["high"] < 0.03 < seen["visible"]
    text = kmrun(suite, "--against-baseline").out
    assert "delta" in text
    assert "2 pass" in text


def test_while_a_baseline_is_saved_no_comparison_is_missed(kmrun, suite, machine):
    ran = kmrun(suite, "--save-baseline", "--json")
    clauses = [clause for case in json.loads(ran.out)["cases"] for clause in case["clauses"]]
    unjudged = [clause for clause in clauses if clause["kind"] == "max_slowdown"]
    assert [(one["verdict"], one["reason"]) for one in unjudged] == [("not judged", SAVES_BASELINE)] * 2
    assert not any(case["warnings"] for case in json.loads(ran.out)["cases"])
    assert "warning" not in kmrun(suite, "--save-baseline").out
    assert "warning: not judged: max_slowdown 0.03 (nothing to compare with" in kmrun(suite).out


def test_a_slower_case_breaks_the_contract_after_fresh_processes(kmrun, suite, machine):
    kmrun(suite, "--save-baseline")
    machine.kernels[TWO] = 1.08
    machine.taken.clear()
    ran = kmrun(suite, "--against-baseline")
    assert ran.code == 1
    assert machine.taken == [ONE] * 2 + [TWO] * (2 + 10)
    assert "FAIL max_slowdown 0.03" in ran.out
    assert "% slower than the baseline of " in ran.out
    assert "adding.yaml:14" in ran.out


def test_a_slower_machine_is_no_slower_kernel(kmrun, suite, machine):
    kmrun(suite, "--save-baseline")
    machine.kernels = {ONE: 1.06, TWO: 1.06}
    machine.memory = machine.compute = 1.06
    assert kmrun(suite, "--against-baseline").code == 0


def test_a_machine_in_another_state_leaves_it_open_and_says_what_could_be_seen(kmrun, suite, machine):
    kmrun(suite, "--save-baseline")
    machine.kernels = {ONE: 1.2}
    machine.memory = 1.4
    ran = kmrun(suite, "--against-baseline")
    assert ran.code == 4
    assert "the machine itself is 40 % slower than it was" in ran.out
    assert "called too slow from a measured" in ran.out


def test_what_is_faster_is_told_and_fails_nothing(kmrun, suite, machine):
    kmrun(suite, "--save-baseline")
    machine.kernels = {TWO: 0.5}
    ran = kmrun(suite, "--against-baseline")
    assert (ran.code, ran.err) == (0, f"faster than before: {TWO}; --save-baseline keeps that\n")


def test_no_baseline_is_not_judged(kmrun, suite, machine):
    ran = kmrun(suite, "--against-baseline")
    said = "warning: adding has no baseline for cpu-test-8c: max_slowdown is not judged\n"
    assert (ran.code, ran.err) == (0, said)
    assert machine.taken == []
    assert "not judged: max_slowdown 0.03 (no baseline for cpu-test-8c)" in ran.out
    assert "nothing to compare with" not in ran.out
    kmrun(suite, "--save-baseline")
    FILE.rename("baselines/adding.h100-sxm.json")
    assert "(there is one for h100-sxm)" in kmrun(suite, "--against-baseline").err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda found: found["device"].update(key="h100-sxm"),
            "is of adding on h100-sxm, not on cpu-test-8c",
        ),
        (lambda found: found["device"].update(threads=4), "is of 4 threads, this run has 8"),
        (
            lambda found: found["cases"][1].update(digest="0" * 64),
            f"{TWO} (adding.yaml:{LINE}) is defined in another way than it was",
        ),
        (lambda found: found.update(kmrun_baseline=2), "baseline format 2, this kmrun reads 1"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_measured(kmrun, suite, machine, change, said):
    kmrun(suite, "--save-baseline")
    edit(FILE, change)
    machine.supervisor.asked.clear()
    ran = kmrun(suite, "--against-baseline")
    assert ran.code == 2
    assert said in ran.err
    assert machine.supervisor.asked == ["enter", "exit"]


def test_a_case_that_changed_in_the_suite_is_refused(kmrun, suite, machine):
    kmrun(suite, "--save-baseline")
    Path(suite).write_text(SUITE.replace("dtype: fp32", "dtype: bf16"))
    ran = kmrun(suite, "--against-baseline")
    assert ran.code == 2
    assert f"{ONE} (adding.yaml:{LINE}) and 1 more is defined in another way" in ran.err
    Path(suite).write_text(SUITE.replace("0.03", "0.05").replace("[ci]", "[nightly]"))
    assert kmrun(suite, "--against-baseline").code == 0


def test_another_torch_is_warned_of(kmrun, suite, machine):
    kmrun(suite, "--save-baseline")
    machine.supervisor.environment = {"torch": "2.14.0"}
    ran = kmrun(suite, "--against-baseline")
    assert (ran.code, ran.err) == (0, f"warning: {FILE.resolve()}: is of torch 2.13.0, this is 2.14.0\n")


def test_another_allocator_is_warned_of(kmrun, suite, machine):
    kmrun(suite, "--save-baseline")
    machine.supervisor.environment |= {"glibc_tunables": "glibc.malloc.tcache_count=0"}
    ran = kmrun(suite, "--against-baseline")
    told = "is of glibc_tunables none, this is glibc.malloc.tcache_count=0"
    assert (ran.code, ran.err) == (0, f"warning: {FILE.resolve()}: {told}\n")


def test_new_cases_are_warned_of(kmrun, suite, machine):
    kmrun(suite, "--save-baseline", "-k", ONE)
    ran = kmrun(suite, "--against-baseline")
    assert (ran.code, machine.taken[-2:]) == (0, [ONE, ONE])
    assert "1 case of this run not in it" in ran.err
    assert "max_slowdown 0.03 (not in the baseline: --save-baseline adds it), 1 case" in ran.out
    kmrun(suite, "--save", "old.json", "-k", ONE)
    assert (
        "max_slowdown 0.03 (no time of it in old.json), 1 case" in kmrun(suite, "--compare", "old.json").out
    )


def test_only_chosen_cases_are_measured_anew(kmrun, suite, machine):
    kmrun(suite, "--save-baseline")
    before = baselines.read(FILE)
    kmrun(suite, "--save-baseline", "-k", TWO)
    after = baselines.read(FILE)
    assert after.case(ONE) == before.case(ONE)
    assert after.case(TWO).sessions != before.case(TWO).sessions
    machine.supervisor.environment = {"torch": "2.14.0"}
    ran = kmrun(suite, "--save-baseline", "-k", TWO)
    assert (ran.code, "is of torch 2.13.0, this is 2.14.0" in ran.err) == (2, True)
    assert kmrun(suite, "--save-baseline").code == 0


def test_wrong_and_dying_cases_are_left_out(kmrun, suite, machine):
    machine.supervisor.found[ONE] = make_found(case_id=ONE, correct=False, findings=(GONE,))
    machine.failing[TWO] = GONE
    ran = kmrun(suite, "--save-baseline")
    assert ran.code == 1
    assert f"warning: not in the baseline: {ONE}\n" in ran.err
    assert f"warning: not in the baseline: {TWO} (the kernel was killed)\n" in ran.err
    assert not FILE.exists()


def test_what_cannot_be_measured_anew_keeps_its_earlier_entry(kmrun, suite, machine):
    kmrun(suite, "--save-baseline")
    before, text = baselines.read(FILE), FILE.read_text()
    machine.failing[TWO] = GONE
    ran = kmrun(suite, "--save-baseline", "-k", TWO)
    said = f"warning: not measured anew, its earlier entry stays: {TWO} (the kernel was killed)\n"
    assert (ran.code, ran.err, FILE.read_text()) == (1, said, text)
    ran = kmrun(suite, "--save-baseline")
    after = baselines.read(FILE)
    assert (ran.code, said in ran.err, "baseline of 1 case, " in ran.err) == (1, True, True)
    assert after.case(TWO) == before.case(TWO)
    assert after.case(ONE) != before.case(ONE)
    machine.failing.clear()
    machine.supervisor.found[ONE] = make_found(case_id=ONE, correct=False)
    assert kmrun(suite, "--save-baseline").code == 1
    assert baselines.read(FILE).case(ONE) == after.case(ONE)


def test_a_skipped_case_is_an_error_only_where_it_was_measured_before(kmrun, suite, machine):
    """What never could run here is nobody's fault; what could, and cannot today, lacks something."""
    skipped = Finding("module_missing", "skipped: needs the module 'triton'", "environment", "skipped")
    machine.supervisor.found[TWO] = make_found(case_id=TWO, samples_ns=(), findings=(skipped,))
    ran = kmrun(suite, "--save-baseline")
    said = f"{TWO} (skipped: needs the module 'triton')\n"
    assert (ran.code, f"warning: not in the baseline: {said}" in ran.err) == (0, True)
    machine.supervisor.found.clear()
    kmrun(suite, "--save-baseline")
    machine.supervisor.found[TWO] = make_found(case_id=TWO, samples_ns=(), findings=(skipped,))
    ran = kmrun(suite, "--save-baseline")
    assert (ran.code, f"warning: not measured anew, its earlier entry stays: {said}" in ran.err) == (3, True)


def test_two_suites_that_would_share_a_file_are_refused(kmrun, suite, machine):
    Path("other.yaml").write_text(SUITE.replace("name: add", "name: plus"))
    ran = kmrun(".", "--save-baseline")
    told = (
        f"error: --save-baseline {FILE.resolve()}: is of adding in adding.yaml and of adding in other.yaml\n"
    )
    assert (ran.code, ran.err) == (2, f"{told}hint: give one of the two another name\n")
    assert not FILE.exists()


def test_an_entry_of_another_torch_is_neither_lost_nor_passed_off(kmrun, suite, machine):
    kmrun(suite, "--save-baseline")
    text = FILE.read_text()
    machine.failing[TWO] = Finding("no_room", "the memory is gone", "environment", "error")
    machine.supervisor.environment = {"torch": "2.14.0"}
    ran = kmrun(suite, "--save-baseline")
    assert (ran.code, FILE.read_text()) == (3, text)
    assert f"not written: {TWO} in it is of torch 2.13.0, this is 2.14.0; take the file away" in ran.err


def test_a_suite_without_a_chosen_case_is_left_alone(kmrun, suite, machine):
    Path("other.yaml").write_text(
        SUITE.replace("suite: adding", "suite: other").replace("name: add", "name: plus")
    )
    assert kmrun(".", "--save-baseline").code == 0
    text = FILE.read_text()
    FILE.write_text(text.replace("2.13.0", "2.12.0"))
    kept = FILE.read_text()
    ran = kmrun(".", "--save-baseline", "-k", "plus*")
    assert (ran.code, "adding" in ran.err, "other.cpu-test-8c.json" in ran.err) == (0, False, True)
    assert FILE.read_text() == kept
    ran = kmrun(".", "--against-baseline", "-k", "plus*")
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(
    "damaged",
    ["[]", "{}", "null", '{"kmrun_baseline": 0}', '<<<<<<< ours\n{"kmrun_baseline": 1', "{", "\0\0"],
)
def test_a_damaged_baseline_is_repaired_by_saving(kmrun, suite, machine, damaged):
    kmrun(suite, "--save-baseline")
    FILE.write_text(damaged)
    ran = kmrun(suite, "--against-baseline")
    assert (ran.code, "--save-baseline writes it anew" in ran.err) == (2, True)
    ran = kmrun(suite, "--save-baseline", "-k", TWO)
    assert (ran.code, "it is written anew, nothing of it is kept" in ran.err) == (0, True)
    assert [case.id for case in baselines.read(FILE).cases] == [TWO]


def test_what_is_nobodys_to_overwrite_stays(kmrun, suite, machine):
    kmrun(suite, "--save-baseline")
    text = FILE.read_text()
    for mine, said in (
        ('{"mine": 1}', "is no baseline of kmrun"),
        (text.replace('"kmrun_baseline": 1', '"kmrun_baseline": 2'), "upgrade"),
        (text.replace('"suite": "adding"', '"suite": "ad/ding"'), "is of another suite, ad/ding"),
    ):
        FILE.write_text(mine)
        ran = kmrun(suite, "--save-baseline")
        assert (ran.code, said in ran.err, FILE.read_text()) == (2, True, mine)


def test_a_kernel_that_dies_in_a_fresh_process_is_an_error(kmrun, suite, machine):
    kmrun(suite, "--save-baseline")
    machine.failing[TWO] = GONE
    ran = kmrun(suite, "--against-baseline")
    assert ran.code == 1
    assert "the kernel was killed" in ran.out


def test_an_interrupted_saving_leaves_the_old_file(kmrun, suite, machine, monkeypatch):
    kmrun(suite, "--save-baseline")
    before = FILE.read_text()

    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "take_session", interrupted)
    assert kmrun(suite, "--save-baseline").code == 130
    assert FILE.read_text() == before
    assert [path.name for path in FILE.parent.iterdir()] == [FILE.name]
    ran = kmrun(suite, "--against-baseline", "--json")
    told = json.loads(ran.out)
    assert (ran.code, [case["id"] for case in told["cases"]]) == (130, [ONE])
    assert "not compared: interrupted" in told["cases"][0]["labels"]
    verdicts = {clause["kind"]: clause["verdict"] for clause in told["cases"][0]["clauses"]}
    assert verdicts["max_slowdown"] == "not judged"
    assert told["wall_s"] > 0


def test_a_saved_result_is_compared_with(kmrun, suite, machine):
    assert kmrun(suite, "--save", "old.json").code == 0
    ran = kmrun(suite, "--compare", "old.json", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert {seen["against"] for seen in slowdowns(ran).values()} == {"old.json"}
    assert {seen["verdict"] for seen in slowdowns(ran).values()} == {"holds"}
    machine.kernels[TWO] = 2.0
    ran = kmrun(suite, "--compare", "old.json")
    assert ran.code == 1
    assert "% slower than old.json" in ran.out


def test_a_saved_result_of_another_machine_or_suite_is_refused(kmrun, suite, machine):
    kmrun(suite, "--save", "old.json")
    (found,) = read(Path("old.json"))
    edit(Path("old.json"), lambda document: document["device"].update(threads=4))
    ran = kmrun(suite, "--compare", "old.json")
    assert (ran.code, ran.err) == (2, "error: --compare old.json: is of cpu-test-4c, this is cpu-test-8c\n")
    edit(Path("old.json"), lambda document: document["suite"].update(name="other"))
    assert "is of other, not of adding" in kmrun(suite, "--compare", "old.json").err
    assert kmrun(suite, "--compare", "nothing.json").code == 2
    assert found.device.threads == CPU.threads


def test_saved_suites_of_one_name_are_told_apart_by_their_files(kmrun, suite, machine):
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "s.yaml").write_text(SUITE)
    assert kmrun("a/s.yaml", "b/s.yaml", "--save", "old.json").code == 0
    # As if b were twice as fast then: compared with it, what is as fast as ever is slower.
    edit(Path("old.json"), halve_times_of_the_second)
    assert kmrun("a/s.yaml", "--compare", "old.json").code == 0
    assert kmrun("b/s.yaml", "--compare", "old.json").code == 1
    ran = kmrun(suite, "--compare", "old.json")
    assert (ran.code, "has adding of a/s.yaml and of b/s.yaml, none of adding.yaml" in ran.err) == (2, True)


def halve_times_of_the_second(documents):
    for case in documents[1]["cases"]:
        for key in ("median_ms", "ci_low_ms", "ci_high_ms"):
            case[key] /= 2


def test_a_saved_result_of_other_cases_is_refused(kmrun, suite, machine):
    kmrun(suite, "--save", "old.json")
    Path(suite).write_text(SUITE.replace("dtype: fp32", "dtype: bf16"))
    machine.supervisor.asked.clear()
    ran = kmrun(suite, "--compare", "old.json")
    assert (ran.code, machine.supervisor.asked) == (2, ["enter", "exit"])
    assert f"--compare old.json: {ONE} (adding.yaml:{LINE}) and 1 more is defined in another way" in ran.err
    Path(suite).write_text(SUITE)
    ran = kmrun(suite, "--compare", "old.json", "--no-flush-l2")
    assert (ran.code, "timed cold against hot" in ran.err) == (2, True)
    Path(suite).write_text(SUITE.replace("0.03", "0.05"))
    assert kmrun(suite, "--compare", "old.json").code == 0


def test_a_saved_result_without_the_ceilings_is_not_compared(kmrun, suite, machine):
    kmrun(suite, "--save", "r.json")

    def no_fp32(document):
        document["ceilings"]["matmuls"] = [
            rate | {"dtype": "bf16"} for rate in document["ceilings"]["matmuls"]
        ]

    edit(Path("r.json"), no_fp32)
    ran = kmrun(suite, "--compare", "r.json")
    assert (ran.code, ran.out.count("not judged: max_slowdown")) == (0, 1)


@pytest.mark.parametrize("figure", [0, 5e-324, 1e-300, 1e300])
@pytest.mark.parametrize("of", ["gb_per_s", "tflop_per_s", "median_ms", "ci_low_ms", "ci_high_ms"])
def test_a_saved_result_with_figures_of_no_machine_decides_nothing(kmrun, suite, machine, of, figure):
    kmrun(suite, "--save", "r.json")

    def impossible(document):
        lists = (*(document["ceilings"][name] for name in ("bandwidths", "matmuls")), document["cases"][:1])
        for entry in (entry for entries in lists for entry in entries if entry.get(of)):
            entry[of] = figure

    edit(Path("r.json"), impossible)
    ran = kmrun(suite, "--compare", "r.json", "--json")
    found = slowdowns(ran)[ONE]
    if of.startswith("ci"):
        assert (ran.code, found["verdict"]) == (4, "inconclusive")
    else:
        assert (ran.code, found, "not compared" in ran.err) == (0, None, True)


@pytest.mark.parametrize("option", ["--save-baseline", "--against-baseline"])
@pytest.mark.parametrize("place", [("environment", "torch"), ("suite",)])
def test_what_a_baseline_says_is_one_harmless_line(kmrun, suite, machine, option, place):
    kmrun(suite, "--save-baseline")

    def hostile(document):
        for key in place[:-1]:
            document = document[key]
        document[place[-1]] = "a\n::error::b\x1b[31m"

    edit(FILE, hostile)
    ran = kmrun(suite, option, "-k", "n=1024")
    assert "a ::error::b\ufffd[31m" in ran.err
    assert not any(line.startswith("::") or "\x1b" in line for line in ran.err.splitlines())


def test_a_saved_result_without_definitions_is_compared_with_a_warning(kmrun, suite, machine):
    kmrun(suite, "--save", "old.json")
    edit(Path("old.json"), lambda document: [case.pop("digest") for case in document["cases"]])
    ran = kmrun(suite, "--compare", "old.json")
    assert (ran.code, "does not say how its cases are defined" in ran.err) == (0, True)


def test_a_run_has_one_opponent(kmrun, suite, machine):
    ran = kmrun(suite, "--save-baseline", "--against-baseline")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "error: --save-baseline and --against-baseline at once")


def test_a_suspect_that_takes_too_long_is_judged_by_what_there_is(kmrun, suite, machine, monkeypatch):
    kmrun(suite, "--save-baseline")
    machine.kernels[TWO], machine.noise = 1.05, 0.05
    monkeypatch.setattr(baselining, "SETTLE_S", 0.0)
    ran = kmrun(suite, "--against-baseline", "-k", TWO)
    assert ran.code == 4
    assert "out of time after 1 fresh process" in " ".join(ran.out.split())


def test_a_noisy_saving_is_warned_of(kmrun, suite, machine):
    machine.noise = 0.2
    ran = kmrun(suite, "--save-baseline")
    assert ran.code == 0
    assert ran.err.startswith("warning: 2 cases differ by over 3 % from process to process (add[n=")
    assert FILE.exists()
