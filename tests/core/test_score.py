import dataclasses
import math

import pytest

from kmrun.core.case import Argument, Output, Peak
from kmrun.core.measurement import Bandwidth, Ceilings, Finding
from kmrun.core.score import Roofs, score, written_bytes
from support.cases import CEILINGS, CPU, GPU, make_case, make_found, make_rival

H100 = Roofs(bandwidth=3.35e12, compute=66.9e12, compute_max=72e12, vector_fp32=66.9e12, card="h100-sxm")


def steady(seconds: float, count: int = 21) -> tuple[float, ...]:
    return tuple(seconds * 1e9 * (1 + (i % 5 - 2) * 1e-4) for i in range(count))


def test_rates_of_a_known_time():
    scored = score(make_case(), make_found(), CPU, CEILINGS, Roofs())
    assert scored.time_s.value == pytest.approx(0.02)
    assert scored.gb_per_s == pytest.approx(10.0)
    assert scored.tflop_per_s == pytest.approx(16_777_216 / 0.02 / 1e12)
    assert scored.intensity == pytest.approx(16_777_216 / 2e8)


def test_a_cpu_has_no_published_roof_and_is_held_against_what_was_measured():
    scored = score(make_case(), make_found(), CPU, CEILINGS, Roofs())
    assert (scored.roof_fraction, scored.roof_max_fraction) == (None, None)
    assert (scored.peak_bw_fraction, scored.fp32_fraction) == (None, None)
    assert scored.bound == "mem"
    assert scored.ceiling_fraction == pytest.approx(10 / 20)
    assert scored.labels == ()


def test_roofs_of_a_matched_card():
    found = make_found(samples_ns=steady(1e-4), l2="cold")
    scored = score(make_case(), found, GPU, Ceilings(), H100)
    memory_s = 2e8 / 3.35e12
    assert scored.roof_fraction == pytest.approx(memory_s / 1e-4)
    assert scored.roof_max_fraction == pytest.approx(memory_s / 1e-4)
    assert scored.peak_bw_fraction == pytest.approx(2e12 / 3.35e12)
    assert scored.fp32_fraction == pytest.approx(16_777_216 / 1e-4 / 66.9e12)
    assert scored.bound == "mem"
    assert scored.ceiling_fraction is None
    assert scored.findings == ()


def test_the_driver_s_highest_clock_has_its_own_fraction():
    case = make_case(flops=10**12, peak=Peak("matmul", "fp32", "fp32"))
    scored = score(case, make_found(samples_ns=steady(0.02)), GPU, Ceilings(), H100)
    assert scored.bound == "comp"
    assert scored.roof_fraction == pytest.approx(50e12 / 66.9e12)
    assert scored.roof_max_fraction == pytest.approx(50e12 / 72e12)


def test_hot_mode_has_no_memory_roof():
    found = make_found(samples_ns=steady(1e-5), l2="hot")
    scored = score(make_case(flops=None, peak=None), found, GPU, Ceilings(), H100)
    assert scored.roof_fraction is None
    assert scored.findings == ()
    assert scored.gb_per_s == pytest.approx(2e4)


def test_an_unmatched_gpu_has_an_unverified_roof():
    scored = score(make_case(), make_found(), GPU, Ceilings(), Roofs())
    assert "unverified roof" in scored.labels
    assert scored.roof_fraction is None


@pytest.mark.parametrize(
    ("flops", "seconds", "said"),
    [(10**12, 0.013, "1.07 times the compute roof"), (None, 4e-5, "1.10 times what the card's memory")],
)
def test_faster_than_physics_is_implausible(flops, seconds, said):
    case = make_case(flops=flops, peak=Peak("matmul", "fp32", "fp32") if flops else None)
    (finding,) = score(case, make_found(samples_ns=steady(seconds)), GPU, Ceilings(), H100).findings
    assert (finding.code, finding.fault, finding.outcome) == ("implausible", "kernel", "error")
    assert said in finding.sentence


def test_a_boost_over_the_sheet_is_plausible():
    case = make_case(flops=10**12, peak=Peak("matmul", "fp32", "fp32"))
    scored = score(case, make_found(samples_ns=steady(0.0142)), GPU, Ceilings(), H100)
    assert scored.roof_fraction > 1
    assert scored.findings == ()


def test_noise_never_accuses():
    """The median is too fast, its upper bound is not."""
    samples = tuple(0.0150e9 if i % 2 else 0.0125e9 for i in range(9))
    case = make_case(flops=10**12, peak=Peak("matmul", "fp32", "fp32"))
    scored = score(case, make_found(samples_ns=samples), GPU, Ceilings(), H100)
    assert scored.time_s.value < 0.95 * 10**12 / 72e12
    assert scored.findings == ()


