import json
import os
import stat

import pytest

from kmrun.core.result import CaseResult
from kmrun.errors import InvalidInput, UsageError
from kmrun.store import results
from kmrun.store.results import ResultFile, parse, read, render
from support.cases import clause, make_case, make_found
from support.results import make_entry, make_result


def test_what_is_written_is_read_back(tmp_path):
    result = make_result(make_entry(make_case(clauses=(clause("max_ms", 1.0),))), make_entry())
    path = tmp_path / "out.json"
    ResultFile(path).write([result])
    assert read(path) == [result]


def test_several_documents_are_an_array(tmp_path):
    path = tmp_path / "out.json"
    ResultFile(path, several=True).write([make_result(), make_result(complete=False)])
    assert [document["complete"] for document in json.loads(path.read_text())] == [True, False]
    assert [result.complete for result in read(path)] == [True, False]
    ResultFile(path, several=True).write([])
    assert read(path) == []


def test_nothing_is_left_beside_the_file(tmp_path):
    target = ResultFile(tmp_path / "out.json")
    assert list(tmp_path.iterdir()) == []
    target.write([make_result()])
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.json"]


def test_cases_are_turned_into_text_once(tmp_path, monkeypatch):
    turned = []
    original = results.to_plain
    monkeypatch.setattr(results, "to_plain", lambda value: (turned.append(type(value)), original(value))[1])
    target, entries = ResultFile(tmp_path / "out.json"), [make_entry(), make_entry(), make_entry()]
    for count in (1, 2, 3):
        target.write([make_result(*entries[:count], complete=count == 3)])
    assert turned.count(CaseResult) == 3
    assert read(tmp_path / "out.json") == [make_result(*entries)]


def test_an_existing_file_stays_until_the_first_document_is_whole(tmp_path):
    path = tmp_path / "out.json"
    path.write_text('{"kmrun_result": 1}')
    target = ResultFile(path)
    assert path.read_text() == '{"kmrun_result": 1}'
    with pytest.raises(ValueError, match="JSON compliant"):
        target.write([make_result(wall_s=float("nan"))])
    assert path.read_text() == '{"kmrun_result": 1}'
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.json"]


def test_the_file_keeps_its_mode_and_a_new_one_follows_the_umask(tmp_path):
    path = tmp_path / "out.json"
    old = os.umask(0o027)
    try:
        ResultFile(path).write([make_result()])
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o600)
    ResultFile(path).write([make_result()])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_symbolic_link_is_followed(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    ResultFile(link).write([make_result()])
    assert link.is_symlink()
    assert read(real)


def test_targets_that_cannot_be_written_are_refused_before_measuring(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="is a directory"):
        ResultFile(tmp_path)
    with pytest.raises(UsageError, match="no such file or directory"):
        ResultFile(tmp_path / "missing" / "out.json")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="no regular file"):
        ResultFile(pipe)
    locked = tmp_path / "locked.json"
    locked.write_text("{}")
    # Root may write anything, so the answer of the operating system is given for it.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UsageError, match="read-only") as caught:
        ResultFile(locked)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "content",
    [b"kmrun: 1\nsuite: s\n", b"def f(x): return x\n", b"{}", b"[{}]", b'{"kmrun": 1}', b"\xff\xfe", b"[1]"],
)
def test_what_is_no_result_is_never_overwritten(tmp_path, content):
    path = tmp_path / "mine"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        ResultFile(path)
    assert caught.value.sentence == f"--save {path}: is there already, and is no result of kmrun"
    assert caught.value.hint == "name another file, or take that one away"
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", ["", "\n", '{"kmrun_result": 99}', "[]", render([make_result()])])
def test_an_empty_file_and_an_earlier_result_are_replaced(tmp_path, content):
    path = tmp_path / "out.json"
    path.write_text(content)
    ResultFile(path).write([make_result()])
    assert read(path) == [make_result()]


def test_names_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(UsageError, match="file name too long"):
        ResultFile(tmp_path / ("x" * 300))
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(UsageError, match=r"symbolic links|lead to themselves"):
        ResultFile(loop)


def test_the_longest_name_that_can_be_is_written(tmp_path):
    path = tmp_path / ("x" * 255)
    ResultFile(path).write([make_result()])
    assert read(path)


def test_text_that_is_no_unicode_is_spelled_out(tmp_path):
    path = tmp_path / "out.json"
    ResultFile(path).write([make_result(make_entry(make_case(id="odd[\udcff,\x00,\x1b,😀]")))])
    (result,) = read(path)
    assert result.cases[0].id == "odd[\\udcff,\x00,\x1b,😀]"


def test_numbers_stand_on_one_line_and_text_is_untouched():
    entry = make_entry(make_case(id="odd[\n1,\n2]"), make_found(samples_ns=(1e6, 2e6, 3e6)))
    text = render([make_result(entry)])
    assert '"samples_ms": [1.0, 2.0, 3.0],' in text
    assert json.loads(text)["cases"][0]["id"] == "odd[\n1,\n2]"
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "no result document"),
        ("{}", "no result document"),
        ('{"kmrun_result": true}', "no result document"),
        ('{"kmrun_result": 2}', "result format 2, this kmrun reads 1"),
        ('{"kmrun_result": 0}', "result format 0, this kmrun reads 1"),
        ('{"kmrun_result": -5}', "result format -5, this kmrun reads 1"),
        ('{"kmrun_result": 1}', "damaged result document: complete: field required"),
    ],
)
def test_what_is_no_document_is_refused(tmp_path, text, said):
    path = tmp_path / "in.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=said):
        read(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no such file"):
        read(tmp_path / "none.json")


def test_an_unknown_key_is_damage():
    plain = json.loads(render([make_result()]))
    plain["cases"][0]["sped"] = 1
    with pytest.raises(InvalidInput, match=r"cases\.0\.sped: extra inputs"):
        parse(plain, "x.json")


def test_a_pair_of_one_is_damage():
    plain = json.loads(render([make_result()]))
    plain["cases"][0]["versus"]["reference"]["pairs_ms"][0] = [1.0]
    with pytest.raises(
        InvalidInput, match=r"damaged result document: cases\.0\.versus\.reference\.pairs_ms\.0"
    ):
        parse(plain, "x.json")
