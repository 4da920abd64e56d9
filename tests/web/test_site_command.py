"""The page, its address and its command in a terminal are one: also beside a setting that is refused."""

import re
import shlex

import pytest

from web.site_page import follow, fragment, rows, texts

COMPARE = (
    "sort=-memory",
    "sort=-name&ai=0&peak=FP16_fp32acc",
    "sort=luck&ai=1,5&cards=4090,nothing,h100-sxm",
    "sort=cost&ai=%2B1e2+",
    "sort=-value&cost=rtx-4090=0.3512345678,h100-sxm=2.69,b200=cheap,mi300x=2.1",
    "sort=value&cost=rtx-4090=1,000,h100-sxm=2.69&ai=",
    "sort=-attainable&peak=fp9",
)
LLM = (
    "ctx=1e9&sort-llm=-decode",
    "overhead=1e9&batch=0&watt=2&sort-llm=luck",
    "overhead=1,5&ctx=32,768&gpus=1.5&sort-llm=-fits&watt=1",
    "ctx=&overhead=+2&batch=+08&gpus=2&draft=3&kv=FP8&quant=Q4",
    "model=8b&kv=nothing&draft=-1&quant=nothing&cost=h100-sxm=2.69",
    "model=nothing&sort-llm=-cost&cost=h100-sxm=2.69,b200=5",
)


@pytest.mark.parametrize("links", [COMPARE, [f"view=llm&{link}" for link in LLM]], ids=["compare", "llm"])
def test_the_command_is_of_what_the_page_shows(tab, site, kmrun, links):
    page = tab.open(site)
    for link in links:
        follow(page, link)
        done = kmrun(*shlex.split(page.locator("#command").inner_text())[1:])
        assert done.code == 0, (link, done.err)
        order = rows(page)
        printed = [line.split() for line in done.out.splitlines()]
        of = {
            name: [words for words in printed if words[: len(name.split())] == name.split()] for name in order
        }
        first = [printed.index(of[name][0]) for name in order]
        assert first == sorted(first), link
        cells = page.evaluate("""[...document.querySelectorAll("#table tbody tr")].map(
          (row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent))""")
        for name, shown in zip(order, cells, strict=True):
            said = " ".join(word for words in of[name] for word in words)
            for cell in shown:
                word = {"memory": "mem", "compute": "comp"}.get(cell, cell)
                assert word in said or cell in said, (link, name, cell)
        caption = page.locator("#caption").inner_text()
        assert caption == "What the cards have" or caption in re.sub(r"\s+", " ", done.out), link


@pytest.mark.parametrize("view", ["compare", "llm"])
def test_without_a_card_there_is_no_command(tab, site, view):
    page = tab.open(site, f"view={view}&cards=")
    assert page.locator("#command").is_hidden()
    assert page.locator("#command").text_content() == ""
    assert "No card is chosen" in page.locator("#no-command").inner_text()
    page.locator("#card").fill("b200")
    page.locator("#card").press("Enter")
    assert page.locator("#command").is_visible()
    assert page.locator("#no-command").is_hidden()


def test_a_refused_setting_is_not_in_the_address(tab, site):
    page = tab.open(site)
    page.locator("#ai").fill("7")
    link = fragment(page)
    page.locator("#ai").fill("7x")
    assert page.locator("#ai").input_value() == "7x"
    assert page.locator("#caption").inner_text().startswith("A kernel at 7 flop/byte")
    assert fragment(page) == link
    page.reload()
    assert page.locator("#caption").inner_text().startswith("A kernel at 7 flop/byte")
    assert page.locator("#problems").is_hidden()


def test_back_and_an_earlier_link_are_read_again(tab, site):
    page = tab.open(site, "ai=5")
    page.locator("#ai").fill("7")
    typed = fragment(page)
    assert "ai=7" in typed
    follow(page, "#ai=9")
    assert page.locator("#ai").input_value() == "9"
    page.go_back()
    page.wait_for_function("document.querySelector('#ai').value === '7'")
    assert fragment(page) == typed
    page.go_forward()
    page.wait_for_function("document.querySelector('#ai').value === '9'")
    follow(page, typed)
    assert page.locator("#ai").input_value() == "7"
    assert page.locator("#caption").inner_text().startswith("A kernel at 7 flop/byte")


FIELDS = ("#ai", "#ctx", "#batch", "#gpus", "#draft", "#overhead", "#chosen input[data-card=h100-sxm]")


def test_no_field_guesses_what_a_comma_means(tab, site):
    for view, text in (("compare", "1,5"), ("llm", "1,000")):
        page = tab.open(site, f"view={view}&cards=rtx-4090,h100-sxm")
        page.reload()
        if view == "llm":
            page.locator("#settings summary").click()
        before = page.locator("#command").inner_text()
        for field in [one for one in FIELDS if page.locator(one).is_visible()]:
            page.locator(field).fill(text)
            assert page.locator(field).get_attribute("aria-invalid") == "true", field
            assert repr(text) in page.locator("#problems").inner_text(), field
            assert page.locator("#command").inner_text() == before, field
        assert page.locator("[aria-invalid]").count() == (2 if view == "compare" else 6)
        # Another card makes the fields of all cards anew.
        page.locator("#card").fill("b200")
        page.locator("#card").press("Enter")
        assert page.locator(FIELDS[-1]).input_value() == text
    assert texts(page, ".hint") == [
        "Numbers have a point before decimals and nothing between thousands: 1.5, 1500."
    ]
