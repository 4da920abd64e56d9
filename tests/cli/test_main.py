import subprocess
import sys

import pytest

from kmrun import __version__
from kmrun.cli import COMMANDS, explained, main, with_default_command
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

    monkeypatch.setattr("kmrun.cli.build_app", interrupted)
    monkeypatch.setattr(sys, "argv", ["kmrun", "check", "x.yaml"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_our_own_bug_keeps_its_traceback(monkeypatch):
    def broken(arguments):
        raise RuntimeError("a bug")

    monkeypatch.setattr("kmrun.cli.build_app", broken)
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
