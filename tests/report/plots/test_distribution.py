from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from kmrun.core.statistics import median
from kmrun.report.plots.distribution import WIDTH, Span, counts_of, distribution, span_of

TIMES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=60)


@given(TIMES)
def test_every_sample_is_in_one_bin_and_the_axis_holds_the_median(samples):
    middle = median(samples)
    span = span_of([(samples, middle)])
    assert 0.5 <= span.low < 1 < span.high <= 2
    assert sum(counts_of(samples, middle, span)) == len(samples)
    root = ElementTree.fromstring(distribution(samples, middle, (min(samples), max(samples)), span, "said"))
    assert root[0].text == "said"
    assert root.attrib["role"] == "img"


def test_samples_beyond_the_axis_count_at_its_ends():
    assert counts_of([0.1, 1.0, 50.0], 1.0, Span(0.9, 1.1), bins=3) == [1, 1, 1]


def test_rows_share_an_axis_that_fits_all_of_them():
    narrow, wide = [1.0, 1.01, 0.99], [1.0, 1.6, 0.8]
    span = span_of([(narrow, 1.0), (wide, 1.0), ([], 1.0), ([3.0], 0.0)])
    assert span.low <= 0.81
    assert span.high >= 1.58
    assert span_of([]).text == "\u22122 % to +2 % about the median"


def test_the_outline_is_one_path_within_the_picture():
    text = distribution([1.0] * 9 + [1.02], 1.0, None, Span(0.98, 1.04), "said")
    bars = next(item for item in ElementTree.fromstring(text) if item.attrib.get("class") == "bars")
    assert bars.attrib["d"].startswith("M0 23H")
    assert bars.attrib["d"].endswith(f"H{WIDTH:g}V23z")
    assert bars.attrib["d"].count("V") == 5
    assert "band" not in text


def test_nothing_to_show_is_no_picture():
    assert distribution([], 1.0, None, Span(0.9, 1.1), "said") == ""
    assert distribution([1.0], 0.0, None, Span(0.9, 1.1), "said") == ""
