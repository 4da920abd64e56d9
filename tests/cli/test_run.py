import json
import re
import sys
from dataclasses import replace

import pytest

from kmrun.cli import main, running
from kmrun.core.measurement import Finding, RunDevice
from kmrun.core.observed import Observed
from kmrun.core.telemetry import Telemetry
from kmrun.errors import EnvironmentLacks
from kmrun.measure.side import SideBug
from kmrun.store.results import read
from support.adding import ONE, TWO, adding
from support.cases import GPU, make_found
from support.supervisors import FakeSupervisor

SUITE = adding("{max_ms: 100}")
T4_CLAIMS = """\
    flops: 8140800000
    peak: {units: vector, in: fp32}
    contract:
      - {min_roof: 0.9}
      - {min_roof_clk: 0.9}
"""
WRONG = Finding("wrong_result", "o differs from the fp64 reference by 0.5", "kernel", "fail")
UNDECIDED = Finding("cannot_cross", "this case needs --isolation inline", "undecided", "inconclusive")


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "adding.yaml"
    path.write_text(SUITE)
    return path


@pytest.fixture
def measuring(monkeypatch):
    """Replaces the supervisor; `measuring(found)` says what comes of which case, and returns it."""

    def use(found=None, **more):
        supervisor = FakeSupervisor(found, **more)
        supervisor.given = []

        def make(device, options, folder):
            supervisor.given.append((device, options, folder))
            return supervisor

        monkeypatch.setattr(running, "make_supervisor", make)
        return supervisor

    return use


def asked_cases(supervisor):
    return [word for word in supervisor.asked if isinstance(word, str) and "[" in word]


def test_a_scorecard(kmrun, suite, measuring):
    supervisor = measuring()
    ran = kmrun("adding.yaml")
    assert (ran.code, ran.err) == (0, "")
    assert asked_cases(supervisor) == [ONE, TWO]
    lines = ran.out.splitlines()
    assert lines[0] == "adding      Test CPU · 8 threads · torch 2.13.0 · cold cache, paired"
    assert lines[4].split()[:3] == ["kernel", "case", "time"]
    assert lines[5].split()[:4] == ["add", "n=1024", "20.0", "ms"]
    assert lines[5].endswith("  2.0x  pass")
    assert re.fullmatch(r"2 cases in \d+\.\d s: 2 pass +exit 0", lines[-1])


def test_a_folder_and_json(kmrun, suite, measuring):
    measuring()
    ran = kmrun(suite.parent, "--json")
    document = json.loads(ran.out)
    assert (document["kmrun_result"], document["complete"]) == (1, True)
    assert document["suite"]["name"] == "adding"
    assert len(document["suite"]["digest"]) == 64
    assert [case["verdict"] for case in document["cases"]] == ["pass", "pass"]
    clause = document["cases"][0]["clauses"][1]
    assert (clause["kind"], clause["file"].endswith("adding.yaml"), clause["line"]) == ("max_ms", True, 14)
    assert document["cases"][0]["line"] == 4
    assert ran.err == ""


def test_several_files_are_an_array_under_json(kmrun, suite, measuring):
    measuring()
    (suite.parent / "more.yaml").write_text(SUITE.replace("adding", "more"))
    documents = json.loads(kmrun("adding.yaml", "more.yaml", "--json").out)
    assert [document["suite"]["name"] for document in documents] == ["adding", "more"]
    text = kmrun("adding.yaml", "more.yaml").out
    assert text.count("exit 0") == 1


def test_options_reach_the_supervisor(kmrun, suite, measuring):
    supervisor = measuring()
    kmrun(
        "adding.yaml", "--device", "cuda:1", "--seed", 5, "--quick", "--no-flush-l2", "--isolation", "serial"
    )
    ((device, options, folder),) = supervisor.given
    assert (device, folder) == ("cuda:1", str(suite.parent))
    assert (options.seed, options.quick, options.flush_l2, options.isolation) == (5, True, False, "serial")
    assert (options.hot_and_cold, options.lock_clocks) == (False, False)
    kmrun("adding.yaml", "--hot-and-cold", "--lock-clocks")
    assert (supervisor.given[-1][1].hot_and_cold, supervisor.given[-1][1].lock_clocks) == (True, True)


