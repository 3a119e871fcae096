"""From a decision about nodes to what a person looks at: nodes before and after, commands, routes of pods, rules.

All of it follows from the problem and its answer; nothing is decided here.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision, StayingNode
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.decisions.scheduling.packing import Launch
from joinery.objects.karpenter.labels import INSTANCE_TYPE, ZONE
from joinery.objects.kubernetes.quantity import NOTHING, total
from joinery.objects.objections import ObjectionCode
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import is_reschedulable
from joinery_cli.notices import UserNotice
from joinery_cli.prices import Prices
from joinery_cli.view.costs import Sold, capacity_type_of, node_price
from joinery_cli.view.disruption_view import CommandView, DisruptionView, DrawnNode, Fate, Route, StayingGroup
from joinery_cli.view.figures import natural
from joinery_cli.view.headroom import headroom_on
from joinery_cli.view.plan_groups import bought, rooms_of
from joinery_cli.view.plan_view import where_launched
from joinery_cli.view.workloads import DrawnWorkload, Filled, parts_of, workloads_of


def view(
    problem: DisruptionProblem,
    disruptions: DisruptionDecision,
    sold: Sold,
    prices: Prices,
    notices: Iterable[UserNotice] = (),
    *,
    seconds: float,
) -> DisruptionView:
    """The decision as a person looks at it. ``sold``: the catalogue's offerings, for what each node costs."""
    cluster = _Cluster(problem, disruptions, sold)
    before = cluster.nodes()
    commands = tuple(cluster.carry_out(number, command) for number, command in enumerate(disruptions.commands, 1))
    return DisruptionView(
        disruptions=disruptions,
        prices=prices,
        notices=tuple(notices),
        now=problem.packing.snapshot.now,
        seconds=seconds,
        payback=problem.options.payback,
        workloads=tuple(cluster.workloads),
        before=before,
        after=cluster.nodes(),
        commands=commands,
        headroom=headroom_on(problem.packing.snapshot, disruptions.prices),
        staying=_groups(_staying(disruptions), {node.claim: node.name for node in before}),
    )


def _ranked(nodes: Iterable[DrawnNode]) -> tuple[DrawnNode, ...]:
    """The dearest first, and alike ones beside each other, the emptiest first."""
    return tuple(sorted(nodes, key=lambda one: (-(one.price or 0.0), one.instance_type, one.use, natural(one.name))))


# --- nodes and their pods, command after command ---


class _Cluster:
    """The nodes with the pods that may move, as they are once the commands so far have been carried out.

    A pod that moves is made anew, and so it may ask for something else from then on (``objects.snapshot.successors``).
    """

    def __init__(self, problem: DisruptionProblem, disruptions: DisruptionDecision, sold: Sold) -> None:
        snapshot = problem.packing.snapshot
        node_views = snapshot.views
        movable = {one.name: [pod for pod in one.staying if is_reschedulable(pod)] for one in node_views}
        placed = frozenset(_placed(disruptions.commands))
        here, self._coming = workloads_of(
            (pod for pods in movable.values() for pod in pods),
            (snapshot.successor(pod) for pod in snapshot.pods if pod.key in placed),
        )
        self.workloads = sorted({*here.values(), *self._coming.values()}, key=lambda workload: workload.number)
        self._pods_on = {name: {pod.key: here[pod.key] for pod in pods} for name, pods in movable.items()}
        self._node_of = {pod: name for name, pods in self._pods_on.items() for pod in pods}
        prices = {node.metadata.name: node_price(node, sold) for node in snapshot.nodes}
        fates = _fates(disruptions.commands)
        self._nodes = {one.name: _without_pods(one, fates, prices.get(one.node)) for one in node_views}
        self._name_of = {node.claim: name for name, node in self._nodes.items() if node.claim}
        self._rooms = rooms_of(problem.packing)

    def nodes(self) -> tuple[DrawnNode, ...]:
        """All that are there now."""
        return _ranked(map(self._node, self._nodes))

    def carry_out(self, number: int, command: DecidedCommand) -> CommandView:
        """Retire and buy, and move the pods."""
        going = [self._name_of[claim] for claim in command.retire if claim in self._name_of]
        retired = _ranked(map(self._node, going))
        for launch in command.launches:
            self._buy(launch)
        routes = self._move(command)
        bought_nodes = _ranked(self._node(launch.name) for launch in command.launches)
        for name in going:
            del self._nodes[name]
        return CommandView(number=number, command=command, retired=retired, bought=bought_nodes, routes=routes)

    def _node(self, name: str) -> DrawnNode:
        node = self._nodes[name]
        parts = parts_of(self._pods_on[name], self._pods_on[name])
        return replace(node, filled=replace(node.filled, parts=parts))

    def _buy(self, launch: Launch) -> None:
        offering = launch.offering
        room = self._rooms.get((launch.node_pool, offering.instance_type), NOTHING)
        self._pods_on[launch.name] = {}
        self._nodes[launch.name] = DrawnNode(
            name=launch.name,
            claim=launch.name,
            node_pool=launch.node_pool,
            instance_type=offering.instance_type,
            zone=where_launched(launch),
            capacity_type=offering.capacity_type,
            price=offering.price,
            filled=bought(launch, room, self._coming),
            fate=Fate.BOUGHT,
            alternatives=len(launch.instance_types) - 1,
        )

    def _move(self, command: DecidedCommand) -> tuple[Route, ...]:
        targets = {
            pod: placement.node or placement.node_claim for placement in command.existing for pod in placement.pods
        }
        targets |= {pod: launch.name for launch in command.launches for pod in launch.pods}
        new = {launch.name for launch in command.launches}
        together: dict[tuple[DrawnWorkload, str, str], list[str]] = defaultdict(list)
        for pod, target in targets.items():
            source = self._node_of.get(pod, "")
            together[self._coming[pod], source, target].append(pod)
            self._pods_on.get(source, {}).pop(pod, None)
            self._pods_on[target][pod] = self._coming[pod]
            self._node_of[pod] = target
        routes = [
            Route(workload, source, target, target in new, tuple(sorted(pods, key=natural)))
            for (workload, source, target), pods in together.items()
        ]
        return tuple(
            sorted(routes, key=lambda route: (route.is_target_new, natural(route.target), natural(route.source)))
        )


