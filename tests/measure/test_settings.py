"""Torch's global settings: what user code does to them is told, and never reaches what runs after it."""

import os

import pytest
import torch

from kmrun.measure import machine
from kmrun.measure.faults import SideFault

CHANGES = {
    "the number of threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "torch.backends.cuda.matmul.allow_tf32": lambda: setattr(
        torch.backends.cuda.matmul, "allow_tf32", not torch.backends.cuda.matmul.allow_tf32
    ),
    "torch.backends.cudnn.allow_tf32": lambda: setattr(
        torch.backends.cudnn, "allow_tf32", not torch.backends.cudnn.allow_tf32
    ),
    "the default dtype": lambda: torch.set_default_dtype(torch.float64),
    "the default device": lambda: torch.set_default_device("meta"),
    "torch.are_deterministic_algorithms_enabled()": lambda: torch.set_deterministic_debug_mode("error"),
}
LEAKS = {
    "denormals": lambda: torch.set_flush_denormal(True),
    "gradients": lambda: torch.set_grad_enabled(False),
    "autocast": lambda: torch.set_autocast_enabled("cpu", True),
    "precision": lambda: torch.set_float32_matmul_precision("high"),
    "folder": lambda: os.chdir("/"),
}


@pytest.fixture(autouse=True)
def _restored():
    before = machine.Settings.now()
    yield
    before.restore()
    assert machine.Settings.now() == before


def test_every_flag_has_its_change():
    assert set(CHANGES) == set(machine.flags())


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_setting_is_told_and_put_back(name):
    flags, settings = machine.flags(), machine.Settings.now()
    with (
        pytest.raises(SideFault, match="for the whole process") as caught,
        machine.steady("the reference", "suite"),
    ):
        CHANGES[name]()
    assert caught.value.sentence.startswith(f"the reference changed {name} from {flags[name]} to ")
    assert (caught.value.code, caught.value.fault) == ("flags_changed", "suite")
    assert (machine.flags(), machine.Settings.now()) == (flags, settings)


@pytest.mark.parametrize("name", CHANGES)
def test_what_user_code_raises_goes_before_what_it_changed(name):
    flags = machine.flags()
    with pytest.raises(ZeroDivisionError), machine.steady("the kernel", "kernel"):
        CHANGES[name]()
        _ = 1 / 0
    assert machine.flags() == flags


@pytest.mark.parametrize("name", [*LEAKS, *CHANGES])
def test_nothing_is_left_to_the_next_case(name):
    flags, settings = machine.flags(), machine.Settings.now()
    (LEAKS | CHANGES)[name]()
    assert (machine.flags(), machine.Settings.now()) != (flags, settings)
    settings.restore()
    assert (machine.flags(), machine.Settings.now()) == (flags, settings)


@pytest.mark.skipif(not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="torch before 2.9")
def test_half_of_torch_s_newer_precision_is_no_fault_of_kmrun_s():
    settings = machine.Settings.now()
    with (
        pytest.raises(SideFault, match="fp32_precision 'tf32' for the whole process"),
        machine.steady("the kernel", "kernel"),
    ):
        torch.backends.cuda.matmul.fp32_precision = "tf32"
    assert machine.Settings.now() == settings


def test_a_folder_that_is_gone_is_left(tmp_path):
    settings = machine.Settings.now()
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    settings.restore()
    assert machine.Settings.now() == settings
