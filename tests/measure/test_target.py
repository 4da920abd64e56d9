import pickle
import sys
from pathlib import Path

import pytest

from kmrun.measure.target import TargetError, resolve


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if name.startswith(("kmrun_suite_", "mine_")):
            del sys.modules[name]


def refusal(spec, folder):
    with pytest.raises(TargetError) as caught:
        resolve(spec, str(folder))
    return caught.value


def test_a_module_target_is_imported():
    import torch

    assert resolve("torch:add", "/") is torch.add
    assert resolve("torch.nn.functional:softmax", "/") is torch.nn.functional.softmax
    assert resolve("torch:nn.functional.relu", "/") is torch.nn.functional.relu


def test_a_file_target_is_loaded_once_and_relative_to_the_suite(folder):
    (folder / "kernels").mkdir()
    (folder / "kernels" / "a.py").write_text("def f(): return 3\n")
    first = resolve("kernels/a.py:f", str(folder))
    assert first() == 3
    assert resolve("kernels/a.py:f", str(folder)) is first


def test_the_suite_folder_comes_first_on_the_path(folder):
    (folder / "mine_helper.py").write_text("value = 4\n")
    (folder / "k.py").write_text("from mine_helper import value\ndef f(): return value\n")
    assert resolve("k.py:f", str(folder))() == 4
    assert sys.path[0] == str(folder)
    assert resolve("mine_helper:value.__add__", str(folder))(1) == 5


def test_a_file_may_import_its_siblings_relatively(folder):
    (folder / "kernels").mkdir()
    (folder / "kernels" / "common.py").write_text("value = 5\n")
    (folder / "kernels" / "a.py").write_text("from .common import value\ndef f(): return value\n")
    assert resolve("kernels/a.py:f", str(folder))() == 5


def test_dataclasses_and_pickle_find_the_module(folder):
    (folder / "d.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Box:\n    x: int\n"
    )
    box = resolve("d.py:Box", str(folder))
    assert pickle.loads(pickle.dumps(box(2))) == box(2)


def test_files_of_one_name_in_two_folders_are_two_modules(tmp_path, folder):
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "k.py").write_text(f"def f(): return {name!r}\n")
    assert [resolve(f"{name}/k.py:f", str(folder))() for name in ("one", "two")] == ["one", "two"]


def test_a_missing_file_names_the_near_one(folder):
    (folder / "softmax.py").write_text("")
    error = refusal("sofmax.py:f", folder)
    assert (error.code, error.fault) == ("target_missing", "suite")
    assert "did you mean 'softmax.py'?" in error.sentence


def test_a_missing_attribute_names_the_near_one(folder):
    (folder / "k.py").write_text("def softmax(): ...\n")
    error = refusal("k.py:sofmax", folder)
    assert (error.code, error.fault) == ("target_missing", "suite")
    assert error.sentence == "target 'k.py:sofmax': k.py has no 'sofmax'; did you mean 'softmax'?"


def test_a_missing_module_of_the_target_itself_is_the_suites_fault(folder):
    (folder / "mine_kernels.py").write_text("")
    error = refusal("mine_kernel:f", folder)
    assert (error.code, error.fault) == ("target_missing", "suite")
    assert "did you mean 'mine_kernels'" in error.sentence
    assert refusal("torch.nn.functionals:relu", folder).code == "target_missing"
    assert "did you mean 'torch'" in refusal("torchh:relu", folder).sentence
    unknown = refusal("kern.ops:rmsnorm", folder).sentence  # not: did you mean 'errno'
    assert unknown.startswith(
        "target 'kern.ops:rmsnorm': no module 'kern'; modules are looked for beside the suite"
    )


def test_a_missing_module_inside_is_the_environments_fault(folder):
    (folder / "k.py").write_text("import surely_not_installed.deep\ndef f(): ...\n")
    error = refusal("k.py:f", folder)
    assert (error.code, error.fault) == ("module_missing", "environment")
    assert error.sentence == "k.py:f needs the module 'surely_not_installed', which is not installed"
    assert "import surely_not_installed" in error.detail


def test_a_library_that_cannot_be_opened_is_the_environments_fault(folder):
    (folder / "k.py").write_text(
        "raise ImportError('libcudart.so.99: cannot open shared object file: No such file')\n"
    )
    error = refusal("k.py:f", folder)
    assert (error.code, error.fault) == ("module_missing", "environment")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("1 / 0", "raised ZeroDivisionError: division by zero"),
        ("def f(:", "raised SyntaxError"),
        ("import sys; sys.exit(0)", "called exit(0)"),
        ("from os import surely_not", "raised ImportError: cannot import name 'surely_not'"),
    ],
)
def test_what_an_import_raises_is_the_kernels_fault(folder, body, says):
    (folder / "k.py").write_text(body + "\n")
    error = refusal("k.py:f", folder)
    assert (error.code, error.fault) == ("import_raised", "kernel")
    assert says in error.sentence
    assert "k.py" in error.detail


def test_a_module_that_failed_is_not_taken_for_whole_afterwards(folder):
    (folder / "k.py").write_text("def f(): ...\n1 / 0\n")
    assert refusal("k.py:f", folder).code == "import_raised"
    assert refusal("k.py:f", folder).code == "import_raised"


def test_what_cannot_be_called_is_the_suites_fault(folder):
    (folder / "k.py").write_text("f = 3\n")
    error = refusal("k.py:f", folder)
    assert (error.code, error.fault) == ("not_callable", "suite")
    assert error.sentence == "target 'k.py:f' is a int, not something that can be called"


def test_a_target_without_a_colon_is_refused(folder):
    assert refusal("torch.add", folder).code == "target_missing"


@pytest.mark.skipif(sys.platform != "linux", reason="names there are bytes")
def test_a_folder_whose_name_is_no_unicode(folder):
    odd = Path(str(folder), "bad\udcff")
    odd.mkdir()
    (odd / "a.py").write_text("from .b import g\ndef f(): return g()\n")
    (odd / "b.py").write_text("def g(): return 7\n")
    assert resolve("a.py:f", str(odd))() == 7
    (odd / "c.py").write_text("raise ValueError('mine')\n")
    assert refusal("c.py:f", odd).sentence == "importing c.py raised ValueError: mine"


def test_a_folder_is_no_target(tmp_path):
    (tmp_path / "d.py").mkdir()
    with pytest.raises(TargetError) as caught:
        resolve("d.py:f", str(tmp_path))
    assert (caught.value.code, caught.value.fault) == ("target_missing", "suite")
    assert caught.value.sentence == f"target 'd.py:f': {tmp_path / 'd.py'} is a folder, not a Python file"
