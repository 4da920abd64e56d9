"""Lines that are laid out for 100 columns, on narrower terminals."""

from hypothesis import given
from hypothesis import strategies as st

from kmrun.report.fitting import facts_wrapped, fitted, wrapped

WORDS = st.lists(
    st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=12), max_size=20
)


def test_what_follows_stands_under_the_second_column() -> None:
    assert fitted(["  card    a name of several words that goes on"], 30) == [
        "  card    a name of several",
        "          words that goes on",
    ]


def test_columns_close_up_before_they_leave_too_little() -> None:
    line = "  memory in use (nvml)                450 of 15360 MiB"
    assert fitted([line], 42) == ["  memory in use (nvml)  450 of 15360 MiB"]
    assert fitted([line], 30) == ["  memory in use (nvml)  450 of", "    15360 MiB"]


def test_a_rule_is_cut() -> None:
    assert fitted(["  " + "-" * 48 + " " + "-" * 14], 20) == ["  " + "-" * 18]


def test_what_fits_stays_as_it_is() -> None:
    lines = ["", "  a      b", "cpu: x"]
    assert fitted(lines, 20) == lines


@given(WORDS, st.sampled_from([" ", "  ", "      "]), st.integers(20, 120))
def test_no_word_is_lost_and_no_line_too_long(words: list[str], gap: str, width: int) -> None:
    lines = fitted(["  " + gap.join(words)], width)
    assert all(len(line) <= width for line in lines)
    assert " ".join(lines).split() == words


def test_facts_are_parted_behind_a_dot_and_not_inside():
    assert facts_wrapped("q4: 42 GB \N{MIDDLE DOT} 4k context \N{MIDDLE DOT} batch 1", 30) == [
        "q4: 42 GB \N{MIDDLE DOT} 4k context \N{MIDDLE DOT}",
        "  batch 1",
    ]
    assert facts_wrapped("batch 1 \N{MIDDLE DOT} 4k", 30) == ["batch 1 \N{MIDDLE DOT} 4k"]
    assert facts_wrapped("one fact of more than half the width \N{MIDDLE DOT} b", 20) == [
        "one fact of more",
        "  than half the",
        "  width \N{MIDDLE DOT} b",
    ]


def test_no_number_is_cut_off_its_unit():
    told = "held: at most 3.0 % slower (95 %); 12.5 ms, 17 GB/s or 276 GFLOP/s in 8 cases"
    for width in range(20, 90):
        lines = wrapped(told, width, rest="  ")
        assert max(map(len, lines)) <= width
        assert " ".join(line.strip() for line in lines) == told
        assert not any(line.split()[0] in {"%", "%);", "ms,", "GB/s", "GFLOP/s"} for line in lines)
    assert wrapped("3 processes", 9) == ["3", "processes"]
