"""Finding cards: by people's names, by drivers' names, with overlays."""

import subprocess
import sys
from pathlib import Path

import pytest

from kmrun import resources
from kmrun.errors import UnknownName, UsageError
from kmrun.source import catalogue
from kmrun.source.catalogue import load_cards
from kmrun.source.diagnostics import InvalidSuite

CARDS = load_cards(environ={})
OVERLAY = """\
kmrun_cards: 1
cards:
  lab-4090:
    name: Lab 4090 at 2.2 GHz
    vendor: nvidia
    architecture: ada
    segment: geforce
    aliases: [lab]
    sm_count: 128
    clock_mhz: {vector: 2200, matmul: 2200}
    memory: {gib: 24, type: gddr6x, bus_bits: 384, pin_gbps: 21}
    source: measured at home
"""


def test_all_172_cards_are_there_with_what_a_buyer_asks_first() -> None:
    assert len(CARDS) == 172
    assert len(set(CARDS.ids)) == 172
    assert {card.vendor for card in CARDS} == {"nvidia", "amd", "intel", "apple", "google", "aws"}


@pytest.mark.parametrize(
    ("name", "card_id"),
    [
        ("4090", "rtx-4090"),
        ("rtx 4090", "rtx-4090"),
        ("RTX-4090", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("4090 d", "rtx-4090-d"),
        ("H100 SXM", "h100-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("mi300x", "mi300x"),
        ("AMD Instinct MI300X", "mi300x"),
        ("M3 Ultra", "m3-ultra"),
        ("7900xtx", "rx-7900-xtx"),
        ("3080 ti", "rtx-3080-ti"),
        ("rtx 6000 ada", "rtx-6000-ada"),
        ("a6000", "rtx-a6000"),
        ("a10", "a10"),
        ("m1", "m1"),
        ("tpu v5e", "tpu-v5e"),
    ],
)
def test_people_write_one_card_in_many_ways(name: str, card_id: str) -> None:
    assert CARDS.find(name).id == card_id


@pytest.mark.parametrize(
    ("name", "card_id"),
    [
        ("a100-80gb", "a100-sxm-80gb"),
        ("a100-40gb", "a100-sxm-40gb"),
        ("v100-sxm2", "v100-sxm2-16gb"),
        ("rtx-3060", "rtx-3060-12gb"),
        ("rtx-3080", "rtx-3080-10gb"),
    ],
)
def test_short_names_in_common_use_are_aliases(name: str, card_id: str) -> None:
    assert CARDS.find(name).id == card_id


KERNELMETER_IDS = [
    "t4",
    "v100-sxm2",
    "v100-pcie",
    "a30",
    "a100-40gb",
    "a100-80gb",
    "h100-sxm",
    "h100-pcie",
    "a10",
    "a40",
    "l4",
    "l40",
    "l40s",
    "rtx-a4000",
    "rtx-a5000",
    "rtx-a6000",
    "rtx-6000-ada",
    "titan-rtx",
    "rtx-2080-ti",
    "rtx-3060",
    "rtx-3070",
    "rtx-3080",
    "rtx-3080-ti",
    "rtx-3090",
    "rtx-3090-ti",
    "rtx-4080",
    "rtx-4090",
    "rtx-5070",
    "rtx-5070-ti",
    "rtx-5080",
    "rtx-5090",
    "mi100",
    "mi210",
    "mi250x",
    "mi300x",
    "rx-6900-xt",
    "rx-7900-xt",
    "rx-7900-xtx",
    "rx-9070-xt",
    "w7900",
]


@pytest.mark.parametrize("name", KERNELMETER_IDS)
def test_every_id_of_kernelmeter_names_one_card(name: str) -> None:
    card = CARDS.find(name)
    assert name in (card.id, *card.aliases)


@pytest.mark.parametrize("card_id", CARDS.ids)
def test_id_name_and_aliases_of_every_card_lead_back_to_it(card_id: str) -> None:
    card = CARDS.card(card_id)
    for spelling in (card.id, card.name, *card.aliases):
        assert CARDS.find(spelling).id == card_id


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("h100", {"h100-sxm", "h100-pcie", "h100-nvl"}),
        ("a100", {"a100-sxm-40gb", "a100-sxm-80gb", "a100-pcie-40gb", "a100-pcie-80gb"}),
        ("h200", {"h200-sxm", "h200-nvl"}),
        ("v100", {"v100-sxm2-16gb", "v100-sxm2-32gb", "v100-pcie"}),
        ("mi300", {"mi300x", "mi300a"}),
        ("titan", {"titan-v", "titan-rtx"}),
        ("4060 ti", {"rtx-4060-ti-8gb", "rtx-4060-ti-16gb"}),
        ("h100 80gb", {"h100-sxm", "h100-pcie"}),
    ],
)
def test_a_family_is_never_guessed(name: str, candidates: set[str]) -> None:
    with pytest.raises(UsageError) as caught:
        CARDS.find(name)
    assert set(caught.value.hint.removeprefix("say which: ").split(", ")) == candidates
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("h100-sxn", "h100-sxm"),
        ("rtx-4909", "rtx-4090"),
        ("mi30x", "mi300x"),
        ("h10", "h100-sxm"),
        ("h1oo", "h100-sxm"),
        ("a100x", "a100-sxm-80gb"),
        ("nvidia rtx 4090 24gb", "did you mean rtx-4090"),
        ("hopper", "kmrun gpus --arch hopper"),
        ("gfx942", "kmrun gpus --arch gfx942"),
    ],
)
def test_a_typo_is_met_with_what_is_near(name: str, suggestion: str) -> None:
    with pytest.raises(UnknownName, match=name) as caught:
        CARDS.find(name)
    assert suggestion in caught.value.hint


