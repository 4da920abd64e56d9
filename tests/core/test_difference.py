from dataclasses import replace

import pytest

from kmrun.core.difference import compare
from kmrun.core.result import BandwidthEntry, CeilingEntry, MatmulEntry
from support.cases import make_case, make_found
from support.results import make_entry, make_result


def entry(name, times=1.0):
    samples = tuple(sample * times for sample in make_found().samples_ns)
    return make_entry(make_case(id=name), make_found(samples_ns=samples))


def only(old, new):
    (found,) = compare(make_result(old), make_result(new)).cases
    return found


def test_a_slower_case():
    found = only(entry("k[]"), entry("k[]", 1.5))
    assert found.delta == pytest.approx(0.5)
    assert 0.49 < found.low < 0.5 < found.high < 0.51


def test_the_interval_turns_round_with_the_question():
    old, new = entry("k[]"), entry("k[]", 1.25)
    there, back = only(old, new), only(new, old)
    assert (1 + there.low) * (1 + back.high) == pytest.approx(1)
    assert (1 + there.high) * (1 + back.low) == pytest.approx(1)


def test_cases_that_one_of_them_lacks():
    found = compare(make_result(entry("a[]"), entry("b[]")), make_result(entry("c[]"), entry("b[]"))).cases
    assert [(case.id, case.old is None, case.new is None) for case in found] == [
        ("c[]", True, False),
        ("b[]", False, False),
        ("a[]", False, True),
    ]
    assert (found[0].delta, found[0].low) == (None, None)


def test_a_case_without_a_time_has_no_delta():
    timeless = replace(entry("k[]"), median_ms=None, ci_low_ms=None, ci_high_ms=None, verdict="error")
    found = only(entry("k[]"), timeless)
    assert (found.delta, found.low, found.high, found.verdict_changed) == (None, None, None, True)


def test_what_else_changed():
    old = make_result()
    new = make_result(
        environment=old.environment | {"torch": "2.14.0", "git": {"commit": "abc", "dirty": True}},
        device=replace(old.device, name="Other CPU"),
        suite=replace(old.suite, digest="1" * 64),
    )
    found = compare(old, new)
    assert not found.same_device
    assert [(each.name, each.old, each.new) for each in found.changes] == [
        ("device", "Test CPU", "Other CPU"),
        ("suite's text", "0" * 64, "1" * 64),
        ("torch", "2.13.0", "2.14.0"),
        ("git.commit", None, "abc"),
        ("git.dirty", None, True),
    ]


def test_ceilings_that_moved_are_told():
    def ceilings(bandwidth, rate):
        return CeilingEntry((BandwidthEntry("read", 1, bandwidth),), (MatmulEntry("fp32", 512, rate),))

    found = compare(make_result(ceilings=ceilings(20.0, 0.3)), make_result(ceilings=ceilings(18.0, 0.31)))
    assert [(each.name, each.old, each.new) for each in found.changes] == [
        ("memory ceiling GB/s", 20.0, 18.0)
    ]
    assert found.same_device


def test_nothing_changed():
    found = compare(make_result(), make_result())
    assert (found.changes, found.same_device, found.cases[0].delta) == ((), True, 0.0)
