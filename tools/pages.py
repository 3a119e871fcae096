"""Prepare the pages for the site, and look at the site when it is built. `make docs` calls both.

    python -m tools.pages build/pages            copy what is read, add the order of reading and the generated pages
    python -m tools.pages --check build/site     exit status 1 if a built page loads something from elsewhere

The pages keep the paths that they have in the repository, so a link that works there works in the site. Sphinx does the
rest, and is strict: a page that no list below names, a link without a target, and an anchor without a heading all fail.
"""

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.browser.driver import Browser, MissingBrowserError, browsing
from tools.reference import instancetypes
from tools.template import ROOT

#: The first page of the site.
HOME = "docs/home"
#: In the order in which a reader needs them. Those for authors come last, and after all others in a search.
CHAPTERS = {
    "Begin": ["docs/try", "docs/getting-started", "docs/karpenter", "docs/compatibility", "docs/faq"],
    "Concepts": ["docs/nodepools", "docs/nodeclasses", "docs/nodeclaims"],
    "Use it": [
        "docs/tasks",
        "docs/gangs",
        "docs/devices",
        "docs/headroom",
        "docs/disruption",
        "docs/amis",
        "docs/top",
        "docs/history",
        "docs/troubleshooting",
    ],
    "Run it": [
        "docs/operations",
        "docs/upgrading",
        "docs/runbook",
        "docs/permissions",
        "docs/threat-model",
        "docs/prometheus",
        "docs/cost",
        "docs/many-clusters",
        "SECURITY",
        "CHANGELOG",
    ],
    "Look it up": ["docs/reference", "docs/fields", "docs/instance-types"],
    "How it decides": [
        "docs/scheduling",
        "docs/packing",
        "docs/disruption-rules",
        "docs/performance",
        "docs/benchmarks",
    ],
    "Work on it": [
        "README",
        "CONTRIBUTING",
        "docs/building",
        "docs/architecture",
        "docs/rooms",
        "docs/glossary",
        "docs/stand-in",
        "docs/critiques",
        "docs/decisions/README",
    ],
}
#: What people search for, and the page that has to come first.
SEARCHES = {
    "pod pending": "docs/troubleshooting",
    "consolidateAfter": "docs/disruption",
    "spot": "docs/tasks",
    "upgrade": "docs/upgrading",
    "iam": "docs/permissions",
    "ami": "docs/amis",
}
#: Pages with the widest tables and drawings, which a telephone has to show whole.
TELEPHONE = (
    "docs/reference",
    "docs/compatibility",
    "docs/disruption",
    "docs/decisions/0121-the-numbers-of-the-search-are-in-one-place",
)
#: The first element that is wider than the screen and scrolls nowhere, or the first table of words that does, or that
#: fits by a word or two a line.
_CUT_OFF = """new Promise(done => requestAnimationFrame(() => {
  if (document.documentElement.scrollWidth > innerWidth) return done("the page is wider than the screen");
  const table = [...document.querySelectorAll("table.docutils:not(.stacked)")].find(
    one => (one.scrollWidth > one.parentElement.clientWidth || one.offsetHeight > 130 * one.rows.length) &&
      one.textContent.length > 40 * one.rows.length);
  done(table ? table.textContent.trim().slice(0, 40) : "");
}))"""
MANIFESTS = "manifests/README"  # a link to the folder in the package
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
#: What a browser fetches by itself. A link that a reader clicks may lead anywhere.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|link(?![^>]*rel="(?:canonical|search)"))\b[^>]*?(?:src|href)="(https?:|//)"""
)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    if options.check:
        fetching = [str(page.relative_to(options.folder)) for page in fetches(options.folder)]
        if fetching:
            sys.exit(f"these pages load something from elsewhere: {', '.join(fetching)}")
        # Whoever opens the folder, or serves it, sees the first page.
        (options.folder / "index.html").write_text(
            f'<!doctype html><title>Joinery</title><meta http-equiv="refresh" content="0; url={HOME}.html">\n'
        )
        if wrong := list(wrong_in_a_browser(options.folder)):
            sys.exit("\n".join(wrong))
        return
    shutil.rmtree(options.folder, ignore_errors=True)
    for path in sources():
        _place(path, options.folder)
    with (options.folder / f"{HOME}.md").open("a") as home:
        home.write(contents())
    with (options.folder / "docs/decisions/README.md").open("a") as index:
        index.write(decisions())
    with (options.folder / "docs/instance-types.md").open("a") as page:
        page.write(sample())