@pytest.mark.parametrize("name", ["", " ", "nvidia", "xyzzy", "4070 laptop", "é", "\x1b[31m"])
def test_a_name_of_nothing_is_unknown_and_printable(name: str) -> None:
    with pytest.raises(UnknownName) as caught:
        CARDS.find(name)
    assert caught.value.sentence.isprintable()


@pytest.mark.parametrize(
    ("name", "sm_count", "gib", "architecture", "card_id"),
    [
        ("NVIDIA H100 80GB HBM3", 132, 79.2, "9.0", "h100-sxm"),
        ("NVIDIA H200", 132, 139.8, "9.0", "h200-sxm"),
        ("Tesla T4", 40, 14.6, "7.5", "t4"),
        ("GeForce RTX 3090", 82, 23.7, "8.6", "rtx-3090"),
        ("NVIDIA GeForce RTX 4060 Ti", 34, 15.6, "8.9", "rtx-4060-ti-16gb"),
        ("NVIDIA GeForce RTX 4060 Ti", 34, 7.6, "8.9", "rtx-4060-ti-8gb"),
        ("AMD Instinct MI300X", 304, 191.5, "gfx942:sramecc+:xnack-", "mi300x"),
        ("AMD Radeon Graphics", 304, 255.5, "gfx942:sramecc+:xnack-", "mi325x"),
        ("AMD Radeon RX 7900 XTX", 48, 24, "gfx1100", "rx-7900-xtx"),
        ("AMD Radeon RX 7900 XTX", 96, 24, "gfx1100", "rx-7900-xtx"),
        ("Orin", 16, 61.4, "8.7", "jetson-agx-orin-64gb"),
        ("NVIDIA L4", None, None, None, "l4"),
    ],
)
def test_a_driver_s_name_with_units_and_memory_is_one_card(
    name: str, sm_count: int | None, gib: float | None, architecture: str | None, card_id: str
) -> None:
    found = CARDS.match_driver(name, sm_count, int(gib * 2**30) if gib else None, architecture)
    assert found.card is not None
    assert found.card.id == card_id


def test_one_device_of_mi250x_is_half_the_card() -> None:
    found = CARDS.match_driver("AMD Instinct MI250X / MI250", 110, 64 * 2**30, "gfx90a")
    assert found.card is not None
    assert (found.card.id, found.card.sm_count) == ("mi250x", 110)


@pytest.mark.parametrize(
    ("name", "sm_count", "gib", "architecture"),
    [
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 76, 16, "8.9"),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", 42, 39, "8.0"),
        ("NVIDIA H100 80GB HBM3", 114, 79, "9.0"),
        ("NVIDIA GeForce RTX 3060", 28, 8, "8.6"),
        ("NVIDIA RTX 9000 Unheard Of", 200, 96, "13.0"),
        ("AMD Radeon Graphics", 12, 8, "gfx1103"),
    ],
)
def test_what_is_not_in_the_database_is_no_neighbour(
    name: str, sm_count: int, gib: int, architecture: str
) -> None:
    found = CARDS.match_driver(name, sm_count, gib * 2**30, architecture)
    assert (found.card, found.candidates) == (None, ())


