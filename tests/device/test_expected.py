"""What a run is going to use, before its sides have said it."""

import pytest

from kmrun.device import expected
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
    monkeypatch.setattr(expected, "chosen_gpu", lambda device: gpu)
    found = expected_device("cuda:1")
    assert (found.kind, found.index, found.name, found.uuid) == (kind, 1, UNTOLD, "GPU-1")
