from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.report.plots.element import element, label, number, picture, title


@given(st.text(), st.text())
def test_whatever_is_written_is_read_back_as_text(inside, attribute):
    root = ElementTree.fromstring(element("g", label(inside, 1, 2), title(inside), class_=attribute))
    assert [item.tag for item in root.iter()] == ["g", "text", "title"]


def test_attributes():
    assert element("a", b_c="<", class_="x", none=None, n=1.25) == '<a b-c="&lt;" class="x" n="1.2"/>'
    assert element("a", "", x=1) == '<a x="1"></a>'


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (-0.01, "0"), (12.34, "12.3"), (-7.96, "-8"), (100.0, "100")]
)
def test_numbers(value, text):
    assert number(value) == text


def test_hover_text_keeps_its_lines():
    assert title("a\nb\u202e<") == "<title>a\nb\ufffd&lt;</title>"


def test_a_picture_names_itself():
    root = ElementTree.fromstring(picture("p", 10, 20.5, "head", "said", css="plot"))
    assert root.attrib["viewBox"] == "0 0 10 20.5"
    assert [item.attrib["id"] for item in root] == ["p-title", "p-desc"]
