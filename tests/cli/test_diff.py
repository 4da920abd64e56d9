import json
from dataclasses import replace
from pathlib import Path

import pytest

from kmrun.store.results import ResultFile
from support.cases import clause, make_case, make_found
from support.results import make_entry, make_result


def entry(n, times=1.0, **changes):
    samples = tuple(sample * times for sample in make_found().samples_ns)
    case = make_case(id=f"add[n={n}]", axes={"n": n}, shown_axes=("n",), **changes)
    return make_entry(case, make_found(samples_ns=samples))


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def save(name, *results):
        ResultFile(tmp_path / name, several=len(results) > 1).write(results)
        return name

    return save


def test_a_table_of_both(kmrun, saved):
    slow = (clause("max_ms", 25),)
    old = make_result(entry(1, clauses=slow), entry(2), entry(3))
    new = make_result(entry(1, 1.5, clauses=slow), entry(2), entry(4), environment={"torch": "2.14.0"})
    ran = kmrun("diff", saved("a.json", old), saved("b.json", new))
    assert (ran.code, ran.err) == (0, "")
    assert (
        ran.out
        == """\
adding   a.json -> b.json
torch: 2.13.0 -> 2.14.0
kmrun: 0.1.0 -> not said
python: 3.11.9 -> not said

kernel   case       old       new   delta         interval   contract
add      n=1    20.0 ms   30.0 ms   +50 %     +50 to +50 %   pass -> FAIL
add      n=2    20.0 ms   20.0 ms   0.0 %   -0.1 to +0.1 %   pass
add      n=4          -   20.0 ms       -                -   only in the new: pass
add      n=3    20.0 ms         -       -                -   only in the old: pass

2 cases in both, 1 slower, 0 faster, 1 verdict changed, 2 cases in one only
intervals are of the noise within each run: between two runs there is more (--against judges)
"""
    )


def test_other_devices_are_told_first(kmrun, saved):
    new = make_result(entry(1), device=replace(make_result().device, name="Other CPU"))
    ran = kmrun("diff", saved("a.json", make_result(entry(1))), saved("b.json", new))
    assert ran.code == 0
    assert ran.out.splitlines()[1] == (
        "different devices: the times tell of both machines, not of the kernels alone"
    )


def test_a_document_for_scripts(kmrun, saved):
    a, b = saved("a.json", make_result(entry(1))), saved("b.json", make_result(entry(1, 2.0)))
    document = json.loads(kmrun("diff", a, b, "--json").out)
    assert (document["old"], document["new"]) == ("a.json", "b.json")
    (suite,) = document["suites"]
    (case,) = suite["cases"]
    assert (suite["suite"], suite["same_device"], suite["changes"]) == ("adding", True, [])
    assert case["delta"] == pytest.approx(1.0)
    assert case["low"] < 1.0 < case["high"]
    assert (case["old_verdict"], case["new_verdict"]) == ("pass", "pass")


def test_files_of_several_suites_are_matched_by_name(kmrun, saved):
    other = replace(make_result().suite, name="other")
    a = saved("a.json", make_result(entry(1)), make_result(entry(1), suite=other))
    b = saved("b.json", make_result(entry(1, 2.0), suite=other))
    out = kmrun("diff", a, b).out
    assert out.startswith("other   a.json -> b.json\n")
    assert "adding" not in out


def test_suites_of_one_name_are_told_apart_by_their_files(kmrun, saved):
    def of(file, *entries):
        return make_result(*entries, suite=replace(make_result().suite, file=file))

    a = saved("a.json", of("a/s.yaml", entry(1)), of("b/s.yaml", entry(2)))
    b = saved("b.json", of("b/s.yaml", entry(2, 2.0)), of("a/s.yaml", entry(1, 3.0)))
    found = json.loads(kmrun("diff", a, b, "--json").out)
    assert [case["delta"] for suite in found["suites"] for case in suite["cases"]] == pytest.approx(
        [1.0, 2.0]
    )
    moved = saved("moved.json", of("../a/s.yaml", entry(1, 3.0)))
    assert kmrun("diff", a, moved).code == 2  # of a or of b, there is no telling
    alone = saved("alone.json", of("a/s.yaml", entry(1)))
    assert kmrun("diff", alone, moved).code == 0
    out = kmrun("diff", alone, saved("two.json", of("b/s.yaml", entry(2)), of("a/s.yaml", entry(1)))).out
    assert "n=2" not in out


def test_what_no_float_holds_is_null_for_scripts(kmrun, saved):
    """Edited documents only; but whoever reads the answer has a reader of JSON, not of Python's."""
    entry = make_entry()
    tiny = saved("tiny.json", make_result(replace(entry, median_ms=5e-324)))
    huge = saved("huge.json", make_result(replace(entry, median_ms=1.7e308), environment={"x": 1.0}))
    text = Path(huge).read_text().replace('"x": 1.0', '"x": 1e999')
    Path(huge).write_text(text)

    def refuse(word):
        raise AssertionError(word)

    ran = kmrun("diff", "--json", tiny, huge)
    (suite,) = json.loads(ran.out, parse_constant=refuse)["suites"]
    assert suite["cases"][0]["delta"] is None
    Path(huge).write_text(text.replace("1e999", "NaN"))
    assert "not JSON: NaN is no value" in kmrun("diff", tiny, huge).err


def test_what_cannot_be_compared_is_refused(kmrun, saved):
    a = saved("a.json", make_result())
    b = saved("b.json", make_result(suite=replace(make_result().suite, name="other")))
    ran = kmrun("diff", a, b)
    assert (ran.code, ran.err) == (2, "error: the two have no suite in common: adding there, other here\n")
    assert kmrun("diff", a, "none.json").code == 2
    Path("newer.json").write_text(json.dumps({"kmrun_result": 99}))
    assert "upgrade" in kmrun("diff", a, "newer.json").err
