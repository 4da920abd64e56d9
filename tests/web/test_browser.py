"""The watchers see what they are there to see."""

import pytest

from web.browser import NoBrowser, find_or_install, missing_is_failure
from web.pages import watched


def test_a_quiet_page_passes(tab, tmp_path):
    page = tmp_path / "quiet.html"
    page.write_text("<!doctype html><title>quiet</title><p>hello")
    assert tab.open(page).title() == "quiet"
    assert tab.overflow() == 0


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ("<script>console.error('oh')</script>", "errors"),
        ("<script>throw new Error('oh')</script>", "errors"),
        ("<img src='https://example.org/a.png' alt=''>", "requests"),
    ],
)
def test_a_page_that_misbehaves_is_caught(browser, tmp_path, body, where):
    page = tmp_path / "loud.html"
    page.write_text(f"<!doctype html><title>loud</title><body>{body}")
    with pytest.raises(AssertionError), watched(browser) as opened:
        opened.open(page)
    assert getattr(opened, where)


def test_what_is_too_wide_is_measured(tab, tmp_path):
    page = tmp_path / "wide.html"
    page.write_text("<!doctype html><title>wide</title><div style='width:2000px'>x</div>")
    tab.open(page)
    assert tab.overflow() > 700


def test_without_root_a_missing_browser_says_what_to_do(monkeypatch):
    monkeypatch.setattr("web.browser.find", lambda: None)
    monkeypatch.setattr("web.browser.os.geteuid", lambda: 1000)
    with pytest.raises(NoBrowser, match="install Debian's"):
        find_or_install()


def apt(folder, script):
    """Put an apt-get of our own before everything else."""
    path = folder / "apt-get"
    path.write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\n{script}\n')
    path.chmod(0o755)


def test_root_gets_it_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.delenv("KMRUN_CHROMIUM", raising=False)
    monkeypatch.setattr("web.browser.NAMES", ("chromium-of-this-test",))
    monkeypatch.setattr("web.browser.os.geteuid", lambda: 0)
    apt(tmp_path, f"touch {tmp_path}/chromium-of-this-test && chmod +x {tmp_path}/chromium-of-this-test")
    assert find_or_install() == str(tmp_path / "chromium-of-this-test")
    update, install = (tmp_path / "asked").read_text().splitlines()
    assert update.endswith("-qq update")
    assert "install -y --no-install-recommends chromium" in install
    apt(tmp_path, "echo no network >&2; exit 100")
    (tmp_path / "chromium-of-this-test").unlink()
    with pytest.raises(NoBrowser, match="apt-get update failed: no network"):
        find_or_install()


@pytest.mark.parametrize(("value", "promised"), [("true", True), ("1", True), ("", False), ("false", False)])
def test_only_ci_promises_a_browser(monkeypatch, value, promised):
    monkeypatch.setenv("CI", value)
    assert missing_is_failure() is promised
