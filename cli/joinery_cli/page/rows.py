"""The rows of a plan's page: new nodes as bars of their workloads, existing capacity, what stays pending and why.

What a row holds shrinks as a plan grows, so that the page of 10,000 pods stays a few megabytes: see the limits below.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from joinery_cli.page.bars import Scale, bars, fullness, scale_of
from joinery_cli.page.details import inside, named, named_on
from joinery_cli.page.parts import folded, folding_section, unfolding_row
from joinery_cli.page.text import NOTHING, Html, element, join, text
from joinery_cli.view.figures import count, money
from joinery_cli.view.plan_view import Existing, Group, PlanView, Refused, Section

#: Up to so many kinds of nodes each says all that its launch request says.
_DETAILED_GROUPS = 200
#: Up to so many pods all their names are in the page.
_NAMED_PODS = 20_000
#: So many pods of one reason are named without a click.
_SHOWN_PODS = 12


@dataclass(frozen=True)
class _Style:
    """How the rows of launches are drawn, and how much each of them says."""

    scale: Scale
    with_names: bool
    detailed: bool


def sections(plan: PlanView) -> Html:
    """Everything in the page's main column, what needs attention first."""
    style = _style(plan)
    parts = [_pending(plan.refused), _dropped(plan)]
    parts += [_launches(section, style) for section in plan.sections]
    parts.append(_existing(plan, style))
    return join(part for part in parts if part)


def _style(plan: PlanView) -> _Style:
    groups = [group for section in plan.sections for group in section.groups]
    return _Style(
        scale=scale_of([group.nodes[0] for group in groups], plan.resources),
        with_names=plan.placed <= _NAMED_PODS,
        detailed=len(groups) <= _DETAILED_GROUPS,
    )


# --- nodes ---


def _launches(section: Section, style: _Style) -> Html:
    nodes = section.nodes
    pods = sum(node.pods for node in nodes)
    heading = join(
        (
            element("h2", text(f"NodePool {section.node_pool}")),
            element("span", text(section.where), class_="tag"),
            element("span", text(section.capacity_type), class_=f"tag {text(section.capacity_type)}"),
            element("small", text(fullness(nodes, style.scale.resources))),
            element(
                "span",
                text(f"{count(len(nodes), 'node')} · {count(pods, 'pod')} · {money(section.price)}/h"),
                class_="sum",
            ),
        )
    )
    about = f"{section.node_pool} {section.where} {section.capacity_type}"
    rows = [_group(group, style) for group in section.groups]
    return folding_section(heading, folded(rows, "more kinds of nodes"), about=about, before="daemons")


def _group(group: Group, style: _Style) -> Html:
    launch, many = group.launches[0], len(group.launches)
    times = element("b", text(f"{many:,} × ")) if many > 1 else NOTHING
    types = len(launch.instance_types)
    note = f"{count(group.nodes[0].pods, 'pod')}, {'one type only' if types == 1 else f'any of {types} types'}"
    price_each = f"{money(launch.offering.price)} each" if many > 1 else ""
    summary = join(
        (
            element("span", times, text(launch.offering.instance_type), element("small", text(note)), class_="kind"),
            element("span", text(f"{money(group.price)}/h"), element("small", text(price_each)), class_="price"),
            bars(group.nodes[0], style.scale),
        )
    )
    content = inside(group, with_names=style.with_names, detailed=style.detailed)
    return unfolding_row(
        summary,
        content,
        nodes=many,
        pods=sum(node.pods for node in group.nodes),
        price=launch.offering.price,
        launches=many,
    )


def _existing(plan: PlanView, style: _Style) -> Html:
    if not plan.existing:
        return NOTHING
    nodes = [existing.node for existing in plan.existing]
    pods = sum(node.pods for node in nodes)
    heading = join(
        (
            element("h2", text("Existing capacity")),
            element("small", text(f"filled first; then {fullness(nodes, plan.resources)}")),
            element("span", text(f"{count(len(nodes), 'node')} · {count(pods, 'pod')}"), class_="sum"),
        )
    )
    scale = scale_of(nodes, plan.resources)
    rows = [_existing_row(existing, scale, with_names=style.with_names) for existing in plan.existing]
    return folding_section(heading, folded(rows, "more nodes"), about="existing", before="runs there already")


def _existing_row(existing: Existing, scale: Scale, *, with_names: bool) -> Html:
    where = " · ".join(part for part in (existing.node_pool, existing.instance_type) if part)
    note = f"{where}, launching" if not existing.placement.node else where
    summary = join(
        (
            element("span", text(existing.name), element("small", text(note)), class_="kind"),
            element("span", text(f"+ {count(existing.node.pods, 'pod')}"), class_="price"),
            bars(existing.node, scale),
        )
    )
    names = element("ol", named_on(existing.name, existing.placement.pods)) if with_names else NOTHING
    claim = (
        element("p", text(f"NodeClaim {existing.placement.node_claim}")) if existing.placement.node_claim else NOTHING
    )
    return unfolding_row(summary, element("div", claim, names, class_="inside"), nodes=1, pods=existing.node.pods)


# --- what did not go as wished ---


def _pending(refused: Sequence[Refused]) -> Html:
    if not refused:
        return NOTHING
    pods = sum(len(refusal.pods) for refusal in refused)
    heading = join((element("h2", text("Stay pending")), element("span", text(count(pods, "pod")), class_="sum")))
    return folding_section(
        heading, folded([_refusal(group) for group in refused], "more reasons"), about="pending unschedulable"
    )


def _refusal(group: Refused) -> Html:
    reasons = element("ul", join(element("li", text(reason)) for reason in group.reasons))
    first, others = group.pods[:_SHOWN_PODS], group.pods[_SHOWN_PODS:]
    shown = element("p", element("b", text(f"{count(len(group.pods), 'pod')}: ")), named(first))
    more = element("summary", text(f"and {count(len(others), 'more pod')}"))
    rest = element("details", more, element("p", named(others))) if others else NOTHING
    return element("div", shown, rest, reasons, class_="reason", data_row=1, data_pods=len(group.pods))


def _dropped(plan: PlanView) -> Html:
    if not plan.dropped:
        return NOTHING
    pods = len(plan.packing.relaxed)
    heading = join(
        (element("h2", text("Preferences dropped")), element("span", text(count(pods, "pod")), class_="sum"))
    )
    rows = [_preference(preference, times) for preference, times in plan.dropped]
    return folding_section(heading, folded(rows, "more preferences"), about="preferences dropped relaxed")


def _preference(preference: str, times: int) -> Html:
    said = element("p", element("b", text(f"{times:,} × ")), text(preference))
    return element("div", said, class_="reason wish", data_row=1)
