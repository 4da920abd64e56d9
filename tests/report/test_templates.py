"""Templates place what was computed: no arithmetic, no unit, no script, nothing of any network."""

import re

import pytest
from jinja2 import Environment, StrictUndefined, UndefinedError, nodes

from kmrun.report.html import _environment
from kmrun.resources import folder

PATHS = sorted(path for path in folder("templates").rglob("*.j2") if path.name != "site.html.j2")
NAMES = [path.relative_to(folder("templates")).as_posix() for path in PATHS]
ARITHMETIC = (
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
    nodes.Pow,
    nodes.Neg,
    nodes.Concat,
)
FILTERS = {"trim", "brief"}
"""The second takes the middle out of a name that is too long to be shown in passing."""


def test_there_are_templates():
    assert {"report.html.j2", "report_card.html.j2", "partials/table.html.j2"} <= set(NAMES)


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_a_template_computes_nothing(path):
    tree = Environment().parse(path.read_text(encoding="utf-8"))
    assert list(tree.find_all(ARITHMETIC)) == []
    assert {found.name for found in tree.find_all(nodes.Filter)} <= FILTERS
    assert not list(tree.find_all((nodes.Call,))) or all(
        isinstance(call.node, nodes.Getattr | nodes.Name) for call in tree.find_all(nodes.Call)
    )


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_a_template_has_no_script_and_asks_nobody(path):
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text
    assert not re.search(r"\bon\w+=|https?:|\bsrc=|@import|url\(", text)
    assert "|safe" not in text.replace(" ", "")


@pytest.mark.parametrize("name", ["report.css", "report_plots.css"])
def test_a_style_sheet_asks_nobody(name):
    text = (folder("templates") / name).read_text(encoding="utf-8")
    assert not re.search(r"https?:|@import|url\(|</", text)


def test_what_is_missing_is_an_error_and_text_is_escaped():
    environment = _environment()
    assert environment.undefined is StrictUndefined
    with pytest.raises(UndefinedError):
        environment.from_string("{{ nothing }}").render()
    assert environment.from_string("{{ text }}").render(text="<b>\u202e\"'") == "&lt;b&gt;\ufffd&#34;&#39;"
