"""The sentences for what a document model refuses: what is wrong, what was found, what was probably meant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from kmrun.core.case import Path
from kmrun.core.problem import Problem
from kmrun.schema.contract import CLAUSE_KINDS
from kmrun.schema.suite import Kernel, Suite
from kmrun.source import model_shape
from kmrun.source.suggest import listed, meant

UNKNOWN_KEY, MISSING_KEY, WRONG_TYPE, NOT_ALLOWED = "K301", "K302", "K303", "K304"
UNKNOWN_CHOICE, CLAUSE, BAD_NAME, BAD_TARGET, TENSOR = "K305", "K306", "K307", "K308", "K309"
NO_VALUE = "K310"


@dataclass(frozen=True)
class SchemaError:
    """One of pydantic's errors, with its location as a document path."""

    type: str
    location: tuple[str | int, ...]
    path: Path
    on_key: bool
    value: Any
    context: dict[str, Any]
    message: str
    parent: Any
    """The value that holds the last step of the path."""


def problem(item: SchemaError, root: type[BaseModel]) -> Problem:
    """Return the problem that one of pydantic's errors stands for; `root` is the document's model."""
    if item.type == "extra_forbidden":
        return _extra(item, model_shape.at(root, item.location[:-1]))
    if item.type == "missing":
        return _missing(item)
    if item.type in ("union_tag_not_found", "union_tag_invalid"):
        return _tag(item, model_shape.at(root, item.location))
    if item.on_key:
        hint = _ID_HINT if item.path[:1] in _CATALOGUES else _NAME_HINT
        return Problem(BAD_NAME, item.path, _bad_name(str(item.path[-1])), hint, on_key=True)
    if item.value is None and item.path and item.type != "value_type":
        key = item.path[-1]
        text = f"'{key}' has no value" if isinstance(key, str) else "an empty list item"
        hint = 'quote it: "#..." starts a comment' if key == "extends" else "give it one, or take it out"
        return Problem(NO_VALUE, item.path, text, hint, on_key=isinstance(key, str))
    return _wrong_value(item)


_NAME_HINT = "letters, digits and '_', not starting with a digit"
_ID_HINT = "small letters and digits, with '-' and '.' between them"
_CATALOGUES = (("cards",), ("architectures",), ("models",), ("quants",))


def unknown(item: SchemaError) -> str:
    """Return the sentence for an unknown key."""
    return f"unknown key '{item.path[-1]}'"


def _extra(item: SchemaError, expected: model_shape.Expected) -> Problem:
    name = str(item.path[-1])
    clause_kind = getattr(expected.model, "kind", None)
    kinds = CLAUSE_KINDS
    if clause_kind is not None and name in kinds:
        message = f"a second promise, '{name}', in the clause that promises '{clause_kind}'"
        return Problem(CLAUSE, item.path, message, "one promise an entry: write two", on_key=True)
    keys = expected.keys
    near = meant(name, [key for key in keys if not isinstance(item.parent, dict) or key not in item.parent])
    hint = f"did you mean '{near}'?" if near else _elsewhere(name, expected.model)
    note = (f"keys here: {listed(keys, 40)}",) if keys else ()
    return Problem(UNKNOWN_KEY, item.path, unknown(item), hint, note, on_key=True)


def of_another_kind(item: SchemaError, tag_key: str, fitting: Sequence[str], strangers: int) -> Problem:
    """Return the problem of a mapping whose `tag_key` is one kind, and whose keys are those of others."""
    message = f"'{item.path[-1]}' does not go with {tag_key}: {item.parent[tag_key]}"
    them = "it" if strangers == 1 else "these keys"
    hint = f"{tag_key}: {listed(fitting, 4)} take{'s' if len(fitting) == 1 else ''} {them}"
    return Problem(UNKNOWN_KEY, item.path, message, hint, on_key=True)


def _elsewhere(name: str, model: type[BaseModel] | None) -> str:
    """Return where a key is known that is not known here."""
    if name.startswith("x_"):
        return f"keys of your own start with 'x-': x-{name[2:]}"
    if model is Kernel and name in CLAUSE_KINDS:
        return f"it belongs under 'contract': - {{{name}: ...}}"
    if model is Suite and name in Kernel.model_fields:
        return "it belongs in a kernel: indent it"
    for key in model.model_fields if model is not None else ():
        inner = model_shape.at(model, [key]).model if model is not None else None
        if inner is not None and name in inner.model_fields:
            return f"it belongs under '{key}'"
    return ""


def _missing(item: SchemaError) -> Problem:
    name = item.path[-1]
    where = item.path[:-1]
    owner = item.parent.get("name") if isinstance(item.parent, dict) else None
    of = f" in kernel '{owner}'" if isinstance(owner, str) and len(where) == 2 else ""
    if where[:1] in _CATALOGUES and len(where) == 2:
        of = f" in '{where[1]}'"
    hint = _MISSING_HINTS.get(str(name), "")
    if name == "reason" and isinstance(item.parent, dict) and "metric" in item.parent:
        hint = "say why it is not compared"
    return Problem(MISSING_KEY, where, f"'{name}' is missing{of}", hint)


