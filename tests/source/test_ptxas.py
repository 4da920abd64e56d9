"""Reading `nvcc -Xptxas -v`; the sample is what nvcc 13.0 printed for three kernels and two architectures."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kmrun.source.ptxas import demangled, read_kernels

SAMPLE = Path(__file__).with_name("data") / "ptxas_13.0.txt"


def test_every_kernel_of_every_architecture_is_read() -> None:
    found = read_kernels(SAMPLE.read_text(encoding="utf-8"))
    rows = [
        (one.name, one.cc, one.registers, one.static_smem_bytes, one.barriers, one.spill_bytes)
        for one in found
    ]
    assert rows == [
        ("my::add<float>", "sm_86", 12, 0, 0, 0),
        ("heavy", "sm_86", 64, 0, 0, 5336),
        ("reduce", "sm_86", 12, 4096, 1, 0),
        ("my::add<float>", "sm_90a", 12, 0, 0, 0),
        ("heavy", "sm_90a", 32, 0, 0, 10080),
        ("reduce", "sm_90a", 12, 4096, 1, 0),
    ]


def test_the_older_form_with_two_parts_of_shared_memory() -> None:
    text = (
        "ptxas info    : Compiling entry function 'k' for 'sm_70'\n"
        "ptxas info    : Used 40 registers, 8192+16 bytes smem, 356 bytes cmem[0]\n"
    )
    (found,) = read_kernels(text)
    assert (found.registers, found.static_smem_bytes, found.barriers, found.spill_bytes) == (
        40,
        8208,
        None,
        0,
    )


@pytest.mark.parametrize(
    "text", ["", "hello\n", "ptxas info    : Compiling entry function 'k' for 'sm_70'\n"]
)
def test_text_without_a_kernel_has_none(text: str) -> None:
    assert read_kernels(text) == []


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_Z3addPfS_S_i", "add"),
        ("_ZN2my3addIfEEvPKT_S3_PS1_i", "my::add<float>"),
        ("_Z3tplILi4EEvPf", "tpl<4>"),
        ("_Z3tplILin4ELb1EjEvPf", "tpl<-4, 1, unsigned>"),
        ("_Z3tplI6__halfEvPf", "tpl"),
        ("_ZN2ns4gemmILi128EE3runEv", "ns::gemm<128>::run"),
        ("_ZN52_GLOBAL__N__0000000000000000_4_a_cu_00000000_000000003addEPf", "add"),
        ("plain_c_name", "plain_c_name"),
        ("_Z", "_Z"),
        ("_Z99short", "short"),
    ],
)
def test_names_for_people(mangled: str, name: str) -> None:
    assert demangled(mangled) == name


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_what_this_machine_s_nvcc_prints_is_read(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(
        "__global__ void scale(float* x) { __shared__ float s[256]; s[threadIdx.x] = x[threadIdx.x];"
        " __syncthreads(); x[threadIdx.x] = 2 * s[255 - threadIdx.x]; }\n",
        encoding="utf-8",
    )
    command = ["nvcc", "-Xptxas", "-v", "-arch=sm_80", "-cubin", str(source), "-o", str(tmp_path / "k.cubin")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    (found,) = read_kernels(printed)
    assert (found.name, found.cc, found.static_smem_bytes, found.barriers) == ("scale", "sm_80", 1024, 1)
    assert found.registers > 0


@pytest.mark.parametrize(
    "mangled",
    [
        "_Z" + "9" * 5000 + "x",
        "_ZN" + "1a" * 5000 + "E",
        "_ZN4294967296aE",
        "_Z1aI" + "i" * 5000,
        "_Z1aILi" + "1" * 5000,
    ],
)
def test_a_name_of_any_length_has_a_readable_form(mangled: str) -> None:
    assert demangled(mangled)


def test_numbers_that_no_hardware_has_are_no_kernel() -> None:
    text = f"Compiling entry function 'k' for 'sm_86'\nUsed {'1' * 5000} registers, 1 bytes smem\n"
    assert read_kernels(text) == []


def test_a_name_cannot_move_the_cursor() -> None:
    (found,) = read_kernels(
        "Compiling entry function '\x1b]0;x\x07k' for 'sm_86\x1b[2J'\nUsed 32 registers\n"
    )
    assert (found.name, found.cc) == ("\ufffd]0;x\ufffdk", "sm_86\ufffd[2J")
