from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from kmrun.report.plots.strip import Stretch, Track, strip

VALUES = st.none() | st.floats(-50, 5000)


@given(st.lists(VALUES, min_size=1, max_size=30), st.lists(VALUES, min_size=1, max_size=30))
def test_any_readings_can_be_drawn(clock, power):
    tracks = [
        Track(name, "u", tuple((0.1 * at, value) for at, value in enumerate(found)))
        for name, found in (("clock", clock), ("power", power))
    ]
    text = strip("s", tracks, [Stretch("case", 0.0, 3.0)])
    shown = [track.name for track in tracks if any(value is not None for _, value in track.readings)]
    if not shown:
        assert text == ""
        return
    titles = [
        item.text for item in ElementTree.fromstring(text).iter() if item.attrib.get("class") == "axis-title"
    ]
    assert titles == [*(f"{name}, u" for name in shown), "time in the cases, s"]


@given(st.floats(1, 1e5), st.floats(0, 3))
def test_every_scale_can_be_read(level, span):
    track = Track("power", "W", ((0.0, level), (1.0, level * (1 + span))))
    root = ElementTree.fromstring(strip("s", [track], [Stretch("a", 0.0, 1.0)]))
    ticks = [
        item.text
        for group in root.iter()
        if group.attrib.get("class") == "ticks"
        for item in group
        if item.attrib.get("text-anchor") == "end"
    ]
    assert 2 <= len(ticks) <= 6
    assert len(set(ticks)) == len(ticks)


def test_a_line_breaks_where_nothing_was_read():
    track = Track("clock", "MHz", ((0.0, 100.0), (1.0, 110.0), (2.0, None), (3.0, 90.0), (4.0, 95.0)))
    root = ElementTree.fromstring(strip("s", [track], [Stretch("a", 0.0, 2.0), Stretch("b", 2.0, 4.0)]))
    (line,) = [item for item in root.iter() if item.attrib.get("class", "").startswith("line")]
    assert line.attrib["d"].count("M") == 2
    hover = [item[0].text for item in root.iter() if item.tag.endswith("rect")]
    assert hover == ["a", "b"]
    described = next(item.text for item in root.iter() if item.tag.endswith("desc"))
    assert described == "Over 4 s and 2 cases: clock 90 to 110 MHz."


def test_without_stretches_there_is_no_picture():
    assert strip("s", [Track("clock", "MHz", ((0.0, 1.0),))], []) == ""
