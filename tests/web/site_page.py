"""What a reader finds on the site's page, and how another link is followed in it."""

import re

from playwright.sync_api import Page

_BLANKS = re.compile(r"\s+")


def texts(page: Page, selector: str) -> list[str]:
    """What elements say, blanks folded."""
    return [_BLANKS.sub(" ", text).strip() for text in page.locator(selector).all_inner_texts()]


def rows(page: Page) -> list[str]:
    """The names of the table's rows."""
    return texts(page, "#table tbody th")


def fragment(page: Page) -> str:
    """The address after its `#`, with it."""
    return page.evaluate("location.hash")


def follow(page: Page, fragment: str) -> None:
    """Go to another fragment of the same page, and wait until it has been read."""
    page.evaluate(
        """(hash) => new Promise((done) => {
          addEventListener("hashchange", () => setTimeout(done), { once: true });
          location.hash = hash;
        })""",
        fragment,
    )
