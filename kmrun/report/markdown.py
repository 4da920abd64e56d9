"""Results as Markdown for pull requests and job summaries: verdict first, what is broken, details folded.

Names and messages are others' words: they are escaped, so that no pipe ends a cell, no backtick a code span,
and no tag gets through. Everything shown comes from the view; nothing is judged here.
"""

import re
from collections.abc import Sequence

from kmrun.core.printable import printable
from kmrun.core.result import Result
from kmrun.report.view import Paragraph, View, view
from kmrun.report.words import WORDS

_MARKUP = re.compile(
    # `@` would call people, `:` and `www.` make emoji and links, `$` mathematics.
    r"(?P<entity>[&<>|`@$]|:(?=[^\s\d])|(?<=www)\.)"
    r"|(?P<sign>[\\*_\[\]~#]|^[-+=]|^\d+(?=[.)](?:\s|$)))"
)
_WORST_FIRST = ("error", "wrong", "fail", "inconclusive", "pass", "skipped")
MARK = "<!-- written by kmrun -->"
"""Starts every document, so that a later run knows what it may replace."""
_PARAGRAPHS = 20


def render(results: Sequence[Result], exit_code: int | None = None) -> str:
    """Return one document for all suites of a run; `exit_code` is None where the run did not end by itself."""
    parts = [MARK, *(part for result in results for part in _suite(result))]
    if exit_code is not None:
        parts.append(f"exit code {exit_code}")
    return "\n\n".join(parts) + "\n"


def is_markdown(content: bytes) -> bool:
    """Say whether a file is an earlier one of kmrun's, which a new one may replace."""
    return content.startswith(MARK.encode())


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is, in a paragraph, a table cell or a heading."""
    return _MARKUP.sub(_quoted, printable(text).strip())


def _quoted(found: re.Match[str]) -> str:
    if found["entity"]:
        return f"&#{ord(found['entity'])};"  # text and nothing else, in HTML and Markdown alike
    sign = found["sign"]
    return f"&#{ord(sign[0])};{sign[1:]}" if sign.isdigit() else f"\\{sign}"


def _suite(result: Result) -> list[str]:
    shown = view(result)
    parts = [f"### {escaped(shown.suite)}: {_verdict(result, shown)}", escaped(shown.summary)]
    if shown.rows:
        parts.append(_table(shown))
    broken = [paragraph for paragraph in shown.paragraphs if paragraph.word != WORDS["skipped"]]
    parts += [_paragraph(paragraph) for paragraph in broken[:_PARAGRAPHS]]
    if len(broken) > _PARAGRAPHS:
        parts.append(f"and {len(broken) - _PARAGRAPHS} more: the result document has every one of them")
    return [*parts, _details(shown, broken[:_PARAGRAPHS])]


def _verdict(result: Result, shown: View) -> str:
    words = {row.word for row in shown.rows}
    worst = next((WORDS[name] for name in _WORST_FIRST if WORDS[name] in words), "nothing measured")
    return f"**{worst}**" if result.complete else f"**{worst}**, partial: the run was interrupted"


def _table(shown: View) -> str:
    lines = [
        _row([escaped(column.name) for column in shown.columns]),
        _row([":--" if column.left else "--:" for column in shown.columns]),
    ]
    for row in shown.rows:
        cells = [escaped(cell) for cell in row.cells]
        if row.word != WORDS["pass"]:
            cells[-1] = f"**{cells[-1]}**"
        lines.append(_row(cells))
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _paragraph(paragraph: Paragraph) -> str:
    head = f"- **{paragraph.word}** {escaped(paragraph.case_id)}"
    if paragraph.place:
        head += f" · {escaped(paragraph.place)}"
    return "\n".join([head, *(f"  {escaped(sentence)}" for sentence in paragraph.sentences)])


def _details(shown: View, broken: Sequence[Paragraph]) -> str:
    lines = ["<details><summary>how it was measured, and how to repeat it</summary>", ""]
    lines += [f"- {escaped(' · '.join(shown.device))}"]
    lines += [f"- ceilings: {escaped(' · '.join(shown.ceilings))}"] if shown.ceilings else []
    lines += [f"- {escaped(note)}" for note in shown.notes]
    for paragraph in broken:
        code = [*paragraph.detail, *([paragraph.repro] if paragraph.repro else [])]
        if code:
            lines += ["", *_fenced(code)]
    return "\n".join([*lines, "", "</details>"])


def _fenced(code: Sequence[str]) -> list[str]:
    """Return a code block whose fence is longer than any that stands in it."""
    ticks = max((len(run) for line in code for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, ticks + 1)
    return [f"{fence}text", *code, fence]
