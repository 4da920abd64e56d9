"""What a run is going to use, before its sides have said it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kmrun.device import expected, torch_build
from kmrun.device.chosen import ChosenGpu
from kmrun.device.expected import UNTOLD, expected_device


def test_without_a_gpu_it_is_the_cpu() -> None:
    found = expected_device("cpu")
    assert (found.kind, found.index) == ("cpu", 0)
    assert found.name != UNTOLD and found.memory_bytes > 0


@pytest.mark.parametrize(("vendor", "kind"), [("nvidia", "cuda"), ("amd", "rocm")])
def test_a_gpu_is_known_by_what_its_driver_calls_it(
    monkeypatch: pytest.MonkeyPatch, vendor: str, kind: str
) -> None:
    gpu = ChosenGpu(vendor, 1, "GPU-1", "0000:c1:00.0")  # type: ignore[arg-type]
    monkeypatch.setattr(expected, "chosen_gpu", lambda *_, **__: gpu)
    found = expected_device("cuda:1")
    assert (found.kind, found.index, found.name, found.uuid) == (kind, 1, UNTOLD, "GPU-1")


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("cuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n", "cuda"),
        ("cuda = None\nhip: Optional[str] = '6.4.43482'\n", "rocm"),
        ("cuda: Optional[str] = None\nhip: Optional[str] = None\n", "cpu"),
        ("nothing that we know\n", None),
        (None, None),
    ],
)
def test_torch_s_build_decides_which_driver_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str | None, kind: str | None
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise AssertionError('nobody imports torch for this')")
    if version is not None:
        (tmp_path / "torch/version.py").write_text(version)
    monkeypatch.setattr(torch_build, "torch_folder", lambda: tmp_path / "torch")
    asked = []

    def chosen(device: str, kind: str | None, seconds: float) -> None:
        asked.append((device, kind))

    monkeypatch.setattr(expected, "chosen_gpu", chosen)
    assert expected_device("auto").kind == "cpu"
    assert asked == [("auto", kind)]


def test_a_torch_that_is_none() -> None:
    script = (
        "import sys\nsys.path[:] = [path for path in sys.path if 'site-packages' not in path]\n"
        "from kmrun.device.torch_build import torch_kind\nprint(torch_kind())"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(expected.__file__).parents[2])}
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, env=environment, text=True, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == ("None\n", "")
