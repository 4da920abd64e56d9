"""Which modules a tree holds: a repository by what git tracks, another folder by what lies in it."""

import pytest

from kmrun.store import packages
from kmrun.store.packages import module_in, packages_in
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