def test_writes_that_a_cache_absorbs_are_not_compulsory_traffic():
    """16 MiB read and 16 MiB written: the writes stay in a 50 MiB cache, so half the time is possible."""
    case = make_case(bytes=2 << 24, flops=None, peak=None, outputs=(Output("out", (1 << 22,), "fp32"),))
    seconds = 0.6 * (2 << 24) / 3.35e12
    assert score(case, make_found(samples_ns=steady(seconds)), GPU, Ceilings(), H100).findings == ()
    tiny = make_found(samples_ns=steady(seconds / 2))
    assert score(case, tiny, GPU, Ceilings(), H100).findings[0].code == "implausible"


def test_written_bytes_counts_outputs_learned_outputs_and_mutated_arguments():
    case = make_case(outputs=(Output("a", (4, 4), "bf16"), Output("b", (3,), "fp64")))
    assert written_bytes(case, make_found()) == 32 + 24
    learned = make_case(outputs=None)
    assert written_bytes(learned, make_found(learned_outputs={"o": {"shape": [8], "dtype": "fp32"}})) == 32
    assert written_bytes(learned, make_found()) == 0
    inplace = make_case(
        outputs=(), mutates=("p",), arguments=(Argument("p", "randn", shape=(10,), dtype="fp16"),)
    )
    assert written_bytes(inplace, make_found()) == 20
    # What is mutated is learned from the reference, too, and written once all the same.
    found = make_found(learned_outputs={"p": {"shape": [10], "dtype": "fp16"}})
    assert written_bytes(dataclasses.replace(inplace, outputs=None), found) == 20


def test_never_timed_has_no_speed():
    scored = score(make_case(), make_found(samples_ns=(), rivals=()), CPU, CEILINGS, Roofs())
    assert (scored.time_s, scored.gb_per_s, scored.ceiling_fraction, scored.speedup) == (None,) * 4
    assert scored.intensity is not None


@pytest.mark.parametrize(
    "found",
    [
        {"correct": False},
        {"findings": (Finding("wrong_result", "differs", "kernel", "fail"),)},
        {"findings": (Finding("time_disagrees", "two clocks", "kernel", "error"),)},
    ],
)
def test_a_wrong_or_broken_kernel_is_given_no_speed(found):
    scored = score(make_case(), make_found(**found), CPU, CEILINGS, Roofs())
    assert (scored.time_s, scored.gb_per_s, scored.speedup, scored.ratios) == (None, None, None, {})


def test_learned_bytes_count():
    scored = score(make_case(bytes=None), make_found(bytes=10**8), CPU, CEILINGS, Roofs())
    assert scored.gb_per_s == pytest.approx(5.0)
    unknown = score(make_case(bytes=None, flops=None, peak=None), make_found(), CPU, CEILINGS, Roofs())
    assert (unknown.gb_per_s, unknown.intensity, unknown.bound, unknown.ceiling_fraction) == (None,) * 4


def test_a_hot_set_is_held_against_its_cache():
    case = make_case(bytes=1 << 20, flops=None, peak=None)
    found = make_found(samples_ns=steady((1 << 20) / 50e9), resident_bytes=1 << 20, l2="hot")
    scored = score(case, found, CPU, CEILINGS, Roofs())
    assert scored.labels == ("in cache",)
    assert scored.ceiling_fraction == pytest.approx(0.5)


def test_a_cold_set_that_memory_could_not_feed_came_from_the_cache():
    case = make_case(bytes=1 << 20, flops=None, peak=None)
    fed = score(
        case, make_found(samples_ns=steady((1 << 20) / 18e9), resident_bytes=1 << 20), CPU, CEILINGS, Roofs()
    )
    assert (fed.labels, fed.ceiling_fraction) == ((), pytest.approx(0.9))
    kept = score(
        case, make_found(samples_ns=steady((1 << 20) / 40e9), resident_bytes=1 << 20), CPU, CEILINGS, Roofs()
    )
    assert (kept.labels, kept.ceiling_fraction) == (("in cache",), pytest.approx(0.4))


def test_in_a_cache_that_was_not_measured_there_is_no_fraction():
    ceilings = Ceilings(bandwidths=CEILINGS.bandwidths)
    case = make_case(bytes=1 << 20, flops=None, peak=None)
    found = make_found(samples_ns=steady((1 << 20) / 50e9), resident_bytes=1 << 20, l2="hot")
    scored = score(case, found, CPU, ceilings, Roofs())
    assert (scored.labels, scored.ceiling_fraction) == (("in cache",), None)


