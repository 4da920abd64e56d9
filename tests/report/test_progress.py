import io

import pytest

from kmrun.report.progress import Line, Progress


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def last(stream):
    return stream.getvalue().rsplit("\r\x1b[K", 1)[1]


def test_a_case_is_shown_as_it_begins(clock):
    stream = io.StringIO()
    Line(stream, 12, clock).start("sdpa s=4096 bf16")
    assert last(stream) == "1/12  sdpa s=4096 bf16"


def test_a_name_cannot_move_the_cursor(clock):
    stream = io.StringIO()
    Line(stream, 1, clock).start("a\r\x1b[2Jb")
    assert last(stream) == "1/1  a \ufffd[2Jb"


def test_without_cases_there_is_no_counter(clock):
    stream = io.StringIO()
    line = Line(stream, 0, clock)
    line.start("starting the sides")
    assert last(stream) == "starting the sides"
    line.close()
    assert last(stream) == ""


def test_phases_and_the_time_left(clock):
    stream = io.StringIO()
    line = Line(stream, 4, clock)
    line.start("a")
    clock.now += 3
    line.finish()
    line.start("b")
    clock.now += 1
    line.phase("timing 340 samples")
    assert last(stream) == "2/4  b · timing 340 samples · about 8.0 s left"
    clock.now += 10
    line.phase("slow")
    assert last(stream) == "2/4  b · slow · about 6.0 s left"


def test_nothing_is_promised_before_a_case_was_measured(clock):
    line = Line(io.StringIO(), 3, clock)
    line.start("a")
    assert line.left_s() is None


def test_showing_is_limited(clock):
    stream = io.StringIO()
    line = Line(stream, 2, clock)
    line.start("a")
    before = stream.getvalue()
    for _ in range(50):
        line.phase("x")
    assert stream.getvalue() == before
    clock.now += 0.2
    line.phase("x")
    assert stream.getvalue() != before


def test_the_line_is_cut_to_the_terminal_and_taken_away(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    stream = io.StringIO()
    line = Line(stream, 2, clock)
    line.start("x" * 80)
    assert len(last(stream)) == 29
    line.close()
    assert last(stream) == ""


def test_a_line_that_never_spoke_takes_nothing_away(clock):
    stream = io.StringIO()
    Line(stream, 2, clock).close()
    assert stream.getvalue() == ""


def test_silence_is_the_default(capsys):
    silent = Progress()
    silent.start("a")
    silent.phase("b")
    silent.finish()
    silent.close()
    assert capsys.readouterr() == ("", "")
