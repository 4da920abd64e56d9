"""The site in a browser: what it shows, what its address carries, and what it does not let in."""

from urllib.parse import quote

import pytest

from web.pages import watched
from web.site_page import follow, fragment, rows, texts


def test_it_opens_with_an_answer(tab, site):
    page = tab.open(site)
    assert page.title() == "Which card? · kmrun"
    assert page.locator("#caption").inner_text() == "A kernel at 60 flop/byte, against the bf16 tensor roof"
    assert rows(page)[:2] == ["rtx-4090", "rtx-5090"]
    assert "bandwidth is what you are buying" in page.locator("#lead").inner_text()
    assert page.locator("#picture polyline").count() == 8
    assert page.locator("#problems").is_hidden()
    assert fragment(page) == ""


def test_a_link_from_elsewhere_and_the_terminal_say_the_same(tab, site, kmrun):
    page = tab.open(
        site, "cards=4090,a100-80gb,h100-sxm&ai=0.33&peak=fp32&cost=4090=0.35,a100-80gb=1.19,h100-sxm=2.69"
    )
    words = page.locator("#command").inner_text().split()
    assert words[:2] == ["kmrun", "compare"]
    printed = kmrun(*words[1:]).out.splitlines()
    table = [line.split() for line in printed[4:7]]
    shown = page.evaluate(
        "[...document.querySelectorAll('#table tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    for line, cells in zip(table, shown, strict=True):
        assert line == " ".join(cells).replace("memory", "mem").replace("compute", "comp").split()
    assert page.locator("#lead").inner_text() == printed[8]
    assert printed[8].endswith("Cheapest throughput: rtx-4090.")


SET = {
    "#ai": "12.5",
    "#model": "qwen3-32b",
    "#ctx": "32k",
    "#batch": "4",
    "#gpus": "2",
    "#draft": "3",
    "#overhead": "1.5",
}
CHOSEN = {"#peak": "fp8", "#quant": "fp8", "#kv": "q8_0"}


def state(page):
    """What every control holds, and the order of the rows in both views."""
    found = {
        name: page.locator(name).input_value()
        for name in (*SET, *CHOSEN, "#chosen input[data-card=rtx-4090]")
    }
    found["watt"] = page.locator("#watt").is_checked()
    for view in ("compare", "llm"):
        page.locator(f"#view-{view}").click()
        found[view] = page.locator("#results").inner_text()
    return found


def test_every_setting_survives_a_reload(tab, site):
    page = tab.open(site)
    page.locator("#card").fill("mi350x")
    page.locator("#card").press("Enter")
    page.locator("button[aria-label='take b200 away']").click()
    page.locator("#chosen input[data-card=rtx-4090]").fill("0.35")
    page.locator("#ai").fill(SET["#ai"])
    page.locator("#peak").select_option(CHOSEN["#peak"])
    page.locator("#table [data-sort=attainable]").click()
    page.locator("#view-llm").click()
    page.locator("#settings summary").click()
    for name in list(SET)[1:]:
        page.locator(name).fill(SET[name])
    for name in list(CHOSEN)[1:]:
        page.locator(name).select_option(CHOSEN[name])
    page.locator("#watt").check()
    page.locator("#table [data-sort=decode]").click()
    assert "2x mi350x" in rows(page)
    assert "2x b200" not in rows(page)
    before, link = state(page), page.url
    assert {name: before[name] for name in (*SET, *CHOSEN)} == SET | CHOSEN
    page.reload()
    assert page.locator("body").get_attribute("data-view") == "llm"
    assert state(page) == before
    assert page.url == link
    setting = page.evaluate("Object.keys(settings.ALL)")
    usual = page.evaluate("settings.usual()")
    carried = dict(part.split("=", 1) for part in fragment(page)[1:].split("&"))
    assert all(carried.get(name, "") != usual[name] for name in setting if name != "view"), carried


def test_another_link_in_the_same_tab_is_read(tab, site):
    page = tab.open(site, "cards=h100-sxm")
    assert rows(page) == ["h100-sxm"]
    page.evaluate("location.hash = 'cards=b200,h200-sxm&ai='")
    page.wait_for_function("document.querySelectorAll('#table tbody tr').length === 2")
    assert page.locator("#caption").inner_text() == "What the cards have"


@pytest.mark.parametrize(
    ("view", "keys"),
    [
        ("compare", ("name", "memory", "peak", "ridge", "attainable", "cost", "value")),
        ("llm", ("name", "fits", "context", "decode", "prefill", "value", "cost", "watt")),
    ],
)
def test_sorting_by_a_head_is_the_command_lines(tab, site, kmrun, view, keys):
    page = tab.open(site, f"view={view}&watt=1&cost=rtx-4090=0.35,h100-sxm=2.69,b200=5,mi300x=2.1,l40s=0.8")
    assert {button.get_attribute("data-sort") for button in page.locator("#table button").all()} == set(keys)
    for key in keys:
        button = page.locator(f"#table [data-sort={key}]")
        button.click()
        words = page.locator("#command").inner_text().split()
        assert words[words.index("--sort") + 1] == key
        down = rows(page)
        printed = kmrun(*words[1:]).out.splitlines()
        names = [line.split()[0] for line in printed if line and line.split()[0] in down]
        assert down == names[: len(down)], key
        first = page.locator("#table th[aria-sort]").get_attribute("aria-sort")
        button.click()
        assert rows(page) != down
        assert sorted(rows(page)) == sorted(down)
        other = page.locator("#table th[aria-sort]").get_attribute("aria-sort")
        assert {first, other} == {"ascending", "descending"}
        button.click()
        assert page.locator("#table th[aria-sort]").count() == 0


NAMES = (
    "cards",
    "cost",
    "ai",
    "peak",
    "sort",
    "model",
    "quant",
    "ctx",
    "batch",
    "kv",
    "gpus",
    "draft",
    "watt",
    "sort-llm",
    "overhead",
    "view",
)
HOSTILE = ("<img src=x onerror=alert(1)></script><script>document.title=1</script>", "__proto__", "\u202e0")


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_setting_is_only_text(tab, site, value):
    tab.page.on("dialog", lambda dialog: tab.errors.append(f"dialog {dialog.message}"))
    page = tab.open(site)
    # All of them at once, but for the cards, without which there is no table; then those, which leave none.
    for names in (NAMES[1:], ("view=llm", *NAMES[1:-1]), NAMES[:1]):
        follow(page, "&".join(name if "=" in name else f"{name}={quote(value)}" for name in names))
        named = page.evaluate("settings.parse(location.hash.slice(1)).texts")
        assert all(named[name] == value for name in names if "=" not in name)
        assert page.locator("#problems li").count() >= len([name for name in names if "=" not in name])
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 2
        assert page.title() == "Which card? · kmrun"
        assert bool(rows(page)) == ("cards" not in names)
    follow(page, f"{quote(value)}={quote(value)}&__proto__=1&constructor=1")
    assert page.locator("#problems li").count() == 3


def test_a_hostile_setting_in_a_link_that_is_opened(tab, site):
    page = tab.open(site, f"view=llm&model={quote(HOSTILE[0])}")
    assert texts(page, "#problems li") == [f"unknown model '{HOSTILE[0]}' (the list has all of them)"]
    assert page.locator("#model").input_value() == HOSTILE[0]


def test_what_is_wrong_in_a_link_is_named_and_the_rest_holds(tab, site):
    page = tab.open(site, "view=llm&batch=1e9&ctx=huge&foo=1&kv=%&cards=4090,h100&model=llama-9")
    said = " ".join(texts(page, "#problems li"))
    for wanted in (
        "unknown here: foo",
        "batch must be",
        "'huge'",
        "broken at kv",
        "h100-pcie",
        "unknown model",
    ):
        assert wanted in said
    assert rows(page) == ["rtx-4090"]
    assert page.locator("#batch").get_attribute("aria-invalid") == "true"
    page.locator("#batch").fill("4")
    assert page.locator("#batch").get_attribute("aria-invalid") is None


def test_a_link_may_spell_a_choice_in_another_way(tab, site):
    page = tab.open(
        site, "view=llm&quant=Q4&kv=FP8&peak=FP16_fp32acc&model=Meta-Llama/Llama-3.1-8B-Instruct&cards=4090"
    )
    assert page.locator("#problems").is_hidden()
    chosen = [page.locator(name).input_value() for name in ("#quant", "#kv", "#peak")]
    assert chosen == ["q4_k_m", "fp8", "fp16-fp32acc"]
    assert page.locator("#caption").inner_text().startswith("llama-3.1-8b: 8.03 B parameters, ")
    follow(page, "view=llm&quant=4.5bpw&model=70b&cards=4090")
    assert page.locator("#quant").input_value() == "4.5bpw"
    assert page.locator("#caption").inner_text().startswith("70b: 70 B parameters · 4.5bpw: 39.4 GB")


def test_half_a_word_is_not_answered_with_another_model(tab, site):
    page = tab.open(site, "view=llm&model=qwen3-32b")
    page.locator("#model").fill("qwen3-3")
    assert page.locator("#caption").inner_text().startswith("qwen3-32b: ")
    assert page.locator("#model").get_attribute("aria-invalid") == "true"
    assert page.locator("#problems").inner_text() == "unknown model 'qwen3-3' (the list has all of them)"
    page.locator("#model").fill("qwen3-30b-a3b")
    assert page.locator("#caption").inner_text().startswith("qwen3-30b-a3b: ")
    assert page.locator("#problems").is_hidden()


def test_a_price_that_is_none_is_marked_and_the_others_count(tab, site):
    page = tab.open(site, "cards=rtx-4090,h100-sxm")
    page.locator("#chosen input[data-card=h100-sxm]").fill("2.69")
    page.locator("#chosen input[data-card=rtx-4090]").fill("cheap")
    assert page.locator("#chosen input[aria-invalid]").get_attribute("data-card") == "rtx-4090"
    assert page.locator("#problems").inner_text() == "price of rtx-4090 must be a number, not 'cheap'"
    assert "--cost h100-sxm=2.69" in page.locator("#command").inner_text()


def test_a_price_in_a_link_is_not_cut_at_its_comma(tab, site):
    page = tab.open(site, "cards=rtx-4090,h100-sxm&cost=4090=1,000,h100-sxm=2.69")
    assert "price of 4090 must be a number, not '1,000'" in page.locator("#problems").inner_text()
    assert page.locator("#chosen input[aria-invalid]").input_value() == "1,000"
    assert page.locator("#command").inner_text().endswith("--cost h100-sxm=2.69")


def test_a_link_that_is_too_long_is_not_read(tab, site):
    page = tab.open(site, "cards=" + "a," * 20_000)
    assert texts(page, "#problems li") == ["The address is too long, so it is not read."]
    assert rows(page)


def test_its_policy_stops_what_is_not_its_own(browser, site):
    with watched(browser) as opened:
        page = opened.open(site)
        page.evaluate("""() => {
          const script = document.createElement('script');
          script.textContent = 'document.title = "broken in"';
          document.body.append(script);
        }""")
        assert page.title() == "Which card? · kmrun"
        assert any("Content Security Policy" in text for text in opened.errors)
        opened.errors.clear()


def test_all_cards_at_once(tab, site):
    page = tab.open(site)
    page.locator("#group").select_option("all")
    assert len(rows(page)) == page.evaluate("catalogue.cards.size")
    assert "cards=all" in fragment(page)
    page.locator("#group").select_option("none")
    assert page.locator("#empty").is_visible()
    assert page.locator("#frame, #figure").locator("visible=true").count() == 0


def test_a_card_keeps_its_look_when_the_table_is_sorted(tab, site):
    page = tab.open(site)
    looks = """Object.fromEntries([...document.querySelectorAll('#legend li')].filter((item) => item.querySelector('b'))
      .map((item) => [item.querySelector('b').textContent, item.querySelector('path').getAttribute('class')]))"""
    before, first = page.evaluate(looks), rows(page)
    page.locator("#table [data-sort=attainable]").click()
    assert rows(page) != first
    assert page.evaluate(looks) == before
    assert len(set(before.values())) == 8
