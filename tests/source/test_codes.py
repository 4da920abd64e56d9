"""The catalogue of codes: complete entries, examples that really are wrong or right."""

import pytest

from kmrun.source.codes import Code, catalogue
from kmrun.source.diagnostics import InvalidSuite
from kmrun.source.yaml_loader import load_bytes

CODES = list(catalogue().values())


@pytest.mark.parametrize("entry", CODES, ids=lambda entry: entry.code)
def test_an_entry_is_complete(entry: Code) -> None:
    assert entry.title and not entry.title.endswith(".")
    assert entry.text.strip().endswith(".")
    assert max(map(len, entry.page().splitlines())) <= 100
    assert entry.page().startswith(f"{entry.code}: {entry.title}\n\n")


@pytest.mark.parametrize("entry", [entry for entry in CODES if entry.right], ids=lambda entry: entry.code)
def test_what_is_right_reads(entry: Code) -> None:
    assert load_bytes(entry.right.encode(), "x").diagnostics == ()


@pytest.mark.parametrize(
    "entry", [entry for entry in CODES if entry.wrong and entry.code[1] == "1"], ids=lambda entry: entry.code
)
def test_what_is_wrong_gives_that_code(entry: Code) -> None:
    try:
        found = load_bytes(entry.wrong.encode(), "x").diagnostics
    except InvalidSuite as error:
        found = error.diagnostics
    assert entry.code == "K105" or entry.code in {item.code for item in found}
