"""What the documents name is there: files, modules and functions, targets, sample events."""

import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from joinery_cli.doctor.reachable import ENDPOINTS, WITHOUT_ENDPOINTS
from tests.cases.scheduling.reading import cases
from tools.pages import CHAPTERS, HOME, MANIFESTS, sources
from tools.template import ROOT

DOCUMENTS = sources()
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
ANCHORED = re.compile(r"\]\(([^)#:\s]*)#([^)\s]+)\)")
CODE = re.compile(r"```[^`]*```|`[^`\n]+`|^ {4,}[^\n]+$", re.MULTILINE)
DOTTED = re.compile(r"\bjoinery\.(?!dev\b)[a-z0-9_.]*[a-z0-9_]")  # ``joinery.dev`` is the group of our own annotations
TARGET = re.compile(r"\bmake ([a-z][a-z-]+)\b")
PATH = re.compile(r"\b(?:events|examples|manifests|simulator|shared|functions|layers|tests|tools|docs)/[\w./-]*\w")
MODULE = re.compile(r"(?<![\w/*.])[a-z]+/[\w/]*\w\.py\b")  # ``controllers/webhook.py``, from the package's folder

#: A path in a document begins at the repository, at the package, or at its decisions.
ROOTS = ("shared/joinery", "shared/joinery/decisions", "cli")

CASES = re.compile(r"^\| [^|]+ \| (\d+) \| ([a-z-]+) \|", re.MULTILINE)


def _code(document: Path) -> list[str]:
    """Inline code and blocks: prose may say what it likes."""
    return CODE.findall(document.read_text())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    """Relative ones: no reader should meet a dead end in the repository itself."""
    missing = [link for link in LINK.findall(document.read_text()) if not (document.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_headings_that_are_there(document: Path) -> None:
    """``page.md#a-heading`` names a heading of that page, by the rule that GitHub has for them."""
    linked = [
        (document.parent / page if page else document, anchor) for page, anchor in ANCHORED.findall(_prose(document))
    ]
    assert [f"{page.name}#{anchor}" for page, anchor in linked if anchor not in _anchors(page)] == []


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _prose(page: Path) -> str:
    """Without blocks of code, whose comments are no headings."""
    return re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def test_the_site_has_every_page_once() -> None:
    """No page is left out of the order of reading, and none is in two places."""
    listed = [page for pages in CHAPTERS.values() for page in pages]
    records = [f"docs/decisions/{path.stem}" for path in ROOT.glob("docs/decisions/[0-9]*.md")]
    assert sorted([*listed, *records, HOME, MANIFESTS]) == sorted(
        str(path.relative_to(ROOT).with_suffix("")) for path in sources()
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_in_code_exist(document: Path) -> None:
    """A command that is copied from a document runs."""
    paths = {path for code in _code(document) for path in PATH.findall(code) + MODULE.findall(code)}
    assert [
        path
        for path in sorted(paths)
        if not ((ROOT / path).exists() or any((ROOT / root / path).exists() for root in ROOTS))
    ] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_in_documents_exist(document: Path) -> None:
    """``joinery.decisions.interruption.notice.parse`` is where it is said to be."""
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
    pages = {path: path.name[:4] for path in (ROOT / "docs/decisions").glob("[0-9]*.md")}
    assert sorted(set(pages.values())) == sorted(pages.values())
    assert [path.name for path, number in pages.items() if not path.read_text().startswith(f"# {int(number)}. ")] == []


def test_the_endpoints_of_a_private_cluster_are_the_code_s() -> None:
    """`joinery doctor` checks those that the page lists."""
    kinds = {True: "gateway", False: "interface"}
    conditions = {one: one.only_if.replace("WebhookEndpoint", "`WebhookEndpoint`") for one in ENDPOINTS}
    page = (ROOT / "docs/operations.md").read_text().replace("`none`", "none").replace("`private`", "private")
    for one in ENDPOINTS:
        condition = conditions[one].replace("ZonalShift", "`ZonalShift`")
        what_for = f"{one.what_for}: if {condition}" if condition else one.what_for
        assert f"| `{one.name}` | {kinds[one.is_gateway]} | {what_for} |" in page
    for name, otherwise in WITHOUT_ENDPOINTS:
        assert f"| `{name}` | {otherwise} |" in page


def test_the_golden_cases_are_counted_rightly() -> None:
    """By theme, on the page that says what is tested."""
    said = CASES.findall((ROOT / "docs" / "scheduling.md").read_text())
    assert {file: int(number) for number, file in said} == Counter(case.file for case in cases())
