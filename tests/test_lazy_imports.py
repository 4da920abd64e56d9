"""What a command imports is what a person waits for, and what a machine without it cannot run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SUITE = """\
kmrun: 1
suite: small
kernels:
  - name: add
    target: nowhere.py:add
    reference: torch:add
    args: {x: {init: randn, shape: [8, 8], dtype: bf16}, y: {init: randn, like: x}}
"""

PROBE = """\
import json, sys
sys.argv = ["kmrun", *json.loads(sys.argv[1])]
from kmrun.cli import main
try:
    main()
except SystemExit as ended:
    code = ended.code
sys.stderr.write(json.dumps({"code": code or 0, "modules": sorted(sys.modules)}))
"""

HEAVY = {"torch", "numpy", "jinja2", "pynvml"}
DOCUMENTS = {"yaml", "pydantic", "pydantic_core"}
POSIX_ONLY = {"fcntl", "resource", "termios", "pwd", "grp", "tty", "pty"}


def run(*words: str) -> set[str]:
    """Run a command in a fresh interpreter; return the top-level modules that it left imported."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(words)], capture_output=True, text=True, check=False
    )
    report = json.loads(done.stderr.splitlines()[-1])
    assert report["code"] == 0, done.stdout + done.stderr
    return {name.partition(".")[0] for name in report["modules"]}


def bare() -> set[str]:
    """Return the modules of an interpreter that does nothing but import the standard library's basics."""
    script = "import sys, subprocess, tempfile; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SUITE)
    return str(path)


def test_help_imports_nothing_heavy():
    assert not run("--help") & (HEAVY | DOCUMENTS)


@pytest.mark.parametrize("command", ["check", "list"])
def test_reading_a_suite_imports_nothing_heavy(command, suite):
    assert not run(command, suite) & HEAVY


@pytest.mark.parametrize("command", ["check", "list"])
def test_reading_a_suite_needs_no_posix(command, suite):
    """Modules that Windows lacks may be imported by the standard library itself, where it can do without."""
    assert not (run(command, suite) - bare()) & POSIX_ONLY


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "rtx-4090", "h100-sxm", "--ai", "0.33"),
        ("occupancy", "--block", "256", "--regs", "64", "--smem", "0", "--cc", "8.6"),
        ("roofline", "--gpu", "rtx-4090"),
        ("gpus",),
        ("llm", "70b", "--gpus", "rtx-4090", "--explain"),
        ("llm", "gpt-oss-20b"),
    ],
)
def test_questions_about_cards_import_no_documents_machinery(words):
    assert not run(*words) & (HEAVY | DOCUMENTS)


def test_core_imports_nothing_but_the_standard_library():
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted((ROOT / "kmrun/core").glob("*.py"))
        if path.stem != "__init__"
    ]
    assert modules
    script = f"import sys, {', '.join(modules)}; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    foreign = {name for name in loaded - sys.stdlib_module_names - bare() if not name.startswith("_")}
    assert foreign <= {"kmrun"}


def test_measuring_keeps_torch_out_of_the_parent():
    script = "import sys, kmrun.cli.running; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not {name.partition(".")[0] for name in done.stdout.split()} & {"torch", "pynvml", "jinja2"}