def _placed(commands: Iterable[DecidedCommand]) -> Iterator[str]:
    for command in commands:
        yield from (pod for placement in command.existing for pod in placement.pods)
        yield from (pod for launch in command.launches for pod in launch.pods)


def _fates(commands: Iterable[DecidedCommand]) -> Mapping[str, Fate]:
    """By name of the NodeClaim, or of the Node; whoever is missing stays as it is."""
    fates: dict[str, Fate] = {}
    for command in commands:
        for placement in command.existing:
            fates |= dict.fromkeys(filter(None, (placement.node_claim, placement.node)), Fate.RECEIVES)
    for command in commands:
        fates |= dict.fromkeys(command.retire, Fate.GOES)
    return fates


def _without_pods(node: NodeView, fates: Mapping[str, Fate], price: float | None) -> DrawnNode:
    lasting = (pod for pod in node.staying if not is_reschedulable(pod))
    return DrawnNode(
        name=node.name,
        claim=node.claim,
        node_pool=node.pool,
        instance_type=node.labels.get(INSTANCE_TYPE, ""),
        zone=node.labels.get(ZONE, ""),
        capacity_type=capacity_type_of(node.labels),
        price=price,
        filled=Filled(room=node.allocatable, before=total(map(requests_of, (*lasting, *node.in_transit))), parts=()),
        fate=fates.get(node.claim or node.name, Fate.STAYS),
    )


# --- what stays ---


def _staying(disruptions: DisruptionDecision) -> Iterator[StayingNode]:
    """Nodes that stay, each with its rule. One that goes for one reason may be kept from another: it does not stay."""
    going = {name for command in disruptions.commands for name in command.retire}
    return (one for one in disruptions.staying if one.node_claim not in going)


def _groups(staying: Iterable[StayingNode], node_of: Mapping[str, str]) -> tuple[StayingGroup, ...]:
    """One group for each rule, the rule that keeps most nodes first. ``node_of``: by name of the NodeClaim."""
    groups: dict[ObjectionCode, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for one in staying:
        groups[one.objection.code][one.objection.message][node_of.get(one.node_claim, one.node_claim)] = None
    return tuple(
        sorted((_group(code, said) for code, said in groups.items()), key=lambda one: (-len(one.nodes), one.code))
    )


def _group(code: ObjectionCode, said: Mapping[str, Mapping[str, None]]) -> StayingGroup:
    messages = [(message, tuple(sorted(nodes, key=natural))) for message, nodes in said.items()]
    nodes = sorted({node for _, names in messages for node in names}, key=natural)
    return StayingGroup(code, tuple(nodes), tuple(sorted(messages, key=lambda entry: (-len(entry[1]), entry[0]))))
