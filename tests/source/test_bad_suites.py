"""One mistake, one error, at the right place: every file of tests/bad against its golden diagnostic."""

import re
from pathlib import Path

import pytest

from kmrun.source.codes import catalogue
from kmrun.source.diagnostics import render
from support.bad_suites import SUITES, diagnosed, golden


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_one_mistake_is_one_diagnostic_at_its_place(path: Path) -> None:
    found = diagnosed(path)
    assert render(found, "text") == golden(path).read_text(encoding="utf-8")
    assert [item.severity for item in found] == ["error"]
    assert found[0].code in catalogue()


def test_the_corpus_is_complete() -> None:
    assert len(SUITES) >= 50
    stray = {path.name for path in SUITES[0].parent.glob("*.expected.txt")} - {
        golden(path).name for path in SUITES
    }
    assert stray == set()


def test_every_code_in_the_sources_is_explained() -> None:
    package = Path(__file__).resolve().parents[2] / "kmrun"
    used = {
        code
        for path in package.rglob("*.py")
        for code in re.findall(r'"(K\d{3})"', path.read_text(encoding="utf-8"))
    }
    assert used - set(catalogue()) == set()
    assert set(catalogue()) - used == set()
