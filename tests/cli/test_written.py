import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from lxml import etree

from kmrun.cli import running
from kmrun.core.measurement import Finding
from support.adding import ONE, TWO, adding
from support.cases import make_found
from support.supervisors import FakeSupervisor

SCHEMA = etree.XMLSchema(etree.parse(Path(__file__).parent.parent / "report" / "junit.xsd"))
SUITE = adding("{min_speedup: 1.0}", "{max_ms: 10}")
BROKEN = Finding("raised", "boom", "kernel", "error")
UNDECIDED = Finding("cannot_cross", "this case needs --isolation inline", "undecided", "inconclusive")


@pytest.fixture
def suite(tmp_path, monkeypatch):
    (tmp_path / "repo" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repo" / "sub")
    path = Path("adding.yaml")
    path.write_text(SUITE)
    return path


@pytest.fixture
def measuring(monkeypatch):
    def use(found=None):
        monkeypatch.setattr(running, "make_supervisor", lambda *given: FakeSupervisor(found))

    return use


def valid(path):
    root = etree.parse(path).getroot()
    SCHEMA.assertValid(root)
    return root


def test_junit_and_markdown(kmrun, suite, measuring):
    measuring({TWO: make_found(findings=(BROKEN,))})
    ran = kmrun(suite, "--junit", "out.xml", "--markdown", "out.md")
    assert ran.code == 1
    root = valid("out.xml")
    assert [[child.tag for child in case] for case in root.iter("testcase")] == [["failure"], ["error"]]
    text = Path("out.md").read_text()
    assert "### adding: **ERROR**" in text
    assert text.endswith("exit code 1\n")
    assert stat.S_IMODE(Path("out.xml").stat().st_mode) == stat.S_IMODE(suite.stat().st_mode)
    assert sorted(path.name for path in Path().iterdir()) == ["adding.yaml", "out.md", "out.xml"]


def test_what_is_undecided_follows_the_exit_code(kmrun, suite, measuring):
    measuring({ONE: make_found(findings=(UNDECIDED,)), TWO: make_found(findings=(UNDECIDED,))})
    suite.write_text(SUITE.replace("      - {max_ms: 10}\n", ""))
    for words, code, tags in (((), 4, {"error"}), (("--allow-inconclusive",), 0, {"skipped"})):
        assert kmrun(suite, "--junit", "out.xml", *words).code == code
        assert {child.tag for case in valid("out.xml").iter("testcase") for child in case} == tags


def test_an_interrupted_run_leaves_reports_that_say_so(kmrun, suite, measuring):
    measuring({TWO: KeyboardInterrupt()})
    assert kmrun(suite, "--junit", "out.xml", "--markdown", "out.md").code == 130
    last = list(valid("out.xml").iter("testcase"))[-1]
    assert (last.get("name"), last[0].get("type")) == ("the run itself", "interrupted")
    assert "partial: the run was interrupted" in Path("out.md").read_text()


class Sweeping(FakeSupervisor):
    """Measures the second case after somebody has taken away the folder that results go to."""

    def measure(self, case, *others):
        if case.id == TWO:
            shutil.rmtree("out")
        return super().measure(case, *others)


@pytest.mark.parametrize("option", ["--save", "--junit", "--markdown", "--html"])
def test_a_folder_that_vanishes_costs_the_file_and_nothing_else(kmrun, suite, monkeypatch, option):
    Path("out").mkdir()
    monkeypatch.setattr(running, "make_supervisor", lambda *given: Sweeping())
    ran = kmrun(suite, option, "out/a", "--markdown" if option != "--markdown" else "--junit", "kept")
    assert ran.code == 2
    assert "\n2 cases in " in ran.out
    assert ran.err.startswith(f"error: {option} ") and "no such file or directory" in ran.err
    assert ran.err.count("error:") == 1
    assert "2048" in Path("kept").read_text()


def test_a_lost_report_costs_neither_the_page_nor_github_s_summary(kmrun, suite, monkeypatch):
    Path("out").mkdir()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    monkeypatch.setattr(running, "make_supervisor", lambda *given: Sweeping())
    ran = kmrun(suite, "--markdown", "out/a.md", "--html", "page.html")
    assert ran.code == 2
    assert ran.err.startswith("error: --markdown ")
    assert "2048" in Path("page.html").read_text()
    assert "2048" in Path("summary.md").read_text()


def test_an_interrupt_and_a_folder_that_vanishes_is_an_interrupt(kmrun, suite, monkeypatch):
    Path("out").mkdir()
    monkeypatch.setattr(running, "make_supervisor", lambda *given: Sweeping({TWO: KeyboardInterrupt()}))
    ran = kmrun(suite, "--save", "out/a.json")
    assert ran.code == 130
    assert "1 case in" in ran.out
    assert ran.err.startswith("error: --save ")


def test_a_folder_that_comes_back_has_it_all(kmrun, suite, monkeypatch):
    class Returning(Sweeping):
        def close_ceilings(self):
            Path("out").mkdir()
            return super().close_ceilings()

    Path("out").mkdir()
    monkeypatch.setattr(running, "make_supervisor", lambda *given: Returning())
    ran = kmrun(suite, "--save", "out/a.json")
    assert (ran.code, ran.err) == (1, "")  # a clause of this suite is broken
    assert TWO in Path("out/a.json").read_text()


@pytest.mark.parametrize("option", ["--junit", "--markdown"])
def test_only_an_earlier_report_is_replaced(kmrun, suite, measuring, option):
    measuring()
    before = suite.read_text()
    ran = kmrun(suite, option, suite)
    assert (ran.code, suite.read_text()) == (2, before)
    assert ran.err.startswith(f"error: {option} adding.yaml: is there already, and is no ")
    for _ in range(2):
        assert kmrun(suite, option, "out").code == 1
    assert kmrun(suite, option, "nowhere/out").code == 2
    assert kmrun(suite, option, "").code == 2


def test_the_summary_of_a_github_step_is_appended_to(kmrun, suite, measuring, monkeypatch):
    measuring()
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(Path("summary.md").resolve()))
    assert kmrun(suite).code == 1
    text = Path("summary.md").read_text()
    assert text.startswith("before\n<!-- written by kmrun -->\n\n### adding: **FAIL**")
    Path("summary.md").write_text("x" * (1 << 20))
    assert kmrun(suite).code == 1
    assert "too long for a summary" in Path("summary.md").read_text()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "nowhere/summary.md")
    ran = kmrun(suite)
    assert (ran.code, ran.err) == (
        1,
        "warning: GITHUB_STEP_SUMMARY nowhere/summary.md: no such file or directory\n",
    )


