"""The site for everybody: by keyboard, at every width, in both schemes, on paper, and without a script."""

import os

import pytest

from web.pages import watched
from web.site_page import fragment, rows


def test_by_keyboard_alone(tab, site):
    page = tab.open(site, "cards=rtx-4090")
    press = page.keyboard.press

    def reach(selector):
        for _ in range(80):
            press("Tab")
            if page.evaluate("(name) => document.activeElement.matches(name)", selector):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", selector
                return
        raise AssertionError(f"Tab never came to {selector}")

    reach("#skip")
    link = fragment(page)
    press("Enter")
    assert page.evaluate("document.activeElement.id") == "results-heading"
    assert fragment(page) == link
    page.locator("#skip").focus()
    reach("#view-llm")
    press("Enter")
    reach("#ctx")
    page.keyboard.insert_text("")
    press("Control+a")
    page.keyboard.type("16k")
    reach("#card")
    page.keyboard.type("h100-sxm,b200")
    press("Enter")
    assert rows(page) == ["rtx-4090", "h100-sxm", "b200"]
    reach("#chosen input[data-card=h100-sxm]")
    page.keyboard.type("2.69")
    reach("#table [data-sort=decode]")
    press("Enter")
    assert rows(page) == ["b200", "h100-sxm", "rtx-4090"]
    assert page.evaluate("document.activeElement.dataset.sort") == "decode"
    assert page.locator("#command").inner_text() == (
        "kmrun llm llama-3.3-70b --gpus rtx-4090 h100-sxm b200 --ctx 16k --cost h100-sxm=2.69 --sort decode"
    )


@pytest.mark.parametrize("view", ["compare", "llm"])
def test_it_fits_every_width(tab, site, view):
    page = tab.open(site, f"view={view}&cost=rtx-4090=0.35,h100-sxm=2.69")
    for width in (360, 800, 1280):
        tab.resize(width)
        assert tab.overflow() == 0, width
        sizes = page.evaluate(
            "[...document.querySelectorAll('svg text')].map((one) => one.getBoundingClientRect().height)"
        )
        assert min(sizes) > 9, width


CONTRAST = """() => {
  const numbers = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (colour) => numbers(colour).slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if ((numbers(colour)[3] ?? 1) === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const low = [];
  let seen = 0;
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest("script, noscript, datalist, .letter")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(element.closest("svg") ? style.fill : style.color), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    seen += 1;
    if (ratio < 4.5) low.push(`${element.tagName} ${element.textContent.slice(0, 20)} ${ratio.toFixed(2)}`);
  }
  return [seen, low];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(tab, site, scheme):
    for view in ("compare", "llm"):
        page = tab.open(site, f"view={view}&foo=1&cost=rtx-4090=0.35,h100-sxm=2.69")
        page.reload()
        page.emulate_media(color_scheme=scheme)
        seen, low = page.evaluate(CONTRAST)
        assert seen > 80
        assert low == []


def test_everything_has_a_name(tab, site):
    page = tab.open(site, "view=llm")
    unnamed = page.evaluate(
        """[...document.querySelectorAll("input, select, button")]
          .filter((one) => one.checkVisibility() && !one.labels?.length)
          .filter((one) => !one.getAttribute("aria-label") && !one.textContent.trim()).map((one) => one.outerHTML)"""
    )
    assert unnamed == []
    assert page.locator("#picture svg").get_attribute("aria-label").startswith("Rooflines. rtx-4090: ")
    assert page.evaluate("[...document.querySelectorAll('#table th')].every((one) => one.scope)")


def test_it_can_be_printed(tab, site):
    page = tab.open(site)
    page.emulate_media(media="print")
    assert page.locator(".ask").is_hidden()
    assert page.locator("#table").is_visible()
    assert page.locator("#command").is_visible()


def test_without_javascript_it_says_so(browser, site):
    with watched(browser, javascript=False) as opened:
        page = opened.open(site)
        assert "needs JavaScript" in page.locator("noscript p").inner_text()
        assert (
            page.locator("input, select, button, summary, #table, code:empty").locator("visible=true").count()
            == 0
        )
        assert "address" not in page.locator("body").inner_text()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.url.endswith("#results-heading")
        assert page.locator("#results-heading:target").is_visible()


@pytest.mark.skipif("KMRUN_SHOTS" not in os.environ, reason="pictures for people, with KMRUN_SHOTS=1")
def test_pictures_to_look_at(tab, site):
    tab.open(site, "cost=rtx-4090=0.35,h100-sxm=2.69&sort=value")
    assert len(tab.shoot("site-compare")) == 6
    tab.page.evaluate("location.hash = 'view=llm&cost=rtx-4090=0.35,h100-sxm=2.69&batch=8'")
    tab.page.wait_for_function("document.body.dataset.view === 'llm'")
    assert len(tab.shoot("site-llm")) == 6
