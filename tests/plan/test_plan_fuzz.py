"""The shipped suites with one thing changed: planning ends in cases or in problems with places."""

import copy
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from kmrun.plan import expand
from kmrun.resources import folder
from kmrun.schema.suite import Suite
from kmrun.source.yaml_loader import load_file
from support.planning import CARDS, KERNEL

DOCUMENTS = [load_file(path).document.value for path in sorted(folder("suites").glob("*.yaml"))]
KERNELS = [kernel for document in DOCUMENTS for kernel in document["kernels"]] + [yaml.safe_load(KERNEL)]

TEXTS = "b s n dtype bf16 x q o auto 1/0 s//2 min sum(lens) 10**30 numel(x) nbytes(q)*2 'bf16' cpu gpu -5"
VALUES = st.sampled_from(
    [
        *TEXTS.split(),
        *(0, 1, -1, 2.5, 1e300, True, None, "", " ", "s and b", "unique(x)", "is_causal", "2 ** 60"),
        *([], [1], [1, 2, 3], {}, {"pow2": [1, 4]}),
    ]
)
KEYS = st.sampled_from(
    [
        "b",
        "s",
        "x",
        "q",
        "o",
        "device",
        "dtype",
        "min",
        "fp32",
        "lens",
        "like",
        "arg",
        "when",
        "tags",
        "chunk",
    ]
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of everything inside a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    """Return what stands at a path."""
    for key in path:
        value = value[key]
    return value


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_changed_kernel_is_planned_or_told(data: st.DataObject) -> None:
    kernel = copy.deepcopy(data.draw(st.sampled_from(KERNELS)))
    path = data.draw(st.sampled_from(list(places(kernel))))
    parent, key = at(kernel, path[:-1]), path[-1]
    match data.draw(st.sampled_from(["replace", "remove", "rename"])):
        case "replace":
            parent[key] = copy.deepcopy(data.draw(VALUES))
        case "remove":
            del parent[key]
        case "rename":
            assume(isinstance(parent, dict))
            parent[data.draw(KEYS)] = parent.pop(key)
    document = {"kmrun": 1, "suite": "t", "kernels": [kernel]}
    try:
        suite = Suite.model_validate(document)
    except ValidationError:
        return
    expansion = expand(suite, "/suite", CARDS)
    assert expansion.has_errors is (not expansion.cases)
    for problem in expansion.problems:
        at(document, problem.path)  # a place that the reader can point at
        if problem.offset is not None:
            assert problem.length
            assert problem.offset + problem.length <= max(len(str(at(document, problem.path))), 1)