@pytest.mark.parametrize(
    ("words", "compared"),
    [
        ((), False),
        (("--compare", "r.json"), False),
        (("--save-baseline",), True),
        (("--against-baseline",), True),
    ],
)
def test_only_what_is_held_against_the_times_of_other_processes_is_measured_for_that(
    kmrun, suite, measuring, monkeypatch, words, compared
):
    measuring()
    kmrun("adding.yaml", "--save", "r.json")
    given = []

    def opened(device, options, folder):
        given.append(options.compared)
        raise EnvironmentLacks("no such machine", "another")

    monkeypatch.setattr(running, "make_supervisor", opened)
    assert kmrun("adding.yaml", *words).code == 3
    assert given == [compared]


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (("-k", TWO), [TWO]),
        (("-k", "add[n=1*"), [ONE]),
        (("-k", "2048"), [TWO]),
        (("--tag", "ci"), [ONE, TWO]),
    ],
)
def test_selection(kmrun, suite, measuring, words, chosen):
    supervisor = measuring()
    assert kmrun("adding.yaml", *words).code == 0
    assert asked_cases(supervisor) == chosen


@pytest.mark.parametrize("words", [("-k", "sub"), ("--tag", "nightly")])
def test_a_selection_of_nothing_is_refused_before_measuring(kmrun, suite, measuring, words):
    supervisor = measuring()
    ran = kmrun("adding.yaml", *words)
    assert (ran.code, ran.out, supervisor.given) == (2, "", [])
    assert ran.err.startswith("error: no case ")
    assert "\nhint: " in ran.err


