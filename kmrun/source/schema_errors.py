"""From pydantic's errors to problems: one a mistake, at the key or value that caused it."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from kmrun.core.case import Path
from kmrun.core.problem import Problem
from kmrun.source import model_shape
from kmrun.source import schema_messages as messages
from kmrun.source.schema_messages import SchemaError
from kmrun.source.suggest import meant

MOST = 200
"""Of pydantic's errors in one document; a file with more has one cause, or is hostile."""


def problems(error: ValidationError, root: type[BaseModel], value: Any) -> list[Problem]:
    """Return one problem for each mistake that pydantic found in `value`."""
    errors = [_placed(item, value) for item in error.errors(include_url=False)[:MOST]]
    errors = _without_echoes(errors)
    folded = {**_of_another_kind(errors, root), **_folded(errors)}
    return [
        folded.get(id(item)) or messages.problem(item, root) for item in errors if folded.get(id(item), item)
    ]


def _placed(item: Any, root: Any) -> SchemaError:
    location = item["loc"]
    path: list[str | int] = []
    node: Any = root
    parent: Any = None
    on_key = False
    for step in location:
        if step == "[key]":
            on_key = True
        elif _holds(node, step):
            path.append(step)
            parent, node = node, node[step]
        elif not (isinstance(step, str) and step.startswith("@")):
            parent = node
            path.append(step)
            break
    at = item.get("ctx", {}).get("at")  # a check of a whole mapping names the key that is at fault
    if at is not None and _holds(node, at):
        path.append(at)
        parent, node = node, node[at]
    return SchemaError(
        item["type"],
        location,
        tuple(path),
        on_key,
        item.get("input"),
        item.get("ctx", {}),
        item["msg"],
        parent,
    )


def _holds(node: Any, step: str | int) -> bool:
    if isinstance(node, dict):
        return step in node
    return isinstance(node, list) and isinstance(step, int) and step < len(node)


def _without_echoes(errors: list[SchemaError]) -> list[SchemaError]:
    """Leave out `too short` where items were dropped because they are wrong themselves."""
    return [
        item
        for item in errors
        if not (
            item.type == "too_short"
            and any(
                len(one.path) > len(item.path) and one.path[: len(item.path)] == item.path for one in errors
            )
        )
    ]


def _folded(errors: Sequence[SchemaError]) -> dict[int, Problem | None]:
    """Return by id what becomes of errors that are one mistake: a problem for one, None for the rest.

    A missing key and an unknown one that is near it are one slip; so are a key without a value and the
    unknown keys that follow it at the same level, which should have been indented.
    """
    result: dict[int, Problem | None] = {}
    for item in errors:
        if item.type == "missing":
            unknown = [
                one
                for one in errors
                if one.type == "extra_forbidden" and one.path[:-1] == item.path[:-1] and id(one) not in result
            ]
            wanted = str(item.path[-1])
            near = next((one for one in unknown if meant(str(one.path[-1]), [wanted]) == wanted), None)
            if wanted == "target" and any(meant(str(one.path[-1]), ["extends"]) for one in unknown):
                result[id(item)] = None  # what it extends has one
            elif near is not None:
                hint = f"did you mean '{wanted}'?"
                result[id(near)] = Problem(
                    messages.UNKNOWN_KEY, near.path, messages.unknown(near), hint, on_key=True
                )
                result[id(item)] = None
    for item in errors:
        if (
            item.value is None
            and item.type not in ("missing", "extra_forbidden")
            and isinstance(item.parent, dict)
        ):
            followers = _followers(item, errors)
            if followers and id(item) not in result:
                name = item.path[-1]
                for one in followers:
                    result[id(one)] = None
                hint = f"indent it further than '{name}'"
                message = f"'{followers[0].path[-1]}' seems to belong under '{name}', which has no value"
                result[id(followers[0])] = Problem("K105", followers[0].path, message, hint, on_key=True)
                result[id(item)] = None
    return result


def _of_another_kind(errors: Sequence[SchemaError], root: type[BaseModel]) -> dict[int, Problem | None]:
    """Fold the keys that belong to another `init`, `dist`, `metric` or `units`, and those that it lacks."""
    result: dict[int, Problem | None] = {}
    strange: dict[Path, list[SchemaError]] = {}
    for item in errors:
        is_of_a_kind = len(item.location) > 1 and str(item.location[-2]).startswith("@")
        if item.type == "extra_forbidden" and is_of_a_kind:
            strange.setdefault(item.path[:-1], []).append(item)
    for place, unknown in strange.items():
        first, union = unknown[0], unknown[0].location[:-2]
        expected = model_shape.at(root, union)
        lacks = [one for one in errors if one.type == "missing" and one.path[:-1] == place]
        fitting = [
            tag
            for tag in expected.tags
            if first.parent.keys() <= set(model_shape.at(root, (*union, f"@{tag}")).keys)
        ]
        if expected.tag_key is None or not fitting or len(unknown) + len(lacks) == 1:
            continue
        result.update(dict.fromkeys(map(id, (*unknown, *lacks)), None))
        result[id(first)] = messages.of_another_kind(first, expected.tag_key, fitting, len(unknown))
    return result


def _followers(item: SchemaError, errors: Sequence[SchemaError]) -> list[SchemaError]:
    keys = list(item.parent)
    after = keys[keys.index(item.path[-1]) + 1 :]
    unknown = {
        one.path[-1]: one
        for one in errors
        if one.type == "extra_forbidden" and one.path[:-1] == item.path[:-1]
    }
    return [unknown[key] for key in after if key in unknown]