def test_github_annotations_stand_at_the_clause(kmrun, suite, measuring, monkeypatch):
    measuring({TWO: make_found(findings=(BROKEN,))})
    assert "::" not in kmrun(suite).out
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(Path().resolve().parent))
    ran = kmrun(suite)
    told = [line for line in ran.out.splitlines() if line.startswith("::")]
    assert told[0].startswith(f"::error file=sub/adding.yaml,line=15,title=FAIL {ONE}::max_ms 10: 20.0 ms")
    assert told[1] == f"::error file=sub/adding.yaml,line=4,title=ERROR {TWO}::boom"
    ran = kmrun(suite, "--json")
    assert json.loads(ran.out)["complete"]
    assert ran.err.splitlines() == told


def test_no_case_for_this_device_is_exit_3_in_the_report_too(kmrun, suite, measuring):
    suite.write_text(SUITE.replace("    matrix: {n: [1024, 2048]}\n", "    cases: [{device: gpu, n: 8}]\n"))
    measuring()
    assert kmrun(suite, "--markdown", "out.md").code == 3
    assert "exit code 3" in Path("out.md").read_text()


def test_floors_that_could_rise_are_told_with_the_command(kmrun, suite, measuring):
    measuring()
    suite.write_text(SUITE.replace("max_ms: 10}", "max_ms: 100}"))
    assert kmrun(suite).err == ""
    ran = kmrun(suite, "--save", "r.json")
    assert ran.err == "1 floor could be raised: kmrun floors adding.yaml --result r.json\n"
    assert kmrun("floors", suite, "--result", "r.json", "--update").out.endswith(
        "1 of 1 floors raised: written\n"
    )
    assert kmrun(suite, "--save", "r.json").err == ""


def test_a_wrong_suite_is_annotated_too(kmrun, suite, measuring, monkeypatch):
    suite.write_text(SUITE.replace("randn", "random"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    ran = kmrun(suite)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[-1].startswith("::error file=adding.yaml,line=11,col=")


def test_a_summary_that_nobody_reads_is_not_waited_for(kmrun, suite, measuring, monkeypatch):
    measuring()
    os.mkfifo("summary")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary")
    assert "warning: GITHUB_STEP_SUMMARY summary: " in kmrun(suite).err
    Path("summary").unlink()
    assert kmrun(suite).err == ""
    assert "2048" in Path("summary").read_text()


def test_an_annotation_of_a_link_out_of_the_checkout_stands_at_the_link(kmrun, suite, measuring, monkeypatch):
    measuring()
    (checkout := Path("checkout") / "inner").mkdir(parents=True)
    (checkout / "link.yaml").symlink_to(Path(suite).resolve())
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(Path("checkout").resolve()))
    monkeypatch.chdir(checkout)
    found = [line for line in kmrun("link.yaml").out.splitlines() if line.startswith("::error ")]
    assert found
    assert all(line.startswith("::error file=inner/link.yaml,line=") for line in found)
