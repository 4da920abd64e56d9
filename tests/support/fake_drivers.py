"""Stand-ins for the libraries of GPU drivers, compiled from C, and kmrun in a process that loads them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

SOURCES = Path(__file__).resolve().parent.parent / "device"
LIBRARIES = {
    "cuda": ("fake_cuda.c", "libcuda.so.1"),
    "nvml": ("fake_nvml.c", "libnvidia-ml.so.1"),
    "hip": ("fake_hip.c", "libamdhip64.so"),
    "rsmi": ("fake_rsmi.c", "librocm_smi64.so"),
}

needs_compiler = pytest.mark.skipif(
    shutil.which("gcc") is None or not sys.platform.startswith("linux"), reason="needs gcc on Linux"
)


def compiled(folder: Path, *names: str, define: Iterable[str] = ()) -> Path:
    """Compile the named stand-ins into the folder, and return it."""
    for name in names:
        source, library = LIBRARIES[name]
        flags = [f"-D{word}" for word in define]
        subprocess.run(
            ["gcc", "-Wall", "-shared", "-fPIC", *flags, "-o", folder / library, SOURCES / source], check=True
        )
    return folder


IMPATIENT = """
from kmrun.device import drivers, occupied, sampler, sensor_blocks
drivers.DRIVER_S = 5.0
drivers.DEVICE_S = sensor_blocks.SENSORS_S = occupied.ANSWER_S = sampler.OPEN_S = 0.5
"""
"""Makes a script wait half a second for a library that hangs, where kmrun waits for several."""
COMMAND = (
    IMPATIENT
    + """
from kmrun.cli import main
main()
"""
)


def run(
    folder: Path | None, words: list[str], *, limit_s: float = 60, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the interpreter with the folder's libraries found first."""
    environ = {key: value for key, value in os.environ.items() if key != "KMRUN_CARDS"}
    environ["LD_LIBRARY_PATH"] = str(folder) if folder else ""
    return subprocess.run(
        [sys.executable, *words],
        env=environ | variables,
        text=True,
        capture_output=True,
        check=False,
        timeout=limit_s,
    )


def kmrun(folder: Path | None, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command line of kmrun."""
    return run(folder, ["-m", "kmrun", *command.split()], **variables)


def document(
    folder: Path | None, command: str, code: int = 0, *, impatient: bool = False, **variables: str
) -> dict[str, Any]:
    """Run a command with --json and return its document; `impatient` waits less for libraries that hang."""
    start = ["-c", COMMAND] if impatient else ["-m", "kmrun"]
    done = run(folder, [*start, *command.split(), "--json"], **variables)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
