"""Launches: each is something its NodePool may buy, at the price it says, and whatever EC2 picks of it holds its pods."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from joinery.apis import labels as keys
from joinery.apis.meta import Taint
from joinery.apis.nodepool import NodePool
from joinery.apis.quantity import Resources, total
from joinery.scheduling.packing import Launch, Reason
from joinery.scheduling.verify_market import why_closed
from joinery.scheduling.verify_nodes import FinalNode, launched_node
from joinery.scheduling.verify_placements import refusal
from joinery.scheduling.verify_rules import Labels, is_choosy, selects_node, unmet
from joinery.scheduling.verify_world import PodClass, World
from joinery.state.offerings import InstanceType, Offering

#: Prices are copied, so they agree to the last digit but for how they were written.
PRICE_TOLERANCE = 1e-6
_ENCODE = msgspec.json.Encoder().encode


@dataclass(frozen=True, eq=False)
class Choice:
    """An instance type of a launch: the offerings that the request allows, and what a node of it would be like."""

    kind: InstanceType
    offerings: tuple[Offering, ...]
    cheapest: float
    daemons: Resources
    room: Resources
    labels: tuple[Labels, ...]


@dataclass
class Choices:
    """Choices by what is asked for. Launches that ask for the same share them: types of a launch are many."""

    world: World
    _known: dict[bytes, dict[str, Choice | None]] = field(default_factory=dict)
    _suits: dict[tuple[Choice, PodClass], bool] = field(default_factory=dict)

    def of(self, launch: Launch, pool: NodePool) -> Mapping[str, Choice | None]:
        """A choice for every instance type that the launch names; None for one that gives no usable offering."""
        asked = [r for r in launch.requirements if r.key != keys.INSTANCE_TYPE]
        wanted = [(r.key, r.operator, r.values) for r in asked]
        taints = [(t.key, t.value, t.effect) for t in launch.taints]
        identity = _ENCODE((launch.node_pool, sorted(launch.labels.items()), taints, wanted))
        known = self._known.setdefault(identity, {})
        types = self.world.types_of(pool)
        for name in launch.instance_types:
            if name not in known:
                known[name] = self._choice(launch, pool, types.get(name))
        return known

    def _choice(self, launch: Launch, pool: NodePool, kind: InstanceType | None) -> Choice | None:
        if kind is None:
            return None
        rules = [
            r for r in (*launch.requirements, *pool.spec.template.spec.requirements) if r.key != keys.INSTANCE_TYPE
        ]
        nodes = [
            (offering, node)
            for offering in kind.offerings
            if offering.available
            for node in [launched_node(launch, pool, kind, zone=offering.zone, capacity_type=offering.capacity_type)]
            if unmet(rules, node.labels) is None
        ]
        if not nodes:
            return None
        daemons = total(daemon.requests for daemon in self.world.daemons_on(nodes[0][1]))
        return Choice(
            kind=kind,
            offerings=tuple(offering for offering, _ in nodes),
            cheapest=min(offering.price for offering, _ in nodes),
            daemons=daemons,
            room={name: amount - daemons.get(name, 0) for name, amount in kind.allocatable.items()},
            labels=tuple(node.labels for _, node in nodes),
        )

    def suits(self, choice: Choice, found: PodClass) -> bool:
        """Whether the pods' own node selection allows every offering of the choice."""
        known = self._suits.get((choice, found))
        if known is None:
            known = all(selects_node(found.pod.spec, labels, "") for labels in choice.labels)
            self._suits[choice, found] = known
        return known


def check_launches(world: World, choices: Choices) -> Iterator[Reason]:
    """Every launch, one rule after another."""
    for launch, node in world.launched:
        pool = world.pools[launch.node_pool]
        for code, message in _problems(world, launch, node, pool=pool):
            yield Reason(code, message, f"launch {launch.name}")
        yield from _check_choices(world, launch, node, choices=choices.of(launch, pool), suits=choices)


def _problems(world: World, launch: Launch, node: FinalNode, *, pool: NodePool) -> Iterator[tuple[str, str]]:
    closed = why_closed(world, pool)
    if closed:
        yield "NodePool", closed
    yield from _template_problems(launch, node, pool)
    yield from _offering_problems(launch, world.types_of(pool))
    if not launch.pods:
        yield "Launch", "the launch is for no pods"


