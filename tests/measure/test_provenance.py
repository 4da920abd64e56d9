"""Which tree code comes from, and what counts as proof that each version ran its own."""

import os
import sys
from dataclasses import replace
from types import ModuleType

import pytest

from kmrun.measure.origin import Origin, wrong_tree
from kmrun.measure.provenance import Provenance, search_first, separate_caches


@pytest.fixture
def trees(tmp_path):
    for name in ("new", "old"):
        (tmp_path / name / "src" / "pack").mkdir(parents=True)
        (tmp_path / name / "src" / "pack" / "__init__.py").write_text(f"version = {name!r}\n")
    return tmp_path / "new", tmp_path / "old"


def test_a_path_into_the_other_tree_becomes_the_same_path_in_this_one(trees):
    new, old = trees
    side = Provenance(str(old), str(new))
    assert side.turned(str(new / "src")) == str(old / "src")
    assert side.turned(str(old / "src")) == str(old / "src")
    assert side.turned("/usr/lib") == "/usr/lib"
    (new / "only").mkdir()
    assert side.turned(str(new / "only")) == str(new / "only")


def test_the_innermost_tree_counts_and_installed_code_lies_elsewhere(trees):
    new, old = trees
    inner = new / "vendor"
    (inner / "lib" / "site-packages").mkdir(parents=True)
    side = Provenance(str(inner), str(new))
    assert side.home(inner / "a.py") == "own"
    assert side.home(new / "a.py") == "other"
    assert side.home(old / "a.py") == "elsewhere"
    assert side.home(inner / "lib" / "site-packages" / "torch.py") == "elsewhere"
    # An installed copy that is compared as such is a tree of its own.
    assert (
        Provenance(str(inner / "lib" / "site-packages"), str(old)).home(
            inner / "lib" / "site-packages" / "pack.py"
        )
        == "own"
    )
    assert Provenance(str(new), str(new)).home(new / "a.py") == "own"


def test_imports_of_an_editable_install_are_turned_and_what_still_comes_from_the_other_is_seen(
    trees, monkeypatch
):
    new, old = trees
    monkeypatch.setattr(sys, "path", [str(new / "src"), *sys.path])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(new / "src"), "/elsewhere"]))
    finder = ModuleType("__editable___pack_finder")
    finder.MAPPING = {"pack": str(new / "src" / "pack")}
    sys.modules[finder.__name__] = finder
    side = Provenance(str(old), str(new))
    side.turn_imports()
    import pack

    assert pack.version == "old"
    turned = finder.MAPPING
    assert turned == {"pack": str(old / "src" / "pack")}
    assert os.environ["PYTHONPATH"].split(os.pathsep) == [str(old / "src"), "/elsewhere"]
    assert side.foreign() == []
    leaked = ModuleType("leaked")
    leaked.__file__ = str(new / "src" / "leaked.py")
    sys.modules["leaked"] = leaked
    assert side.foreign() == [str(new / "src" / "leaked.py")]
    assert side.holds("pack")
    assert not side.holds("torch")


def test_variables_that_start_with_the_side(monkeypatch):
    monkeypatch.setattr(sys, "path", ["/a", "/b"])
    search_first(os.pathsep.join(["/c", "/b"]))
    assert sys.path == ["/c", "/b", "/a"]
    environment = {"TRITON_CACHE_DIR": "/home/me"}
    separate_caches("/run/old", environment)
    assert environment == {
        "TRITON_CACHE_DIR": "/run/old/triton",
        "TORCHINDUCTOR_CACHE_DIR": "/run/old/inductor",
        "TORCH_EXTENSIONS_DIR": "/run/old/extensions",
    }


NEW = Origin("/new/k.py", "own", (), None, "/new")
OLD = Origin("/old/k.py", "own", (), None, "/old")
TORCH = Origin("/site/torch.py", "elsewhere", (), None, "/old")


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        (NEW, OLD, None),
        (TORCH, TORCH, None),
        (NEW, replace(OLD, foreign=("/new/x.so",)), "v1 loaded /new/x.so, which is the other version's code"),
        (
            replace(NEW, foreign=("/old/a.py", "/old/b.py")),
            OLD,
            "this version loaded /old/a.py and 1 more, which is the other version's code",
        ),
        (
            replace(TORCH, file="/site/pack.py", own_copy="pack"),
            replace(TORCH, file="/site/pack.py", own_copy="pack"),
            "this version loaded /site/pack.py, not the 'pack' that /old has",
        ),
        (NEW, TORCH, "v1 loaded /site/torch.py, which is not in /old"),
        (
            NEW,
            replace(OLD, installed=(("pack", "/site/pack/__init__.py"),)),
            "v1 loaded /site/pack/__init__.py, not the 'pack' that /old has",
        ),
    ],
)
def test_what_proves_that_two_versions_were_compared(new, old, said):
    finding = wrong_tree(new, old, "v1")
    assert (finding.sentence if finding else None) == said
    if finding is not None:
        assert (finding.code, finding.fault, finding.outcome) == ("wrong_tree", "environment", "error")
        assert "build:" in finding.detail
