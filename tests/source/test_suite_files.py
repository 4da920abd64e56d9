"""Words of a command line to files: what is no file is told, and nothing is opened that could wait for ever."""

import os
import socket
from pathlib import Path

import pytest

from kmrun.source.diagnostics import Diagnostic
from kmrun.source.suite_files import search

SUITE = "kmrun: 1\n"


def only_mistake(word: str) -> Diagnostic:
    """Return what is wrong with the one word."""
    found, wrong = search([word])
    assert found == []
    (mistake,) = wrong
    return mistake


def test_an_empty_word_is_not_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text(SUITE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert only_mistake("").code == "K001"
    assert [shown for _, shown in search(["."])[0]] == ["a.yaml"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_fifo_in_a_folder_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "q.yaml")
    assert only_mistake(str(tmp_path)).code == "K002"
    (tmp_path / "r.yaml").write_text(SUITE, encoding="utf-8")
    (tmp_path / "link.yaml").symlink_to("q.yaml")
    assert [path.name for path, _ in search([str(tmp_path)])[0]] == ["r.yaml"]


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs sockets in the file system")
def test_a_socket_and_a_folder_with_the_name_of_a_suite_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path has to be short
    (tmp_path / "folder.yaml").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s.yaml")
        assert only_mistake(str(tmp_path)).code == "K002"


def test_a_link_to_itself_is_not_told_to_be_a_slip_of_its_own_name(tmp_path: Path) -> None:
    loop = tmp_path / "loop.yaml"
    loop.symlink_to("loop.yaml")
    mistake = only_mistake(str(loop))
    assert (mistake.code, mistake.message, mistake.hint) == ("K001", "too many levels of symbolic links", "")


def test_a_link_that_leads_nowhere_says_where_it_leads(tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to("gone.yaml")
    mistake = only_mistake(str(link))
    assert (mistake.code, mistake.hint) == ("K001", "")
    assert mistake.message == "a symbolic link to 'gone.yaml', which is not there"
