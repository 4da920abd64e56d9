import json
import os
import re
import stat
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
OWN = """\
kmrun_cards: 1
cards:
  mine:
    name: "</script><!--<script>alert(1)</script>&amp;"
    vendor: nvidia
    architecture: hopper
    sm_count: 10
    clock_mhz: {vector: 1000, matmul: 1000}
    memory: {type: hbm3, bus_bits: 1024, pin_gbps: 1}
    source: a dream
"""


def test_it_writes_one_file_and_says_where(kmrun, tmp_path):
    folder = tmp_path / "public" / "which-card"
    ran = kmrun("site", folder)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"wrote {folder}/index.html: open it, or put {folder} on any pages host\n"
    assert [path.name for path in folder.iterdir()] == ["index.html"]
    assert stat.S_IMODE((folder / "index.html").stat().st_mode) & 0o400


def test_the_same_cards_make_the_same_page(kmrun, tmp_path):
    for name in ("one", "two"):
        assert kmrun("site", tmp_path / name).code == 0
    one, two = ((tmp_path / name / "index.html").read_bytes() for name in ("one", "two"))
    assert one == two


def test_an_earlier_page_is_replaced_and_what_lies_beside_it_stays(kmrun, tmp_path):
    kmrun("site", tmp_path)
    (tmp_path / "CNAME").write_text("cards.example.org")
    page = tmp_path / "index.html"
    whole = page.read_bytes()
    page.write_bytes(whole + b"<!-- of an older version -->")
    assert kmrun("site", tmp_path).code == 0
    assert page.read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["CNAME", "index.html"]


def test_somebody_elses_page_is_not_touched(kmrun, tmp_path):
    page = tmp_path / "index.html"
    page.write_text("<!doctype html><title>mine</title>")
    ran = kmrun("site", tmp_path)
    assert ran.code == 2
    assert "index.html: is there already, and is no page of kmrun site" in ran.err
    assert page.read_text() == "<!doctype html><title>mine</title>"


@pytest.mark.parametrize(
    ("folder", "said"),
    [("", "DIR: an empty name is no file"), ("file", "file: is there already, and is no folder")],
)
def test_what_is_no_folder(kmrun, tmp_path, monkeypatch, folder, said):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    ran = kmrun("site", folder)
    assert ran.code == 2
    assert said in ran.err


def test_a_folder_below_a_file(kmrun, tmp_path):
    (tmp_path / "file").write_text("")
    ran = kmrun("site", tmp_path / "file" / "below")
    assert ran.code == 2
    assert "cannot be made: not a directory" in ran.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only(kmrun, tmp_path):
    tmp_path.chmod(0o500)
    ran = kmrun("site", tmp_path)
    assert ran.code == 2
    assert "permission denied" in ran.err


def test_nothing_is_loaded_from_anywhere(kmrun, tmp_path):
    kmrun("site", tmp_path)
    text = (tmp_path / "index.html").read_text()
    outside = re.findall(
        r"""(?:src|href)\s*=\s*["']?([^"' >]+)""", re.sub(r"<script.*?</script>", "", text, flags=re.S)
    )
    assert set(outside) == {"data:,", "#results-heading"}
    assert "default-src &#39;none&#39;" in text
    assert "unsafe-inline" not in text


def test_own_cards_are_offered_and_their_names_cannot_end_the_data(kmrun, tmp_path):
    overlay = tmp_path / "own.yaml"
    overlay.write_text(OWN)
    assert kmrun("site", tmp_path / "public", "--cards", overlay).code == 0
    text = (tmp_path / "public" / "index.html").read_text()
    data = re.search('<script type="application/json" id="data">(.*?)</script>', text, re.S)[1]
    found = json.loads(data)["cards"]
    assert found["mine"]["name"] == "</script><!--<script>alert(1)</script>&amp;"
    assert len(found) > 150
    assert not set("<>&") & set(data)


def test_a_wrong_card_file_leaves_nothing(kmrun, tmp_path):
    ran = kmrun("site", tmp_path / "public", "--cards", "nowhere.yaml")
    assert ran.code == 2
    assert ran.err.startswith("nowhere.yaml: error[K001]")
    assert not (tmp_path / "public").exists()


def test_the_workflow_runs_what_the_readme_says():
    workflow = yaml.safe_load((ROOT / ".github/workflows/pages.yml").read_text())
    steps = workflow["jobs"]["publish"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert "kmrun site public" in commands
    (upload,) = [step for step in steps if "upload-pages-artifact" in step.get("uses", "")]
    assert upload["with"]["path"] == "public"
