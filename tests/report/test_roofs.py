from dataclasses import replace

import pytest

from kmrun.core.peaks import peaks
from kmrun.report.roofs import card_picture, picture_of
from kmrun.source.catalogue import load_cards
from support.gpu_results import BANDWIDTH, PEAK, broken, gpu_result
from support.results import make_result

CARD = load_cards().card("h100-sxm")


def kinds(picture):
    return {roofs.kind: roofs for roofs in picture.roofs}


def test_the_roofs_of_a_gpu_s_run():
    found = kinds(picture_of(gpu_result(), CARD))
    assert list(found) == ["published", "held", "measured"]
    assert found["published"].bandwidth == pytest.approx(BANDWIDTH, rel=1e-3)
    assert found["published"].peaks == (("bf16 / fp16 tensor", pytest.approx(PEAK, rel=1e-3)),)
    ((_, held),) = found["held"].peaks
    assert held == pytest.approx(PEAK / 1.12, rel=1e-3)
    assert found["measured"].bandwidth == 3.05e12
    assert found["measured"].peaks == (("bf16", 742e12), ("fp32", 51.9e12))


def test_a_card_that_the_database_lacks_leaves_the_roofs_of_the_document():
    found = kinds(picture_of(gpu_result(), None))
    assert found["published"].bandwidth is None
    assert found["published"].peaks == (("compute", pytest.approx(PEAK, rel=1e-3)),)


def test_without_a_compute_bound_case_the_usual_roofs_are_drawn():
    run = gpu_result()
    memory = replace(run, cases=tuple(case for case in run.cases if case.bound == "mem"))
    found = kinds(picture_of(memory, CARD))
    assert [name for name, _ in found["published"].peaks] == ["bf16 / fp16 tensor", "fp32"]
    assert "held" not in found


def test_a_cpu_has_what_was_measured_and_the_cache_where_it_was_used():
    run = make_result()
    assert list(kinds(picture_of(run, None))) == ["measured"]
    inside = replace(run, cases=(replace(run.cases[0], labels=("in cache",)),))
    assert kinds(picture_of(inside, None))["cache"].bandwidth == 100e9


def test_what_has_no_place_is_counted():
    cases = list(gpu_result().cases)
    cases[0] = replace(cases[0], intensity=None)
    cases[1] = replace(cases[1], verdict="error")
    cases[2] = replace(cases[2], correct=False, verdict="fail")
    cases[3] = broken(cases[3])
    picture = picture_of(replace(gpu_result(), cases=tuple(cases)), CARD)
    assert picture.left_out == 3
    assert [point.number for point in picture.points[:2]] == [4, 5]
    assert picture.points[0].word == "FAIL"


def test_points_say_which_share_is_theirs():
    run = gpu_result()
    bare = replace(run, cases=tuple(replace(case, roof_fraction=None) for case in run.cases))
    assert {point.share_of for point in picture_of(run, CARD).points} == {"roof"}
    assert {point.share_of for point in picture_of(bare, CARD).points} == {"ceiling"}


def test_a_card_alone_has_every_figure_and_equal_ones_once():
    (roofs,) = card_picture(peaks(CARD)).roofs
    assert dict(roofs.peaks).keys() == {
        "fp8 / int8 tensor",
        "fp16 / bf16 tensor",
        "tf32 tensor",
        "fp32",
        "fp64",
    }
    assert [value for _, value in roofs.peaks] == sorted((value for _, value in roofs.peaks), reverse=True)


@pytest.mark.parametrize("card", list(load_cards()), ids=lambda card: card.id)
def test_every_card_has_a_picture(card):
    found = peaks(card)
    picture = card_picture(found)
    assert len(picture.roofs) == (1 if found.values else 0)
