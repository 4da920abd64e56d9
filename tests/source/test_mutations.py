"""Mutations of good suites: never a traceback, never an unknown key that passes in silence."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kmrun import resources
from kmrun.source.codes import catalogue
from kmrun.source.diagnostics import Diagnostic, InvalidSuite, render
from kmrun.source.suite_plan import read_and_plan
from kmrun.source.yaml_loader import load_bytes
from support.good_suite import EVERY_KEY

SHIPPED = [path.read_text(encoding="utf-8") for path in sorted(resources.folder("suites").glob("*.yaml"))]
GOOD = [EVERY_KEY, *SHIPPED]
DOCUMENTS = [load_bytes(text.encode(), "x").document.value for text in GOOD]
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
FUZZ = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
FREE = {"env"}
"""Mappings whose keys mean nothing to kmrun."""

SLIPS = [
    "",
    " ",
    "\t",
    "\n",
    ":",
    ": ",
    ",",
    "{",
    "}",
    "[",
    "]",
    "'",
    '"',
    "#",
    "&a ",
    "*a",
    "- ",
    "|",
    "!!x ",
]
SLIPS += ["%", "\0", "é", "0", "e", "~", "<<: ", "\x85", "\u2028", "@"]


def found_in(folder: Path, text: str) -> tuple[Diagnostic, ...]:
    """Return what `check` says of a text; errors of any other kind escape and fail the test."""
    path = folder / "mutant.yaml"
    path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    try:
        found = read_and_plan(path, path.name).warnings
    except InvalidSuite as error:
        found = error.diagnostics
        assert any(item.severity == "error" for item in found)
    lines = text.splitlines() or [""]
    for item in found:
        assert item.code in catalogue()
        assert 1 <= item.span.line <= len(lines) + 1
        assert item.span.col >= 1
        assert (item.span.end_line, item.span.end_col) >= (item.span.line, item.span.col)
    for form in ("text", "github"):
        render(found, form)
    assert len(json.loads(render(found, "json"))) == len(found)
    return found


def mappings(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every mapping in which an unknown key has to be noticed."""
    if isinstance(node, dict):
        yield path
        for key, value in node.items():
            if not key.startswith("x-") and key not in FREE:
                yield from mappings(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from mappings(value, (*path, index))


def at(node: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        node = node[step]
    return node


@pytest.mark.parametrize("number", range(len(GOOD)))
def test_the_suites_themselves_are_good(number: int, tmp_path: Path) -> None:
    assert [item for item in found_in(tmp_path, GOOD[number]) if item.severity == "error"] == []


@pytest.mark.parametrize("value", [1, "zz", None, {}, [1]], ids=repr)
def test_no_unknown_key_passes(value: Any, tmp_path: Path) -> None:
    document = DOCUMENTS[0]
    for path in mappings(document):
        mutant = copy.deepcopy(document)
        at(mutant, path)["zz_unknown"] = value
        found = found_in(tmp_path, yaml.dump(mutant, Dumper=DUMPER, sort_keys=False))
        # With `setup` every axis counts as used, so there a new one is simply a new axis.
        is_axis = path[2:] == ("matrix",) and "setup" in document["kernels"][path[1]]
        assert is_axis or any(item.severity == "error" for item in found), path


@FUZZ
@given(st.data())
def test_a_key_with_one_letter_wrong_is_noticed(tmp_path: Path, data: st.DataObject) -> None:
    document = copy.deepcopy(data.draw(st.sampled_from(DOCUMENTS)))
    path = data.draw(st.sampled_from([path for path in mappings(document) if at(document, path)]))
    mapping = at(document, path)
    key = data.draw(st.sampled_from([key for key in mapping if not key.startswith("x-")] or ["name"]))
    index = data.draw(st.integers(0, len(key) - 1))
    wrong = key[:index] + data.draw(st.sampled_from("qz")) + key[index + 1 :]
    if wrong == key or wrong in mapping:
        return
    renamed = {wrong if name == key else name: value for name, value in mapping.items()}
    if path:
        at(document, path[:-1])[path[-1]] = renamed
    else:
        document = renamed
    found = found_in(tmp_path, yaml.dump(document, Dumper=DUMPER, sort_keys=False))
    is_free = path and path[-1] in ("args", "kwargs", "versus", "outputs", "tolerance")
    assert is_free or any(item.severity == "error" for item in found), (path, key, wrong)


@FUZZ
@given(st.data())
def test_a_value_of_any_kind_never_crashes(tmp_path: Path, data: st.DataObject) -> None:
    document = copy.deepcopy(data.draw(st.sampled_from(DOCUMENTS)))
    path = data.draw(st.sampled_from([path for path in mappings(document) if at(document, path)]))
    key = data.draw(st.sampled_from(list(at(document, path))))
    odd = [
        None,
        True,
        0,
        -1,
        10**30,
        1e308,
        float("inf"),
        float("nan"),
        "",
        " ",
        "a:b",
        "1 +",
        "x" * 5000,
        "\x85",
        "ü",
    ]
    values = st.one_of(
        st.sampled_from(odd),
        st.recursive(
            st.sampled_from(odd),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["init", "shape", "a", "like", "when", "pow2", "min_roof"]), inner
                )
            ),
            max_leaves=6,
        ),
    )
    at(document, path)[key] = data.draw(values)
    found_in(tmp_path, yaml.dump(document, Dumper=DUMPER, sort_keys=False, allow_unicode=True))


@FUZZ
@given(st.data())
def test_text_with_slips_never_crashes(tmp_path: Path, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(GOOD))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.sampled_from([0, 0, 1, 1, 2, 5, 40]))
        put = data.draw(st.sampled_from(SLIPS))
        text = text[:start] + put + text[start + length :]
    found_in(tmp_path, text)
