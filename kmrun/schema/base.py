"""What every document kind shares: the strict model, short forms, tagged unions and the scalar types.

No untagged union stands in a model: a wrong key or type must give one error, not one for each arm. The tags
in pydantic's error locations start with `@`, so that they are never taken for keys of the document.
"""

import math
import re
from collections.abc import Callable
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

Json = dict[str, Any]


class Document(BaseModel):
    """Base of all models: immutable, no coercion, no unknown key, aliases only."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)


class SaysSomething(Document):
    """A mapping whose keys may all be left out, but not all at once: empty it is a slip."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if not self.model_fields_set:
            keys = ", ".join(type(self).model_fields)
            raise PydanticCustomError("says_nothing", "an empty mapping says nothing", {"keys": keys})
        return self


T = TypeVar("T")
Many = Annotated[tuple[T, ...], Strict(False)]
"""A YAML sequence, kept as a tuple (strict mode alone would refuse the list)."""


class _Given:
    """Takes None out of an optional type: a key may be left out, but `flops:` alone on its line is a slip."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        return schema["schema"] if schema["type"] == "nullable" else schema


Opt = Annotated[T | None, _Given()]
"""May be left out (None), may not be null."""


class ShortForm:
    """Lets a string stand for a mapping: `reference: torch:add` for `reference: {target: torch:add}`."""

    def __init__(self, key: str, short: Json) -> None:
        self.key = key
        self.short = short

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Wrap the string before the model sees it."""
        return core_schema.no_info_before_validator_function(self._expand, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        """Say `if object then the model else the string`, so that editors name one mistake."""
        return {"if": {"type": "object"}, "then": handler(schema), "else": self.short}

    def _expand(self, value: Any) -> Any:
        return {self.key: value} if isinstance(value, str) else value


class IfThen:
    """JSON Schema of a tagged union: one if/then an arm, picked by the value of a key."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        """Replace pydantic's `oneOf` by if/then on the tag."""
        arms = _arms(schema, handler)
        return {
            "type": "object",
            "required": [self.key],
            "properties": {self.key: {"enum": list(arms)}},
            "allOf": [
                {"if": {"properties": {self.key: {"const": tag}}, "required": [self.key]}, "then": arm}
                for tag, arm in arms.items()
            ],
        }


class IfHas:
    """JSON Schema of a union told apart by which key is there (a contract's clauses, a range's kinds).

    `shared` are the keys that all arms have besides their own; with them a mistyped kind is named as a key.
    """

    def __init__(self, *shared: str) -> None:
        self.shared = shared

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        """Replace pydantic's `oneOf` by if/then on the presence of each arm's own key."""
        arms = _arms(schema, handler)
        known = {"propertyNames": {"enum": [*arms, *self.shared]}}
        return {
            "type": "object",
            **known,
            "if": known,
            "then": {"anyOf": [{"required": [kind]} for kind in arms]},
            "allOf": [{"if": {"required": [kind]}, "then": arm} for kind, arm in arms.items()],
        }


class IfMapping:
    """JSON Schema of mapping-or-other: one if/then on the type. Tags: `@mapping`, `@other`."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        """Replace pydantic's `oneOf` by if object, then, else."""
        arms = _arms(schema, handler)
        mapping, other = arms["mapping"], arms["other"]
        return {"if": {"type": "object"}, "then": mapping, "else": other}


def _arms(schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Json]:
    """Return the JSON Schema of each arm of a tagged union by its tag, `@` taken off."""
    while schema["type"] == "function-before":
        schema = schema["schema"]
    if schema["type"] != "tagged-union":
        raise TypeError(f"expected a tagged union, found {schema['type']}")
    tags = [str(tag).removeprefix("@") for tag in schema["choices"]]
    return dict(zip(tags, handler(schema)["oneOf"], strict=True))


def by_key(key: str) -> Callable[[Any], str | None]:
    """Return a discriminator that reads the tag at `key`; without one the union says that it is missing."""

    def tag(value: Any) -> str | None:
        if isinstance(value, BaseModel):
            return f"@{getattr(value, key)}"
        found = value.get(key) if isinstance(value, dict) else None
        return f"@{found}" if isinstance(found, str) else None

    return tag


def by_presence(kinds: tuple[str, ...]) -> Callable[[Any], str | None]:
    """Return a discriminator that takes the first key that is one of `kinds`."""

    def tag(value: Any) -> str | None:
        keys = type(value).model_fields if isinstance(value, BaseModel) else value
        if not isinstance(keys, dict):
            return None
        return next((f"@{key}" for key in keys if key in kinds), None)

    return tag


def mapping_or_other(value: Any) -> str:
    """Discriminator of mapping-or-scalar and mapping-or-list unions."""
    return "@mapping" if isinstance(value, dict | BaseModel) else "@other"


class _Checked:
    """A scalar with one check of our own and one JSON Schema; gives one error where a union gives several."""

    def __init__(self, check: Callable[[Any], Any], schema: Json) -> None:
        self._check = check
        self._schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        return dict(self._schema)


def _number_or_text(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise PydanticCustomError("formula_type", "expected a number or a formula")
    return _sound(value)


def _constant_or_text(value: Any) -> Any:
    return value if isinstance(value, bool) else _number_or_text(value)


def _sound(value: float | str) -> float | str:
    if isinstance(value, float) and not math.isfinite(value):
        raise PydanticCustomError("finite_number", "expected a finite number")
    if isinstance(value, str) and not value.strip():
        raise PydanticCustomError("formula_empty", "expected a formula, found an empty string")
    return value


def _scalar(value: Any) -> Any:
    if value is not None and not isinstance(value, bool | int | float | str):
        raise PydanticCustomError("scalar_type", "expected a number, a string, true, false or null")
    return value if value is None else _sound(value)


def _axis_value(value: Any) -> Any:
    if isinstance(value, list | tuple):
        if not value:
            raise PydanticCustomError("axis_empty_list", "a list-valued axis needs at least one element")
        return tuple(_scalar(item) for item in value)
    if isinstance(value, dict):
        raise PydanticCustomError(
            "axis_value", "expected a number, a string, true, false, null or a list of these"
        )
    return _scalar(value)


def _any_value(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_any_value(item) for item in value)
    if isinstance(value, dict):
        raise PydanticCustomError(
            "value_type", "expected a formula, a string, true, false, null or a list of these"
        )
    return value


_TARGET = re.compile(
    r"(?:[^:\s]+\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII
)


def _target(value: Any) -> Any:
    if not isinstance(value, str) or not _TARGET.fullmatch(value):
        raise PydanticCustomError(
            "target_form", "expected a target: 'module:attribute' or 'file.py:attribute'"
        )
    return value


_NUMBER_OR_TEXT = {"type": ["number", "string"]}
Formula = Annotated[int | float | str, _Checked(_number_or_text, _NUMBER_OR_TEXT)]
"""A number, or a formula as text. Parsing it is the plan's work."""

LetValue = Annotated[
    bool | int | float | str, _Checked(_constant_or_text, {"type": ["number", "string", "boolean"]})
]
"""A formula, or a constant true or false."""

AxisValue = Annotated[
    bool | int | float | str | tuple[bool | int | float | str | None, ...] | None,
    _Checked(
        _axis_value,
        {
            "type": ["number", "string", "boolean", "null", "array"],
            "items": {"type": ["number", "string", "boolean", "null"]},
        },
    ),
]
"""One point of an axis; null for an argument that is not given. A list makes a list-valued axis."""

Value = Annotated[Any, _Checked(_any_value, {"type": ["number", "string", "boolean", "null", "array"]})]
"""What `init: value` passes: a formula, string, bool, null, or a list of these (a tuple for the callee)."""

TARGET_SCHEMA: Json = {"type": "string", "pattern": f"^{_TARGET.pattern}$"}
Target = Annotated[str, _Checked(_target, TARGET_SCHEMA)]
"""`module:attribute`, or `file.py:attribute` relative to the suite."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""A name of the formulas' name space: axis, `let`, argument, output."""

Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
