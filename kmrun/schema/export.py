"""JSON Schemas of the document kinds, in the part of draft-07 that editors understand.

    python -m kmrun.schema.export [--check]

writes schemas/<kind>.v<version>.schema.json from the models; `--check` only compares. A test runs the check.
"""

import difflib
import importlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from kmrun import resources
from kmrun.schema.base import Json


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """A kind of document: its model, as module and class, the major version of its format, and what it is."""

    module: str
    model: str
    version: int
    title: str


KINDS = {
    "suite": DocumentKind(
        "kmrun.schema.suite", "Suite", 1, "kmrun suite: kernels to measure and their contracts"
    ),
    "result": DocumentKind("kmrun.schema.result", "Result", 1, "kmrun result: what one run found out"),
    "baseline": DocumentKind(
        "kmrun.schema.baseline", "Baseline", 1, "kmrun baseline: how fast a suite was on one device"
    ),
    "card": DocumentKind("kmrun.schema.card", "CardFile", 1, "kmrun cards: hardware by physical parameters"),
    "architecture": DocumentKind(
        "kmrun.schema.architecture", "ArchitectureFile", 1, "kmrun architectures: rates and limits of an SM"
    ),
    "model": DocumentKind("kmrun.schema.model", "ModelFile", 1, "kmrun models: language models by shapes"),
    "quant": DocumentKind("kmrun.schema.quant", "QuantFile", 1, "kmrun quants: weight formats"),
}
"""The kinds by name; a new kind of document needs one line here and its model."""


class _Generator(GenerateJsonSchema):
    """Pydantic's generator without the titles that repeat each key."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Say no: a title that is the key itself tells nobody anything."""
        return False


def schema_of(kind: str) -> Json:
    """Return the JSON Schema of a document kind. Raises KeyError for an unknown one."""
    entry = KINDS[kind]
    model: type[BaseModel] = getattr(importlib.import_module(entry.module), entry.model)
    schema = model.model_json_schema(ref_template="#/definitions/{model}", schema_generator=_Generator)
    definitions = schema.pop("$defs", {})
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": entry.title}
    body = {key: value for key, value in schema.items() if key != "title"}
    tidied: Json = _tidied({**head, **body, "definitions": definitions})
    return tidied


def text_of(kind: str) -> str:
    """Return the schema as the file holds it."""
    return json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n"


def file_of(kind: str) -> Path:
    """Return where the schema of a kind stands."""
    return resources.folder("schemas") / f"{kind}.v{KINDS[kind].version}.schema.json"


def drift(kind: str) -> str:
    """Return how the file differs from the models, and the command that mends it; empty when equal."""
    path, wanted = file_of(kind), text_of(kind)
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    if found == wanted:
        return ""
    lines = difflib.unified_diff(
        found.splitlines(), wanted.splitlines(), path.name, "from the models", lineterm=""
    )
    return "\n".join([f"{path.name} is stale: run `python -m kmrun.schema.export`", *list(lines)[:60]])


def _tidied(node: Any) -> Any:
    """Drop null defaults and inner titles; close mappings whose keys follow a pattern."""
    if isinstance(node, list):
        return [_tidied(item) for item in node]
    if not isinstance(node, dict):
        return node
    result = {key: _tidied(value) for key, value in node.items()}
    if "default" in result and result["default"] is None:
        del result["default"]
    if "title" in result and isinstance(result["title"], str) and "$schema" not in result:
        del result["title"]
    if "patternProperties" in result and "properties" not in result:
        result.setdefault("additionalProperties", False)
    return result


def main(arguments: list[str]) -> int:
    """Write all schemas, or with `--check` say which are stale; return the exit status."""
    stale = 0
    for kind in KINDS:
        if "--check" in arguments:
            difference = drift(kind)
            if difference:
                stale += 1
                print(difference, file=sys.stderr)
        else:
            file_of(kind).write_text(text_of(kind), encoding="utf-8", newline="\n")
            print(f"wrote {file_of(kind).name}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
