"""Strict YAML: values, places, merges, refusals."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kmrun.source.diagnostics import InvalidSuite
from kmrun.source.document import Document, Span
from kmrun.source.yaml_ledger import Limits
from kmrun.source.yaml_loader import load_bytes, load_file


def read(text: str) -> Document:
    loaded = load_bytes(text.encode(), "x.yaml")
    assert loaded.diagnostics == ()
    return loaded.document


def mistakes(text: str) -> list[tuple[str, int, int]]:
    """Return (code, line, column) of all that is wrong."""
    try:
        found = load_bytes(text.encode(), "x.yaml").diagnostics
    except InvalidSuite as error:
        found = error.diagnostics
    return [(item.code, item.span.line, item.span.col) for item in found]


def test_values() -> None:
    text = "a: 1\nb: [x, 'y', \"z\\n\", |\n  block\n  ]\nc: {true: 1, 2: x}\n".replace(
        "|\n  block\n  ]", "null]"
    )
    assert read(text).value == {"a": 1, "b": ["x", "y", "z\n", None], "c": {"true": 1, "2": "x"}}


def test_plain_keys_are_strings() -> None:
    assert read("{1: a, true: b, null: c, yes: d, 017: e}").value == {
        "1": "a",
        "true": "b",
        "null": "c",
        "yes": "d",
        "017": "e",
    }


def test_core_tags_are_allowed() -> None:
    document = read("a: !!str 1\nb: !!int 2\nc: !!float 3\nd: !!map {}")
    assert document.value == {"a": "1", "b": 2, "c": 3.0, "d": {}}


def test_aliases_share_their_value() -> None:
    assert read("x-a: &a [1, 2]\nb: *a\nc: {d: *a}").value == {"x-a": [1, 2], "b": [1, 2], "c": {"d": [1, 2]}}


def test_merges_keep_the_order_and_lose_against_written_keys() -> None:
    document = read("a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {w: 0, <<: [*a, *b], x: 9}")
    assert list(document.value["c"].items()) == [("w", 0), ("x", 9), ("y", 2), ("z", 4)]


def test_a_merged_key_stands_where_it_was_written() -> None:
    document = read("a: &a {x: 1}\nb:\n  <<: *a\n")
    assert document.place(("b", "x")).span == Span(1, 11, 1, 12)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a: 1\nb: 2\na: 3\n", [("K102", 3, 1)]),
        ("{a: 1, 'a': 2}", [("K102", 1, 8)]),
        ("a: yes\nb: [off, 017]\n", [("K103", 1, 4), ("K103", 2, 5), ("K103", 2, 10)]),
        ("a: {e: min(m, n), f: 1}", [("K104", 1, 8)]),
        ("a: {e: max(a, min(b, c), d) + 1, f: g(x, y)}", [("K104", 1, 8), ("K104", 1, 37)]),
        ("a: [min(m, n), k, (a, b)]", [("K104", 1, 5), ("K104", 1, 19)]),
        ("a: [f(x, y]", []),
        ("a: {<<: 3}", [("K114", 1, 9)]),
        ("a: &a {}\nb: {<<: *a, <<: *a}", [("K114", 2, 13)]),
        ("a: &a {b: *a}", [("K108", 1, 11)]),
        ("a: *b", [("K108", 1, 4)]),
        ("a: !!python/object:os.system x", [("K109", 1, 4)]),
        ("a: !!int x", [("K109", 1, 4)]),
        ("a: !!set {b}", [("K109", 1, 4)]),
        ("? [a]\n: b\n", [("K113", 1, 3)]),
        ("a: {{ b }}", [("K113", 1, 5)]),
        ("a: 1\n--- \nb: 2\n", [("K112", 2, 1)]),
        ("", [("K111", 1, 1)]),
        ("# nothing\n---\n", [("K111", 1, 1)]),
        ("a: \u0007", [("K110", 1, 4)]),
        ("a:\n\tb: 1\n", [("K106", 2, 1)]),
        ("a:\n  - b\n c: 1\n", [("K105", 3, 2)]),
    ],
)
def test_mistakes(text: str, found: list[tuple[str, int, int]]) -> None:
    assert mistakes(text) == found


def test_not_utf8() -> None:
    with pytest.raises(InvalidSuite) as caught:
        load_bytes(b"a: 1\nb: \xff\n", "x.yaml")
    (item,) = caught.value.diagnostics
    assert (item.code, item.span.line, item.span.col) == ("K110", 2, 4)


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert load_bytes(b"\xef\xbb\xbfa: 1\n", "x").document.value == {"a": 1}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_count_whatever_ends_them(end: str) -> None:
    document = read(end.join(["a: 1", "", "b: {c: 22}", ""]))
    assert document.place(("b", "c")).span == Span(3, 8, 3, 10)
    assert document.source.line(3) == "b: {c: 22}"


def test_columns_count_characters() -> None:
    assert read("a: {ключ: 1, 漢字: 22}").place(("a", "漢字")).span == Span(1, 18, 1, 20)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("f: 2 * bogus * 3", "bogus"),
        ("f: '2 * bogus'", "bogus"),
        ('f: "2 * bogus"', "bogus"),
        ("f: 'it''s bogus'", "bogus"),
        ("f: >-\n  2 *\n  bogus\n", "bogus"),
        ("f: |\n  2 *\n   bogus * 3\n", "bogus"),
        ("f: 2 *\n   bogus\n", "bogus"),
        ("{f: 2 * x + bogus}", "bogus"),
    ],
)
def test_a_part_of_a_text_is_found_in_the_source(text: str, part: str) -> None:
    document = read(text)
    place = document.place(("f",), offset=document.value["f"].index(part), length=len(part))
    assert place.source.slice(place.span) == part


def test_an_escape_hides_places_and_the_whole_text_is_shown() -> None:
    document = read('f: "2 \\u002a bogus"')
    place = document.place(("f",), offset=4, length=5)
    assert place.source.slice(place.span) == '"2 \\u002a bogus"'


def test_keys_values_and_what_is_missing() -> None:
    document = read("kernels:\n  - name: x\n    args: {a: 1}\n")
    assert document.place(("kernels", 0, "name"), on_key=True).span == Span(2, 5, 2, 9)
    assert document.place(("kernels", 0, "name")).span == Span(2, 11, 2, 12)
    assert document.place(("kernels", 0, "target")).span == Span(2, 5, 2, 9)
    assert document.place(("kernels", 0, "args")).span == Span(3, 11, 3, 17)
    assert document.place(()).span == Span(1, 1, 1, 8)


def test_limits() -> None:
    small = Limits(file_bytes=100, nodes=20, depth=4, entries=5, mistakes=3)
    for text in (
        "#" * 101,
        "a: &a [1,2,3,4]\nb: [*a,*a,*a]",
        "[[[[[1]]]]]",
        "[1,2,3,4,5,6]",
        "a: &a [[1]]\nb: [[*a]]",
    ):
        with pytest.raises(InvalidSuite) as caught:
            load_bytes(text.encode(), "x", small)
        assert [item.code for item in caught.value.diagnostics] == ["K107"]
    with pytest.raises(InvalidSuite) as caught:
        load_bytes(b"[yes, yes, yes, yes]", "x", small)
    assert len(caught.value.diagnostics) == 3


def test_files_that_are_none(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.yaml", tmp_path):
        with pytest.raises(InvalidSuite) as caught:
            load_file(path)
        assert caught.value.diagnostics[0].code == "K001"


_SCALARS = st.one_of(
    st.booleans(),
    st.none(),
    st.integers(-(10**15), 10**15),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=12),
)
_TREES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(_TREES, st.sampled_from([True, False, None]))
def test_what_pyyaml_writes_comes_back(tree: object, style: bool | None) -> None:
    text = yaml.safe_dump({"tree": tree}, default_flow_style=style, allow_unicode=True, sort_keys=False)
    loaded = load_bytes(text.encode(), "x")
    if not any(item.code == "K103" for item in loaded.diagnostics):
        assert loaded.document.value == {"tree": tree}


@given(st.text(alphabet="ab:-[]{},'\"&*!|>\n \t#?%@<.0~", max_size=60))
def test_any_text_ends_in_a_document_or_in_diagnostics(text: str) -> None:
    try:
        loaded = load_bytes(text.encode(), "x")
    except InvalidSuite as error:
        assert error.diagnostics
    else:
        for path in (("a",), ("a", 0), ()):
            loaded.document.place(path)
