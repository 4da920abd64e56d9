import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.report.shell import shell_word


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("suites/add.yaml", "suites/add.yaml"),
        ("add[s=1]", "'add[s=1]'"),
        ("", "''"),
        ("größe.yaml", "'größe.yaml'"),
        ("bad\udcff/k.yaml", r"$'bad\xff/k.yaml'"),
        ("it's\x1b[31m", r"$'it\'s\x1b[31m'"),
        ("a\nb\\", r"$'a\nb\\'"),
    ],
)
def test_words(word, want):
    assert shell_word(word) == want


@pytest.mark.skipif(sys.platform == "win32", reason="asks bash")
@given(st.lists(st.binary(min_size=1, max_size=12).map(lambda raw: raw.replace(b"\0", b"x")), max_size=8))
def test_a_shell_reads_back_what_was_meant(raw):
    words = [os.fsdecode(one) for one in raw]
    line = "printf '%s\\0' " + " ".join(shell_word(word) for word in words)
    assert all(char.isprintable() for char in line)
    if words:
        told = subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout
        assert told == b"".join(one + b"\0" for one in raw)
