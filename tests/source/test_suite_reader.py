"""Reading suites: all mistakes in one run, one a mistake, the right kernels kept; `extends` across files."""

from pathlib import Path
from textwrap import dedent

import pytest

from kmrun.source.diagnostics import Diagnostic, InvalidSuite
from kmrun.source.suite_plan import read_and_plan
from kmrun.source.suite_reader import examine, read_suite
from support.good_suite import EVERY_KEY


def suite(tmp_path: Path, kernels: str, name: str = "s.yaml") -> Path:
    """Write a suite of these kernels."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("kmrun: 1\nsuite: s\nkernels:\n" + dedent(kernels).lstrip("\n"), encoding="utf-8")
    return path


def mistakes(path: Path) -> list[tuple[str, int, int]]:
    """Return (code, line, column) of what is wrong."""
    with pytest.raises(InvalidSuite) as caught:
        read_and_plan(path, path.name)
    return [(item.code, item.span.line, item.span.col) for item in caught.value.diagnostics]


def diagnostics(path: Path) -> tuple[Diagnostic, ...]:
    with pytest.raises(InvalidSuite) as caught:
        read_and_plan(path, path.name)
    return caught.value.diagnostics


def test_a_good_suite_with_every_key(tmp_path: Path) -> None:
    path = tmp_path / "every.yaml"
    path.write_text(EVERY_KEY, encoding="utf-8")
    read = read_suite(path)
    assert [kernel.name for kernel in read.suite.kernels] == ["gemm", "ragged", "backward"]
    assert len(read.digest) == 64
    assert read.folder == str(tmp_path)
    assert read_and_plan(path).warnings == ()


def test_all_mistakes_of_a_file_come_in_one_run_and_in_order(tmp_path: Path) -> None:
    path = suite(
        tmp_path,
        """
        - {name: a, target: torch.add}
        - {name: b, target: "torch:add", graph: yes}
        - {name: c, target: "torch:add", matrix: {n: [1]}, args: {x: {init: randn, shape: [m], dtype: fp32}}}
        - {name: c, target: "torch:add"}
        - {name: d, target: "torch:add", tgas: []}
        - {name: e}
        """,
    )
    assert mistakes(path) == [
        ("K308", 4, 21), ("K103", 5, 41), ("K201", 6, 84), ("K401", 7, 10), ("K301", 8, 34), ("K302", 9, 3),
    ]  # fmt: skip


def test_kernels_without_mistakes_are_kept(tmp_path: Path) -> None:
    path = suite(
        tmp_path,
        """
        - {name: a, target: 3}
        - {name: b, target: "torch:add"}
        - {name: c, target: "torch:add", graph: on}
        - {name: d, target: "torch:add"}
        """,
    )
    examined = examine(path)
    assert examined.suite is not None
    assert [kernel.name for kernel in examined.suite.kernels] == ["b", "d"]
    assert examined.indices == (1, 3)
    assert len(examined.diagnostics) == 2


def test_a_refused_value_gives_no_second_error(tmp_path: Path) -> None:
    path = suite(tmp_path, "- {name: a, target: 017, tags: yes, reference: !!foo x}\n")
    assert [code for code, _, _ in mistakes(path)] == ["K103", "K103", "K109"]


def test_an_unknown_version_is_the_only_error(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("kmrun: 7\nsuites: x\nkernel: []\n", encoding="utf-8")
    assert mistakes(path) == [("K300", 1, 8)]


def test_a_missing_key_and_its_misspelling_are_one_error(tmp_path: Path) -> None:
    path = suite(tmp_path, "- {nmae: a, target: 'torch:add', refrence: 'torch:add'}\n")
    assert mistakes(path) == [("K301", 4, 4), ("K301", 4, 34)]


def test_extends_takes_over_what_is_not_written(tmp_path: Path) -> None:
    suite(
        tmp_path,
        """
        - name: base
          target: k.py:f
          reference: {target: "ref/r.py:g"}
          versus: {one: k.py:h, two: {target: k.py:i, setup: k.py:s}, three: "torch:add"}
          tags: [slow]
          args: {x: {init: randn, shape: [4], dtype: fp32}}
        - name: middle
          extends: "#base"
          tags: [middle]
        """,
        "lib/base.yaml",
    )
    path = suite(
        tmp_path,
        """
        - name: mine
          extends: lib/base.yaml#middle
          versus: {}
        - name: other
          extends: lib/base.yaml#base
        - {name: again, extends: "#mine", target: "torch:relu"}
        """,
    )
    mine, other, again = read_suite(path).suite.kernels
    assert (mine.name, mine.target, mine.tags, mine.versus) == ("mine", "lib/k.py:f", ("middle",), {})
    assert mine.reference is not None and mine.reference.target == "lib/ref/r.py:g"
    assert {name: item.target for name, item in other.versus.items()} == {
        "one": "lib/k.py:h", "two": "lib/k.py:i", "three": "torch:add",
    }  # fmt: skip
    assert other.versus["two"].setup == "lib/k.py:s"
    assert (again.target, again.tags) == ("torch:relu", ("middle",))


def test_a_mistake_in_what_is_extended_is_shown_where_it_was_written(tmp_path: Path) -> None:
    suite(tmp_path, "- {name: base, target: 'm:f', tags: 3}\n", "lib/base.yaml")
    path = suite(tmp_path, "- {name: mine, extends: lib/base.yaml#base}\n")
    (item,) = diagnostics(path)
    assert (Path(item.file).as_posix(), item.code, item.span.line, item.span.col) == (
        "lib/base.yaml",
        "K303",
        4,
        37,
    )


def test_a_broken_file_that_is_extended_is_shown_itself(tmp_path: Path) -> None:
    suite(tmp_path, "- {name: base, target: 'm:f'\n", "lib/base.yaml")
    path = suite(
        tmp_path, "- {name: mine, extends: lib/base.yaml#base}\n- {name: x, target: 'm:f', extend: y}\n"
    )
    found = diagnostics(path)
    assert [(Path(item.file).as_posix(), item.code) for item in found] == [
        ("lib/base.yaml", "K101"),
        ("s.yaml", "K301"),
    ]


def test_circles_and_ways_out(tmp_path: Path) -> None:
    suite(tmp_path, "- {name: base, extends: ../s.yaml#mine}\n", "lib/base.yaml")
    path = suite(
        tmp_path,
        """
        - {name: mine, extends: lib/base.yaml#base}
        - {name: out, extends: ../outside.yaml#base}
        - {name: absolute, extends: /etc/passwd#base}
        - {name: typo, extends: lib/base.yaml#bsae}
        """,
    )
    found = diagnostics(path)
    assert [item.code for item in found] == ["K323", "K321", "K321", "K322"]
    assert found[3].hint == "did you mean 'base'?"


def test_a_link_that_leads_outside_is_refused(tmp_path: Path) -> None:
    suite(tmp_path, "- {name: base, target: 'm:f'}\n", "outside.yaml")
    path = suite(tmp_path, "- {name: mine, extends: link.yaml#base}\n", "in/s.yaml")
    (tmp_path / "in" / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    assert [code for code, _, _ in mistakes(path)] == ["K321"]


def test_extends_is_paid_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    big = ", ".join(["1"] * 9000)
    suite(tmp_path, f"- {{name: base, target: 'm:f', x-y: [{big}]}}\n", "base.yaml")
    path = suite(tmp_path, "".join(f"- {{name: k{i}, extends: base.yaml#base}}\n" for i in range(100)))
    found = diagnostics(path)
    assert {item.code for item in found} == {"K107"}
