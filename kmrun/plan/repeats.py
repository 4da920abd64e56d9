"""What a kernel says twice, and names that would be mixed up in its results."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from kmrun.core.case import Path
from kmrun.plan.names import Names
from kmrun.plan.report import BAD_OPTION, BAD_OUTPUT, NAME_TAKEN, SAID_TWICE, Report
from kmrun.schema.arguments import Builder, Call, ListOf
from kmrun.schema.suite import Kernel

_WITHOUT_CONTENT = frozenset({"value", "empty"})


def check_repeats(kernel: Kernel, path: Path, names: Names, report: Report) -> None:
    """Report each thing that stands twice where once is meant; at the second one."""
    for place, items in _lists(kernel):
        seen: set[str] = set()
        for index, item in enumerate(items):
            key = repr(item)  # clauses hold mappings, which have no hash
            if key in seen:
                shown = f"'{item}'" if isinstance(item, str) else "this"
                report.error(SAID_TWICE, (*path, *place, index), f"{shown} stands here already", "remove one")
            seen.add(key)
    buffers: dict[str, str] = {}
    for name, spec in (kernel.outputs or {}).items():
        if spec.arg is not None and spec.arg in buffers:
            sentence = f"'{spec.arg}' is the buffer of output '{buffers[spec.arg]}' already"
            report.error(BAD_OUTPUT, (*path, "outputs", name, "arg"), sentence, "each output has its own")
        elif spec.arg is not None:
            buffers[spec.arg] = name
    _check_rivals(kernel, path, names, report)
    _check_taken(kernel, path, {*kernel.kwargs, *buffers}, report)


def _lists(kernel: Kernel) -> Iterator[tuple[Path, Sequence[Any]]]:
    """Yield (place in the kernel, items) of the lists in which an item counts once."""
    yield ("tags",), kernel.tags
    yield ("mutates",), kernel.mutates
    yield ("exclude",), kernel.exclude
    yield ("contract",), kernel.contract
    for index, clause in enumerate(kernel.contract):
        yield ("contract", index, "tags"), clause.tags
    for section, arguments in (("args", kernel.args), ("kwargs", kernel.kwargs)):
        for name, builder in arguments.items():
            for place, call in _calls(builder, (section, name)):
                yield (*place, "from"), call.sources


def _calls(builder: Builder, place: Path) -> Iterator[tuple[Path, Call]]:
    if isinstance(builder, Call):
        yield place, builder
    elif isinstance(builder, ListOf):
        for index, item in enumerate(builder.items):
            yield from _calls(item, (*place, "items", index))


def _check_rivals(kernel: Kernel, path: Path, names: Names, report: Report) -> None:
    """Report the entries of `versus` that are called like something else that results speak of."""
    taken = {
        **dict.fromkeys(names.axes, "an axis"),
        **dict.fromkeys(names.lets, "a let name"),
        **dict.fromkeys(names.arguments, "an argument"),
        **dict.fromkeys(names.outputs, "an output"),
        kernel.name: "the kernel itself",
        "reference": "the reference",
    }
    for name in kernel.versus:
        if name in taken:
            sentence = f"'{name}' is the name of {taken[name]} already"
            report.error(NAME_TAKEN, (*path, "versus", name), sentence, "rename it", on_key=True)


def _check_taken(kernel: Kernel, path: Path, keywords: Collection[str], report: Report) -> None:
    """Report what the reference and the versus entries cannot take: a keyword twice, or nothing at all.

    The same tensor may well be passed twice by position: a product of a matrix with itself.
    """
    lists: list[tuple[Path, tuple[str, ...] | None]] = []
    if kernel.reference is not None:
        lists.append((("reference", "args"), kernel.reference.args))
    lists += [(("versus", name, "args"), spec.args) for name, spec in kernel.versus.items()]
    builders = {**kernel.args, **kernel.kwargs}
    has_content = any(builder.init not in _WITHOUT_CONTENT for builder in builders.values())
    for place, taken in lists:
        if taken is None:
            continue
        if not taken and has_content:
            hint = "name the arguments that it takes, or leave 'args' out for all"
            report.error(BAD_OPTION, (*path, *place), "what takes none of the inputs cannot judge them", hint)
        passed: set[str] = set()
        for index, name in enumerate(taken):
            if name in keywords and name in passed:
                sentence = f"'{name}' is passed by keyword, once"
                report.error(SAID_TWICE, (*path, *place, index), sentence, "remove one")
            passed.add(name)
