import pytest

from kmrun.source.suite_plan import read_and_plan

KERNELS = """\
import does_not_exist
from elsewhere import imported

def add(x, y, *, alpha=1): ...
def norm(x, weight, eps=1e-5): ...
def reserved(sum, fp32): ...
def nothing(): ...
def one(x): ...
def scaled(x, *, alpha, beta=2): ...
def stacked(*xs): ...
def first_and_more(x, *xs): ...
def on(x): ...
class Norm:
    def method(self, x): ...
def outer():
    def inner(x): ...
if True:
    def conditional(x): ...
try:
    def tried(x): ...
except ImportError:
    pass
"""

WHOLE = """\
kmrun: 1
suite: add
kernels:
  - name: add
    target: kernels.py:add  # module:attr, or file.py:attr beside this file
    reference: torch:add  # trusted: checked and timed beside
    args:
      x: {init: randn, shape: [4096, 4096], dtype: bf16}
      y: {init: randn, shape: [4096, 4096], dtype: bf16}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


def entries(text):
    return [line.strip() for line in text.splitlines() if line.startswith("      ")]


def test_the_first_suite_is_printed_and_small(kmrun):
    ran = kmrun("init", "kernels.py:add", "--arg", "randn[4096,4096]:bf16", "--arg", "randn[4096,4096]:bf16",
                "--ref", "torch:add")  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(WHOLE)
    rest = ran.out.removeprefix(WHOLE).splitlines()
    assert rest
    assert all(line.startswith("    # ") for line in rest)


def test_it_is_written_and_can_be_read(kmrun, folder):
    ran = kmrun("init", "kernels.py:add", "--ref", "torch:add", "-o", "first.yaml")
    assert (ran.code, ran.out) == (0, "wrote first.yaml: run it with `kmrun first.yaml`\n")
    planned = read_and_plan(folder / "first.yaml")
    (case,) = planned.expansion.cases
    assert [argument.shape for argument in case.arguments] == [(1024, 1024)] * 2
    assert case.reference.implementation.target == "torch:add"


def test_an_existing_file_is_never_overwritten(kmrun, folder):
    (folder / "mine.yaml").write_text("precious")
    ran = kmrun("init", "kernels.py:add", "-o", "mine.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: mine.yaml exists\n")
    assert (folder / "mine.yaml").read_text() == "precious"
    assert "cannot be written" in kmrun("init", "kernels.py:add", "-o", "none/mine.yaml").err


def test_files_are_relative_to_the_suite_s_folder(kmrun, folder):
    (folder / "suites").mkdir()
    kmrun("init", "kernels.py:add", "--ref", "kernels.py:norm", "-o", "suites/add.yaml")
    text = (folder / "suites/add.yaml").read_text()
    assert "target: ../kernels.py:add " in text
    assert "reference: ../kernels.py:norm " in text


@pytest.mark.parametrize(
    ("arg", "entry"),
    [
        ("randn[8]:fp16", "x: {init: randn, shape: [8], dtype: fp16}"),
        ("randn[8, 16]", "x: {init: randn, shape: [8, 16], dtype: fp32}"),
        ("ones[]:torch.bfloat16", "x: {init: ones, shape: [], dtype: bf16}"),
        ("randint{low: 0, high: 9}[8]", "x: {init: randint, low: 0, high: 9, shape: [8]}"),
        (
            "uniform{low: -1, high: 1}[8]:fp32",
            "x: {init: uniform, low: -1, high: 1, shape: [8], dtype: fp32}",
        ),
        ("0.5", "x: {init: value, value: 0.5}"),
        ("-3", "x: {init: value, value: -3}"),
        ("True", "x: {init: value, value: true}"),
        ("none", "x: {init: value, value: null}"),
        ("scale=2", "scale: {init: value, value: 2}"),
    ],
)
def test_arguments(kmrun, arg, entry):
    ran = kmrun("init", "kernels.py:nothing" if "=" in arg else "kernels.py:one", "--arg", arg)
    assert ran.code == 0
    assert entries(ran.out) == [entry]


def test_a_named_argument_is_passed_by_keyword(kmrun):
    ran = kmrun("init", "kernels.py:add", "--arg", "randn[4]", "--arg", "y=randn[4]", "--arg", "alpha=2")
    assert "    kwargs:\n      y: {init: randn" in ran.out
    assert entries(ran.out)[-1] == "alpha: {init: value, value: 2}"


def test_without_arguments_every_parameter_without_a_default_is_guessed(kmrun):
    ran = kmrun("init", "kernels.py:norm")
    assert [entry.split(":")[0] for entry in entries(ran.out)] == ["x", "weight"]
    assert "# reference: torch:norm" in ran.out
    assert kmrun("init", "kernels.py:nothing").code == 0


def test_names_that_formulas_need_are_changed(kmrun):
    assert [entry.split(":")[0] for entry in entries(kmrun("init", "kernels.py:reserved").out)] == [
        *("sum_", "fp32_")
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("kernels.py",), "'kernels.py' is no target"),
        (("none.py:fn",), "none.py: no such file or directory"),
        (("kernels.py:nope",), "kernels.py has no function 'nope'"),
        (("torch:relu",), "torch:relu: say what it is called with"),
        (("kernels.py:imported",), "kernels.py:imported: say what it is called with"),
        (("broken.py:fn",), "broken.py: no valid Python"),
        (("kernels.py:add", "--arg", "randn"), "--arg 'randn' cannot be read"),
        (("kernels.py:add", "--arg", "randn[8]:bf61"), "--arg 'randn[8]:bf61': no dtype 'bf61'"),
        (("kernels.py:add", "--arg", "a=1", "--arg", "a=2"), "two arguments are named 'a'"),
        (("kernels.py:add", "--ref", "relu"), "'relu' is no target"),
        (("kernels.py:add", "--ref", ""), "'' is no target"),  # a variable that is not set leaves that
        (("kernels.py:add", "--ref", "none.py:add"), "none.py: no such file or directory"),
        (("kernels.py:add", "--ref", "kernels.py:ad"), "has no function 'ad'\nhint: did you mean add"),
        (
            ("kernels.py:f\u00fc",),
            "is no target\nhint: a target is module:attr or file.py:attr, without blanks,",
        ),
        (
            ("my kernels.py:add",),
            "is no target\nhint: a target is module:attr or file.py:attr, without blanks,",
        ),
        (
            ("kernels.py:one", "--arg", "rnadn[8]"),
            "error: --arg 'rnadn[8]': unknown init 'rnadn'\nhint: did you mean 'randn'?\n",
        ),
        (
            ("kernels.py:one", "--arg", "qq[8]"),
            "error: --arg 'qq[8]': unknown init 'qq'\nhint: known: randn, ",
        ),
        (("kernels.py:one", "--arg", "randn{men: 1}[8]"), "--arg 'randn{men: 1}[8]': unknown key 'men'\n"),
        (
            ("kernels.py:one", "--arg", "x=randn[n]"),
            "error: --arg 'x=randn[n]': unknown name 'n' in formula\n",
        ),
        (("kernels.py:one", "--arg", "randn[8]:fp23"), "no dtype 'fp23'\nhint: did you mean 'fp32'?\n"),
        (("kernels.py:one", "--arg", "randn[8]:x"), "hint: dtypes are fp64, fp32, tf32, bf16, fp16, "),
        (("kernels.py:ad",), "kernels.py has no function 'ad'\nhint: did you mean add?\n"),
        (("kernels.py",), "hint: name a function in it: kernels.py:FUNCTION\n"),
        (("kernels.py:add", "--arg", "1"), "error: add takes x, y: y is missing\nhint: one --arg each; "),
        (("kernels.py:add", "--arg", "alpha=1"), "error: add takes x, y: x, y are missing\n"),
    ],
)
def test_what_cannot_be_read_is_told(kmrun, folder, words, said):
    (folder / "broken.py").write_text("def fn(:")
    ran = kmrun("init", *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_of_many_functions_a_few_are_named(kmrun, folder):
    (folder / "many.py").write_text("".join(f"def function_{number}(x): ...\n" for number in range(40)))
    ran = kmrun("init", "many.py:nope")
    assert ran.err.splitlines()[1].startswith("hint: it has function_0, function_1, ")
    assert ran.err.endswith(" more\n")
    assert max(map(len, ran.err.splitlines())) <= 100


def test_a_function_of_a_module_needs_only_arguments(kmrun):
    ran = kmrun("init", "torch:relu", "--arg", "randn[8]")
    assert entries(ran.out) == ["x0: {init: randn, shape: [8], dtype: fp32}"]


@pytest.mark.parametrize("name", ["conditional", "tried", "first_and_more"])
def test_functions_of_the_module_itself_are_found(kmrun, name):
    assert entries(kmrun("init", f"kernels.py:{name}").out) == [
        "x: {init: randn, shape: [1024, 1024], dtype: fp32}"
    ]


@pytest.mark.parametrize("name", ["method", "inner"])
def test_what_only_stands_inside_another_is_no_function_of_the_file(kmrun, name):
    ran = kmrun("init", f"kernels.py:{name}")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: kernels.py has no function '{name}'\nhint: ")


def test_a_keyword_without_a_default_has_to_be_given(kmrun):
    ran = kmrun("init", "kernels.py:scaled")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(
        "error: scaled takes x, alpha: alpha is missing\nhint: one --arg each, 'NAME=...' by keyword; "
    )
    ran = kmrun("init", "kernels.py:scaled", "--arg", "randn[8]:fp32", "--arg", "alpha=2")
    assert ran.code == 0
    assert entries(ran.out) == [
        "x: {init: randn, shape: [8], dtype: fp32}",
        "alpha: {init: value, value: 2}",
    ]


def test_a_function_of_any_number_of_arguments_says_nothing_of_them(kmrun):
    ran = kmrun("init", "kernels.py:stacked")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: kernels.py:stacked: say what it is called with\n")
    assert kmrun("init", "kernels.py:stacked", "--arg", "randn[8]:fp32").code == 0


def test_a_name_that_is_no_word_in_yaml_is_quoted(kmrun, folder):
    assert kmrun("init", "kernels.py:on", "-o", "on.yaml").code == 0
    assert read_and_plan(folder / "on.yaml").read.suite.suite == "on"


def test_a_keyword_keeps_its_name(kmrun):
    ran = kmrun("init", "torch:clamp", "--arg", "randn[8]:fp32", "--arg", "min=0")
    assert ran.code == 0
    assert entries(ran.out)[1] == "min: {init: value, value: 0}"
