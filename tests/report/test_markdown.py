from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kmrun.core.measurement import Finding
from kmrun.core.printable import printable
from kmrun.report.markdown import escaped, is_markdown, render
from kmrun.report.view import view
from support.cases import clause, make_case, make_found
from support.results import make_entry, make_result

SLOW = clause("max_ms", 1.0, place=("kernels", 0, "contract", 1))
HOSTILE = "a|b `c` <script>d</script> *e* [f](http://g) @h ![i](j) ~~k~~ &amp; :tada: www.l.mn"


class Page(HTMLParser):
    """What a browser would show: the cells of the tables, the texts of code blocks, the tags."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.rows, self.texts = [], [], []
        self.feed(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        self.texts.append(data)
        if self.rows and self.rows[-1] and "details" not in self.tags:
            self.rows[-1][-1] += data.strip("\n")


def entry(name, *findings, **changes):
    return make_entry(make_case(id=name, **changes), make_found(findings=findings))


def test_the_verdict_stands_first_and_the_details_are_folded():
    text = render([make_result(entry("add[n=1]", clauses=(SLOW,)), entry("add[n=2]"))], 1)
    lines = text.splitlines()
    assert lines[2] == "### adding: **FAIL**"
    assert lines[4] == "2 cases in 12 s: 1 pass, 1 fail"
    assert "- **FAIL** add\\[n=1\\] · suites/add.yaml:7" in lines
    assert lines.index("<details><summary>how it was measured, and how to repeat it</summary>") > lines.index(
        "  max\\_ms 1: 20.0 ms (20.0 to 20.0)"
    )
    assert "kmrun suites/add.yaml -k 'add[n=1]' --seed 7" in lines
    assert lines[-1] == "exit code 1"


def test_the_table_is_that_of_the_scorecard():
    result = make_result(
        entry("add[n=1]", axes={"n": 1}, shown_axes=("n",)),
        entry("add[n=2]", axes={"n": 2}, shown_axes=("n",)),
    )
    shown, page = view(result), Page(render([result]))
    assert page.rows == [[column.name for column in shown.columns], *([*row.cells] for row in shown.rows)]


def test_hostile_names_are_text():
    broken = Finding("code", HOSTILE, "kernel", "error", detail="```\n</details>\n````")
    page = Page(render([make_result(entry(HOSTILE, broken, kernel=HOSTILE))]))
    assert not {"script", "em", "a", "img", "s", "del"} & set(page.tags)
    assert page.rows[1][0] == HOSTILE
    assert "".join(page.texts).count(HOSTILE) == 4  # cell, head, sentence, command
    assert any("```\n</details>\n````\n" in text for text in page.texts)


@given(st.text(min_size=1))
def test_any_text_is_shown_as_it_is(text):
    page = Page(f"| {escaped(text)} | b |\n| - | - |\n| {escaped(text)} | c |")
    shown = " ".join(printable(text).split(" ")).strip()
    assert page.rows == [[shown, "b"], [shown, "c"]]
    assert set(page.tags) == {"table", "thead", "tbody", "tr", "th", "td"}


def test_a_partial_run_says_so():
    text = render([make_result(complete=False)])
    assert "**pass**, partial: the run was interrupted" in text


def test_figures_stay_readable_in_the_text_itself():
    assert [escaped(text) for text in ("2.33 us", "1.0x", "-0.5 %", "1. one", "2)")] == [
        *("2.33 us", "1.0x", "\\-0.5 %", "&#49;. one", "&#50;)")
    ]


def test_an_earlier_one_is_recognised():
    assert is_markdown(render([]).encode())
    assert not is_markdown(b"# My notes\n")
