"""The rows of the page: nodes as bars of their workloads, existing capacity, what stays pending and why, and the
legend.

What a row holds shrinks as a plan grows, so that the page of 10,000 pods stays a few megabytes: see the limits below.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from joinery.apis.quantity import Resources
from joinery.cli.page.details import inside, named, named_on
from joinery.cli.page.text import NOTHING, Html, element, join, text
from joinery.cli.view import figures
from joinery.cli.view.figures import amount, count, listed, money, share, unit
from joinery.cli.view.plan_view import Existing, Filled, Group, PlanView, Refused, Section, Workload

#: Rows of a section that are open from the start.
_OPEN_ROWS = 60
_OPEN_WORKLOADS = 24
#: Up to so many kinds of nodes each says all that its launch request says.
_DETAILED_GROUPS = 200
#: Up to so many pods all their names are in the page.
_NAMED_PODS = 20_000
#: So many pods of one reason are named without a click.
_SHOWN_PODS = 12
#: A pod narrower than this many hundredths of its bar has no line of its own.
_NARROWEST = 1.4
#: Neighbours in the list of workloads are far apart on the colour wheel.
_GOLDEN_ANGLE, _FIRST_HUE = 137.508, 255.0
_LIGHTNESS = (0.68, 0.8, 0.56)


@dataclass(frozen=True)
class _Style:
    """What all rows of one page agree on. ``scale``: the largest node, whose bars are as long as bars may be."""

    scale: Resources
    resources: Sequence[str]
    with_names: bool
    detailed: bool


def sections(plan: PlanView) -> Html:
    """Everything in the page's main column, what needs attention first."""
    style = _style(plan)
    parts = [_pending(plan.refused), _dropped(plan)]
    parts += [_launches(section, style) for section in plan.sections]
    parts.append(
        _existing(plan.existing, replace(style, scale=_largest([existing.node for existing in plan.existing])))
    )
    return join(part for part in parts if part)


def _style(plan: PlanView) -> _Style:
    groups = [group for section in plan.sections for group in section.groups]
    return _Style(
        scale=_largest([group.nodes[0] for group in groups]),
        resources=plan.resources,
        with_names=plan.placed <= _NAMED_PODS,
        detailed=len(groups) <= _DETAILED_GROUPS,
    )


def _largest(nodes: Sequence[Filled]) -> Resources:
    names = {name for node in nodes for name in node.room}
    return {name: max(node.room.get(name, 0) for node in nodes) for name in names}


# --- nodes ---


def _launches(section: Section, style: _Style) -> Html:
    nodes = section.nodes
    pods = sum(node.pods for node in nodes)
    heading = join(
        (
            element("h2", text(f"NodePool {section.node_pool}")),
            element("span", text(section.where), class_="tag"),
            element("span", text(section.capacity_type), class_=f"tag {text(section.capacity_type)}"),
            element("small", text(_fullness(nodes, style.resources))),
            element(
                "span",
                text(f"{count(len(nodes), 'node')} · {count(pods, 'pod')} · {money(section.price)}/h"),
                class_="sum",
            ),
        )
    )
    about = f"{section.node_pool} {section.where} {section.capacity_type}"
    rows = [_group(group, style) for group in section.groups]
    return _section(heading, _folded(rows, "more kinds of nodes"), about=about, before="daemons")


def _section(heading: Html, rows: Html, *, about: str = "", before: str = "") -> Html:
    """It folds; its heading says how many nodes, pods and dollars an hour of it the filter shows."""
    folding = element("details", element("summary", heading), rows, class_="part", open_="open")
    return element("section", folding, data_about=about, data_before=before)


def _folded(rows: Sequence[Html], what: str) -> Html:
    """The first rows, and the others behind one line."""
    if len(rows) <= _OPEN_ROWS:
        return join(rows)
    heading = element("summary", text(f"and {len(rows) - _OPEN_ROWS:,} {what}"))
    return join((*rows[:_OPEN_ROWS], element("details", heading, *rows[_OPEN_ROWS:], class_="rest")))


def _fullness(nodes: Sequence[Filled], resources: Sequence[str]) -> str:
    """How full the nodes are together, of each resource that they have."""
    parts = []
    for name in resources:
        whole = sum(node.room.get(name, 0) for node in nodes)
        if whole:
            parts.append(
                f"{unit(name) if name != 'memory' else name} "
                f"{share(sum(node.used.get(name, 0) for node in nodes), whole)}"
            )
    return ", ".join(parts)


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
            _bars(group.nodes[0], style),
        )
    )
    content = inside(group, with_names=style.with_names, detailed=style.detailed)
    return _row(
        summary,
        content,
        nodes=many,
        pods=sum(node.pods for node in group.nodes),
        price=launch.offering.price,
        launches=many,
    )


def _row(summary: Html, content: Html, *, nodes: int, pods: int, price: float = 0, launches: int | None = None) -> Html:
    """``price``: $/h of one of its nodes."""
    return element(
        "details", element("summary", summary), content,
        class_="node", data_row=1, data_nodes=nodes, data_pods=pods, data_price=price, data_launches=launches,
    )  # fmt: skip


def _bars(node: Filled, style: _Style) -> Html:
    shown = [name for name in style.resources if name in ("cpu", "memory") or node.room.get(name)]
    return element("span", join(_bar(node, name, style.scale.get(name, 0)) for name in shown), class_="bars")


