import subprocess
import sys

import pytest

from kmrun import __version__
from kmrun.cli import main
from kmrun.cli.app import COMMANDS, explained, with_default_command
from kmrun.errors import UsageError


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (["suite.yaml"], ["run", "suite.yaml"]),
        (["a.yml", "--json"], ["run", "a.yml", "--json"]),
        (["folder/none"], ["run", "folder/none"]),
        (["--device", "cpu", "a.yaml"], ["run", "--device", "cpu", "a.yaml"]),
        (["check", "a.yaml"], ["check", "a.yaml"]),
        (["--version"], ["--version"]),
        ([], ["--help"]),
    ],
)
def test_a_suite_in_place_of_a_command_means_run(words, want):
    assert with_default_command(words) == want


def test_an_existing_folder_means_run(tmp_path, monkeypatch):
    (tmp_path / "kernels").mkdir()
    monkeypatch.chdir(tmp_path)
    assert with_default_command(["kernels"]) == ["run", "kernels"]


def test_a_mistyped_command_is_told(kmrun):
    ran = kmrun("chekc", "a.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert (
        ran.err == "error: 'chekc' is neither a command nor a suite file\nhint: did you mean 'kmrun check'?\n"
    )
    assert kmrun("zzzzz").err.endswith("hint: `kmrun --help` lists the commands\n")


def test_the_help_page_names_every_command(kmrun):
    for words in ((), ("--help",), ("-h",)):
        ran = kmrun(*words)
        assert ran.code == 0
        for name, line in COMMANDS.items():
            assert f"  {name} " in ran.out
            assert line.split("(")[0].strip()[:40] in " ".join(ran.out.split())


def test_the_version(kmrun):
    ran = kmrun("--version")
    assert (ran.code, ran.out) == (0, f"kmrun {__version__}\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_page(kmrun, name):
    ran = kmrun(name, "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: kmrun {name} ")


def test_an_unknown_option_is_the_command_line_s_fault(kmrun):
    ran = kmrun("check", "--no-such-option", "x.yaml")
    assert ran.code == 2
    assert "--no-such-option" in ran.err


def test_errors_are_a_sentence_and_a_hint():
    assert explained(UsageError("it is wrong", "do better")) == "error: it is wrong\nhint: do better\n"
    assert explained(UsageError("it is wrong")) == "error: it is wrong\n"


def test_ctrl_c_before_anything_runs_has_no_traceback(monkeypatch, capsys):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("kmrun.cli.app.build_app", interrupted)
    monkeypatch.setattr(sys, "argv", ["kmrun", "check", "x.yaml"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_our_own_bug_keeps_its_traceback(monkeypatch):
    def broken(arguments):
        raise RuntimeError("a bug")

    monkeypatch.setattr("kmrun.cli.app.build_app", broken)
    monkeypatch.setattr(sys, "argv", ["kmrun", "check", "x.yaml"])
    with pytest.raises(RuntimeError, match="a bug"):
        main()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break otherwise there")
def test_a_reader_that_goes_away_gets_no_traceback():
    words = [sys.executable, "-m", "kmrun", "schema", "suite"]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.close()
    err = child.stderr.read()
    child.stderr.close()
    child.wait()
    assert err == b""


def test_a_word_that_is_both_nothing_and_no_path(kmrun):
    ran = kmrun("lm", "70b")
    assert ran.code == 2
    assert "Traceback" not in ran.err


LONG = "n" * 300


@pytest.mark.parametrize(
    "words",
    [
        *([LONG], ["check", LONG], ["list", LONG], ["exec", LONG, "-k", "x"], [f"{LONG}.yaml"]),
        *(["init", f"{LONG}.py:f"], ["time", f"{LONG}.py:f"], ["compare", "4090", "--cards", LONG]),
        *(
            ["llm", LONG],
            ["roofline", "--gpu", "4090", "--result", LONG],
            ["compare", "--suite", LONG, "4090"],
        ),
        *(["roofline", "--gpu", "4090", "--svg", LONG], ["occupancy", "--cc", "9.0", "--ptxas", LONG]),
        *(["explain", LONG], ["schema", LONG], ["gpus", "--cards", LONG]),
    ],
)
def test_a_name_that_cannot_be_a_file_s_is_an_error_of_two_lines(kmrun, words):
    ran = kmrun(*words)
    assert (ran.code, ran.out if words[0] != "check" else "") == (2, "")
    assert "Traceback" not in ran.err + ran.out


@pytest.mark.parametrize("words", [["check", ""], ["run", ""], [""], ["list", ""]])
def test_an_empty_name_is_not_the_folder_here(kmrun, words):
    ran = kmrun(*words)
    assert ran.code == 2
    want = ": error[K001]: an empty name is no file\n   = this folder is '.'\n\n1 error"
    assert (ran.out or ran.err).startswith(want)


@pytest.mark.parametrize("command", [["run", "x.yaml"], ["exec", "x.yaml", "-k", "a"], ["time", "k.py:f"]])
def test_a_seed_is_bounded_as_in_a_suite(kmrun, command):
    ran = kmrun(*command, "--seed", 2**63)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: --seed 9223372036854775808: a seed lies between 0 and 2**63 - 1\n"
    assert kmrun(*command, "--seed", -1).err == "error: --seed -1: a seed lies between 0 and 2**63 - 1\n"


def test_an_error_cannot_move_the_cursor():
    error = UsageError("a\x1b[2Jb", "c\rd\ne")
    assert explained(error) == "error: a\ufffd[2Jb\nhint: c d\ne\n"
