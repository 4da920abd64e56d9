"""Reports in a real browser: nothing asked of any network, nothing of others' words run, readable at every width."""

import itertools
import os
from dataclasses import replace

import pytest

from kmrun.core.peaks import peaks
from kmrun.core.result import CaseResult
from kmrun.core.slowdown import Slowdown
from kmrun.report.html import card_page, result_page
from kmrun.report.html_card import card_parts, known_limits
from kmrun.report.plots.labels import text_width
from kmrun.report.svg import roofline_svg
from kmrun.report.terminal_plot import Curve, Mark
from kmrun.source.catalogue import load_cards
from support.gpu_results import broken, gpu_result
from web.pages import SCHEMES, WIDTHS, watched

HOSTILE = (
    "<script>window.pwned=1</script>",
    "</style><img src=x onerror=window.pwned=1>",
    "\"' onmouseover=window.pwned=1 x='",
    "</title></svg><b>\u202egnp.exe",
    "{{ 7 * 7 }}{% raw %}",
    "]]>&lt;script&gt;",
)
BOX = "(b => [b.x, b.y, b.x + b.width, b.y + b.height])(e.getBBox())"
"""Left, top, right, bottom of an element `e` in the picture's own pixels."""
CARD = load_cards().card("h100-sxm")


def compared(case: CaseResult, index: int) -> CaseResult:
    """The case beside another version of itself."""
    slow = Slowdown("HEAD~1", "alternated", 0.05, "broken", 0.09, 0.07, 0.11, 0.03, 24, 10)
    fine = replace(slow, verdict="holds", slowdown=0.01, low=-0.01, high=0.02)
    return replace(case, slowdown=slow if index == 2 else fine)


def result(**changes):
    found = gpu_result(**changes)
    cases = [compared(case, index) for index, case in enumerate(found.cases)]
    long = replace(cases[4], id=f"{'a_very_long_name' * 9}[{','.join(f'axis{at}=4096' for at in range(9))}]")
    return replace(found, cases=(*cases[:3], broken(cases[3]), broken(long), *cases[5:]))


