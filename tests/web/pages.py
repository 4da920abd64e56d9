"""A page in a real browser that tattles: console errors, exceptions, and every request that leaves the machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

from web.browser import SHOTS

WIDTHS = (360, 800, 1280)
SCHEMES = ("light", "dark")
_LOCAL = ("file:", "data:", "about:", "blob:")


class Watched:
    """One tab. `page` is Playwright's; `errors` and `requests` are what must stay empty."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        if not url.startswith(_LOCAL):
            self.requests.append(url)

    def open(self, file: Path, fragment: str = "") -> Page:
        """Load a file from disk, with `#fragment` if one is given, and return the page."""
        self.page.goto(file.resolve().as_uri() + (f"#{fragment}" if fragment else ""))
        return self.page

    def overflow(self) -> int:
        """Pixels by which the document is wider than the window; 0 where nothing sticks out."""
        script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(script))

    def resize(self, width: int) -> None:
        """Give the window a width, and the page the time to draw what depends on it."""
        self.page.set_viewport_size({"width": width, "height": 800})
        script = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
        self.page.evaluate(script)

    def shoot(self, name: str) -> list[Path]:
        """Write `NAME-360-light.png` ... `NAME-1280-dark.png` of the whole page; return their paths."""
        SHOTS.mkdir(exist_ok=True)
        paths = []
        for width in WIDTHS:
            self.resize(width)
            for scheme in SCHEMES:
                self.page.emulate_media(color_scheme=scheme)
                path = SHOTS / f"{name}-{width}-{scheme}.png"
                self.page.screenshot(path=path, full_page=True)
                paths.append(path)
        return paths


@contextmanager
def watched(
    browser: Browser, width: int = 1280, scheme: str = "light", javascript: bool = True
) -> Iterator[Watched]:
    """Give a tab of a profile of its own; at its end nothing may have gone wrong and nothing left the machine."""
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
        java_script_enabled=javascript,
        offline=True,
    )
    try:
        tab = Watched(context.new_page())
        yield tab
        assert tab.errors == []
        assert tab.requests == []
    finally:
        context.close()
