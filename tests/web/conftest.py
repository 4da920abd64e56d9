"""A real browser for the tests of pages: `browser` for the folder, `tab` for one test; `site` is the built page."""

import pytest

from support.commands import Command
from web.browser import FLAGS, NoBrowser, find_or_install, missing_is_failure
from web.pages import watched


@pytest.fixture(scope="package")
def browser():
    """Headless Chromium with a fresh profile. Ends with this folder's tests: its event loop disturbs others."""
    # Imported here, so that the other tests can be collected without it.
    from playwright.sync_api import sync_playwright

    try:
        path = find_or_install()
    except NoBrowser as missing:
        if missing_is_failure():
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture
def tab(browser):
    """A tab at 1280 px, light; fails the test on a console error or on a request off this machine."""
    with watched(browser) as opened:
        yield opened


@pytest.fixture(scope="package")
def site(tmp_path_factory):
    """The path of the site's page, as `kmrun site` writes it."""
    from kmrun.cli.site import command

    folder = tmp_path_factory.mktemp("site")
    command(str(folder))
    return folder / "index.html"


@pytest.fixture
def kmrun(monkeypatch, capsys):
    """The command line: `kmrun("compare", card)` returns code, out, err."""
    return Command(monkeypatch, capsys)
