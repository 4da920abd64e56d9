from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from kmrun.report.numbers import readable
from kmrun.report.plots.lines import Series, lines

POINTS = st.lists(
    st.tuples(st.floats(0.5, 1e9), st.floats(1e-9, 1e6)), min_size=1, max_size=12, unique_by=lambda p: p[0]
)


@given(st.lists(POINTS, min_size=1, max_size=4), st.booleans())
def test_any_sizes_and_values_can_be_drawn(found, logarithmic):
    series = [Series(f"s{index}", index, tuple(points)) for index, points in enumerate(found)]
    root = ElementTree.fromstring(lines("l", "title", series, "n", "time", readable, logarithmic=logarithmic))
    marks = [item for item in root.iter() if item.attrib.get("class", "").startswith("mark")]
    assert len(marks) == sum(map(len, found))


def test_ticks_are_the_sizes_that_were_measured():
    series = [Series("mine", 0, ((1024, 2.0), (4096, 8.0), (2048, 4.0)), ("a", "c", "b"))]
    root = ElementTree.fromstring(lines("l", "t", series, "n", "time", readable, logarithmic=True))
    texts = [item.text for item in root.iter() if item.tag.endswith("text")]
    assert [text for text in texts if text in ("1024", "2048", "4096")] == ["1024", "2048", "4096"]
    assert "n (log)" in texts
    assert "time (log)" in texts


def test_shares_start_at_zero_and_sizes_may_too():
    series = [Series("mine", 0, ((0.0, 20.0), (1.0, 80.0), (2.0, 60.0)))]
    root = ElementTree.fromstring(lines("l", "t", series, "n", "% of roof", readable, logarithmic=False))
    texts = [item.text for item in root.iter() if item.tag.endswith("text")]
    assert texts[:3] == ["0", "1", "2"]
    assert {"0", "20", "40", "60", "80"} <= set(texts[3:])


def test_one_size_alone_can_be_drawn():
    for at, value, logarithmic in ((7.0, 1.0, True), (0.0, 0.0, False)):
        series = [Series("a", 0, ((at, value),), ("the only one",))]
        root = ElementTree.fromstring(lines("l", "t", series, "n", "s", readable, logarithmic=logarithmic))
        texts = [item.text for item in root.iter() if item.tag.endswith("text")]
        assert f"{at:.0f}" in texts
        assert len([item for item in root.iter() if item.attrib.get("class", "").startswith("mark")]) == 1
        assert "the only one" in [item.text for item in root.iter() if item.tag.endswith("title")]


def test_hundreds_of_sizes_are_a_line_without_marks():
    series = [Series("mine", 0, tuple((float(n), float(n)) for n in range(1, 400)))]
    text = lines("l", "t", series, "n", "s", readable, logarithmic=True)
    assert 'class="mark' not in text
    assert text.count('class="line s0"') == 1
