"""What is generated from the YAML is what the YAML says."""

import json
from pathlib import Path

import jsonschema
import pytest

from kmrun import resources
from kmrun.core.architectures import ARCHITECTURES
from kmrun.source import generate
from kmrun.source.card_files import read_architectures, read_cards
from kmrun.source.catalogue import as_entry, from_entry, load_cards, sources
from kmrun.source.yaml_loader import load_file


def test_generated_files_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    status = generate.main(["--check"])
    assert status == 0, capsys.readouterr().out


def test_check_tells_a_stale_file_and_write_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "architectures.py"
    target.write_text("old\n", encoding="utf-8")
    monkeypatch.setattr(generate, "generated", lambda: {target: "new\n"})
    assert generate.main(["--check"]) == 1
    assert "stale: run `python -m kmrun.source.generate`" in capsys.readouterr().out
    assert target.read_text(encoding="utf-8") == "old\n"
    assert generate.main([]) == 0
    assert target.read_text(encoding="utf-8") == "new\n"
    assert generate.main(["--check"]) == 0


def test_generated_architectures_equal_the_file() -> None:
    assert read_architectures(sources()[1]) == ARCHITECTURES


def test_compiled_cards_equal_the_file() -> None:
    read = read_cards(sources()[0])
    shipped = load_cards(environ={})
    assert list(read) == list(shipped.ids)
    for card_id, card in read.items():
        assert shipped.card(card_id) == card


def test_entry_and_back_through_json() -> None:
    for card in load_cards(environ={}):
        assert from_entry(card.id, json.loads(json.dumps(as_entry(card)))) == card


@pytest.mark.parametrize(("kind", "index"), [("card", 0), ("architecture", 1)])
def test_the_files_fit_their_json_schema(kind: str, index: int) -> None:
    schema = json.loads((resources.folder("schemas") / f"{kind}.v1.schema.json").read_text(encoding="utf-8"))
    document = load_file(sources()[index]).document.value
    jsonschema.Draft7Validator(schema).validate(document)


def test_an_overlay_may_use_any_architecture_that_ships(tmp_path: Path) -> None:
    overlay = tmp_path / "mine.yaml"
    head = "kmrun_cards: 1\ncards:\n"
    entries = "".join(
        f"  mine-{index}: {{name: M, vendor: {item.vendor}, architecture: {key}, memory: {{type: x}}, source: me"
        + (f", segment: {next(iter(item.segments))}" if item.segments else "")
        + "}\n"
        for index, (key, item) in enumerate(ARCHITECTURES.items())
    )
    overlay.write_text(head + entries, encoding="utf-8")
    assert len(read_cards(overlay)) == len(ARCHITECTURES)
