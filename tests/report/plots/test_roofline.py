import itertools
import random
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmrun.report.plots.roofline import NARROW, WIDE, layout, roofline
from kmrun.report.roof_words import description
from kmrun.report.roofs import Picture, Point, Roofs

ROOFS = (
    Roofs("published", 3.35e12, (("bf16 tensor", 989e12), ("fp32", 67e12))),
    Roofs("held", 3.35e12, (("", 850e12),)),
    Roofs("measured", 3.05e12, (("bf16", 742e12), ("fp32", 52e12))),
    Roofs("cache", 9e12, ()),
)


def point(number, intensity, rate, **changes):
    fields = {
        "number": number,
        "name": f"k[s={number}]",
        "label": f"s={number * 1024} bf16 causal",
        "kernel": "k",
        "series": number % 5,
        "intensity": intensity,
        "rate": rate,
        "word": "pass",
        "share": 0.5,
        "share_of": "roof",
    }
    return Point(**(fields | changes))


def scattered(count, seed, spread=1.0):
    chance = random.Random(seed)
    return tuple(
        point(number, 10 ** chance.uniform(0, 3 * spread), 10 ** chance.uniform(12, 12 + 2.5 * spread))
        for number in range(1, count + 1)
    )


def clusters(count):
    return tuple(
        point(number, 100 * (1 + number * 1e-4), 5e14 * (1 - number * 1e-3)) for number in range(1, count + 1)
    )


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize(
    "points", [scattered(40, 1), scattered(40, 2, 0.2), clusters(40), scattered(9, 3), ()]
)
def test_no_label_overlaps_another_or_leaves_the_frame(points, size):
    found = layout(Picture(ROOFS, points), size)
    for one, other in itertools.combinations(found.boxes, 2):
        assert not any(box.meets(each) for box in one for each in other)
    assert all(box.within(found.frame.box) for boxes in found.boxes for box in boxes)
    assert len(found.points) == len(points)


def test_scattered_points_nearly_all_find_a_label():
    assert (
        sum(text.startswith("<text") for text in layout(Picture(ROOFS, scattered(40, 1)), WIDE).labels) >= 36
    )


def test_few_points_carry_names_many_carry_numbers():
    few, many = (layout(Picture(ROOFS, scattered(count, 3)), WIDE) for count in (6, 30))
    assert all("bf16 causal" in text for text in few.labels if text.startswith("<text"))
    assert not any("bf16" in text for text in many.labels)


def test_the_broken_case_of_a_crowd_is_the_one_that_is_labelled():
    crowd = [*clusters(300)[:-1], replace(clusters(300)[-1], word="FAIL")]
    found = layout(Picture(ROOFS, tuple(crowd)), NARROW)
    assert any(">300</text>" in text for text in found.labels)


@given(
    st.lists(st.tuples(st.floats(1e-4, 1e6), st.floats(1e3, 1e18)), max_size=8),
    st.floats(1e6, 1e14),
    st.lists(st.floats(1e9, 1e17), max_size=4),
)
def test_whatever_was_measured_can_be_drawn(cases, bandwidth, peaks):
    named = tuple(
        sorted(((f"p{index}", value) for index, value in enumerate(peaks)), key=lambda pair: -pair[1])
    )
    points = tuple(point(index, *case) for index, case in enumerate(cases, 1))
    shown = Picture((Roofs("published", bandwidth, named),), points)
    found = layout(shown, WIDE)
    box = found.frame.box
    for each in points:
        assert box.left <= found.frame.across.at(each.intensity) <= box.right
    ElementTree.fromstring(roofline("r", shown))


@pytest.mark.parametrize(
    ("roofs", "drawn", "told"),
    [
        ((), 0, []),
        ((Roofs("published", None, (("x", 1e12),)),), 1, ["1 TFLOP/s x"]),
        ((Roofs("cache", 1e11, ()),), 1, ["100 GB/s"]),
    ],
)
@pytest.mark.parametrize("points", [scattered(3, 1), ()])
def test_roofs_of_which_half_is_unknown(roofs, drawn, told, points):
    svg = ElementTree.fromstring(roofline("r", Picture(roofs, points)))
    classes = [item.attrib.get("class", "") for item in svg.iter()]
    (group,) = [item for item in svg.iter() if item.attrib.get("class") == "roofs"]
    assert len([item for item in group if item.attrib["d"].count("M") == 1]) == drawn
    assert len([name for name in classes if name.startswith("mark")]) == len(points)
    texts = [item.text for item in svg.iter() if item.attrib.get("class", "").startswith("roof-label ")]
    assert texts == told


def test_a_mark_that_stands_alone_is_numbered_before_those_of_a_crowd():
    alone = point(200, 1.0, 1e12)
    found = layout(Picture(ROOFS, (*clusters(150), alone)), WIDE)
    assert found.labelled < 151
    assert any(">200</text>" in text for text in found.labels)


def test_it_reads_aloud():
    said = description(Picture(ROOFS, (point(1, 10, 1e13), point(2, 20, 1e13, share=0.9, name="best"))))
    assert said == (
        "Speed in FLOP/s over arithmetic intensity in flop/byte, both logarithmic. "
        "Roofs: published peaks: 3.35 TB/s, 989 TFLOP/s bf16 tensor, 67 TFLOP/s fp32; "
        "at the clocks held: 3.35 TB/s, 850 TFLOP/s; "
        "measured here: 3.05 TB/s, 742 TFLOP/s bf16, 52 TFLOP/s fp32; cache, measured here: 9 TB/s. "
        "2 cases are marked; the table below has every one. Nearest to its roof: best, 90 % of the roof."
    )
    svg = ElementTree.fromstring(roofline("name", Picture(ROOFS, ())))
    assert svg.attrib["role"] == "img"
    ids = {item.attrib["id"]: item.text for item in svg.iter() if "id" in item.attrib}
    assert svg.attrib["aria-labelledby"].split() == list(ids)
    assert list(ids.values()) == ["Roofline", description(Picture(ROOFS, ()))]


def test_what_others_wrote_stays_text():
    hostile = point(1, 10, 1e13, name='</title><script>"&\x00\u202e', label="<b>", word="FAIL")
    svg = ElementTree.fromstring(roofline("r", Picture(ROOFS, (hostile,))))
    assert {item.tag.rpartition("}")[2] for item in svg.iter()} == {
        "svg", "title", "desc", "path", "g", "text", "circle",
    }  # fmt: skip
    titles = [item.text for item in svg.iter() if item.tag.endswith("title") and item.text]
    assert any('</title><script>"&\ufffd\ufffd' in text for text in titles)
