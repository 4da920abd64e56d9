"""Results as a JUnit report, the part of the format that Jenkins (xunit and junit plug-ins) and GitLab both take.

One `testsuite` a suite, one `testcase` a case. A case's place stands in the text of its failure: attributes
`file` and `line` of a test case are not in Jenkins' schema, which refuses a report for one unknown attribute.
"""

import datetime
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from kmrun.core.printable import printable
from kmrun.core.result import CaseResult, Reason, Result
from kmrun.report.places import place_text
from kmrun.report.view import repro
from kmrun.report.words import word_of

_ELEMENTS = {"fail": "failure", "error": "error", "inconclusive": "error", "skipped": "skipped"}
"""What a verdict is in JUnit. It knows no `undecided`: as the exit code it is no success unless allowed."""

THE_RUN = "the run itself"
"""The name of the test case that stands in a partial report for the cases that are missing."""


def render(results: Sequence[Result], *, allow_inconclusive: bool = False) -> str:
    """Return the report as an XML document.

    `allow_inconclusive` turns what is undecided from errors into skipped cases, as it does with the exit code.
    """
    root = ET.Element("testsuites")
    for result in results:
        root.append(_suite(result, allow_inconclusive))
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def is_junit(content: bytes) -> bool:
    """Say whether a file's content is a JUnit report, which a new one may replace."""
    head = content[:2000]
    return b"<testsuites" in head or b"<testsuite " in head


def _suite(result: Result, allow_inconclusive: bool) -> ET.Element:
    cases = [_case(result, case, allow_inconclusive) for case in result.cases]
    if not result.complete:
        cases.append(_interrupted(result))
    found = [child.tag for case in cases for child in case]
    suite = ET.Element(
        "testsuite",
        name=printable(result.suite.name),
        tests=str(len(cases)),
        failures=str(found.count("failure")),
        errors=str(found.count("error")),
        skipped=str(found.count("skipped")),
        time=f"{max(result.wall_s, 0.0):.3f}",
        timestamp=_timestamp(result.started),
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(result):
        ET.SubElement(properties, "property", name=name, value=printable(value))
    suite.extend(cases)
    return suite


def _case(result: Result, case: CaseResult, allow_inconclusive: bool) -> ET.Element:
    element = ET.Element(
        "testcase",
        name=printable(case.id),
        classname=printable(f"{result.suite.name}.{case.kernel}"),
        time=f"{max(case.wall_s or 0.0, 0.0):.3f}",
    )
    tag = _ELEMENTS.get(case.verdict)
    if tag is None:
        return element
    if case.verdict == "inconclusive" and allow_inconclusive:
        tag = "skipped"
    leading = [reason for reason in case.reasons if reason.outcome == case.verdict] or list(case.reasons)
    sentences = "; ".join(dict.fromkeys(reason.sentence for reason in leading))
    word = word_of(case)
    outcome = ET.SubElement(
        element,
        tag,
        type=printable(leading[0].code if leading else case.verdict),
        message=printable(f"{word}: {sentences}" if sentences else word),
    )
    outcome.text = "\n" + "\n".join(_told(result, case)) + "\n"
    return element


def _told(result: Result, case: CaseResult) -> list[str]:
    """Return the lines of a failure: where, why, what came with it, and the command that repeats it."""
    lines = [place_text(case)] if place_text(case) else []
    for reason in case.reasons:
        lines += [reason.sentence, *(f"  {line}" for line in _detail(reason))]
    for clause in case.clauses:
        if clause.verdict in ("fail", "inconclusive") and clause.file and clause.kind != "correct":
            lines.append(f"{clause.file}:{clause.line}: {clause.kind}: {clause.verdict}")
    if case.verdict != "skipped":
        lines.append(repro(result, case.id))
    return [printable(line) for line in lines]


def _detail(reason: Reason) -> list[str]:
    return (reason.detail or "").splitlines()


def _interrupted(result: Result) -> ET.Element:
    """Return a case that is no success: a report of half a run must not look like a whole one."""
    element = ET.Element(
        "testcase", name=THE_RUN, classname=printable(f"{result.suite.name}.run"), time="0.000"
    )
    message = f"partial: {len(result.cases)} cases were measured before the run ended"
    ET.SubElement(element, "error", type="interrupted", message=message)
    return element


def _properties(result: Result) -> list[tuple[str, str]]:
    device, environment = result.device, result.environment
    said = [
        ("kmrun.suite", result.suite.file or ""),
        ("kmrun.suite_digest", result.suite.digest or ""),
        ("kmrun.complete", str(result.complete).lower()),
        ("kmrun.device", device.name),
        ("kmrun.card", device.card or ""),
        ("kmrun.seed", "" if result.seed is None else str(result.seed)),
        *((f"kmrun.{key}", str(environment.get(key) or "")) for key in ("kmrun", "torch", "driver")),
    ]
    return [(name, value) for name, value in said if value]


def _timestamp(started: str) -> str:
    """Return a time without zone, in UTC, as Jenkins and Ant want it."""
    return datetime.datetime.fromisoformat(started).astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