def test_every_file_is_checked_before_any_runs(kmrun, suite, measuring):
    supervisor = measuring()
    (suite.parent / "bad.yaml").write_text(SUITE.replace("target:", "targte:"))
    ran = kmrun("adding.yaml", "bad.yaml")
    assert (ran.code, ran.out, supervisor.given) == (2, "", [])
    assert "bad.yaml:5:5: error[K" in ran.err
    assert "targte" in ran.err
    assert ran.err.splitlines()[-1].startswith("1 error · kmrun explain K")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--isolation", "none"), "--isolation none: no such isolation"),
        (("--device", "tpu"), "--device tpu: no such device"),
        (("--hot-and-cold", "--no-flush-l2"), "--hot-and-cold times both"),
        (("--save", "."), "--save .: is a directory"),
        (("--save", "none/out.json"), "--save none/out.json: cannot be written: no such file"),
        (("--card", "h100-smx"), "unknown card 'h100-smx'"),
        (("--seed", "-1"), "--seed -1: a seed lies between 0 and 2**63 - 1"),
    ],
)
def test_bad_options_are_refused_before_measuring(kmrun, suite, measuring, words, said):
    supervisor = measuring()
    ran = kmrun("adding.yaml", *words)
    assert (ran.code, ran.out, supervisor.given) == (2, "", [])
    assert said in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [(("none.yaml",), "no such file"), (("empty",), "no suite in this folder"), (("blank.yaml",), "error[K")],
)
def test_no_suite_there(kmrun, suite, measuring, words, said):
    measuring()
    (suite.parent / "empty").mkdir()
    (suite.parent / "blank.yaml").write_text("")
    ran = kmrun(*words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_a_mistyped_target_is_told_without_waiting_for_ceilings(kmrun, suite):
    ran = kmrun(suite, "--device", "cpu", "--json")
    assert ran.code == 2
    document = json.loads(ran.out)
    missing = f"target 'kernels.py:add': no file {suite.parent / 'kernels.py'}"
    assert [case["reasons"][0]["sentence"] for case in document["cases"]] == [missing] * 2
    assert document["complete"]
    assert document["ceilings"] == {"bandwidths": [], "matmuls": [], "cache_bandwidths": [], "wall_s": 0.0}


def test_save_writes_the_document(kmrun, suite, measuring):
    measuring()
    assert kmrun("adding.yaml", "--save", "out.json").code == 0
    (result,) = read(suite.parent / "out.json")
    assert result.complete
    assert result.command == ("kmrun", "adding.yaml", "--save", "out.json")


def test_a_wrong_kernel(kmrun, suite, measuring):
    measuring({ONE: make_found(findings=(WRONG,), correct=False, samples_ns=(), rivals=())})
    ran = kmrun("adding.yaml")
    assert ran.code == 1
    assert "exit 1" in ran.out
    assert f"WRONG  {ONE}" in ran.out
    assert "o differs from the fp64 reference by 0.5" in ran.out
    assert "kmrun adding.yaml -k 'add[n=1024]' --seed 7" in ran.out


def test_undecided_is_4_unless_it_is_allowed(kmrun, suite, measuring):
    measuring({ONE: make_found(findings=(UNDECIDED,), samples_ns=(), rivals=())})
    assert kmrun("adding.yaml").code == 4
    assert kmrun("adding.yaml", "--allow-inconclusive").code == 0


def test_ctrl_c_prints_what_there_is(kmrun, suite, measuring):
    measuring({TWO: KeyboardInterrupt()})
    ran = kmrun("adding.yaml", "--save", "out.json")
    assert ran.code == 130
    assert "interrupted, partial: 1 case in" in ran.out
    (result,) = read(suite.parent / "out.json")
    assert (result.complete, len(result.cases)) == (False, 1)
    document = json.loads(kmrun("adding.yaml", "--json").out)
    assert (document["complete"], len(document["cases"])) == (False, 1)


def test_ctrl_c_before_the_first_case_says_so(kmrun, suite, measuring):
    measuring({ONE: KeyboardInterrupt()})
    ran = kmrun("adding.yaml")
    assert (ran.code, ran.out, ran.err) == (130, "", "interrupted before a case was measured\n")
    document = json.loads(kmrun("adding.yaml", "--json").out)
    assert (document["complete"], document["cases"]) == (False, [])


def test_no_torch_is_told(kmrun, suite, measuring):
    lacks = EnvironmentLacks("measuring needs torch, which is not installed", "pip install 'kmrun[bench]'")
    measuring(entering=lacks)
    ran = kmrun("adding.yaml")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == (
        "error: measuring needs torch, which is not installed\nhint: pip install 'kmrun[bench]'\n"
    )
    ran = kmrun("adding.yaml", "--json")
    assert (ran.code, ran.out) == (3, "")


def test_a_machine_that_breaks_prints_what_there_is(kmrun, suite, measuring):
    measuring({TWO: EnvironmentLacks("the device does not answer")})
    ran = kmrun("adding.yaml")
    assert ran.code == 3
    assert "add" in ran.out
    assert ran.err == "error: the device does not answer\n"


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_fault_of_kmrun_s_own_prints_what_there_is_before_its_traceback(
    monkeypatch, capsys, suite, measuring, options
):
    measuring({TWO: SideBug("Traceback of the judge")})
    monkeypatch.setattr(sys, "argv", ["kmrun", "adding.yaml", "--save", "out.json", *options])
    with pytest.raises(SideBug, match="Traceback of the judge"):
        main()
    printed = capsys.readouterr().out
    (saved,) = read(suite.parent / "out.json")
    assert ([entry.id for entry in saved.cases], saved.complete) == ([ONE], False)
    if options:
        assert [entry["id"] for entry in json.loads(printed)["cases"]] == [ONE]
    else:
        assert "add" in printed
        assert "exit" not in printed


def test_a_suite_for_another_device(kmrun, suite, measuring):
    measuring()
    rows = SUITE.replace("matrix: {n: [1024, 2048]}", "cases: [{device: gpu, n: 1024}]")
    suite.write_text(rows)
    ran = kmrun("adding.yaml")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error: no case of these suites is for this device\n")


def test_a_card_on_a_cpu_is_refused(kmrun, suite, measuring):
    measuring()
    ran = kmrun("adding.yaml", "--card", "h100-sxm")
    assert ran.code == 2
    assert "--card h100-sxm is a GPU, but this run is on the CPU" in ran.err


def test_a_card_that_is_asked_for_gives_the_roof(kmrun, suite, measuring):
    quick = {name: make_found(samples_ns=tuple(1e5 + i for i in range(20)), rivals=()) for name in (ONE, TWO)}
    measuring(quick, device=GPU)
    document = json.loads(kmrun("adding.yaml", "--card", "h100-sxm", "--json").out)
    assert document["device"]["card"] == "h100-sxm"
    assert document["cases"][0]["roof_fraction"] == pytest.approx(3 * 4 * 1024**2 / 3.35e12 / 1e-4, rel=0.01)
    unmatched = json.loads(kmrun("adding.yaml", "--json").out)
    assert unmatched["device"]["card"] is None
    assert "unverified roof" in unmatched["cases"][0]["labels"]


def test_a_slice_has_no_published_roof(kmrun, suite, measuring):
    slow = {name: make_found(rivals=()) for name in (ONE, TWO)}
    measuring(slow, device=replace(GPU, name="NVIDIA H100 80GB HBM3 MIG 1g.10gb"))
    document = json.loads(kmrun("adding.yaml", "--json").out)
    assert document["device"]["card"] is None
    assert document["cases"][0]["roof_fraction"] is None
    assert "slice" in document["cases"][0]["labels"]
    ran = kmrun("adding.yaml", "--card", "h100-sxm")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: --card h100-sxm: a MIG slice has no published roof\n")


def test_a_card_that_others_use_decides_nothing(kmrun, suite, measuring):
    others = "another process (pid 4242) had the card before the run"
    measuring({name: make_found(undecidable=others) for name in (ONE, TWO)})
    ran = kmrun("adding.yaml")
    assert ran.code == 4
    assert f"max_ms 100: 20.0 ms (20.0 to 20.0), but {others}" in " ".join(ran.out.split())
    assert "INCONCLUSIVE max_ms 100" in ran.out
    assert kmrun("adding.yaml", "--allow-inconclusive").code == 0


def test_a_card_under_its_power_cap_is_scored_at_the_clock_that_it_held(kmrun, suite, measuring):
    """A T4 that held 877 of 1590 MHz: 52.7 % of its fp32 roof are 95.5 % of what it could do then."""
    suite.write_text(SUITE.replace("    contract:\n", T4_CLAIMS))
    seconds = 8.1408e9 / 8.1408e12 / 0.527
    window = Telemetry(
        **{"source": "nvml", "window_s": 0.4, "sm_mhz": 877.0, "sm_mhz_low": 870.0, "sm_mhz_max": 1590.0},
        **{"mem_mhz": 5000.0, "mem_mhz_max": 5001.0, "temp_c": 74.0, "throttle": ("sw_power_cap",)},
    )
    seen = make_found(
        samples_ns=tuple(seconds * 1e9 + i for i in range(41)),
        rivals=(),
        observed=Observed(window, 69.8, 132.0),
    )
    t4 = RunDevice("cuda", 0, "Tesla T4", 15655829504, "7.5", 1.59e9, 40, 4 << 20)
    measuring({ONE: seen, TWO: seen}, device=t4)
    ran = kmrun("adding.yaml")
    assert ran.code == 1
    lines = ran.out.splitlines()
    head = next(line for line in lines if "%roof" in line)
    assert "%roof  @clk" in head
    assert "53 %  96 %" in lines[lines.index(head) + 1]
    assert lines[lines.index(head) + 3].strip() == "877 of 1590 MHz · 70 W · 74 C · power cap"
    said = " ".join(ran.out.split())
    assert "The card held 877 of 1590 MHz (power cap): of the roof at those clocks it is at 96 %." in said
    case = json.loads(kmrun("adding.yaml", "--json").out)["cases"][0]
    assert (case["roof_fraction"], case["roof_clk_fraction"]) == pytest.approx((0.527, 0.955), abs=1e-3)
    assert [clause["verdict"] for clause in case["clauses"][1:]] == ["fail", "pass", "pass"]
    telemetry = case["telemetry"]
    assert (telemetry["sm_mhz_held"], telemetry["power_w"], telemetry["energy_mj_per_call"]) == (
        877,
        69.8,
        132,
    )


def test_warnings_of_a_suite_go_to_stderr(kmrun, suite, measuring):
    measuring()
    suite.write_text(SUITE.replace("    contract:", "    flops: n * n\n    contract:"))
    ran = kmrun("adding.yaml", "--json")
    assert ran.code == 0
    assert "warning[K" in ran.err
    json.loads(ran.out)
