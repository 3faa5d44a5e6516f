"""A real browser for tests: Chromium by Playwright. Tests are skipped, with the reason, where one of them is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

PATIENCE = 30_000
"""Milliseconds after which what should be seen on a page is not."""
NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: pip install playwright"
    )
    path = next((found for found in map(shutil.which, NAMES) if found is not None), None)
    if path is None:
        pytest.skip(f"there is no browser: none of {', '.join(NAMES)} is installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page_of(browser: Any, **options: Any) -> Iterator[Any]:
    """A page of its own, in which an error of a script, a file that is not there and a breach of the page's policy fail the test.
    Nothing moves slowly.
    """
    context = browser.new_context(reduced_motion="reduce", **options)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    try:
        yield page
    finally:
        context.close()
    assert errors == []


def typed(page: Any, text: str) -> None:
    """Put a text into the editor in place of what is there."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def cells(page: Any) -> list[list[str]]:
    """What the grid shows, row by row, in the order of the page."""
    found: list[list[str]] = page.evaluate("""() => [...document.querySelectorAll(".grid .row")]
        .filter((row) => !row.hidden)
        .sort((a, b) => a.getAttribute("aria-rowindex") - b.getAttribute("aria-rowindex"))
        .map((row) => [...row.querySelectorAll("[role=gridcell]")].map((cell) => cell.textContent))""")
    return found


def wait_for(page: Any, look: Callable[[], Any], wanted: Any) -> None:
    """Wait until a page shows something."""
    for _ in range(PATIENCE // 25):
        if look() == wanted:
            return
        page.wait_for_timeout(25)
    assert look() == wanted
