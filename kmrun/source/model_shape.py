"""What a document model expects at a place: walks pydantic's types along an error's location."""

import functools
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Tag

from kmrun.schema.base import IfHas, IfThen


@dataclass(frozen=True)
class Expected:
    """The type at a place: its model (keys known), or a union's tags and the key that tells them apart."""

    model: type[BaseModel] | None = None
    tags: tuple[str, ...] = ()
    tag_key: str | None = None
    """The key whose value is the tag; None when the presence of a key is the tag."""

    @property
    def keys(self) -> list[str]:
        """The keys that a mapping may have here, in the order of the format."""
        if self.model is not None:
            return [field.alias or name for name, field in self.model.model_fields.items()]
        return [self.tag_key] if self.tag_key else list(self.tags)


def at(root: type[BaseModel], location: Sequence[str | int]) -> Expected:
    """Return what `root` expects at a location of pydantic's, tags (`@...`) included."""
    current: Any = root
    for step in location:
        current = _step(current, step)
        if current is None:
            return Expected()
    return _expected(current)


def _expected(kind: Any) -> Expected:
    bare, marks = _strip(kind)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        return Expected(model=bare)
    tags = tuple(tag.removeprefix("@") for tag in _arms(bare))
    key = next((mark.key for mark in marks if isinstance(mark, IfThen)), None)
    if key is None and not any(isinstance(mark, IfHas) for mark in marks):
        return Expected()
    return Expected(tags=tags, tag_key=key)


def _step(kind: Any, step: str | int) -> Any:
    bare, _ = _strip(kind)
    if isinstance(step, str) and step.startswith("@"):
        return _arms(bare).get(step, kind)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        for name, field in bare.model_fields.items():
            if step == (field.alias or name):
                return _annotations(bare)[name]
        return None
    arguments = get_args(bare)
    if get_origin(bare) is dict:
        return arguments[1]
    return arguments[0] if get_origin(bare) is tuple and arguments else None


@functools.cache
def _annotations(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's annotations, with what they only name resolved: a list's items are arguments again."""
    return get_type_hints(model, include_extras=True)


def _strip(kind: Any) -> tuple[Any, list[Any]]:
    """Take off Annotated and `| None`; return what is left and all the annotations met."""
    marks: list[Any] = []
    while True:
        if get_origin(kind) is Annotated:
            kind, *found = get_args(kind)
            marks += found
            continue
        arms = [arm for arm in get_args(kind) if arm is not type(None)] if _is_union(kind) else []
        if len(arms) != 1:
            return kind, marks
        kind = arms[0]


def _arms(kind: Any) -> dict[str, Any]:
    if not _is_union(kind):
        return {}
    arms: dict[str, Any] = {}
    for arm in get_args(kind):
        tag = next((mark.tag for mark in get_args(arm)[1:] if isinstance(mark, Tag)), None)
        if tag is not None:
            arms[tag] = get_args(arm)[0] if len(get_args(arm)) == 2 else Annotated[get_args(arm)[:-1]]
    return arms


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)
