import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kmrun.cli import running
from kmrun.core.measurement import Finding
from kmrun.store.results import render
from support.adding import adding
from support.fake_drivers import compiled, needs_compiler
from support.fake_drivers import kmrun as kmrun_process
from support.gpu_results import gpu_result
from support.markup import parsed
from support.results import make_result
from support.supervisors import FakeSupervisor

SUITE = adding()


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KMRUN_CARDS", raising=False)
    return tmp_path


@pytest.fixture
def saved(here) -> Path:
    path = here / "run one.json"
    path.write_text(render([make_result()]), encoding="utf-8")
    return path


def test_a_result_becomes_a_page_named_after_it(kmrun, saved, here):
    ran = kmrun("report", saved)
    page = here / "run-one.html"
    size = len(page.read_bytes()) / 1e3
    assert (ran.code, ran.out, ran.err) == (0, f"wrote run-one.html ({size:.0f} kB)\n", "")
    root = parsed(page.read_text(encoding="utf-8"))
    assert root.all("h1")[0].text == "adding"
    assert "All contracts hold" in root.all("p", class_="word")[0].text


def test_standard_output_holds_the_page_alone(kmrun, saved, here):
    ran = kmrun("report", saved, "--out", "-")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("<!doctype html>\n")
    assert ran.out.endswith("</html>\n")
    assert not list(here.glob("*.html"))


def test_several_results_stand_side_by_side(kmrun, saved, here):
    other = here / "b.json"
    later = make_result(started="2026-02-02T00:00:00+00:00")
    other.write_text(render([later, replace(later, wall_s=1.0)], several=True), encoding="utf-8")
    ran = kmrun("report", saved, other, "--out", "c.html")
    assert ran.code == 0, ran.err
    root = parsed((here / "c.html").read_text(encoding="utf-8"))
    assert [header.text for header in root.all("h1")] == ["adding"]
    assert [header.text for header in root.all("h2", class_="run-name")] == [
        "2026-01-02 03:04:05",
        "2026-02-02 00:00:00 (1)",
        "2026-02-02 00:00:00 (2)",
    ]


def test_standard_input_is_a_result(kmrun, here, monkeypatch):
    def piped(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    piped(render([make_result()]))
    assert kmrun("report", "-").code == 0
    assert "<h1>adding</h1>" in (here / "adding.html").read_text(encoding="utf-8")
    piped(render([make_result()]))
    assert kmrun("report", "-", "--out", "-").out == (here / "adding.html").read_text(encoding="utf-8")
    for text, words, said in (
        ("{", ["-"], "standard input: not JSON"),
        ("[]", ["-"], "standard input: no result in it"),
        ("[]", ["-", "-"], "- twice: standard input can be read once"),
    ):
        piped(text)
        ran = kmrun("report", *words)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"error: {said}")


