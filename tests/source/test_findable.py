import os
import sys

import pytest

from kmrun.core.case import Implementation, Reference
from kmrun.source import findable
from kmrun.source.findable import may_exist
from support.cases import make_case


def asked(folder, target, env=None, reference=None):
    own = Implementation("add", target, env=env or {})
    return may_exist(make_case(folder=str(folder), implementation=own, reference=reference))


def binds(folder, source, target="kernels.py:add"):
    (folder / "kernels.py").write_text(source)
    return asked(folder, target)


@pytest.mark.parametrize(
    "source",
    [
        "def add(x): return x",
        "async def add(x): return x",
        "class add: pass",
        "add = print",
        "add: object = print",
        "one, (two, *add) = (1, (2, 3))",
        "import torch as add",
        "import add.inner",
        "from torch import add",
        "from torch import sub as add",
        "try:\n    from fast import add\nexcept ImportError:\n    pass",
        "try:\n    pass\nexcept ImportError:\n    def add(x): return x",
        "if True:\n    pass\nelif False:\n    def add(x): return x",
        "while True:\n    pass\nelse:\n    add = 1",
        "with open('f') as add:\n    pass",
        "for add in (print,):\n    pass",
        "match print:\n    case {'a': [*add]}:\n        pass",
        "match print:\n    case {**add}:\n        pass",
        "print(add := 1)",
        "@(add := print)\ndef other(): pass",
        "def other(x=(add := 1)): pass",
        "def other():\n    global add\n    add = 1\nother()",
    ],
)
def test_a_name_that_a_file_binds_may_be_there(tmp_path, source):
    assert binds(tmp_path, source)


@pytest.mark.parametrize(
    "source",
    [
        "from torch import *",
        "def __getattr__(name): return print",
        "from lazily import attach\n__getattr__ = attach()",
        "globals()['add'] = print",
        "exec('add = print')",
        "import sys\nsetattr(sys.modules[__name__], 'add', print)",
        "import sys\nsys.modules[__name__].__dict__.update(add=print)",
        "from sys import modules\nmodules[__name__].add = print",
        "__path__ = ['.']",
        pytest.param("other = " + "-" * 30_000 + "1", id="nested too deeply to be read"),
    ],
)
def test_a_file_that_may_bind_anything_is_not_sure(tmp_path, source):
    assert binds(tmp_path, source)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "def add2(x): return x",
        "class Kernel:\n    def add(self, x): return x",
        "def other():\n    add = 1",
        "print(add)",
        "import torch.add",
        "from add import sub",
        "kernel.add = 1",
        "import torch\nfast = torch.compile(torch.nn.Module().eval())",
        "def add(x:",
        "def add(x): pass\n\0",
        "# coding: no-such-coding\ndef add(x): pass",
    ],
)
def test_a_name_that_nothing_binds_is_absent(tmp_path, source):
    assert not binds(tmp_path, source)


def test_no_python_whose_bytes_are_no_text(tmp_path):
    (tmp_path / "kernels.py").write_bytes(b"def add(x): pass\n\xff\xfe")
    assert not asked(tmp_path, "kernels.py:add")


def test_only_the_first_part_of_a_name_is_looked_for(tmp_path):
    assert binds(tmp_path, "class Kernel: pass", "kernels.py:Kernel.run.fast")
    assert not binds(tmp_path, "class Kernel: pass", "kernels.py:Kernels.run")
    assert binds(tmp_path, "", "kernels.py:__doc__.upper")


def test_a_source_s_own_warnings_are_neither_shown_nor_faults(tmp_path):
    assert binds(tmp_path, "def add(x): return '\\d' is 'e'")  # warnings are errors in these tests


def test_a_file_that_changed_is_read_again(tmp_path):
    assert not binds(tmp_path, "def ad(x): pass")
    assert binds(tmp_path, "def add(x): pass")


def test_files_lie_beside_the_suite(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "kernels.py").write_text("def add(x): pass")
    assert asked(tmp_path, "sub/kernels.py:add")
    assert asked(tmp_path / "sub", "kernels.py:add")
    assert asked("/", f"{tmp_path}/sub/kernels.py:add")
    assert not asked(tmp_path, "kernels.py:add")
    assert not asked(tmp_path, "sub.py:add")
    (tmp_path / "folder.py").mkdir()
    assert not asked(tmp_path, "folder.py:add")


def test_what_cannot_be_looked_at_may_be_there(tmp_path, monkeypatch):
    assert asked("suites", "kernels.py:add")  # relative: another place to a side
    assert asked(tmp_path, f"{'k' * 300}.py:add")  # the system's error, not kmrun's
    monkeypatch.setattr(findable, "_MOST_BYTES", 3)
    assert binds(tmp_path, "def ad(x): pass")


def test_modules_are_looked_for_where_a_side_would(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for place in ("beside", "told", "relative"):
        (tmp_path / place).mkdir()
        (tmp_path / place / f"kmrun_{place}.py").touch()
    folder = tmp_path / "beside"
    (folder / "kmrun_folder").mkdir()
    assert asked(folder, "kmrun_beside:add")
    assert asked(folder, "kmrun_folder.sub:add")  # a package without an __init__.py
    for name in ("told", "relative"):
        assert not asked(folder, f"kmrun_{name}:add")
    monkeypatch.syspath_prepend(str(tmp_path / "told"))
    assert asked(folder, "kmrun_told.sub:add")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "../relative"]))
    assert asked(folder, "kmrun_relative:add")
    assert not asked(folder, "kmrun_nowhere.sub:add")
    assert asked(folder, "kmrun_nowhere:add", env={"PYTHONPATH": "lib"})
    assert not asked(folder, "kmrun_nowhere:add", env={"OMP_NUM_THREADS": "1"})


@pytest.mark.parametrize(
    "module", ["math", "_frozen_importlib", "__main__", "distutils", "torch.nn.functional"]
)
def test_modules_of_python_and_what_is_installed(tmp_path, module):
    assert asked(tmp_path, f"{module}:add")


def test_finders_of_others_are_not_asked_but_believed(tmp_path, monkeypatch):
    class Building:
        def find_spec(self, name, path=None, target=None):
            raise AssertionError("it would build")

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Building()])
    assert asked(tmp_path, "kmrun_nowhere:add")


def test_what_an_editable_install_maps(tmp_path, monkeypatch):
    finder = type("_EditableFinder", (), {"__module__": "__editable___it_finder"})
    module = type(sys)("__editable___it_finder")
    module.MAPPING, module.NAMESPACES = {"kmrun_editable": "/src"}, {"kmrun_spaced.sub": ["/src"]}
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder])
    assert asked(tmp_path, "kmrun_editable.sub:add")
    assert asked(tmp_path, "kmrun_spaced.sub:add")
    assert not asked(tmp_path, "kmrun_nowhere:add")


def test_a_reference_that_is_absent_times_nothing_either(tmp_path):
    absent = Reference(Implementation("reference", "kernels.py:reference"))
    assert binds(tmp_path, "def add(x): pass")
    assert not asked(tmp_path, "kernels.py:add", reference=absent)


def test_nothing_is_imported(tmp_path):
    (tmp_path / "kmrun_harmful.py").write_text("raise AssertionError\ndef add(x): pass")
    assert asked(tmp_path, "kmrun_harmful:add")
    assert asked(tmp_path, "kmrun_harmful.py:add")
    assert "kmrun_harmful" not in sys.modules