def test_two_cards_of_one_driver_name_are_ambiguous() -> None:
    found = CARDS.match_driver("NVIDIA GeForce RTX 2080 Ti", 68, 11 * 2**30, "7.5")
    assert found.card is None
    assert found.candidates == ("rtx-2080-ti", "rtx-2080-ti-fe")


def test_the_last_level_cache_is_the_larger_of_l2_and_memory_side_cache() -> None:
    mib = 2**20
    expected = {"mi300x": 256, "rx-7900-xtx": 96, "h100-sxm": 50, "rtx-5090": 96, "t4": 4}
    assert {card_id: (CARDS.card(card_id).llc_bytes or 0) // mib for card_id in expected} == expected


def test_an_overlay_adds_and_replaces_cards(tmp_path: Path) -> None:
    overlay = tmp_path / "mine.yaml"
    overlay.write_text(OVERLAY.replace("lab-4090", "rtx-4090").replace("[lab]", "[]"), encoding="utf-8")
    replaced = load_cards([overlay], environ={})
    assert len(replaced) == 172
    assert replaced.find("4090").vector_clock_hz == 2.2e9
    overlay.write_text(OVERLAY, encoding="utf-8")
    added = load_cards(environ={catalogue.OVERLAY_VARIABLE: str(overlay)})
    assert len(added) == 173
    assert added.find("lab").id == "lab-4090"
    assert added.find("4090").vector_clock_hz == 2.52e9


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("architecture: ada", "architecture: adda", 6, "unknown architecture 'adda'"),
        ("segment: geforce", "segment: gaming", 7, "unknown segment 'gaming'"),
        ("    segment: geforce\n", "", 6, "say which"),
        ("vendor: nvidia", "vendor: amd", 5, "is by nvidia"),
        ("sm_count: 128", "sm_count: many", 9, "whole number"),
        ("bus_bits: 384", "bus_bts: 384", 11, "bus_bts"),
        ("vector: 2200", "vector: -1", 10, "50"),
        ("kmrun_cards: 1", "kmrun_cards: 2", 1, "1"),
        ("pin_gbps: 21", "pin_gbps: yes", 11, "'yes' is a string to some YAML readers"),
        ("gib: 24", "gib: 1e400", 11, "larger than any floating-point number"),
        ("    vendor: nvidia\n", "", 4, "'vendor' is missing in 'lab-4090'"),
        ("lab-4090:", "Lab 4090!:", 3, "'Lab 4090!' cannot be a name"),
        ("[lab]", "[lab, lab-4090, t4]", None, ""),
    ],
)
def test_a_wrong_overlay_gives_one_placed_diagnostic(
    tmp_path: Path, old: str, new: str, line: int | None, words: str
) -> None:
    overlay = tmp_path / "mine.yaml"
    overlay.write_text(OVERLAY.replace(old, new), encoding="utf-8")
    if line is None:
        assert load_cards([overlay], environ={}).find("lab").id == "lab-4090"
        return
    with pytest.raises(InvalidSuite) as caught:
        load_cards([overlay], environ={})
    assert [item.span.line for item in caught.value.diagnostics] == [line]
    assert words in caught.value.diagnostics[0].message


def test_a_missing_overlay_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidSuite, match=r"nowhere\.yaml"):
        load_cards([tmp_path / "nowhere.yaml"], environ={})


def test_an_edited_cards_file_counts_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled form is used only while it belongs to the YAML beside it."""
    for name in ("cards.yaml", "architectures.yaml", catalogue.COMPILED):
        text = (resources.folder("cards") / name).read_text(encoding="utf-8")
        if name == "cards.yaml":
            text = text.replace("name: GeForce RTX 4090\n", "name: GeForce RTX 4090 renamed\n")
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(catalogue.resources, "folder", lambda _: tmp_path)
    assert load_cards(environ={}).card("rtx-4090").name == "GeForce RTX 4090 renamed"


def test_the_catalogue_needs_neither_yaml_nor_pydantic() -> None:
    code = (
        "import sys; from kmrun.source.catalogue import load_cards; load_cards().find('4090');"
        "sys.exit(bool({'yaml', 'pydantic', 'rich', 'torch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