_MISSING_HINTS = {
    "target": "target: module:attribute, or file.py:attribute",
    "kernels": "a suite is a list of kernels",
    "suite": "give the suite a name: suite: my_kernels",
    "kmrun": "a suite starts with the version of its format: kmrun: 1",
    "reason": "say why these points are left out",
    "when": "say which points are left out: when: s > 8192",
    "in": "name the dtype: in: bf16",
}


def _tag(item: SchemaError, expected: model_shape.Expected) -> Problem:
    what = expected.tag_key
    if not isinstance(item.value, dict):
        example = _EXAMPLES.get(what or "", "")
        message = f"expected a mapping, found {described(item.value)}"
        if item.value is None and item.path:
            return Problem(NO_VALUE, item.path, f"'{item.path[-1]}' has no value", example, on_key=True)
        return Problem(WRONG_TYPE, item.path, message, example)
    if what is not None and what in item.value:
        found = item.value[what]
        if found is None:
            hint = f"one of {listed(expected.tags, 40)}"
            return Problem(NO_VALUE, (*item.path, what), f"'{what}' has no value", hint, on_key=True)
        if not isinstance(found, str):
            message = f"'{what}' takes a word, found {described(found)}"
            return Problem(UNKNOWN_CHOICE, (*item.path, what), message, f"one of {listed(expected.tags, 40)}")
        near = meant(found, expected.tags)
        hint = f"did you mean '{near}'?" if near else ""
        note = (f"known: {listed(expected.tags, 40)}",)
        return Problem(UNKNOWN_CHOICE, (*item.path, what), f"unknown {what} '{found}'", hint, note)
    return _no_tag(item, expected)


def _no_tag(item: SchemaError, expected: model_shape.Expected) -> Problem:
    wanted = [expected.tag_key] if expected.tag_key else list(expected.tags)
    if expected.tag_key == "units":
        wanted.append("tflops")
    shared = {"when", "tags", "xfail", "shape", "dtype", "like"}
    for key in item.value:
        near = meant(str(key), wanted) if key not in shared else None
        if near:
            path = (*item.path, key)
            return Problem(UNKNOWN_KEY, path, f"unknown key '{key}'", f"did you mean '{near}'?", on_key=True)
    if expected.tag_key is not None:
        message = f"'{expected.tag_key}' is missing: it says which kind this is"
        return Problem(MISSING_KEY, item.path, message, f"one of {listed(expected.tags, 40)}")
    others = [key for key in item.value if key not in shared]
    if others:
        message = f"unknown key '{others[0]}'"
        note = (f"one of these has to be here: {listed(wanted)}",)
        return Problem(UNKNOWN_KEY, (*item.path, others[0]), message, "", note, on_key=True)
    return Problem(CLAUSE, item.path, "nothing is promised here", f"one of {listed(wanted)}")


_EXAMPLES = {
    "init": "write {init: value, value: ...} for a plain value",
    "units": "write {units: matmul, in: bf16} or {tflops: 312}",
    "metric": "write {metric: allclose, rtol: 1e-3}",
    "dist": "write {dist: uniform, low: 1, high: 512, count: b}",
}

_TYPES = {
    "string_type": "a text", "int_type": "a whole number", "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping", "tuple_type": "a list", "list_type": "a list", "model_type": "a mapping",
    "formula_type": "a number or a formula", "scalar_type": "a number, a text, true, false or null",
    "axis_value": "a number, a text, true, false, null or a list of these",
    "value_type": "a formula, a text, true, false, null or a list of these",
    "int_from_float": "a whole number",
}  # fmt: skip
_OWN = {
    "formula_empty": (WRONG_TYPE, "give it a value, or take it out"),
    "axis_empty_list": (NOT_ALLOWED, ""),
    "finite_number": (NOT_ALLOWED, ""),
    "target_form": (BAD_TARGET, ""),
    "like_and_shape": (TENSOR, ""),
    "shape_missing": (TENSOR, "shape: [m, n], dtype: bf16"),
    "says_nothing": (NOT_ALLOWED, ""),
    "time_range": (NOT_ALLOWED, ""),
    "two_peaks": (UNKNOWN_KEY, "write {units: matmul, in: bf16} or {tflops: 312}"),
    "dtype_missing": (TENSOR, "dtype: bf16"),
    "tolerance_without_dtype": (WRONG_TYPE, "write {bf16: {rtol: 1e-2, atol: 1e-3}}"),
}


