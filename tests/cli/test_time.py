import json

import pytest

from kmrun.cli import running
from kmrun.core.measurement import Finding
from support.cases import make_found
from support.supervisors import FakeSupervisor


@pytest.fixture
def supervisor(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text("def relu(x): ...\n")
    fake = FakeSupervisor()
    monkeypatch.setattr(running, "make_supervisor", lambda device, options, folder: fake)
    return fake


def test_a_scorecard_without_a_file(kmrun, supervisor, tmp_path):
    ran = kmrun("time", "k.py:relu", "--arg", "randn[64,64]:bf16", "--ref", "torch:relu")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("relu        Test CPU")
    assert "exit 0" in ran.out
    assert [path.name for path in tmp_path.iterdir()] == ["k.py"]


def test_the_case_is_what_was_asked_for(kmrun, supervisor):
    seen = []
    measure = supervisor.measure
    supervisor.measure = lambda case, progress: (seen.append(case), measure(case, progress))[1]
    kmrun("time", "k.py:relu", "--arg", "randn[64,64]:bf16", "--ref", "torch:relu")
    (case,) = seen
    assert (case.arguments[0].shape, case.arguments[0].dtype) == ((64, 64), "bf16")
    assert case.implementation.target == "k.py:relu"


def test_json_says_that_there_is_no_file(kmrun, supervisor):
    document = json.loads(kmrun("time", "k.py:relu", "--json").out)
    assert document["suite"]["file"] is None
    assert document["cases"][0]["file"] is None


def test_a_wrong_function_repeats_its_own_command(kmrun, supervisor):
    wrong = Finding("wrong_result", "differs", "kernel", "fail")
    supervisor.found = {"relu": make_found(findings=(wrong,), correct=False, samples_ns=(), rivals=())}
    ran = kmrun("time", "k.py:relu", "--arg", "randn[8, 8]", "--ref", "torch:relu")
    assert ran.code == 1
    assert "kmrun time k.py:relu --arg 'randn[8, 8]' --ref torch:relu --seed 7" in ran.out


def test_mistakes_are_the_command_line_s(kmrun, supervisor):
    ran = kmrun("time", "torch:relu")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: torch:relu: say what it is called with\n")
    ran = kmrun("time", "torch:relu", "--arg", "rand[8]")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: --arg 'rand[8]': unknown init 'rand'\nhint: did you mean 'randn'?\n"
