"""Sections that fold, and their rows: what the filter of a page counts."""

from collections.abc import Sequence

from joinery_cli.page.text import Html, element, join, text

#: Rows of a section that are open from the start.
_OPEN_ROWS = 60


def folding_section(heading: Html, rows: Html, *, about: str = "", before: str = "") -> Html:
    """It folds; its heading says how many nodes, pods and dollars an hour of it the filter shows."""
    folding = element("details", element("summary", heading), rows, class_="part", open_="open")
    return element("section", folding, data_about=about, data_before=before)


def folded(rows: Sequence[Html], what: str) -> Html:
    """The first rows, and the others behind one line."""
    if len(rows) <= _OPEN_ROWS:
        return join(rows)
    heading = element("summary", text(f"and {len(rows) - _OPEN_ROWS:,} {what}"))
    return join((*rows[:_OPEN_ROWS], element("details", heading, *rows[_OPEN_ROWS:], class_="rest")))


def unfolding_row(
    summary: Html, content: Html, *, nodes: int, pods: int, price: float = 0, launches: int | None = None
) -> Html:
    """A line that unfolds, with the figures that the filter sums up. ``price``: $/h of one of its nodes."""
    return element(
        "details", element("summary", summary), content,
        class_="node", data_row=1, data_nodes=nodes, data_pods=pods, data_price=price, data_launches=launches,
    )  # fmt: skip
