"""Pages that comments and docstrings cite are there for whoever reads them."""

import re
from collections.abc import Iterator

import pytest

from tools.template import ROOT

_PAGE = re.compile(r"(?<![\w/.-])((?:docs/[\w/-]*)?[a-z][\w-]*\.md)(?=[\s,;:)]|\.\s|$)", re.MULTILINE)
_SECTION = re.compile(r"\.md,? (section )?\d")
FOLDERS = ("functions", "shared", "simulator", "tools", "tests")


def lines() -> Iterator[tuple[str, str]]:
    """Each line of the code that names a page, with the name of its file. Ours that tests citations is none."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".yaml") and "data" not in path.parts and path.name != "test_citations.py":
                text = path.read_text("utf-8")
                named = (line for line in text.splitlines() if ".md" in line) if ".md" in text else ()
                yield from ((str(path.relative_to(ROOT)), line) for line in named)


def citations() -> Iterator[tuple[str, str]]:
    """Each file, and a page that it names."""
    return ((file, page) for file, line in lines() for page in _PAGE.findall(line))


def test_a_page_that_is_cited_is_in_the_repository() -> None:
    """By its path from the root, or by its name under ``docs/``."""
    missing = [
        f"{file}: {page}"
        for file, page in citations()
        if not (ROOT / page).exists() and not (ROOT / "docs" / page).exists()
    ]
    assert missing == []


def test_no_page_is_cited_by_the_numbers_of_its_sections() -> None:
    """Numbers move; rules are cited by the source that has them, or by a page with a heading."""
    assert [f"{file}: {line}" for file, line in lines() if _SECTION.search(line)] == []


@pytest.mark.parametrize("text", ["rules of scheduling.md 3.6", '"""As it is (docs/packing.md)."""', "# see notes.md"])
def test_citations_are_seen(text: str) -> None:
    """In the ways that people write them."""
    assert _PAGE.search(text)
