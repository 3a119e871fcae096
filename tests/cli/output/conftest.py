"""A page in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.output.looking import Look
from tools.browser.driver import Browser, Page


@pytest.fixture
def look(browser: Browser, tmp_path: Path) -> Iterator[Look]:
    """``look(text)``: a page in the browser. With ``dark`` as somebody who prefers dark pages sees it."""
    pages: list[Page] = []

    def opened(text: str, *, dark: bool = False, width: int = 1280) -> Page:
        file = tmp_path / "plan.html"
        file.write_text(text)
        pages.append(browser.open(file, dark=dark, width=width))
        return pages[-1]

    yield opened
    for shown in pages:
        shown.close()