def test_beating_a_measured_ceiling_reads_100_percent_and_says_so():
    found = make_found(samples_ns=steady(2e8 / 21e9))
    scored = score(make_case(), found, CPU, CEILINGS, Roofs())
    assert scored.ceiling_fraction == pytest.approx(1.0)
    assert scored.labels == ("ceiling beaten",)


def test_far_above_a_ceiling_is_no_fraction_of_it():
    scored = score(make_case(), make_found(samples_ns=steady(2e8 / 60e9)), CPU, CEILINGS, Roofs())
    assert scored.ceiling_fraction is None
    assert scored.labels == ("far above ceiling",)


@pytest.mark.parametrize("seconds", [1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("size", [1 << 12, 1 << 19, 1 << 22, 1 << 26, 1 << 30])
@pytest.mark.parametrize("l2", ["cold", "hot"])
def test_nothing_on_a_cpu_reads_over_100_percent(seconds, size, l2):
    case = make_case(bytes=size, flops=size, peak=Peak("vector", "fp32"))
    found = make_found(samples_ns=steady(seconds), resident_bytes=size, l2=l2)
    fraction = score(case, found, CPU, CEILINGS, Roofs()).ceiling_fraction
    assert fraction is None or fraction <= 1 + 1e-12


def test_speedup_is_against_the_reference_where_it_was_timed():
    rivals = (make_rival("eager", "versus", 3.0), make_rival("reference", "reference", 2.0))
    scored = score(make_case(), make_found(rivals=rivals), CPU, CEILINGS, Roofs())
    assert scored.speedup == pytest.approx(2.0, rel=0.01)
    assert scored.speedup_against == "reference"
    assert scored.ratios["eager"].speedup.value == pytest.approx(3.0, rel=0.01)
    assert scored.ratios["eager"].median_ms == pytest.approx(60)


def test_speedup_is_else_against_the_fastest_versus():
    rivals = (make_rival("slow", "versus", 3.0), make_rival("quick", "versus", 1.5))
    scored = score(make_case(), make_found(rivals=rivals), CPU, CEILINGS, Roofs())
    assert (scored.speedup_against, scored.speedup) == ("quick", pytest.approx(1.5, rel=0.01))


def test_a_ratio_that_was_not_alternated_has_no_bounds():
    rivals = (make_rival(alternated=False, pairs=()), make_rival("v", "versus", 4.0, alternated=False))
    scored = score(make_case(), make_found(rivals=rivals), CPU, CEILINGS, Roofs())
    for name, times in (("reference", 2.0), ("v", 4.0)):
        ratio = scored.ratios[name]
        assert ratio.speedup.value == pytest.approx(times, rel=0.01)
        assert (ratio.speedup.low, ratio.speedup.high, ratio.alternated) == (0.0, math.inf, False)


def test_the_cache_curve_is_read_from_above():
    from kmrun.core.ceiling import cache_rate

    points = (Bandwidth("read", 100, 5.0), Bandwidth("read", 200, 9.0), Bandwidth("read", 400, 7.0))
    assert cache_rate(points, 50) == 5.0
    assert cache_rate(points, 150) == 9.0
    assert cache_rate(points, 200) == 9.0
    assert cache_rate(points, 300) == 9.0
    assert cache_rate(points, 401) is None
    assert cache_rate((), 1) is None


def test_the_compute_ceiling_is_the_fastest_of_the_type_and_the_wider_ones():
    from kmrun.core.ceiling import compute_rate

    assert compute_rate(CEILINGS, "bf16", "matmul", True) == 200e9
    assert compute_rate(CEILINGS, "fp32", "matmul", True) == 200e9
    assert compute_rate(CEILINGS, "fp64", "matmul", True) == 90e9
    assert compute_rate(CEILINGS, "int8", "matmul", True) is None
    assert compute_rate(CEILINGS, None, None, True) is None
    assert compute_rate(CEILINGS, "bf16", "vector", False) is None
    assert compute_rate(CEILINGS, "bf16", "vector", True) == 200e9


def test_work_whose_compute_ceiling_is_unknown_has_no_fraction():
    case = make_case(flops=10**9, peak=Peak("matmul", "int8", "int32"))
    assert score(case, make_found(), CPU, CEILINGS, Roofs()).ceiling_fraction is None
    unnamed = make_case(flops=10**10, peak=None)
    assert score(unnamed, make_found(), CPU, CEILINGS, Roofs()).ceiling_fraction is None
    light = make_case(flops=10**8, peak=None)
    assert score(light, make_found(), CPU, CEILINGS, Roofs()).ceiling_fraction == pytest.approx(0.5)
