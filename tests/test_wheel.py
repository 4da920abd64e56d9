"""The wheel holds what git holds, no more and no less."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kmrun import __version__

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("cards", "schemas", "suites", "templates")


def sources(*paths: str) -> set[str]:
    """Return what git tracks, or would if asked: everything but ignored files."""
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    done = subprocess.run([*words, *paths], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    return {name for name in done.stdout.split("\0") if name and (ROOT / name).exists()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel that this checkout builds."""
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_data_folders_are_those_of_git(wheel):
    inside = {
        name.removeprefix("kmrun/_data/") for name in wheel.namelist() if name.startswith("kmrun/_data/")
    }
    assert inside == sources(*FOLDERS)


def test_the_package_is_that_of_git(wheel):
    inside = {
        name for name in wheel.namelist() if name.startswith("kmrun/") and not name.startswith("kmrun/_data/")
    }
    assert inside == sources("kmrun")
    assert "kmrun/py.typed" in inside


def test_nothing_else_is_in_it(wheel):
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {"kmrun", f"kmrun-{__version__}.dist-info"}


def test_metadata(wheel):
    metadata = wheel.read(f"kmrun-{__version__}.dist-info/METADATA").decode()
    assert "Requires-Python: >=3.11" in metadata
    assert "License-Expression: MIT" in metadata
    for extra in ("bench", "dev"):
        assert f"Provides-Extra: {extra}" in metadata
    entry_points = wheel.read(f"kmrun-{__version__}.dist-info/entry_points.txt").decode()
    assert "kmrun = kmrun.cli:main" in entry_points


def test_the_commands_that_need_no_torch_work_from_the_wheel(wheel, tmp_path):
    """From an unpacked wheel in front of everything else, so that the checkout cannot help out."""
    wheel.extractall(tmp_path)
    script = "import sys; sys.path.insert(0, sys.argv.pop(1)); from kmrun.cli import main; main()"
    for words in (["gpus"], ["schema", "suite"], ["check", str(tmp_path / "kmrun/_data/suites")]):
        done = subprocess.run(
            [sys.executable, "-I", "-c", script, str(tmp_path), *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert (done.returncode, done.stderr) == (0, ""), words
        assert done.stdout
