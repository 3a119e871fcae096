"""What was asked for by ``--explain``, at the end of the page: the same lines as in the terminal."""

from collections.abc import Iterable, Sequence

from joinery_cli.page.text import NOTHING, Html, element, text


def section(explanations: Sequence[Iterable[str]], what: str) -> Html:
    """A block for each explanation, whose first line is its heading; nothing where none was asked for."""
    if not explanations:
        return NOTHING
    heading = element("summary", element("h2", text("Explanations")), element("small", text(what)))
    blocks = map(_block, explanations)
    return element("section", element("details", heading, *blocks, class_="part", open_="open"), id="explanations")


def _block(lines: Iterable[str]) -> Html:
    heading, *rest = lines
    # ``text`` shows line breaks of others as characters, so the lines are joined as markup.
    return element("div", element("h3", text(heading)), element("pre", Html("\n".join(map(text, rest)))))
