"""Nodes as bars of their workloads, and the legend of the workloads' colours."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from joinery.objects.kubernetes.quantity import Resources
from joinery_cli.page.text import NOTHING, Html, element, join, text
from joinery_cli.view import figures
from joinery_cli.view.figures import amount, listed, share, unit
from joinery_cli.view.workloads import DrawnWorkload, Filled

_OPEN_WORKLOADS = 24
#: A pod narrower than this many hundredths of its bar has no line of its own.
_NARROWEST = 1.4
#: Neighbours in the list of workloads are far apart on the colour wheel.
_GOLDEN_ANGLE, _FIRST_HUE = 137.508, 255.0
_LIGHTNESS = (0.68, 0.8, 0.56)


@dataclass(frozen=True)
class Scale:
    """What all bars of one section agree on: the ``largest`` node, whose bars are as long as bars may be, and which
    ``resources`` have a bar.
    """

    largest: Resources
    resources: Sequence[str]


def scale_of(nodes: Sequence[Filled], resources: Sequence[str]) -> Scale:
    """The scale by which the largest of the nodes is drawn whole."""
    names = {name for node in nodes for name in node.room}
    return Scale({name: max(node.room.get(name, 0) for node in nodes) for name in names}, resources)


def fullness(nodes: Sequence[Filled], resources: Sequence[str]) -> str:
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


def bars(node: Filled, scale: Scale) -> Html:
    """One bar a resource: as long as the node has of it, as full as its pods make it."""
    shown = [name for name in scale.resources if name in ("cpu", "memory") or node.room.get(name)]
    return element("span", join(_bar(node, name, scale.largest.get(name, 0)) for name in shown), class_="bars")


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
            yield Html(f'<i class={class_of(part.workload)} style="{width}{lines}" data-n={many}></i>')


# --- workloads ---


def legend(workloads: Sequence[DrawnWorkload]) -> Html:
    """Every workload with its colour; pressing one makes the others pale."""
    if not workloads:
        return NOTHING
    entries = [_entry(workload) for workload in workloads]
    note = "Press one to find it in the bars. Hatched: daemons, and what runs already."
    parts = [element("h2", text("Workloads")), element("p", text(note), class_="soft"), *entries[:_OPEN_WORKLOADS]]
    if len(entries) > _OPEN_WORKLOADS:
        more = element("summary", text(f"and {len(entries) - _OPEN_WORKLOADS:,} more"))
        parts.append(element("details", more, *entries[_OPEN_WORKLOADS:]))
    return join(parts)


def _entry(workload: DrawnWorkload) -> Html:
    parts = (
        element("span", class_=f"swatch {class_of(workload)}"),
        element("span", text(workload.name), class_="who"),
        element("span", text(f"{workload.pods:,}"), class_="many"),
        element("small", text(listed(workload.requests))),
    )
    return element(
        "button", *parts, type="button", class_="workload", aria_pressed="false", data_workload=class_of(workload)
    )


def class_of(workload: DrawnWorkload) -> str:
    """The workload's class in the style sheet."""
    return f"c{workload.number}"


def colours(workloads: Iterable[DrawnWorkload]) -> Html:
    """A hue for each workload, the same wherever it shows."""
    return Html("".join(f".{class_of(one)}{{--h:{hue(one):.0f};--l:{lightness(one)}}}" for one in workloads))


def hue(workload: DrawnWorkload) -> float:
    """Degrees on the wheel of OKLCH."""
    return (_FIRST_HUE + workload.number * _GOLDEN_ANGLE) % 360


def lightness(workload: DrawnWorkload) -> float:
    """A second difference, once hues come close to each other."""
    return _LIGHTNESS[workload.number // 8 % len(_LIGHTNESS)]
