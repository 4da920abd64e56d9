"""Frozen dataclasses to plain JSON values and back: what lets a Case or a Measurement cross a process boundary."""

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar, cast

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Return `value` (a dataclass, sequence, mapping or scalar) as dicts, lists and scalars."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value


def from_plain(cls: type[T], plain: Mapping[str, Any]) -> T:
    """Rebuild a dataclass from what `to_plain` made of it; the inverse for every class in core.

    Raises:
        TypeError: a field is missing or unknown (the two sides run different versions).
    """
    hints = _hints(cast(typing.Hashable, cls))
    return cls(**{name: _read(hints[name], item) for name, item in plain.items()})


_hints = functools.cache(typing.get_type_hints)


@functools.cache
def _is_scalar(hint: Any) -> bool:
    """Say whether values of a hint are the same in both forms: documents hold hundreds of thousands of them."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return all(_is_scalar(arm) for arm in typing.get_args(hint))
    return hint in (int, float, str, bool, types.NoneType)


def _read(hint: Any, value: Any) -> Any:
    if _is_scalar(hint):
        return value
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        dataclass_arms = [arm for arm in args if dataclasses.is_dataclass(arm)]
        if isinstance(value, Mapping) and len(dataclass_arms) == 1:
            return _read(dataclass_arms[0], value)
        tuples = [arm for arm in args if typing.get_origin(arm) is tuple]
        return _read(tuples[0], value) if isinstance(value, list) and tuples else value
    if dataclasses.is_dataclass(hint):
        return from_plain(cast(type[Any], hint), value)
    if origin is tuple and isinstance(value, list):
        if len(args) == 2 and args[1] is Ellipsis:
            if _is_scalar(args[0]):
                return tuple(value)
            return tuple(_read(args[0], item) for item in value)
        return tuple(_read(arm, item) for arm, item in zip(args, value, strict=True))
    if origin is not None and isinstance(value, Mapping) and len(args) == 2:
        return {key: _read(args[1], item) for key, item in value.items()}
    return value