def long_named():
    """A result whose names are longer than any screen: of one word, and of five thousand characters."""
    found = gpu_result(sizes=3)
    names = ("flash_attention_forward_with_alibi_and_sliding_window", "x" * 5000)
    cases = tuple(
        replace(case, kernel=names[at % 2], id=f"{names[at % 2]}{at}") for at, case in enumerate(found.cases)
    )
    return replace(found, cases=cases, device=replace(found.device, name="d" * 3000))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Each kind of page, written once."""
    folder = tmp_path_factory.mktemp("pages")
    later = gpu_result(seed=8, started="2026-01-09T03:04:05+00:00")
    texts = {
        "run": result_page([result()], {CARD.id: CARD}),
        "several": result_page([result(), later], {CARD.id: CARD}),
        "named": result_page([long_named()], {CARD.id: CARD}),
        "card": card_page(card_parts(CARD, peaks(CARD), "of the database", known_limits(CARD))),
    }
    found = {}
    for name, text in texts.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(text, encoding="utf-8")
    return found


@pytest.mark.parametrize("name", ["run", "several", "card", "named"])
def test_nothing_sticks_out_at_any_width(browser, pages, name):
    with watched(browser, javascript=False) as tab:
        page = tab.open(pages[name])
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            assert tab.overflow() == 0
            assert page.locator("svg.roofline >> visible=true").count() == (2 if name == "several" else 1)


def test_a_name_of_thousands_of_characters_takes_a_few_lines(tab, pages):
    page = tab.open(pages["named"])
    page.set_viewport_size({"width": 360, "height": 800})
    for what in (".tile", ".keys li", "h1", "h3", "figcaption", ".facts", "table:not(.pairs) tbody th"):
        heights = page.locator(f"{what} >> visible=true").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect().height)"
        )
        if heights:
            assert max(heights) < 260, what


@pytest.mark.parametrize("name", ["run", "several", "card"])
def test_no_column_is_squeezed_to_a_word_a_line(tab, pages, name):
    page = tab.open(pages[name])
    page.set_viewport_size({"width": 360, "height": 800})
    rows = page.locator("table:not(.pairs) tbody tr >> visible=true").evaluate_all(
        "all => all.map(e => [e.getBoundingClientRect().height, e.textContent])"
    )
    assert len(rows) > 5
    assert [text for height, text in rows if height > 100 and "a_very_long_name" not in text] == []


def test_it_follows_the_readers_scheme(browser, pages):
    grounds = []
    for scheme in SCHEMES:
        with watched(browser, scheme=scheme) as tab:
            page = tab.open(pages["run"])
            grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(246, 247, 248)", "rgb(14, 17, 22)"]


def test_text_of_others_stays_text(tab, tmp_path):
    found = gpu_result(sizes=3)
    cases = []
    for index, case in enumerate(found.cases):
        word = HOSTILE[index % len(HOSTILE)]
        case = replace(
            case,
            id=f"{word}{index}",
            kernel=HOSTILE[index // 6 % len(HOSTILE)],
            axes={word: index, "s": 2**index},
            labels=(word,),
            warnings=(word,),
            checks=(replace(case.checks[0], output=word, metric=word),),
            versus={word: case.versus["eager"]},
        )
        cases.append(broken(case, word))
    hostile = replace(
        found,
        cases=tuple(cases),
        suite=replace(found.suite, name=HOSTILE[1], file=HOSTILE[2]),
        device=replace(found.device, name=HOSTILE[3]),
        environment={HOSTILE[0]: HOSTILE[1], "git": {"commit": HOSTILE[3]}},
        command=("kmrun", *HOSTILE),
    )
    path = tmp_path / "hostile.html"
    path.write_text(
        result_page([hostile, replace(hostile, started=HOSTILE[0])], {CARD.id: CARD}), encoding="utf-8"
    )
    page = tab.open(path)
    assert page.evaluate("window.pwned") is None
    assert page.locator("script, img, b, iframe, object").count() == 0
    assert (
        page.evaluate("[...document.all].some(e => [...e.attributes].some(a => a.name.startsWith('on')))")
        is False
    )
    assert page.locator("style").count() == 1
    assert "<script>window.pwned=1</script>" in page.locator("main").inner_text()
    assert "{{ 7 * 7 }}" in page.locator("main").inner_text()
    assert "\u202e" not in page.content()


def test_labels_of_a_roofline_do_not_overlap_as_the_browser_draws_them(tab, pages):
    page = tab.open(pages["run"])
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        texts = page.locator("svg.roofline >> visible=true").locator(
            ".labels text, .roof-labels text:not([transform])"
        )
        boxes = texts.evaluate_all(f"all => all.map(e => [e.textContent, {BOX}])")
        assert len(boxes) >= 20
        for text, (left, top, right, bottom) in boxes:
            assert right - left <= text_width(text, 11) + 0.5, text
            assert bottom > top
        for (one, a), (other, b) in itertools.combinations(boxes, 2):
            apart = a[2] <= b[0] or b[2] <= a[0] or a[3] - 3 <= b[1] or b[3] - 3 <= a[1]
            assert apart, (one, other)


def test_a_keyboard_reaches_content_and_every_table(tab, pages):
    page = tab.open(pages["run"])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    box = page.locator(".skip-link").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    page.keyboard.press("Enter")
    assert page.url.endswith("#content")
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        where = page.evaluate(
            "[document.activeElement.tagName, document.activeElement.getAttribute('aria-label')]"
        )
        if where[0] == "BODY":
            break
        reached.append(where)
    regions = page.locator(".scroll >> visible=true").evaluate_all(
        "all => all.map(e => e.getAttribute('aria-label'))"
    )
    assert [label for tag, label in reached if tag == "DIV"] == regions
    positions = page.evaluate("[...document.querySelectorAll('a,summary,[tabindex]')].map(e => e.tabIndex)")
    assert set(positions) == {0}


@pytest.mark.parametrize("name", ["run", "several", "card"])
def test_it_can_be_read_aloud(tab, pages, name):
    page = tab.open(pages[name])
    levels = [
        int(tag[1])
        for tag in page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5')].map(e => e.tagName)")
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(set(ids)) == len(ids)
    named = page.evaluate(
        "[...document.querySelectorAll('[aria-labelledby]')].flatMap(e => e.getAttribute('aria-labelledby').split(' '))"
    )
    assert set(named) <= set(ids)
    links = page.evaluate("[...document.querySelectorAll('a')].map(e => e.getAttribute('href'))")
    assert {link.removeprefix("#") for link in links} <= set(ids)
    silent = "svg:not([aria-hidden]):not([role=img]), svg[role=img]:not(:has(> title))"
    assert page.locator(silent).count() == 0
    assert page.locator("thead th:not([scope])").count() == 0
    assert page.evaluate(
        "[...document.querySelectorAll('tbody tr')].every(r => r.querySelectorAll('th[scope=row]').length == 1)"
    )


def test_it_prints_on_a4_with_everything_unfolded(tab, pages):
    page = tab.open(pages["run"])
    hidden = page.locator("details td >> visible=true")
    assert hidden.count() == 0
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 703, "height": 1000})  # A4 less its margins
    assert tab.overflow() == 0
    assert page.locator("details td").count() > 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    heights = page.locator("details table").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().height)"
    )
    assert min(heights) > 20
    pdf = page.pdf(format="A4", prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    assert 3 < pdf.count(b"/Type /Page\n") < 30


@pytest.mark.parametrize("runs", [2, 3, 6])
def test_no_column_of_runs_side_by_side_is_cut_off(tab, tmp_path, runs):
    path = tmp_path / "runs.html"
    found = [gpu_result(sizes=1, seed=seed, complete=seed != 1) for seed in range(runs)]
    path.write_text(result_page(found, {CARD.id: CARD}), encoding="utf-8")
    page = tab.open(path)
    cut = "all => all.map(e => e.scrollWidth - e.clientWidth)"
    page.set_viewport_size({"width": 1280, "height": 800})
    assert set(page.locator("#overview .scroll").evaluate_all(cut)) == {0}
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 703, "height": 1000})  # A4 less its margins
    assert set(page.locator(".scroll").evaluate_all(cut)) == {0}
    assert tab.overflow() == 0


def test_two_thousand_cases_open_and_scroll(tab, tmp_path):
    path = tmp_path / "large.html"
    path.write_text(result_page([result(sizes=250, samples=40)], {CARD.id: CARD}), encoding="utf-8")
    page = tab.open(path)
    assert page.locator("table.cases tbody tr").count() == 2000
    last = page.locator("#r1-c2000")
    last.scroll_into_view_if_needed()
    assert last.is_visible()
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    assert page.locator("footer").is_visible()
    assert tab.overflow() == 0


def test_a_picture_is_a_file_of_its_own(tab, tmp_path):
    path = tmp_path / "picture.svg"
    path.write_text(
        roofline_svg([Curve(HOSTILE[0], 1e12, 1e13)], [Mark(HOSTILE[1], 3.0)], HOSTILE[2]), encoding="utf-8"
    )
    page = tab.open(path)
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.documentElement.tagName") == "svg"
    assert page.evaluate("document.querySelectorAll('script, img').length") == 0


@pytest.mark.skipif("KMRUN_SHOTS" not in os.environ, reason="pictures for people, with KMRUN_SHOTS=1")
def test_it_can_be_looked_at(tab, pages):
    for name, file in pages.items():
        tab.open(file)
        assert len(tab.shoot(f"report-{name}")) == 6
