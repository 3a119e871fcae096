"""From a packing to what a person looks at: pods to workloads, launches to groups, refusals to reasons.

All of it follows from the problem and its packing; nothing is decided here.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

from joinery.apis.core import Pod
from joinery.apis.labels import INSTANCE_TYPE
from joinery.apis.quantity import NOTHING, Resources, total
from joinery.cli.notices import Notice
from joinery.cli.prices import Prices
from joinery.cli.view.costs import Costs
from joinery.cli.view.figures import natural
from joinery.cli.view.plan_view import (
    Existing,
    Filled,
    Group,
    Part,
    PlanView,
    Refused,
    Section,
    Workload,
    zones_allowed,
)
from joinery.scheduling.constraints.resources import PODS, requests_of
from joinery.scheduling.explain.explanation import Explanation
from joinery.scheduling.packing import ExistingPlacement, Launch, Packing
from joinery.scheduling.problem import Problem
from joinery.state.nodes import NodeView, views

_NUMBER = re.compile(r"-\d+$")
_TEMPLATE_HASH = "pod-template-hash"
_WEIGHED = ("cpu", "memory")

_Workloads = Mapping[str, Workload]
"""The workload of each placed pod."""


def view(
    problem: Problem,
    packing: Packing,
    costs: Costs,
    prices: Prices,
    notices: Iterable[Notice] = (),
    *,
    seconds: float,
    explanations: Iterable[Explanation] = (),
) -> PlanView:
    """The packing as a person looks at it. Takes a fraction of the time that finding it took."""
    workload_of = _workloads(problem.snapshot.pods, packing)
    return PlanView(
        packing=packing,
        costs=costs,
        prices=prices,
        notices=tuple(notices),
        now=problem.snapshot.now,
        seconds=seconds,
        workloads=tuple(sorted(dict.fromkeys(workload_of.values()), key=lambda workload: workload.number)),
        sections=_sections(problem, packing.launches, workload_of),
        existing=_existing(problem, packing, workload_of),
        refused=_refused(packing),
        dropped=_dropped(packing),
        explanations=tuple(explanations),
    )


# --- workloads ---


def _workloads(pods: Iterable[Pod], packing: Packing) -> _Workloads:
    placed = {pod for launch in packing.launches for pod in launch.pods}
    placed.update(pod for existing in packing.existing for pod in existing.pods)
    alike: dict[tuple[str, tuple[tuple[str, int], ...]], list[str]] = defaultdict(list)
    for pod in pods:
        if pod.key in placed:
            asked = {name: value for name, value in requests_of(pod).items() if value and name != PODS}
            alike[(owner_of(pod), tuple(sorted(asked.items())))].append(pod.key)
    return {
        pod: workload
        for workload, members in zip(_numbered(alike), alike.values(), strict=True)
        for pod in members
    }  # fmt: skip


def owner_of(pod: Pod) -> str:
    """namespace/name of what the pod is a copy of: its Deployment, Job or the like;
    without an owner its name less a number.
    """
    metadata = pod.metadata
    owner = next((o.name for o in metadata.owner_references if o.controller), "")
    template = metadata.labels.get(_TEMPLATE_HASH)
    stem = owner.removesuffix(f"-{template}") if template else owner
    return f"{metadata.namespace or 'default'}/{stem or _NUMBER.sub('', metadata.name)}"


def _numbered(alike: Mapping[tuple[str, tuple[tuple[str, int], ...]], Sequence[str]]) -> list[Workload]:
    """The workloads in the given order, numbered by what all their pods take together."""
    everything = total({name: value * len(pods) for name, value in asked} for (_, asked), pods in alike.items())

    def size(key: tuple[str, tuple[tuple[str, int], ...]]) -> float:
        asked = dict(key[1])
        return len(alike[key]) * sum(asked.get(name, 0) / max(1, everything.get(name, 0)) for name in _WEIGHED)

    ranked = sorted(alike, key=lambda key: (-size(key), key))
    numbers = {key: number for number, key in enumerate(ranked)}
    return [
        Workload(name=key[0], requests=dict(key[1]), pods=len(pods), number=numbers[key]) for key, pods in alike.items()
    ]


def _parts(pods: Iterable[str], workload_of: _Workloads) -> tuple[Part, ...]:
    by_workload: dict[Workload, list[str]] = defaultdict(list)
    for pod in pods:
        by_workload[workload_of[pod]].append(pod)
    listed = sorted(by_workload.items(), key=lambda item: item[0].number)
    return tuple(Part(workload, tuple(sorted(members, key=natural))) for workload, members in listed)


# --- launches ---


def _sections(problem: Problem, launches: Iterable[Launch], workload_of: _Workloads) -> tuple[Section, ...]:
    rooms = _rooms(problem)
    by_section: dict[tuple[str, str, str], dict[Hashable, list[tuple[Launch, Filled]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for launch in launches:
        offering = launch.offering
        node = _bought(launch, rooms.get((launch.node_pool, offering.instance_type), NOTHING), workload_of)
        by_section[(launch.node_pool, _where(launch), offering.capacity_type)][_likeness(launch, node)].append(
            (launch, node)
        )
    sections = [
        Section(node_pool=pool, where=where, capacity_type=capacity, groups=_groups(alike.values()))
        for (pool, where, capacity), alike in by_section.items()
    ]
    prices: dict[str, float] = defaultdict(float)
    for section in sections:
        prices[section.node_pool] += section.price
    return tuple(
        sorted(sections, key=lambda s: (-prices[s.node_pool], s.node_pool, -s.price, s.where, s.capacity_type))
    )


def _where(launch: Launch) -> str:
    choice = zones_allowed(launch)
    return f"any of {choice} zones" if choice > 1 else launch.offering.zone


def _rooms(problem: Problem) -> Mapping[tuple[str, str], Resources]:
    """What a node of a NodePool and instance type holds."""
    return {
        (pool.metadata.name, kind.name): kind.allocatable
        for pool in problem.snapshot.node_pools
        for kind in problem.instance_types.get(pool.spec.template.spec.node_class_ref.name, ())
    }


def _bought(launch: Launch, room: Resources, workload_of: _Workloads) -> Filled:
    parts = _parts(launch.pods, workload_of)
    pods = total({name: value * len(part.pods) for name, value in part.workload.requests.items()} for part in parts)
    daemons = {name: value - pods.get(name, 0) for name, value in launch.requests.items() if name != PODS}
    return Filled(room=room, before={name: value for name, value in daemons.items() if value > 0}, parts=parts)


def _likeness(launch: Launch, node: Filled) -> Hashable:
    return (
        launch.offering,
        tuple((part.workload.number, len(part.pods)) for part in node.parts),
        launch.instance_types,
        str((launch.requirements, launch.labels, launch.taints, launch.startup_taints, launch.requests)),
    )


def _groups(alike: Iterable[Sequence[tuple[Launch, Filled]]]) -> tuple[Group, ...]:
    groups = [
        Group(launches=tuple(launch for launch, _ in members), nodes=tuple(node for _, node in members))
        for members in alike
    ]
    return tuple(sorted(groups, key=lambda g: (-g.price, -len(g.launches), natural(g.launches[0].name))))


# --- existing capacity ---


def _existing(problem: Problem, packing: Packing, workload_of: _Workloads) -> tuple[Existing, ...]:
    by_name = {(node.node, node.claim): node for node in views(problem.snapshot)} if packing.existing else {}
    placements = [
        _filled_up(placement, by_name.get((placement.node, placement.node_claim)), workload_of)
        for placement in packing.existing
    ]
    return tuple(sorted(placements, key=lambda one: natural(one.name)))


def _filled_up(placement: ExistingPlacement, node: NodeView | None, workload_of: _Workloads) -> Existing:
    placed = frozenset(placement.pods)
    running = (requests_of(pod) for pod in node.pods if pod.key not in placed) if node else ()
    return Existing(
        placement=placement,
        node_pool=node.pool if node else "",
        instance_type=node.labels.get(INSTANCE_TYPE, "") if node else "",
        node=Filled(
            room=node.allocatable if node else NOTHING,
            before=total(running),
            parts=_parts(placement.pods, workload_of),
        ),
    )


# --- what did not go as wished ---


def _refused(packing: Packing) -> tuple[Refused, ...]:
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for unplaced in packing.unplaced:
        alike[tuple(str(reason) for reason in unplaced.reasons)].append(unplaced.pod)
    refused = [Refused(reasons, tuple(sorted(pods, key=natural))) for reasons, pods in alike.items()]
    return tuple(sorted(refused, key=lambda one: (-len(one.pods), one.pods)))


def _dropped(packing: Packing) -> tuple[tuple[str, int], ...]:
    dropped = Counter(preference for pod in packing.relaxed for preference in pod.dropped)
    return tuple(sorted(dropped.items(), key=lambda item: (-item[1], item[0])))