def sources() -> list[Path]:
    """The pages: those at the top of the repository and below docs/, and what the manifests are."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / f"{MANIFESTS}.md"])


def _place(path: Path, folder: Path) -> None:
    """Copy a page and the files that it links to: a link to a folder becomes one to the page in it."""
    text = path.read_text()
    for target, _ in LINK.findall(text):
        linked = Path(os.path.normpath(path.parent / target))
        if linked.is_file() and linked.suffix != ".md":
            _copy(linked, folder)
        elif linked.is_dir():
            text = text.replace(f"]({target})", f"]({target.rstrip('/')}/README.md)")
    into = folder / path.relative_to(ROOT)
    into.parent.mkdir(parents=True, exist_ok=True)
    into.write_text(text)


def _copy(path: Path, folder: Path) -> None:
    into = folder / path.relative_to(ROOT)
    into.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, into)


def contents() -> str:
    """The order of reading, as Sphinx wants it: lists that are shown beside every page."""
    lists = [_toctree([f"/{page}" for page in pages], f":caption: {chapter}") for chapter, pages in CHAPTERS.items()]
    return "\n".join(["", *lists, _toctree([f"/{MANIFESTS}"], ":hidden:")])


def decisions() -> str:
    """All records of decisions, in the order of their numbers."""
    names = sorted(path.stem for path in ROOT.glob("docs/decisions/[0-9]*.md"))
    return f"\n{_toctree(names, ':maxdepth: 1')}"


def sample() -> str:
    """The instance types of the sample catalogue: too many rows to keep in the repository."""
    return "\n".join(["", "## The types of the sample catalogue", "", *instancetypes.table(), ""])


def _toctree(pages: list[str], option: str) -> str:
    hidden = "" if "depth" in option or "hidden" in option else "\n:hidden:"
    return "\n".join(["```{toctree}", f"{option}{hidden}", "", *pages, "```", ""])


def fetches(folder: Path) -> Iterator[Path]:
    """The built pages that would fetch a script, a style, a font or a picture from another host."""
    for page in sorted(folder.rglob("*.html")):
        if FETCHED.search(page.read_text()):
            yield page


def wrong_in_a_browser(site: Path) -> Iterator[str]:
    """What a reader would find wrong; nothing where there is no browser."""
    with TemporaryDirectory() as profile:
        try:
            with browsing(Path(profile)) as browser:
                yield from _found_elsewhere(browser, site)
                yield from _cut_off(browser, site)
        except MissingBrowserError as error:
            print(f"searches and narrow screens are NOT TRIED: {error}", file=sys.stderr)


def _found_elsewhere(browser: Browser, site: Path) -> Iterator[str]:
    """Of ``SEARCHES`` those whose page does not come first."""
    for words, expected in SEARCHES.items():
        first = _first_result(browser, site, words)
        if first != f"{expected}.html":
            yield f"a search for {words!r} finds {first} first, and not {expected}.html"


def _cut_off(browser: Browser, site: Path) -> Iterator[str]:
    """Of ``TELEPHONE`` those of which a telephone shows a part alone."""
    for name in TELEPHONE:
        page = browser.open(site.resolve() / f"{name}.html", width=390)
        if cut := page.ask(_CUT_OFF):
            yield f"{name}.html is cut off on a telephone: {cut}"
        page.close()


def _first_result(browser: Browser, site: Path, words: str) -> str:
    page = browser.open(site.resolve() / "search.html")
    # What Sphinx's search form does.
    page.ask(f"Search.performSearch({json.dumps(words)})")
    link = "document.querySelector('#search-results li a')"
    found = page.ask(
        "new Promise(done => { const look = n => { const a = " + link + ";"
        " a || !n ? done(a && a.getAttribute('href')) : setTimeout(look, 50, n - 1) }; look(200) })"
    )
    page.close()
    return re.sub(r"[?#].*", "", str(found))


if __name__ == "__main__":
    main()
