"""Which cases a run takes."""

import pytest

from kmrun.errors import UsageError
from kmrun.plan import select
from support.planning import plan

EXPANSION = plan(
    "{name: sdpa, target: 'a:b', tags: [ci, slow], matrix: {causal: [false, true]}, "
    "cases: [{device: cpu, s: 1}, {device: gpu, s: 2}, {device: cuda, s: 3}, {device: h100-sxm, s: 4}], "
    "args: {x: {init: ones, shape: [s], dtype: int8}}, kwargs: {c: {init: value, value: causal}}}",
    "{name: sdpa_backward, target: 'a:b', tags: [ci]}",
    "{name: add, target: 'a:b'}",
)
CASES = EXPANSION.cases


def chosen(**how: object) -> list[str]:
    return [case.id for case in select(CASES, **how).cases]  # type: ignore[arg-type]


def test_everything_without_a_wish() -> None:
    assert select(CASES).cases == CASES
    assert select(CASES).left_out == ()


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("sdpa[s=1,causal=true]", 1),
        ("sdpa[*causal=true]", 4),
        ("sdpa[s=?,causal=true]", 4),
        ("s=3", 2),
        ("sdpa", 9),
        ("add", 1),
        ("*", 10),
    ],
)
def test_patterns(pattern: str, count: int) -> None:
    assert len(chosen(pattern=pattern)) == count


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("spda", "did you mean 'sdpa'?"),
        ("sdpa[s=1,causal=tru", None),
        ("sdpa[s=1,causal=ture]", "did you mean 'sdpa[s=1,causal=true]'?"),
        ("zzz", "kernels here: sdpa, sdpa_backward, add; `kmrun list` shows all cases"),
        ("[s=1]*", "kernels here: sdpa, sdpa_backward, add; `kmrun list` shows all cases"),
    ],
)
def test_a_pattern_without_a_match_is_a_usage_error(pattern: str, hint: str | None) -> None:
    if hint is None:
        assert chosen(pattern=pattern) == ["sdpa[s=1,causal=true]"]  # a part of an id is enough
        return
    with pytest.raises(UsageError) as caught:
        select(CASES, pattern=pattern)
    assert (caught.value.sentence, caught.value.hint) == (f"no case matches -k '{pattern}'", hint)


def test_tags() -> None:
    assert len(chosen(tags=["ci"])) == 9
    assert len(chosen(tags=["slow"])) == 8
    with pytest.raises(UsageError) as caught:
        select(CASES, tags=["sloww"])
    assert (caught.value.sentence, caught.value.hint) == (
        "no case has the tag 'sloww'",
        "did you mean 'slow'?",
    )


@pytest.mark.parametrize(
    ("kind", "card", "sizes"),
    [
        ("cpu", None, [1]),
        ("cuda", None, [2, 3]),
        ("cuda", "h100-sxm", [2, 3, 4]),
        ("rocm", "mi300x", [2]),
    ],
)
def test_devices(kind: str, card: str | None, sizes: list[int]) -> None:
    selection = select(CASES, kind=kind, card=card)  # type: ignore[arg-type]
    taken = [case for case in selection.cases if case.kernel == "sdpa"]
    assert [case.axes["s"] for case in taken] == [size for size in sizes for _ in range(2)]
    assert all(item.is_device and item.reason == f"for {item.case.device}" for item in selection.left_out)
    assert len(selection.cases) + len(selection.left_out) == len(CASES)


def test_reasons() -> None:
    selection = select(CASES, kind="cpu", pattern="s=", tags=["slow"])
    assert {item.reason for item in selection.left_out} == {
        "does not match -k s=",
        "for gpu",
        "for cuda",
        "for h100-sxm",
    }
    selection = select(CASES, tags=["slow"])
    assert {item.reason for item in selection.left_out} == {"has no tag slow"}
