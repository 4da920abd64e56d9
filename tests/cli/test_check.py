"""`kmrun check`, whole output and exit code; `explain` and `schema` beside it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.good_suite import EVERY_KEY

GOOD = """\
kmrun: 1
suite: first
kernels:
  - name: my_add
    target: mykernels.py:add
    reference: torch:add
    args: {x: {init: randn, shape: [64, 64], dtype: bf16}, y: {init: randn, like: x}}
"""
BAD = GOOD.replace("shape: [64, 64]", "shape: [n, 64]")


def kmrun(*words: str, cwd: Path, **environment: str) -> tuple[int, str, str]:
    """Run the command line; return exit code, stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "kmrun", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_good_suite(tmp_path: Path) -> None:
    write(tmp_path, "good.yaml", GOOD)
    assert kmrun("check", "good.yaml", cwd=tmp_path) == (
        0,
        "good.yaml: 1 kernel, 1 case\nno mistake found\n",
        "",
    )


def test_a_bad_suite(tmp_path: Path) -> None:
    write(tmp_path, "bad.yaml", BAD)
    code, out, err = kmrun("check", "bad.yaml", cwd=tmp_path)
    assert (code, err) == (2, "")
    assert out == (
        "bad.yaml:7:37: error[K201]: unknown name 'n' in formula\n"
        "  |\n"
        "7 |     args: {x: {init: randn, shape: [n, 64], dtype: bf16}, y: {init: randn, like: x}}\n"
        "  |                                     ^\n"
        "\n"
        "1 error in 1 file · kmrun explain K201\n"
    )


def test_a_warning_does_not_fail(tmp_path: Path) -> None:
    write(tmp_path, "s.yaml", GOOD + "    flops: 64 * 64\n")
    code, out, _ = kmrun("check", "s.yaml", cwd=tmp_path)
    assert code == 0
    assert "warning[K430]" in out
    assert out.endswith("s.yaml: 1 kernel, 1 case\nno error, 1 warning · kmrun explain K430\n")


def test_a_folder_is_searched(tmp_path: Path) -> None:
    write(tmp_path, "suites/good.yaml", GOOD)
    write(tmp_path, "suites/deep/bad.yml", BAD)
    write(tmp_path, "suites/other.yaml", "jobs: []\n")
    write(tmp_path, "suites/.hidden/bad.yaml", BAD)
    write(tmp_path, "suites/broken.yaml", "kmrun: 1\nkernels: [\n")
    code, out, _ = kmrun("check", "suites", "suites/good.yaml", "--format", "json", cwd=tmp_path)
    assert code == 2
    found = [(Path(item["file"]).as_posix(), item["code"]) for item in json.loads(out)]
    assert found == [("suites/broken.yaml", "K101"), ("suites/deep/bad.yml", "K201")]


def test_json_of_a_good_suite_is_an_empty_array(tmp_path: Path) -> None:
    write(tmp_path, "good.yaml", GOOD)
    assert kmrun("check", "good.yaml", "--format", "json", cwd=tmp_path) == (0, "[]\n", "")


def test_github(tmp_path: Path) -> None:
    write(tmp_path, "bad.yaml", BAD)
    assert kmrun("check", "bad.yaml", "--format", "github", cwd=tmp_path) == (
        2,
        "::error file=bad.yaml,line=7,col=37,endLine=7,endColumn=38,title=K201::"
        "unknown name 'n' in formula\n",
        "",
    )


def test_what_is_no_suite_file(tmp_path: Path) -> None:
    write(tmp_path, "good.yaml", GOOD)
    write(tmp_path, "empty.yaml", "")
    (tmp_path / "folder").mkdir()
    code, out, err = kmrun("check", "goood.yaml", "folder", "empty.yaml", "good.yaml", cwd=tmp_path)
    assert (code, err) == (2, "")
    assert out == (
        "goood.yaml: error[K001]: no such file or folder\n"
        "   = did you mean 'good.yaml'?\n"
        "\n"
        "folder: error[K002]: no suite in this folder\n"
        "   = a suite is a .yaml file with the key 'kmrun'; `kmrun init file.py:fn` writes one\n"
        "\n"
        "empty.yaml: error[K111]: the file is empty\n"
        "   = `kmrun init file.py:fn` writes a suite\n"
        "\n"
        "good.yaml: 1 kernel, 1 case\n"
        "3 errors in 3 files · kmrun explain K001\n"
    )


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs permissions that bind")
def test_an_unreadable_file(tmp_path: Path) -> None:
    write(tmp_path, "secret.yaml", GOOD)
    (tmp_path / "secret.yaml").chmod(0)
    code, out, _ = kmrun("check", "secret.yaml", cwd=tmp_path)
    assert code == 2
    assert out.startswith("secret.yaml: error[K001]: cannot be read: Permission denied\n")


def test_an_unknown_format(tmp_path: Path) -> None:
    assert kmrun("check", "x.yaml", "--format", "xml", cwd=tmp_path) == (
        2,
        "",
        "error: 'xml' is no format\nhint: one of text, json, github\n",
    )


def test_a_terminal_that_cannot_show_a_character_is_no_crash(tmp_path: Path) -> None:
    write(tmp_path, "bad.yaml", BAD.replace("my_add", "漢字"))
    code, out, err = kmrun("check", "bad.yaml", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert (code, err) == (2, "")
    assert "K307" in out


def test_check_runs_no_code_and_imports_nothing_heavy(tmp_path: Path) -> None:
    write(tmp_path, "mykernels.py", "raise SystemExit('imported')\n")
    write(tmp_path, "every.yaml", EVERY_KEY)
    write(tmp_path, "good.yaml", GOOD)
    script = (
        "import sys\nsys.argv = ['kmrun', 'check', '.']\nfrom kmrun.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "heavy = {'torch', 'jinja2', 'pynvml', 'numpy', 'rich', 'triton'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_explain(tmp_path: Path) -> None:
    code, out, _ = kmrun("explain", "k103", cwd=tmp_path)
    assert code == 0
    assert out == (
        "K103: a value that reads two ways\n"
        "\n"
        "yes, no, on and off are truth values to some YAML readers and strings to others; 017 is 15 or 17;\n"
        "1:30 is 90 or a string; 1_000 is a number or a string. kmrun never guesses: write what is meant.\n"
        "\n"
        "Wrong:\n\n    causal: [yes, no]\n"
        "\n"
        "Right:\n\n    causal: [true, false]\n"
    )
    code, out, _ = kmrun("explain", cwd=tmp_path)
    assert code == 0
    assert "K201  an unknown name in a formula\n" in out
    code, out, err = kmrun("explain", "K2011", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err == "error: no diagnostic code 'K2011'\nhint: did you mean K201?\n"


def test_schema(tmp_path: Path) -> None:
    code, out, _ = kmrun("schema", "suite", cwd=tmp_path)
    assert code == 0
    assert json.loads(out)["definitions"]["Kernel"]["required"] == ["name"]
    code, out, _ = kmrun("schema", cwd=tmp_path)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()][:2] == ["suite", "result"]
    code, out, err = kmrun("schema", "siute", cwd=tmp_path)
    assert (code, out, err) == (2, "", "error: no document kind 'siute'\nhint: did you mean 'suite'?\n")
