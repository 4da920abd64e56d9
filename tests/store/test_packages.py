"""Which modules a tree holds: a repository by what git tracks, another folder by what lies in it."""

from pathlib import Path

import pytest

from kmrun.store import packages
from kmrun.store.packages import code_in, module_in, packages_in
from support.repositories import make_repository

FILES = {
    "libs/one/src/one/__init__.py": "",
    "libs/one/src/one/inner/__init__.py": "",
    "bindings/two.py": "",
    "spread/space/part.py": "",
    "third_party/carried/__init__.py": "",
    "suites/k.py": "",
}


@pytest.fixture(params=["repository", "folder"])
def tree(request, tmp_path):
    if request.param == "repository":
        root = make_repository(tmp_path / "tree", FILES)
        (root / "untracked").mkdir()
        (root / "untracked" / "__init__.py").touch()
        return root
    root = tmp_path / "tree"
    for name in (
        *FILES,
        "site-packages/three/__init__.py",
        ".cache/four/__init__.py",
        "env/five/__init__.py",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "env" / "pyvenv.cfg").touch()
    return root


def test_the_packages_that_are_a_tree_s_own(tree):
    assert packages_in(tree) == {"one"}


def test_the_file_of_a_module_wherever_it_lies(tree):
    assert module_in(tree, "one") == module_in(tree, "one.inner") == "libs/one/src/one/__init__.py"
    assert module_in(tree, "two") == "bindings/two.py"
    assert module_in(tree, "space.part") == "spread/space/part.py"
    assert module_in(tree, "ne") is module_in(tree, "three") is module_in(tree, "five") is None


def test_a_huge_folder_is_not_searched_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "_MOST_FOLDERS", 3)
    for name in "abcdef":
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.py").touch()
    assert sorted(packages._found(tmp_path)) == ["a/x.py", "b/x.py"]


@pytest.mark.parametrize(
    "file",
    [
        "pack/ops.py",
        "src/pack/ops.py",
        "lib/python3.11/site-packages/pack/__init__.py",
        "a b/pack.cpython-311-x86_64-linux-gnu.so",
        "dist/Pack_of_ops-1.0-py3-none-any.whl",
        "pack-1.0-py3.11.egg",
    ],
)
def test_code_that_a_copy_may_hold_wherever_it_lies(tmp_path, file):
    (tmp_path / "copy" / file).parent.mkdir(parents=True)
    (tmp_path / "copy" / file).touch()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "deps").symlink_to(tmp_path / "copy")
    (tmp_path / "linked" / "circle").symlink_to(tmp_path / "linked")
    (tmp_path / "linked" / "itself").symlink_to("itself")
    for root in (tmp_path / "copy", tmp_path / "linked"):
        assert code_in(root, str(root), "pack.ops:add")
        assert not code_in(root, str(root), "k.py:add")


def test_what_cannot_be_looked_into_is_passed_over(tmp_path, monkeypatch):
    """A folder that nobody may enter, a path that is too long: both were a traceback."""
    root = tmp_path / "tree"
    root.mkdir()
    with monkeypatch.context() as deep:
        deep.chdir(root)
        for _ in range(30):
            Path("n" * 200).mkdir()
            deep.chdir("n" * 200)
    assert not code_in(root, str(root), "pack.ops:add")
    assert not code_in(root, str(root / ("n" * 300)), "k.py:add")
    assert module_in(root, "pack.ops") is None
    (root / "pack.py").touch()
    assert code_in(root, str(root), "pack.ops:add")


def test_a_huge_folder_may_hold_any_code(tmp_path, monkeypatch):
    for number in range(4):
        (tmp_path / str(number)).mkdir()
    assert not code_in(tmp_path, str(tmp_path), "pack.ops:add")
    monkeypatch.setattr(packages, "_MOST_FOLDERS", 4)
    assert code_in(tmp_path, str(tmp_path), "pack.ops:add")
