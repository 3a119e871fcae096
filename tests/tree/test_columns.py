"""Documents are read in editors and terminals too: their lines fit 120 columns, as the linter demands of Python."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.template import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "manifests" / "README.md"])
COLUMNS = 120


def too_long(text: str) -> Iterator[int]:
    """Numbers of the lines that are too long. A row of a table cannot be wrapped, so it may be as long as it likes."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > COLUMNS and not line.startswith("|"):
            yield number


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_lines_of_a_document_fit(document: Path) -> None:
    """Prose and commands alike."""
    assert list(too_long(document.read_text("utf-8"))) == []


def test_a_long_line_is_seen_unless_it_is_a_row_of_a_table() -> None:
    """Characters are counted, not bytes."""
    long = "x" * (COLUMNS + 1)
    assert list(too_long("\n".join(["ü" * COLUMNS, long, f"| {long} |"]))) == [2]


def test_the_linter_demands_the_same_of_python() -> None:
    """E501 is part of E; it must not be ignored, for the tree or for any folder."""
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]
    ignored = [*ruff["lint"].get("ignore", ()), *sum(ruff["lint"]["per-file-ignores"].values(), [])]
    assert ruff["line-length"] == COLUMNS
    assert "E" in ruff["lint"]["select"]
    assert "E501" not in ignored
