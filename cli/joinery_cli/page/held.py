"""The nodes that stay for a reason, as rows of a page: one for each rule that holds nodes."""

from joinery_cli.page.details import named
from joinery_cli.page.parts import folded, folding_section
from joinery_cli.page.text import NOTHING, Html, element, join, text
from joinery_cli.view.disruption_view import DisruptionView, HeldGroup
from joinery_cli.view.disruption_words import rule
from joinery_cli.view.figures import count

#: So many nodes of one rule are named without a click, and so many different sentences are told.
_SHOWN_NODES, _SHOWN_MESSAGES = 12, 8


def section(view: DisruptionView) -> Html:
    """Every rule that holds a node; nothing where none does."""
    if not view.held:
        return NOTHING
    nodes = {name for group in view.held for name in group.nodes}
    heading = join((element("h2", text("Held")), element("span", text(count(len(nodes), "node")), class_="sum")))
    return folding_section(heading, folded([_group(group) for group in view.held], "more rules"), about="held stays")


def _group(group: HeldGroup) -> Html:
    first, others = group.nodes[:_SHOWN_NODES], group.nodes[_SHOWN_NODES:]
    shown = element("p", element("b", text(f"{count(len(group.nodes), 'node')}, {rule(group.code)}: ")), named(first))
    more = element("summary", text(f"and {count(len(others), 'more node')}"))
    rest = element("details", more, element("p", named(others))) if others else NOTHING
    messages = group.messages[:_SHOWN_MESSAGES]
    lines = [
        element("li", text(f"{message} ({count(len(names), 'node')})" if len(group.messages) > 1 else message))
        for message, names in messages
    ]
    if len(group.messages) > _SHOWN_MESSAGES:
        lines.append(element("li", text(f"and {count(len(group.messages) - _SHOWN_MESSAGES, 'more reason')}")))
    kept = element("ul", *lines)
    return element("div", shown, rest, kept, class_="reason held", data_row=1, data_nodes=len(group.nodes))
