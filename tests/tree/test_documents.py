"""What the documents name is there: files, modules and functions, targets, sample events."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from tools.template import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "manifests" / "README.md"])
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
CODE = re.compile(r"```[^`]*```|`[^`\n]+`|^ {4,}[^\n]+$", re.MULTILINE)
DOTTED = re.compile(r"\bjoinery\.(?!dev\b)[a-z_.]*[a-z_]")  # ``joinery.dev`` is the group of our own annotations
TARGET = re.compile(r"\bmake ([a-z][a-z-]+)\b")
PATH = re.compile(r"\b(?:events|examples|manifests|simulator|shared|functions|layers|tests|tools|docs)/[\w./-]*\w")
MODULE = re.compile(r"(?<![\w/*.])[a-z]+/[\w/]*\w\.py\b")  # ``controllers/launcher.py``, from the package's folder


def _code(document: Path) -> list[str]:
    """Inline code and blocks: prose may say what it likes."""
    return CODE.findall(document.read_text())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    """Relative ones: no reader should meet a dead end in the repository itself."""
    missing = [link for link in LINK.findall(document.read_text()) if not (document.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_in_code_exist(document: Path) -> None:
    """A command that is copied from a document runs."""
    paths = {path for code in _code(document) for path in PATH.findall(code) + MODULE.findall(code)}
    assert [
        path for path in sorted(paths) if not ((ROOT / path).exists() or (ROOT / "shared/joinery" / path).exists())
    ] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_in_documents_exist(document: Path) -> None:
    """``joinery.interruption.notice.parse`` is where it is said to be."""
    names = {name for code in _code(document) for name in DOTTED.findall(code)}
    assert [name for name in sorted(names) if not _is_there(name)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_targets_in_documents_exist(document: Path) -> None:
    """``make`` knows every target that a document tells to call."""
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {target for code in _code(document) for target in TARGET.findall(code)} - targets == set()


def _is_there(name: str) -> bool:
    try:
        import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        try:
            return hasattr(import_module(module), attribute)
        except ModuleNotFoundError:
            return False
    return True


def test_every_decision_has_a_number_of_its_own() -> None:
    """Others refer to a decision by its number; its page says the same number in its heading."""
    pages = {path: path.name[:4] for path in (ROOT / "docs/decisions").glob("*.md")}
    assert sorted(set(pages.values())) == sorted(pages.values())
    assert [path.name for path, number in pages.items() if not path.read_text().startswith(f"# {int(number)}. ")] == []