def _wrong_value(item: SchemaError) -> Problem:
    found = described(item.value)
    if item.type in _OWN:
        code, hint = _OWN[item.type]
        if item.type == "finite_number":
            return Problem(code, item.path, f"expected a finite number, found {found}")
        if item.type == "says_nothing":
            return Problem(code, item.path, item.message, f"keys here: {item.context['keys']}")
        message = f"{item.message}, found {found}" if code == BAD_TARGET else item.message
        on_key = item.type == "two_peaks"
        return Problem(code, item.path, message, hint or _target_hint(item), on_key=on_key)
    if item.type in _TYPES:
        return Problem(
            WRONG_TYPE, item.path, f"expected {_TYPES[item.type]}, found {found}", _type_hint(item)
        )
    if item.type in ("literal_error", "enum"):
        return _literal(item)
    if item.type == "string_pattern_mismatch":
        return _pattern(item)
    if item.type in _LIMITS:
        key, words = _LIMITS[item.type]
        return Problem(
            NOT_ALLOWED, item.path, f"must be {words} {item.context[key]:g}, found {found}", _range_hint(item)
        )
    if item.type in ("too_short", "string_too_short"):
        least = item.context["min_length"]
        message = "must not be empty" if least == 1 else f"needs {least} values, found {len(item.value)}"
        return Problem(NOT_ALLOWED, item.path, message)
    if item.type == "too_long":
        message = f"takes {item.context['max_length']} values, found {len(item.value)}"
        return Problem(NOT_ALLOWED, item.path, message)
    return Problem(NOT_ALLOWED, item.path, item.message[:1].lower() + item.message[1:])


_LIMITS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def _literal(item: SchemaError) -> Problem:
    choices = [word.strip("'") for word in item.context["expected"].replace(" or ", ", ").split(", ")]
    near = meant(item.value, choices) if isinstance(item.value, str) else None
    hint = f"did you mean '{near}'?" if near else ""
    if near == item.value:
        hint = f"without quotes: {near}"
    name = item.path[-1] if item.path else ""
    message = f"'{name}' is {listed(choices[:-1])} or {choices[-1]}, found {described(item.value)}"
    if len(choices) == 1:
        message = f"'{name}' is {choices[0]}, found {described(item.value)}"
    return Problem(UNKNOWN_CHOICE, item.path, message, hint)


def _pattern(item: SchemaError) -> Problem:
    name = item.path[-1] if item.path else ""
    if name == "min_cc":
        return Problem(
            NOT_ALLOWED, item.path, f"expected a compute capability, found {described(item.value)}", '"8.0"'
        )
    if name == "module":
        return Problem(BAD_NAME, item.path, f"expected a module's name, found {described(item.value)}")
    hint = (
        "letters, digits, '_', '-' and '.', starting with a letter"
        if name in ("name", "suite")
        else _NAME_HINT
    )
    return Problem(BAD_NAME, item.path, _bad_name(item.value), hint)


def _bad_name(name: str) -> str:
    return f"'{name}' cannot be a name"


def _target_hint(item: SchemaError) -> str:
    if isinstance(item.value, str) and ":" not in item.value and "." in item.value:
        module, _, attribute = item.value.rpartition(".")
        if module.isascii() and not module.endswith("/") and attribute != "py":
            return f"write {module}:{attribute}"
    return ""


def _type_hint(item: SchemaError) -> str:
    value = item.value
    if item.type == "bool_type" and isinstance(value, str) and value.lower() in ("true", "false"):
        return f"without quotes: {value.lower()}"
    if item.type in ("int_type", "float_type") and isinstance(value, str):
        if value.endswith("%") and value[:-1].strip().replace(".", "", 1).isdigit():
            return f"a fraction: {float(value[:-1]) / 100:g}"
        if value.replace(".", "", 1).isdigit():
            return f"without quotes: {value}"
    if item.type == "string_type" and isinstance(value, bool | int | float):
        return f'quote it: "{value}"' if not isinstance(value, bool) else f'quote it: "{str(value).lower()}"'
    if item.type == "tuple_type" and isinstance(value, str | int | float | bool):
        shown = str(value).lower() if isinstance(value, bool) else value
        return f"write [{shown}]"
    if item.type == "tuple_type" and isinstance(value, dict):
        return (
            "start each entry with '- '"
            if item.path and item.path[-1] in ("kernels", "cases", "contract")
            else ""
        )
    if item.type in ("dict_type", "model_type") and isinstance(value, str):
        name, colon, rest = value.partition(":")
        if colon and rest and name.isidentifier() and not rest.startswith(" "):
            return _key_hint(item) or f"a space after the ':': {name}: {rest}"
    if item.type == "dict_type" and isinstance(value, list):
        return "write names: {x: ..., y: ...}, without '- '"
    return _key_hint(item)


def _key_hint(item: SchemaError) -> str:
    name = item.path[-1] if item.path else ""
    return {
        "reference": "write module:attribute, or {target: module:attribute, compute: fp64}",
        "versus": "name it: versus: {eager: module:attribute}",
        "timeout_s": "write {first_call: 300, case: 60}",
        "requires": 'write {module: triton, min_cc: "8.0"}',
        "seed": "",
    }.get(str(name), "")


def _range_hint(item: SchemaError) -> str:
    is_fraction = item.type == "less_than_equal" and item.context.get("le") == 1
    if is_fraction and isinstance(item.value, int | float) and 1 < item.value <= 100:
        return f"a fraction, not percent: {item.value / 100:g}"
    return "a fraction" if is_fraction else ""


def described(value: Any) -> str:
    """Return how to call a value in a sentence."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        shown = " ".join(value[:80].split())
        return f"'{shown if len(shown) <= 40 else shown[:37] + '...'}'" if shown else "an empty text"
    return "a mapping" if isinstance(value, dict) else "a list"
