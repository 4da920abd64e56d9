"""The JSON Schemas: checked in, equal to the models, and of use in an editor."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kmrun import resources
from kmrun.schema import export
from kmrun.source.yaml_loader import load_bytes
from support.good_suite import EVERY_KEY


@pytest.mark.parametrize("kind", export.KINDS)
def test_the_file_is_what_the_models_say(kind: str) -> None:
    assert export.drift(kind) == ""


@pytest.mark.parametrize("kind", export.KINDS)
def test_the_schema_is_draft_7(kind: str) -> None:
    schema = json.loads(export.file_of(kind).read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert "$defs" not in json.dumps(schema)


def test_no_schema_lies_about_without_a_model() -> None:
    found = {path.name for path in resources.folder("schemas").iterdir()}
    assert found == {export.file_of(kind).name for kind in export.KINDS}


def test_drift_shows_the_difference_and_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stale = tmp_path / "suite.v1.schema.json"
    stale.write_text(export.text_of("suite").replace('"randn"', '"random"', 1), encoding="utf-8")
    monkeypatch.setattr(export, "file_of", lambda kind: stale)
    message = export.drift("suite")
    assert "python -m kmrun.schema.export" in message
    assert any(line.startswith("+") and '"randn"' in line for line in message.splitlines())


def errors(change: Callable[[dict[str, Any]], Any]) -> list[str]:
    """Return what an editor would say of the good suite after a change to its first kernel."""
    document = copy.deepcopy(load_bytes(EVERY_KEY.encode(), "x").document.value)
    change(document["kernels"][0])
    validator = jsonschema.Draft7Validator(export.schema_of("suite"))
    return [error.message for error in validator.iter_errors(document)]


def test_every_key_of_the_format_is_known() -> None:
    assert errors(lambda kernel: None) == []


def test_an_axis_may_be_null_and_a_mapping_that_says_nothing_is_shown() -> None:
    assert errors(lambda kernel: kernel["matrix"].update(t=[None, "a", [1, None]])) == []
    assert len(errors(lambda kernel: kernel.update(requires={}))) == 1
    assert len(errors(lambda kernel: kernel.update(check={"metric": "none"}))) == 1


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda kernel: kernel.update(byts=3), "byts"),
        (lambda kernel: kernel["args"]["a"].update(shpae=[1]), "shpae"),
        (lambda kernel: kernel["args"]["a"].update(init="rand"), "rand"),
        (lambda kernel: kernel["args"]["a"].update(p=0.5), "p"),
        (lambda kernel: kernel["contract"].append({"min_sped": 1}), "min_sped"),
        (lambda kernel: kernel["contract"].append({"when": "m > 3"}), "when"),
        (lambda kernel: kernel["contract"].append({"min_roof": 55}), "55"),
        (lambda kernel: kernel["contract"].append({"min_roof": {"h100-sxm": 0}}), "0"),
        (lambda kernel: kernel.update(reference=3), "3"),
        (lambda kernel: kernel.update(reference="torch.add"), "torch.add"),
        (lambda kernel: kernel["reference"].update(precision="fp64"), "precision"),
        (lambda kernel: kernel.update(flops=None), "None"),
        (lambda kernel: kernel["matrix"].update({"a-b": [1]}), "a-b"),
        (lambda kernel: kernel["matrix"].update(s={"pow": [1, 2]}), "pow"),
        (lambda kernel: kernel.update(peak={"units": "matmul"}), "in"),
        (lambda kernel: kernel.update(check={"metric": "cosine"}), "threshold"),
        (lambda kernel: kernel.pop("target"), "target"),
        (lambda kernel: kernel["timing"].update(l2="warm"), "warm"),
    ],
)
def test_an_editor_names_the_mistake_once(change: Callable[[dict[str, Any]], Any], wrong: str) -> None:
    (message,) = errors(change)
    assert f"'{wrong}'" in message or message.startswith(wrong) or f": {wrong}" in message


def test_a_kernel_that_extends_needs_no_target() -> None:
    assert errors(lambda kernel: (kernel.pop("target"), kernel.update(extends="other.yaml#gemm"))) == []
