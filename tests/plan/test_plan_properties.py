"""Laws of the expansion, on kernels drawn at random."""

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kmrun.plan import Expansion, expand, select
from kmrun.plan.axes import DEVICE_KINDS, may_meet
from kmrun.schema.suite import Suite
from support.planning import KERNEL

ROW_AXES, MATRIX_AXES = ("a", "b"), ("m", "n", "o")
values = st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True)


@st.composite
def kernels(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a kernel that uses all its axes; rows may repeat, pin matrix axes and name devices."""
    matrix = {name: draw(values) for name in MATRIX_AXES[: draw(st.integers(0, 3))]}
    rows = []
    for _ in range(draw(st.integers(0, 4))):
        row: dict[str, Any] = {name: draw(st.integers(1, 3)) for name in ROW_AXES}
        pinned = draw(st.sets(st.sampled_from(sorted(matrix)))) if matrix else set()
        row |= {name: draw(st.integers(1, 9)) for name in sorted(pinned)}
        device = draw(st.sampled_from([None, *DEVICE_KINDS, "h100-sxm"]))
        rows.append(row | ({"device": device} if device else {}))
    axes = [*(ROW_AXES if rows else ()), *matrix]
    limit = draw(st.integers(2, 30))
    kernel: dict[str, Any] = {
        "name": "k",
        "target": "a:b",
        "matrix": matrix,
        "args": {"x": {"init": "ones", "shape": [*axes, 1], "dtype": "int8"}},
    }
    if rows:
        kernel["cases"] = rows
    if axes:
        kernel["exclude"] = [{"when": f"{' + '.join(axes)} > {limit}", "reason": "large"}]
    return kernel


def expanded(kernel: dict[str, Any]) -> Expansion:
    suite = Suite.model_validate({"kmrun": 1, "suite": "t", "kernels": [kernel]})
    return expand(suite, "/suite")


def points(kernel: dict[str, Any]) -> list[tuple[str | None, dict[str, int]]]:
    """Return what the axes mean, said in the plainest way: (device, axis values) in order."""
    found = []
    for row in kernel.get("cases", [{}]):
        crossed = [name for name in kernel["matrix"] if name not in row]
        for chosen in itertools.product(*(kernel["matrix"][name] for name in crossed)):
            axes = {key: value for key, value in row.items() if key != "device"} | dict(
                zip(crossed, chosen, strict=True)
            )
            found.append((row.get("device"), axes))
    return found


@given(kernels())
@settings(max_examples=150, deadline=None)
def test_an_expansion_is_exactly_its_points_or_says_why_not(kernel: dict[str, Any]) -> None:
    expansion = expanded(kernel)
    limit = int(kernel["exclude"][0]["when"].split(">")[1]) if "exclude" in kernel else 10**9
    expected = [(device, axes) for device, axes in points(kernel) if sum(axes.values()) <= limit]
    codes = {problem.code for problem in expansion.problems}
    if not expansion.has_errors:
        assert [(case.device, dict(case.axes)) for case in expansion.cases] == expected
        assert len(expansion.cases) + len(expansion.excluded) == len(points(kernel))
        return
    assert expansion.cases == ()
    assert codes <= {"K407", "K422", "K425"}
    if "K422" in codes:
        assert len(expected) == len(points(kernel))
    if "K425" in codes:
        assert expected == []
    if "K407" in codes:
        assert any(
            one == other and may_meet(device, second)
            for (device, one), (second, other) in itertools.combinations(expected, 2)
        )


@given(kernels())
@settings(max_examples=150, deadline=None)
def test_ids_are_unique_on_every_device_and_keep_one_order(kernel: dict[str, Any]) -> None:
    cases = expanded(kernel).cases
    for kind in ("cpu", "cuda", "rocm"):
        here = [case.id for case in select(cases, kind=kind, card="h100-sxm").cases]
        # A row for a card and one for `rocm` may share an id: no machine is both.
        if kind != "rocm":
            assert len(here) == len(set(here))
    for case in cases:
        assert set(case.shown_axes) == set(case.axes)
        assert case.shown_axes == cases[0].shown_axes
        assert case.arguments[0].shape == (*case.axes.values(), 1) if not kernel.get("cases") else True


@given(kernels())
@settings(max_examples=60, deadline=None)
def test_planning_twice_gives_the_same(kernel: dict[str, Any]) -> None:
    assert expanded(kernel) == expanded(kernel)


@given(st.text(max_size=30), st.sampled_from(["flops", "bytes", "let", "shape", "when", "value"]))
@settings(max_examples=300, deadline=None)
def test_any_text_as_a_formula_ends_in_cases_or_problems(text: str, where: str) -> None:
    import yaml

    kernel = yaml.safe_load(KERNEL)
    if not text.strip():
        return
    if where in ("flops", "bytes"):
        kernel[where] = text
    elif where == "let":
        kernel["let"] = {"n": text}
    elif where == "shape":
        kernel["args"]["x"]["shape"] = [text, "b", "s"]
    elif where == "when":
        kernel["exclude"] = [{"when": text, "reason": "r"}]
    else:
        kernel["kwargs"] = {"m": {"init": "value", "value": text}}
    expansion = expanded(kernel)
    assert expansion.has_errors is (not expansion.cases)
    for problem in expansion.problems:
        assert problem.code.startswith("K")
        assert problem.path[:2] == ("kernels", 0)
