"""What EC2 may pick for a launch: its instance types, with the offerings that its requirements allow (EC2 API
CreateFleet, Overrides).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from joinery.decisions.scheduling.packing import Launch
from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.nodes import (
    DECIDED_BY_OFFERING,
    EquivalenceClass,
    FinalNode,
    node_labels,
    with_aliases,
    with_offering,
)
from joinery.decisions.verification.predicates import Labels, Port, allows, unmet
from joinery.decisions.verification.purchasable import left_by, most_of
from joinery.decisions.verification.templates import hard_taints
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.quantity import Resources
from joinery.objects.snapshot.offerings import InstanceType, Offering

Place = tuple[str, str, str]
_ENCODE = msgspec.json.Encoder().encode


@dataclass(frozen=True, eq=False)
class LaunchOption:
    """An instance type of a launch: the offerings that the request allows, and what a node of it would be like.

    ``daemons``: what the DaemonSets' pods take, for each set of them that some of the offerings would run.
    ``daemon_ports``: the host ports that any of those sets takes; ``claiming``: the pods that claim devices. ``labels``
    are the node's but for those of the offering.
    """

    kind: InstanceType
    offerings: tuple[Offering, ...]
    daemons: Sequence[Resources]
    daemon_ports: frozenset[Port]
    claiming: Sequence[EquivalenceClass]
    labels: Labels

    @cached_property
    def cheapest(self) -> float:
        return min(offering.price for offering in self.offerings)

    @cached_property
    def room(self) -> Resources:
        """What the daemons leave wherever they take most; less than nothing where they do not fit themselves."""
        return left_by(most_of(self.daemons), self.kind)

    @cached_property
    def places(self) -> Mapping[Place, Offering]:
        """One offering for every zone, capacity type and reservation."""
        return {(o.zone, o.capacity_type, o.reservation_id): o for o in self.offerings}

    @cached_property
    def nodes(self) -> Sequence[Labels]:
        """The labels of a node from each of these."""
        return [with_offering(self.labels, self.kind, offering) for offering in self.places.values()]


@dataclass
class LaunchOptions:
    """The options of every launch. Launches that ask for the same share them, because each may name 60 types."""

    state: FinalState
    _by_identity: dict[bytes, dict[str, LaunchOption | None]] = field(default_factory=dict)
    _suits: dict[tuple[LaunchOption, EquivalenceClass], bool] = field(default_factory=dict)
    _of_launch: dict[Hashable, dict[str, LaunchOption | None]] = field(default_factory=dict)
    _of_place: dict[Hashable, Labels] = field(default_factory=dict)

    def of(self, launch: Launch) -> Mapping[str, LaunchOption | None]:
        """An option for every instance type that the launch names; None for one that gives no usable offering."""
        shared = (launch.requirements, launch.labels, launch.taints, launch.instance_types)
        likeness = launch.node_pool, *map(id, shared)
        if likeness not in self._of_launch:
            self._of_launch[likeness] = self._find(launch, self.state.pools[launch.node_pool])
        return self._of_launch[likeness]

    def usable(self, launch: Launch) -> list[LaunchOption]:
        """Its options, without the types that give no usable offering."""
        return [option for option in self.of(launch).values() if option is not None]

    def _find(self, launch: Launch, pool: NodePool) -> dict[str, LaunchOption | None]:
        requirements = [(r.key, r.operator, r.values) for r in launch.requirements if r.key != keys.INSTANCE_TYPE]
        taints = [(t.key, t.value, t.effect) for t in launch.taints]
        identity = _ENCODE((launch.node_pool, sorted(launch.labels.items()), taints, requirements))
        by_type = self._by_identity.setdefault(identity, {})
        types, rules = self.state.types_of(pool), _LaunchRules(launch, pool)
        for name in launch.instance_types:
            if name not in by_type:
                by_type[name] = self._option(rules, types.get(name))
        named = [r for r in launch.requirements if r.key == keys.INSTANCE_TYPE]
        return {name: by_type[name] if all(allows(r, name) for r in named) else None for name in launch.instance_types}

    def _option(self, rules: "_LaunchRules", kind: InstanceType | None) -> LaunchOption | None:
        if kind is None:
            return None
        launch, pool = rules.launch, rules.pool
        labels = with_aliases(node_labels(launch.labels, pool, kind, requirements=launch.requirements))
        if unmet(rules.of_type, labels) is not None:
            return None
        offerings = tuple(o for o in kind.offerings if o.available and rules.allows(self._of_offering(kind, o)))
        if not offerings:
            return None
        nodes = self._nodes(launch, kind, labels, offerings)
        daemons = {id(requests): requests for requests in map(self.state.daemon_sets.requests_on, nodes)}
        running = dict.fromkeys(daemon for node in nodes for daemon in self.state.daemon_sets.on(node))
        return LaunchOption(
            kind=kind,
            offerings=offerings,
            daemons=tuple(daemons.values()),
            daemon_ports=frozenset(port for daemon in running for port in daemon.ports),
            claiming=[daemon for daemon in running if daemon.pod.spec.resource_claims],
            labels=labels,
        )

    def _nodes(
        self, launch: Launch, kind: InstanceType, labels: Labels, offerings: Sequence[Offering]
    ) -> list[FinalNode]:
        """A node of the kind for every offering that may run other DaemonSets' pods than the others."""
        taints = hard_taints(launch.taints)
        return [
            FinalNode(
                name=launch.name,
                labels={**labels, **self._of_offering(kind, offering), keys.HOSTNAME: launch.name},
                taints=taints,
                room={},
            )
            for offering in (offerings if self.state.daemon_sets.depend_on_offering else offerings[:1])
        ]

    def _of_offering(self, kind: InstanceType, offering: Offering) -> Labels:
        """The labels that a node of the kind has from the offering;
        one object for all kinds in a place that names its zone's id.
        """
        place = offering.zone, offering.zone_id or id(kind), offering.capacity_type, offering.reservation
        if place not in self._of_place:
            self._of_place[place] = with_offering({}, kind, offering)
        return self._of_place[place]

    def suit(self, option: LaunchOption, pod_class: EquivalenceClass) -> bool:
        """Whether the pods' own node selection allows every offering of the option."""
        if (option, pod_class) not in self._suits:
            selection = self.state.selections.of(pod_class.pod.spec)
            self._suits[option, pod_class] = all(selection.selects(labels, "") for labels in option.nodes)
        return self._suits[option, pod_class]


class _LaunchRules:
    """The requirements of one launch and its NodePool, apart from those on the instance type's name."""

    def __init__(self, launch: Launch, pool: NodePool) -> None:
        self.launch, self.pool = launch, pool
        rules: list[Requirement] = [r for r in launch.requirements if r.key != keys.INSTANCE_TYPE]
        rules += pool.requirements
        self._of_offering = [r for r in rules if keys.canonical(r.key) in DECIDED_BY_OFFERING]
        self.of_type = [r for r in rules if keys.canonical(r.key) not in DECIDED_BY_OFFERING]
        self._allowed: dict[int, bool] = {}

    def allows(self, place: Labels) -> bool:
        """Whether a node may come from an offering that gives it these labels, which outlive this object."""
        if id(place) not in self._allowed:
            self._allowed[id(place)] = unmet(self._of_offering, place) is None
        return self._allowed[id(place)]
