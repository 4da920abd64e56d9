from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.slowdown import Slowdown
from kmrun.report.plots.interval import WIDTH, axis_of, interval, signed

SLOW = Slowdown("HEAD~1", "alternated", 0.05, "broken", 0.09, 0.07, 0.11, 0.03)
ENDS = st.none() | st.floats(-0.99, 30)


@given(st.floats(-0.99, 30), ENDS, ENDS, st.floats(0, 2))
def test_any_comparison_can_be_drawn(slowdown, low, high, margin):
    found = replace(SLOW, slowdown=slowdown, low=low, high=high, margin=margin)
    axis = axis_of([found])
    root = ElementTree.fromstring(interval(found, axis, "fail"))
    (dot,) = [item for item in root if item.tag == "circle"]
    assert 0 <= float(dot.attrib["cx"]) <= WIDTH


def test_what_is_slower_stands_right_of_what_is_faster():
    axis = axis_of([SLOW, replace(SLOW, slowdown=-0.02)])
    assert axis.at(-0.02) < axis.at(0.0) == WIDTH / 2 < axis.at(0.05) < axis.at(0.11)


def test_it_says_what_it_shows():
    root = ElementTree.fromstring(interval(SLOW, axis_of([SLOW]), "fail"))
    assert root[0].text == "+9.0 %, between +7.0 % and +11 %; +5.0 % is allowed"


def test_without_a_slowdown_there_is_no_picture():
    unknown = replace(SLOW, slowdown=None, low=None, high=None)
    assert interval(unknown, axis_of([unknown]), "fail") == ""
    assert axis_of([]).reach == 1.0


@pytest.mark.parametrize(
    ("slowdown", "text"),
    [
        (0.031, "+3.1 %"),
        (-0.02, "\u22122.0 %"),
        (0.0, "0.0 %"),
        (-0.0004, "0.0 %"),
        (0.5, "+50 %"),
        (-0.25, "\u221225 %"),
    ],
)
def test_signs(slowdown, text):
    assert signed(slowdown) == text
