from pathlib import Path

import pytest
from lxml import etree

from kmrun.core.measurement import Finding
from kmrun.report.junit import THE_RUN, is_junit, render
from support.cases import clause, make_case, make_found
from support.results import make_entry, make_result

SCHEMA = etree.XMLSchema(etree.parse(Path(__file__).parent / "junit.xsd"))
HOSTILE = "a]]><b> & \"q\" 'p' \x00\x1b[31m\ud800 \uffff [k=1]"
SLOW = clause("max_ms", 1.0, place=("kernels", 0, "contract", 1))


def parsed(*entries, allow_inconclusive=False, **changes):
    text = render([make_result(*entries, **changes)], allow_inconclusive=allow_inconclusive)
    root = etree.fromstring(text.encode())
    SCHEMA.assertValid(root)
    return root


def entry(name, *findings, **changes):
    return make_entry(make_case(id=name, **changes), make_found(findings=findings))


def finding(outcome, sentence="it broke", **changes):
    return Finding("some-code", sentence, "kernel", outcome, **changes)


@pytest.mark.parametrize(
    ("outcome", "tag"),
    [("fail", "failure"), ("error", "error"), ("skipped", "skipped"), ("inconclusive", "error")],
)
def test_a_verdict_is_one_element(outcome, tag):
    root = parsed(entry("k[n=1]", finding(outcome)), entry("k[n=2]"))
    broken, passed = root.iter("testcase")
    assert [child.tag for child in broken] == [tag]
    assert broken[0].get("type") == "some-code"
    assert "it broke" in broken[0].get("message")
    assert len(passed) == 0
    (suite,) = root
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    plural = {"failure": "failures", "error": "errors", "skipped": "skipped"}[tag]
    assert counts == {"tests": "2", "failures": "0", "errors": "0", "skipped": "0"} | {plural: "1"}


def test_what_is_undecided_and_allowed_is_skipped():
    (case,) = parsed(entry("k[n=1]", finding("inconclusive")), allow_inconclusive=True).iter("testcase")
    assert [child.tag for child in case] == ["skipped"]


def test_a_broken_clause_comes_with_its_sentence_and_its_line():
    (case,) = parsed(entry("k[n=1]", clauses=(SLOW,))).iter("testcase")
    assert case.get("classname") == "adding.add"
    assert case[0].get("type") == "max_ms"
    assert case[0].get("message").startswith("FAIL: max_ms 1: 20")
    lines = case[0].text.strip().splitlines()
    assert lines[0] == "suites/add.yaml:7"
    assert lines[-1].startswith("kmrun suites/add.yaml -k")


def test_supporting_text_is_kept():
    (case,) = parsed(entry("k[n=1]", finding("error", detail="Traceback\n  boom"))).iter("testcase")
    assert "  Traceback\n    boom" in case[0].text


def test_hostile_names_are_text():
    root = parsed(entry(HOSTILE, finding("error", HOSTILE, detail=HOSTILE), kernel=HOSTILE))
    (case,) = root.iter("testcase")
    assert case.get("name").startswith("a]]><b> & \"q\" 'p' ")
    assert not any(char in etree.tostring(root, encoding="unicode") for char in "\x00\x1b\ud800\uffff")


def test_a_partial_run_is_no_success():
    root = parsed(entry("k[n=1]"), complete=False)
    last = list(root.iter("testcase"))[-1]
    assert (last.get("name"), last[0].tag, root[0].get("errors")) == (THE_RUN, "error", "1")


def test_several_suites_are_several_testsuites():
    root = etree.fromstring(render([make_result(), make_result()]).encode())
    SCHEMA.assertValid(root)
    assert [suite.tag for suite in root] == ["testsuite", "testsuite"]
    SCHEMA.assertValid(etree.fromstring(render([]).encode()))


def test_an_earlier_report_is_recognised():
    assert is_junit(render([make_result()]).encode())
    assert not is_junit(b"kmrun: 1\nsuite: mine\n")
