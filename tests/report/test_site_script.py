"""What the translator makes of Python, and what it refuses. That it means the same, tests/web finds in a browser."""

import importlib.util
import sys

import pytest

from kmrun.cli.site_formulas import formulas
from kmrun.report import site_sources
from kmrun.report.site_script import script
from kmrun.report.site_sources import Untranslatable


@pytest.fixture
def translated(tmp_path, monkeypatch):
    """Translates the function `f` of a module's source."""

    def translate(source, name="sample"):
        path = tmp_path / f"{name}.py"
        path.write_text(source)
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()
        site_sources.module.cache_clear()
        monkeypatch.delitem(sys.modules, name, raising=False)
        return script([importlib.import_module(name).f])

    yield translate
    site_sources.module.cache_clear()


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("return a + b", "return py.add(a, b);"),
        ("return a - b * 2", "return (a - (b * 2));"),
        ("return a or b", "return py.or(() => a, () => b);"),
        ("return 1 if a else None", "return (py.truth(a) ? 1 : null);"),
        ("return 0 <= a < b", "return ((0 <= a) && (a < b));"),
        ("return a is not None and a == b", "return py.and(() => (a !== null), () => py.eq(a, b));"),
        ('return f"{a:.{b}f} {a}"', "return `${py.format(a, `.${py.str(b)}f`)} ${py.str(a)}`;"),
        ("return [x for x in a if x]", "{ if (py.truth(x)) { $out.push(x); } }"),
        ("return max(a, default=None)", "return py.max(a, undefined, null);"),
        ("return max(a, b)", "return py.max([a, b]);"),
        ("return a.get(b)", "return py.method.get(a, b);"),
        ("return a[1:]", "return py.slice(a, 1, undefined);"),
        ("new = a\n    return new", "new_ = a;"),
        ('return "`${x}`</script>"', "return `\\`\\${x}\\`<\\/script>`;"),
    ],
)
def test_a_construct(translated, body, wanted):
    text = translated(f"def f(a, b):\n    {body}\n")
    assert text.startswith("function sample$f(a, b) {")
    assert wanted in text


def test_arguments_go_by_name(translated):
    text = translated(
        "def g(a, b=1, *, c=2):\n    return a + b + c\n\n\ndef f(a, b):\n    return g(a, c=b)\n"
    )
    assert "return sample$g(a, undefined, b);" in text
    assert "function sample$g(a, b = 1, c = 2) {" in text


def test_constants_stand_after_all_that_they_are_made_of(translated):
    text = translated(
        "def g(a):\n    return a\n\n\nFIRST = 2\nSECOND = {FIRST: g(FIRST)}\n\n\n"
        "def f(a, b):\n    return SECOND[a]\n"
    )
    assert (
        text.index("function sample$g") < text.index("const sample$FIRST") < text.index("const sample$SECOND")
    )


def test_what_is_not_used_is_not_there(translated):
    assert "unused" not in translated("def unused():\n    while 1: yield\n\n\ndef f(a, b):\n    return a\n")


@pytest.mark.parametrize(
    "body",
    [
        "return open(a)",
        "return a.encode()",
        "return a.get(key=b)",
        "return eval(a)",
        "yield a",
        "with a: pass",
        "assert a",
        "global x\n    return a",
        "return a @ b",
        "return a ^ b",
        "return a[::2]",
        "a.b.c = 1\n    del a",
        "return f'{a!s}'",
        "return b'x'",
        "return 1j",
        "return 2 ** 3 + 9007199254740993",
        "return max(a, key=b, start=1)",
        "return missing",
        "return g(1, 2)",
        "return g(b=1)",
        "for x in a:\n        pass\n    else:\n        return 1",
        "try:\n        return a\n    except OSError:\n        return b",
        "return (yield)",
    ],
)
def test_what_is_refused(translated, body):
    with pytest.raises(Untranslatable):
        translated(f"def g(a):\n    return a\n\n\ndef f(a, b):\n    {body}\n")


def test_the_site_s_formulas_hold_the_ones_of_core():
    text = formulas()
    for name in ("compare$compare", "llm_answer$answer", "llm_fit$fit", "peaks$peaks", "columns$figures"):
        assert f"function {name}(" in text
    assert "</script" not in text