def _bar(node: Filled, resource: str, largest: int) -> Html:
    used, whole = node.used.get(resource, 0), node.room.get(resource, 0)
    figure = f"{amount(resource, used)} / {amount(resource, whole)} {unit(resource)} {share(used, whole)}"
    said = f"{resource}: {amount(resource, used)} of {amount(resource, whole)} {unit(resource)}, {share(used, whole)}"
    length = 100 * whole / largest if largest else 100
    pieces = _pieces(node, resource, whole or used, length)
    track = element("span", *pieces, class_="track", style=f"--w:{length:.1f}")
    return element(
        "span",
        element("span", text(figures.resource_heading(resource))), track, element("span", text(figure)),
        class_="bar", role="img", aria_label=said,
    )  # fmt: skip


def _pieces(node: Filled, resource: str, whole: int, length: float) -> Iterable[Html]:
    """One piece a workload; lines in it part its pods where they are wide enough to see."""
    before = node.before.get(resource, 0)
    if before and whole:
        yield Html(f'<i class=before style="width:{100 * before / whole:.2f}%"></i>')
    for part in node.parts:
        many = len(part.pods)
        asked = part.workload.requests.get(resource, 0) * many
        if asked and whole:
            lines = f";--n:{many}" if length * asked / whole / many >= _NARROWEST else ""
            width = f"width:{100 * asked / whole:.2f}%"
            yield Html(f'<i class={_name(part.workload)} style="{width}{lines}" data-n={many}></i>')


def _existing(existing: Sequence[Existing], style: _Style) -> Html:
    if not existing:
        return NOTHING
    pods = sum(node.node.pods for node in existing)
    heading = join(
        (
            element("h2", text("Existing capacity")),
            element(
                "small", text(f"filled first; then {_fullness([node.node for node in existing], style.resources)}")
            ),
            element("span", text(f"{count(len(existing), 'node')} · {count(pods, 'pod')}"), class_="sum"),
        )
    )
    rows = [_existing_row(node, style) for node in existing]
    return _section(heading, _folded(rows, "more nodes"), about="existing", before="runs there already")


def _existing_row(existing: Existing, style: _Style) -> Html:
    where = " · ".join(part for part in (existing.node_pool, existing.instance_type) if part)
    note = f"{where}, on its way" if not existing.placement.node else where
    summary = join(
        (
            element("span", text(existing.name), element("small", text(note)), class_="kind"),
            element("span", text(f"+ {count(existing.node.pods, 'pod')}"), class_="price"),
            _bars(existing.node, style),
        )
    )
    names = element("ol", named_on(existing.name, existing.placement.pods)) if style.with_names else NOTHING
    claim = (
        element("p", text(f"NodeClaim {existing.placement.node_claim}")) if existing.placement.node_claim else NOTHING
    )
    return _row(summary, element("div", claim, names, class_="inside"), nodes=1, pods=existing.node.pods)


# --- what did not go as wished ---


def _pending(refused: Sequence[Refused]) -> Html:
    if not refused:
        return NOTHING
    pods = sum(len(refusal.pods) for refusal in refused)
    heading = join((element("h2", text("Stay pending")), element("span", text(count(pods, "pod")), class_="sum")))
    return _section(
        heading, _folded([_refusal(group) for group in refused], "more reasons"), about="pending unschedulable"
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
    return _section(heading, _folded(rows, "more preferences"), about="preferences dropped relaxed")


def _preference(preference: str, times: int) -> Html:
    said = element("p", element("b", text(f"{times:,} × ")), text(preference))
    return element("div", said, class_="reason wish", data_row=1)


# --- workloads ---


def legend(plan: PlanView) -> Html:
    """Every workload with its colour; pressing one makes the others pale."""
    if not plan.workloads:
        return NOTHING
    entries = [_entry(workload) for workload in plan.workloads]
    note = "Press one to find it in the bars. Hatched: daemons, and what runs already."
    parts = [element("h2", text("Workloads")), element("p", text(note), class_="soft"), *entries[:_OPEN_WORKLOADS]]
    if len(entries) > _OPEN_WORKLOADS:
        more = element("summary", text(f"and {len(entries) - _OPEN_WORKLOADS:,} more"))
        parts.append(element("details", more, *entries[_OPEN_WORKLOADS:]))
    return join(parts)


def _entry(workload: Workload) -> Html:
    parts = (
        element("span", class_=f"swatch {_name(workload)}"),
        element("span", text(workload.name), class_="who"),
        element("span", text(f"{workload.pods:,}"), class_="many"),
        element("small", text(listed(workload.requests))),
    )
    return element(
        "button", *parts, type="button", class_="workload", aria_pressed="false", data_workload=_name(workload)
    )


def _name(workload: Workload) -> str:
    """Its class in the style sheet."""
    return f"c{workload.number}"


def colours(plan: PlanView) -> Html:
    """A hue for each workload, the same wherever it shows."""
    return Html("".join(f".{_name(one)}{{--h:{hue(one):.0f};--l:{lightness(one)}}}" for one in plan.workloads))


def hue(workload: Workload) -> float:
    """Degrees on the wheel of OKLCH."""
    return (_FIRST_HUE + workload.number * _GOLDEN_ANGLE) % 360


def lightness(workload: Workload) -> float:
    """A second difference, once hues come close to each other."""
    return _LIGHTNESS[workload.number // 8 % len(_LIGHTNESS)]
