"""How diagnostics look: text with excerpt and caret, JSON, GitHub's commands."""

import json

from kmrun.source.diagnostics import Diagnostic, InvalidSuite, render
from kmrun.source.document import Source, Span


def diagnostic(line: str, span: tuple[int, int], hint: str = "", notes: tuple[str, ...] = ()) -> Diagnostic:
    """Return an error at the columns `span` of the one line of a file."""
    place = Span(1, span[0], 1, span[1])
    return Diagnostic("s.yaml", place, "K201", "a mistake", hint, notes, source=Source("s.yaml", line))


def text(item: Diagnostic) -> str:
    return render([item], "text")


def test_text_has_place_excerpt_caret_hint_and_notes() -> None:
    source = Source("s.yaml", "a: 1\n" * 38 + "    flops: 4 * b * sq * d\n")
    item = Diagnostic(
        "s.yaml",
        Span(39, 20, 39, 22),
        "K201",
        "unknown name 'sq' in formula",
        "did you mean 's'?",
        ("names here: b, d, s",),
        source=source,
    )
    assert text(item) == (
        "s.yaml:39:20: error[K201]: unknown name 'sq' in formula\n"
        "   |\n"
        "39 |     flops: 4 * b * sq * d\n"
        "   |                    ^^ did you mean 's'?\n"
        "   = names here: b, d, s\n"
        "\n"
    )


def test_a_wide_character_moves_the_caret_by_two() -> None:
    lines = text(diagnostic("漢: xy", (4, 6))).splitlines()
    assert lines[3] == "  |     ^^"


def test_tabs_and_escapes_do_not_reach_the_terminal() -> None:
    shown = text(diagnostic("a:\tb \x1b[31mred", (4, 5), "\x1b[2J"))
    assert "\x1b" not in shown and "\t" not in shown
    assert shown.splitlines()[3].index("^") == shown.splitlines()[2].index("b")


def test_a_long_line_is_cut_around_the_mistake() -> None:
    shown = text(diagnostic("x" * 500 + "HERE" + "y" * 500, (501, 505), "z" * 90)).splitlines()
    assert max(map(len, shown)) <= 115
    assert shown[3].index("^") == shown[2].index("HERE")
    assert shown[4] == "   = " + "z" * 90


def test_a_mistake_that_spans_lines_is_shown_by_its_first() -> None:
    source = Source("s.yaml", "a: [1,\n  2\n")
    shown = text(Diagnostic("s.yaml", Span(1, 4, 2, 4), "K303", "no", source=source)).splitlines()
    assert shown[3] == "  |    ^^^"


def test_without_a_text_there_is_no_place() -> None:
    item = Diagnostic("gone.yaml", Span(1, 1, 1, 1), "K001", "no such file", "look again")
    assert text(item) == "gone.yaml: error[K001]: no such file\n   = look again\n\n"


def test_json_has_one_object_a_diagnostic() -> None:
    assert json.loads(render([diagnostic("flops: x", (8, 9), "h")], "json")) == [
        {
            "file": "s.yaml",
            "line": 1,
            "col": 8,
            "end_line": 1,
            "end_col": 9,
            "code": "K201",
            "severity": "error",
            "message": "a mistake",
            "hint": "h",
        }
    ]
    assert json.loads(render([], "json")) == []


def test_github_escapes_what_would_end_the_command() -> None:
    item = Diagnostic("a,b:c.yaml", Span(2, 3, 2, 5), "K101", "50 % of\nlines", "fix", severity="warning")
    assert render([item], "github") == (
        "::warning file=a%2Cb%3Ac.yaml,line=2,col=3,endLine=2,endColumn=5,title=K101::"
        "50 %25 of%0Alines (fix)\n"
    )


def test_colour_only_adds_escapes() -> None:
    item = diagnostic("flops: x", (8, 9), "h")
    coloured = render([item], "text", colour=True)
    for escape in ("\x1b[1;31m", "\x1b[1;34m", "\x1b[0m"):
        coloured = coloured.replace(escape, "")
    assert coloured == text(item)


def test_the_error_sorts_and_speaks_of_the_first() -> None:
    later, first = diagnostic("a: b", (4, 5), "later"), diagnostic("a: b", (1, 2), "first")
    error = InvalidSuite([later, first])
    assert error.diagnostics == (first, later)
    assert (error.sentence, error.hint, error.exit_code) == ("s.yaml:1:1: a mistake", "first", 2)
