"""From a packing to what a person looks at: pods to workloads, launches to groups, refusals to reasons.

All of it follows from the problem and its packing; nothing is decided here.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from joinery.decisions.scheduling.constraints.resources import PODS, requests_of
from joinery.decisions.scheduling.packing import ExistingPlacement, Launch, Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.labels import INSTANCE_TYPE, ZONE
from joinery.objects.kubernetes.quantity import NOTHING, Resources, total
from joinery.objects.snapshot.nodes import NodeView
from joinery_cli.notices import UserNotice
from joinery_cli.prices import Prices
from joinery_cli.view.costs import Costs
from joinery_cli.view.figures import natural
from joinery_cli.view.headroom import buffers_in
from joinery_cli.view.plan_view import Existing, Group, PlanView, Refused, Section
from joinery_cli.view.workloads import Filled, WorkloadOf, parts_of, workloads_of

if TYPE_CHECKING:
    # Made for --explain alone.
    from joinery.decisions.scheduling.explain.explanation import Explanation


def view(
    problem: Problem,
    packing: Packing,
    costs: Costs,
    prices: Prices,
    notices: Iterable[UserNotice] = (),
    *,
    seconds: float,
    explanations: "Iterable[Explanation]" = (),
) -> PlanView:
    """The packing as a person looks at it. Takes a fraction of the time that finding it took."""
    placed, snapshot = _placed(packing), problem.snapshot
    (workload_of,) = workloads_of(snapshot.successor(pod) for pod in snapshot.pods if pod.key in placed)
    return PlanView(
        packing=packing,
        costs=costs,
        prices=prices,
        notices=tuple(notices),
        now=snapshot.now,
        seconds=seconds,
        workloads=tuple(sorted(dict.fromkeys(workload_of.values()), key=lambda workload: workload.number)),
        sections=_sections(problem, packing.launches, workload_of),
        existing=_existing(problem, packing, workload_of),
        refused=_refused(packing),
        dropped=_dropped(packing),
        chunks=sum(pod in placed for pod in buffers_in(snapshot)),
        explanations=tuple(explanations),
    )


def _placed(packing: Packing) -> set[str]:
    bought = {pod for launch in packing.launches for pod in launch.pods}
    return bought.union(pod for placement in packing.existing for pod in placement.pods)


# --- launches ---


def _sections(problem: Problem, launches: Iterable[Launch], workload_of: WorkloadOf) -> tuple[Section, ...]:
    rooms = rooms_of(problem)
    by_pool: dict[str, dict[Hashable, list[tuple[Launch, Filled]]]] = defaultdict(lambda: defaultdict(list))
    for launch in launches:
        room = rooms.get((launch.node_pool, launch.offering.instance_type), NOTHING)
        node = bought(launch, room, workload_of)
        by_pool[launch.node_pool][_likeness(launch, node)].append((launch, node))
    sections = (Section(node_pool=pool, groups=_groups(alike.values())) for pool, alike in by_pool.items())
    return tuple(sorted(sections, key=lambda section: (-section.price, section.node_pool)))


def rooms_of(problem: Problem) -> Mapping[tuple[str, str], Resources]:
    """What a node holds, by name of its NodePool and instance type."""
    return {
        (pool.metadata.name, kind.name): kind.allocatable
        for pool in problem.snapshot.node_pools
        for kind in problem.types_of(pool)
    }


def bought(launch: Launch, room: Resources, workload_of: WorkloadOf) -> Filled:
    """A new node with its pods on it; what it requests beyond theirs is its daemons'."""
    parts = parts_of(launch.pods, workload_of)
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


def _existing(problem: Problem, packing: Packing, workload_of: WorkloadOf) -> tuple[Existing, ...]:
    by_name = {(node.node, node.claim): node for node in problem.snapshot.views} if packing.existing else {}
    placements = [
        _filled_up(placement, by_name.get((placement.node, placement.node_claim)), workload_of)
        for placement in packing.existing
    ]
    return tuple(sorted(placements, key=lambda one: natural(one.name)))


def _filled_up(placement: ExistingPlacement, node: NodeView | None, workload_of: WorkloadOf) -> Existing:
    placed = frozenset(placement.pods)
    running = (requests_of(pod) for pod in (*node.staying, *node.in_transit) if pod.key not in placed) if node else ()
    return Existing(
        placement=placement,
        node_pool=node.pool if node else "",
        instance_type=node.labels.get(INSTANCE_TYPE, "") if node else "",
        zone=node.labels.get(ZONE, "") if node else "",
        node=Filled(
            room=node.allocatable if node else NOTHING,
            before=total(running),
            parts=parts_of(placement.pods, workload_of),
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
