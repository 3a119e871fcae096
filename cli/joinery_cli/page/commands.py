"""The commands of a decision as rows of its page: what goes and what comes; inside, node by node and pod by pod."""

from collections.abc import Sequence

from joinery.objects.karpenter.duration import spoken
from joinery_cli.page.bars import Scale, bars, scale_of
from joinery_cli.page.details import named_on
from joinery_cli.page.fleet import command_scale, strip
from joinery_cli.page.parts import folded, folding_section, unfolding_row
from joinery_cli.page.text import NOTHING, Html, element, join, text
from joinery_cli.view.disruption_view import CommandView, DisruptionView, DrawnNode
from joinery_cli.view.disruption_words import moves
from joinery_cli.view.figures import count, money

#: Up to so many nodes of all commands are drawn with their workloads.
_DRAWN_NODES = 600
#: So many bars stand in the row of a command.
_BITS = 16
_RESOURCES = ("cpu", "memory")


def section(view: DisruptionView) -> Html:
    """All commands in their order; nothing where nothing is to do."""
    if not view.commands:
        return NOTHING
    nodes = (*view.retired, *view.bought)
    scale = scale_of([node.filled for node in nodes], _RESOURCES) if len(nodes) <= _DRAWN_NODES else None
    pixels = command_scale(view)
    total = f"{count(len(view.retired), 'node')} · {count(view.evicted, 'pod')} · {money(view.savings)}/h"
    heading = join(
        (
            element("h2", text("What goes and what comes")),
            element("small", text("in this order: nodes removed, pods moved, $/h saved")),
            element("span", text(total), class_="sum"),
        )
    )
    rows = [_row(command, pixels, scale) for command in view.commands]
    return folding_section(heading, folded(rows, "more commands"), about="commands", before="daemons")


def _row(view: CommandView, pixels: float, scale: Scale | None) -> Html:
    command, retired, bought = view.command, view.retired, view.bought
    changes = f"{count(len(retired), 'node')} → {len(bought):,}, {count(len(command.pods), 'pod')}"
    repaid = view.repaid_in
    sooner = f"pays for itself in {spoken(repaid)}" if repaid else "" if repaid is not None else "never pays for itself"
    summary = join(
        (
            element(
                "span", text(f"{view.number} {command.reason.value}"), element("small", text(changes)), class_="kind"
            ),
            element("span", text(f"{money(command.savings)}/h"), element("small", text(sooner)), class_="price"),
            element("span", _strip(retired, pixels), _arrow(), _strip(bought, pixels) or _nothing(view), class_="swap"),
        )
    )
    return unfolding_row(
        summary,
        _inside(view, scale),
        nodes=len(retired),
        pods=len(command.pods),
        price=round(command.savings / len(retired), 6) if retired else 0,
    )


def _strip(nodes: Sequence[DrawnNode], pixels: float) -> Html:
    if not nodes:
        return NOTHING
    more = element("small", text(f"+{len(nodes) - _BITS:,}")) if len(nodes) > _BITS else NOTHING
    return element("span", strip(nodes[:_BITS], pixels), more, class_="fleet")


def _arrow() -> Html:
    return element("span", text("→"), class_="soft", aria_hidden="true")


def _nothing(view: CommandView) -> Html:
    """What stands on the right where nothing is bought."""
    targets = len({route.target for route in view.routes})
    return element("small", text(f"{count(targets, 'node')} with room" if targets else "nothing"))


def _inside(view: CommandView, scale: Scale | None) -> Html:
    command = view.command
    said = [command.message, moves(view)]
    parts = [element("p", text(sentence)) for sentence in said if sentence]
    parts += [
        element("div", *(_node(node, sign, scale) for node in nodes), class_="swapped") for sign, nodes in _sides(view)
    ]
    homes = [named_on(f"{route.source or 'pending'} → {route.target}", route.pods) for route in view.routes]
    moved = {route.source for route in view.routes}
    homes += [_unmoved(node.name) for node in view.retired if node.name not in moved]
    claims = f"NodeClaim{'s' if len(command.retire) > 1 else ''} {', '.join(command.retire)}"
    return element("div", *parts, element("ol", *homes), element("p", text(claims), class_="soft"), class_="inside")


def _unmoved(node: str) -> Html:
    return element("li", element("b", text(node)), text(" no pod moves"), class_="home")


def _sides(view: CommandView) -> Sequence[tuple[str, Sequence[DrawnNode]]]:
    return [(sign, nodes) for sign, nodes in (("−", view.retired), ("+", view.bought)) if nodes]


def _node(node: DrawnNode, sign: str, scale: Scale | None) -> Html:
    price = "price unknown" if node.price is None else f"{money(node.price)}/h"
    where = " · ".join(filter(None, (node.instance_type, node.zone, node.capacity_type, node.node_pool)))
    others = f", or any of {node.alternatives} other types" if node.alternatives else ""
    about = element("span", text(f"{sign} {node.name}"), element("small", text(where + others)), class_="kind")
    drawn = bars(node.filled, scale) if scale else element("small", text(count(node.filled.pods, "pod")))
    return element("div", about, element("span", text(price), class_="price"), drawn)