def _template_problems(launch: Launch, node: FinalNode, pool: NodePool) -> Iterator[tuple[str, str]]:
    template = pool.spec.template
    for key, value in sorted(template.metadata.labels.items()):
        if launch.labels.get(key) != value:
            yield "Template", f"the NodePool's label {key}={value} is {launch.labels.get(key)!r}"
    for key, value in sorted(launch.labels.items()):
        if node.labels.get(key) != value:
            yield "Labels", f"label {key}={value}, but its offering gives {node.labels.get(key)!r}"
    for what, wanted, given in (
        ("taints", template.spec.taints, launch.taints),
        ("startup taints", template.spec.startup_taints, launch.startup_taints),
    ):
        if _as_set(wanted) != _as_set(given):
            yield "Template", f"the {what} are not the NodePool's"
    for whose, rules in (
        (f"NodePool {pool.metadata.name}", template.spec.requirements),
        ("the launch", launch.requirements),
    ):
        broken = unmet(rules, node.labels)
        if broken:
            yield "Requirements", f"{whose} requires {broken.key} {broken.operator} {','.join(broken.values)}"


def _as_set(taints: Sequence[Taint]) -> set[tuple[str, str, str]]:
    return {(t.key, t.value, t.effect) for t in taints}


def _offering_problems(launch: Launch, types: Mapping[str, InstanceType]) -> Iterator[tuple[str, str]]:
    chosen = launch.offering
    where = f"{chosen.instance_type} in {chosen.zone} as {chosen.capacity_type}"
    if chosen.instance_type not in launch.instance_types:
        yield "InstanceTypes", f"the offering's type {chosen.instance_type} is not among the launch's instance types"
    known = next(
        (
            o
            for o in types[chosen.instance_type].offerings
            if o.zone == chosen.zone and o.capacity_type == chosen.capacity_type
        ),
        None,
    )
    if known is None:
        yield "Offering", f"{where} is not sold"
    elif not known.available:
        yield "Offering", f"{where} is not available"
    elif not abs(known.price - chosen.price) <= PRICE_TOLERANCE:
        yield "Price", f"{where} costs {known.price}, not {chosen.price}"


def _check_choices(
    world: World, launch: Launch, node: FinalNode, *, choices: Mapping[str, Choice | None], suits: Choices
) -> Iterator[Reason]:
    subject = f"launch {launch.name}"
    needs = total({k: v * len(pods) for k, v in found.requests.items()} for found, pods in node.planned.items())
    wanted = [(name, amount) for name, amount in needs.items() if amount > 0]
    choosy = [found for found in node.planned if is_choosy(found.pod.spec)]
    for name in launch.instance_types:
        choice = choices.get(name)
        if choice is None:
            yield Reason("InstanceTypes", f"{name} has no available offering that the launch allows", subject)
            continue
        lacking = next((k for k, amount in wanted if amount > choice.room.get(k, 0)), None)
        if lacking:
            yield Reason("InstanceTypes", f"{name} cannot hold the pods: {needs[lacking]} {lacking} wanted", subject)
        if choice.cheapest < launch.offering.price - PRICE_TOLERANCE:
            yield Reason("Cheapest", f"{name} costs {choice.cheapest}, the offering {launch.offering.price}", subject)
        for found in choosy:
            if not suits.suits(choice, found):
                yield refusal("Alternatives", found, node, f"the launch also allows {name} where the pod may not run")
    problem = _requests_problem(launch, needs, [c for c in map(choices.get, launch.instance_types) if c])
    if problem:
        yield Reason("Requests", problem, subject)


def _requests_problem(launch: Launch, needs: Resources, choices: Sequence[Choice]) -> str:
    """Requests are those of the pods and of the daemons; which daemons may depend on the type."""
    for name in sorted(needs.keys() | launch.requests.keys()):
        daemons = {choice.daemons.get(name, 0) for choice in choices} or {0}
        stated, least, most = launch.requests.get(name, 0), min(daemons), max(daemons)
        if not least <= stated - needs.get(name, 0) <= most:
            return f"{name} is {stated}, but the pods ask {needs.get(name, 0)} and the daemons {least} to {most}"
    return ""
