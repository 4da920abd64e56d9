import json
from pathlib import Path

import pytest

SUITE = """\
kmrun: 1
suite: demo
kernels:
  - name: scale
    target: k.py:scale
    reference: torch:mul
    tags: [ci]
    matrix: {dtype: [fp32, bf16]}
    cases:
      - {device: cpu, n: 1024}
      - {device: gpu, n: 1048576}
    exclude:
      - {when: dtype == 'fp32' and n > 10000, reason: the same code path}
    args: {x: {init: randn, shape: [n], dtype: dtype}}
    outputs: {o: {like: x}}
    flops: n
    peak: {units: vector, in: fp32}
  - name: learned
    target: k.py:learned
    reference: torch:neg
    args: {x: {init: randn, shape: [1000], dtype: fp32}}
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("demo.yaml").write_text(SUITE, encoding="utf-8")
    return "demo.yaml"


def test_the_table(kmrun, suite: str) -> None:
    ran = kmrun("list", suite)
    assert (ran.code, ran.err) == (0, "")
    assert (
        ran.out
        == """\
demo   demo.yaml   4 cases

case                         device    kB  kflop  flop/B  kernel MB  judge MB
scale[n=1024,dtype=fp32]     cpu     8.19   1.02   0.125     0.0328    0.0655
scale[n=1024,dtype=bf16]     cpu     4.10   1.02   0.250     0.0164    0.0451
scale[n=1048576,dtype=bf16]  gpu     4194   1049   0.250       16.8      46.1
learned                      any        -      -       -     0.0160    0.0280
bytes and flop/B are `-` where a run first learns the outputs: `outputs:` or `bytes:` says them here
excluded 1 of scale: the same code path
"""
    )


def test_rows_for_another_device_are_shown_as_such(kmrun, suite: str) -> None:
    ran = kmrun("list", suite, "--device", "cpu", "--tag", "ci", "-k", "bf16")
    assert ran.code == 0
    assert (
        ran.out
        == """\
demo   demo.yaml   2 cases of 4, 1 for other devices

case                         device            kB  kflop  flop/B  kernel MB  judge MB
scale[n=1024,dtype=bf16]     cpu             4.10   1.02   0.250     0.0164    0.0451
scale[n=1048576,dtype=bf16]  gpu (not here)  4194   1049   0.250       16.8      46.1
excluded 1 of scale: the same code path
"""
    )


def test_json(kmrun, suite: str) -> None:
    ran = kmrun("list", suite, "--json", "--device", "cpu")
    document = json.loads(ran.out)
    assert (ran.code, document["suite"], document["file"]) == (0, "demo", "demo.yaml")
    assert document["excluded"] == [{"id": "scale[n=1048576,dtype=fp32]", "reason": "the same code path"}]
    assert [case["other_device"] for case in document["cases"]] == [False, False, True, False]
    assert document["cases"][1] == {
        "id": "scale[n=1024,dtype=bf16]",
        "kernel": "scale",
        "axes": {"n": 1024, "dtype": "bf16"},
        "device": "cpu",
        "other_device": False,
        "tags": ["ci"],
        "bytes": 4096,
        "flops": 1024,
        "intensity": 0.25,
        "needed_bytes": {"kernel": 16384, "judge": 45056},
    }
    learned = document["cases"][3]
    assert (learned["bytes"], learned["flops"], learned["intensity"]) == (None, None, None)


def test_several_files(kmrun, suite: str) -> None:
    Path("other.yaml").write_text(SUITE.replace("demo", "other").replace("scale", "grow"), encoding="utf-8")
    ran = kmrun("list", suite, "other.yaml", "-k", "grow[n=1024,dtype=bf16]")
    assert (
        ran.out
        == """\
other   other.yaml   1 case of 4

case                     device    kB  kflop  flop/B  kernel kB  judge kB
grow[n=1024,dtype=bf16]  cpu     4.10   1.02   0.250       16.4      45.1
excluded 1 of grow: the same code path
"""
    )
    ran = kmrun("list", suite, "other.yaml", "--json")
    assert [document["suite"] for document in json.loads(ran.out)] == ["demo", "other"]


def test_no_match(kmrun, suite: str) -> None:
    ran = kmrun("list", suite, "-k", "sacle")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: no case matches -k 'sacle'\nhint: did you mean 'scale'?\n"


def test_a_device_that_is_none(kmrun, suite: str) -> None:
    ran = kmrun("list", suite, "--device", "gpu")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: --device gpu is open")


def test_a_wrong_suite_is_told_with_its_place(kmrun, suite: str) -> None:
    Path(suite).write_text(SUITE.replace("flops: n", "flops: nn"), encoding="utf-8")
    ran = kmrun("list", suite)
    assert (ran.code, ran.out) == (2, "")
    assert "demo.yaml:16:12: error[K201]: unknown name 'nn' in formula" in ran.err


def test_a_missing_file(kmrun, suite: str) -> None:
    ran = kmrun("list", "nowhere.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert "K001" in ran.err


def test_a_card_is_a_device(kmrun, suite: str) -> None:
    text = SUITE.replace("device: gpu", "device: rocm")
    Path(suite).write_text(text, encoding="utf-8")
    away = {}
    for device in ("mi300x", "4090", "rocm", "cuda:1"):
        document = json.loads(kmrun("list", suite, "--json", "--device", device).out)
        away[device] = [case["other_device"] for case in document["cases"]]
    assert away == {
        "mi300x": [True, True, False, False],
        "4090": [True, True, True, False],
        "rocm": [True, True, False, False],
        "cuda:1": [True, True, True, False],
    }
    ran = kmrun("list", suite, "--device", "rtx-4091")
    assert (ran.code, ran.out) == (2, "")
    assert "rtx-4090" in ran.err


def test_nothing_heavy_is_imported(suite: str) -> None:
    import subprocess
    import sys

    script = (
        "import sys; sys.argv = ['kmrun', 'list', 'demo.yaml']\n"
        "from kmrun.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'jinja2', 'pynvml', 'numpy', 'rich'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_it_is_at_most_100_columns_wide_and_cuts_no_id(kmrun, suite: str) -> None:
    text = Path(suite).read_text(encoding="utf-8")
    for length in range(30, 110, 3):
        name = "k" * length
        Path(suite).write_text(text.replace("name: scale", f"name: {name}"), encoding="utf-8")
        ran = kmrun("list", suite)
        assert ran.code == 0
        for row in ("[n=1024,dtype=fp32]", "[n=1048576,dtype=bf16]"):
            assert f"{name}{row}" in ran.out
        others = [line for line in ran.out.splitlines() if not line.startswith((name, "excluded"))]
        assert max(map(len, others)) <= 100
        named = [line for line in ran.out.splitlines() if line.startswith(name)]
        assert all(len(line) <= 100 or line.endswith("]") for line in named)


def test_an_empty_pattern_is_no_pattern(kmrun, suite: str) -> None:
    for command in ("run", "list", "exec"):
        ran = kmrun(command, suite, "-k", "")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == "error: -k names no case: it is empty\nhint: `kmrun list` shows the cases\n"