def test_an_earlier_report_is_replaced_and_nothing_else(kmrun, saved, here):
    assert kmrun("report", saved, "--out", "r.html").code == 0
    assert kmrun("report", "--gpu", "4090", "--out", "r.html").code == 0
    assert "GeForce RTX 4090" in (here / "r.html").read_text(encoding="utf-8")
    (here / "mine.html").write_text("<p>mine")
    ran = kmrun("report", saved, "--out", "mine.html")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: --out mine.html: is there already, and is no report of kmrun\n"
        "hint: name another file, or take that one away\n"
    )
    assert (here / "mine.html").read_text() == "<p>mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.json", "--out", "folder"], "--out folder: is a directory"),
        (["a.json", "--out", "nowhere/x.html"], "--out nowhere/x.html: cannot be written: no such file"),
        (["a.json", "--out", ""], "--out: an empty name is no file"),
        (["a.json", "--gpu", "4090"], "results name their own device"),
        (["--device", "0", "--gpu", "4090"], "--gpu and --device each name a card"),
        (["--gpu", "h100"], "'h100' names 3 cards"),
        (["missing.json"], "missing.json: no such file or directory"),
        (["newer.json"], "newer.json: result format 2, this kmrun reads 1"),
        (["broken.json"], "broken.json: not JSON"),
        (["damaged.json"], "damaged.json: damaged result document: cases"),
        (["empty.json"], "empty.json: no result in it"),
        (["suite.yaml"], "suite.yaml: not JSON"),
    ],
)
def test_what_cannot_be_reported_is_an_error(kmrun, here, words, said):
    document = json.loads(render([make_result()]))
    (here / "folder").mkdir()
    (here / "a.json").write_text(json.dumps(document))
    (here / "newer.json").write_text(json.dumps(document | {"kmrun_result": 2}))
    (here / "broken.json").write_text("{")
    (here / "damaged.json").write_text(json.dumps(document | {"cases": 3}))
    (here / "empty.json").write_text("[]")
    (here / "suite.yaml").write_text(SUITE)
    before = sorted(here.iterdir())
    ran = kmrun("report", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {said}")
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize("card", ["rtx-4090", "mi300x", "m3-ultra", "tpu-v5e", "h100-sxm"])
def test_a_card_of_the_database(kmrun, here, card):
    ran = kmrun("report", "--gpu", card)
    assert ran.code == 0, ran.err
    root = parsed((here / f"{card}.html").read_text(encoding="utf-8"))
    tiles = {tile.all("dt")[0].text: tile.all("dd")[0].text for tile in root.all("div", class_="tile")}
    assert "bandwidth" in tiles
    assert len(root.all("svg", class_="roofline")) == 2
    limits = "Launch limits, of one multiprocessor" in [heading.text for heading in root.all("h3")]
    assert limits == (card in ("rtx-4090", "h100-sxm"))
    assert ("shared memory per block" in root.text) == limits


@needs_compiler
def test_a_local_device(here, tmp_path):
    drivers = tmp_path / "drivers"
    drivers.mkdir()
    done = kmrun_process(compiled(drivers, "cuda", "nvml"), "report --out d.html")
    assert (done.returncode, done.stderr) == (0, "")
    root = parsed((here / "d.html").read_text(encoding="utf-8"))
    headings = [heading.text for heading in root.all("h2")]
    assert headings[:3] == ["Roofline", "Peaks", "Facts"]
    assert "Driver attributes" in headings
    assert "peaks at the driver's highest clocks: 320 GB/s, 130 TOP/s int8 tensor" in root.text
    assert "power" in [row.text for row in root.all("th") if row.attributes.get("scope") == "row"]


@needs_compiler
def test_without_a_device_the_hint_names_the_database(here, tmp_path):
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    done = kmrun_process(nothing, "report")
    assert done.returncode == 3
    assert done.stderr.endswith("hint: --gpu CARD reports any card of the database\n")
    assert not list(here.glob("*.html"))


def test_a_run_leaves_a_page(kmrun, here, monkeypatch):
    broken = FakeSupervisor({"add[n=2048]": _raised()})
    monkeypatch.setattr(running, "make_supervisor", lambda *given: broken)
    (here / "adding.yaml").write_text(SUITE)
    ran = kmrun("adding.yaml", "--html", "out.html")
    assert ran.code == 1
    root = parsed((here / "out.html").read_text(encoding="utf-8"))
    assert root.all("p", class_="word")[0].text == "A case could not be measured"
    assert [found.all("h3")[0].text for found in root.all("article")] == ["✕ ERROR add[n=2048] adding.yaml:4"]
    assert "kmrun adding.yaml -k 'add[n=2048]' --seed 7" in root.text


@pytest.mark.parametrize(
    ("name", "said"),
    [("-", "--html -: standard output is for the scorecard"), ("adding.yaml", "--html adding.yaml")],
)
def test_a_page_that_cannot_be_written_stops_before_measuring(kmrun, here, monkeypatch, name, said):
    supervisor = FakeSupervisor()
    monkeypatch.setattr(running, "make_supervisor", lambda *given: supervisor)
    (here / "adding.yaml").write_text(SUITE)
    ran = kmrun("adding.yaml", "--html", name)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {said}")
    assert supervisor.asked == []


def test_the_roofs_are_those_of_the_results_card(kmrun, here):
    (here / "g.json").write_text(render([gpu_result(sizes=3)]), encoding="utf-8")
    assert kmrun("report", "g.json").code == 0
    keys = [
        item.text
        for item in parsed((here / "g.html").read_text(encoding="utf-8")).all("li")
        if item.all("svg")
    ]
    assert keys[0] == "published peaks: 3.35 TB/s, 989 TFLOP/s bf16 / fp16 tensor"
    assert keys[1].startswith("at the clocks held: ")
    assert keys[2].startswith("measured here: 3.05 TB/s, 742 TFLOP/s bf16, 51.9 TFLOP/s fp32")


def _raised():
    from support.cases import make_found

    return make_found(findings=(Finding("raised", "boom", "kernel", "error"),))
