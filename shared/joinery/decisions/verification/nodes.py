"""Nodes of the final state: those that exist, those on their way, and those the plan would buy, all alike."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from joinery.decisions.scheduling.packing import Launch, PlacedOffering
from joinery.decisions.verification.predicates import Labels, Port, allows, requests_of
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Node, Pod, Taint
from joinery.objects.kubernetes.quantity import Resources, total
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.offerings import InstanceType, Offering

DECIDED_BY_OFFERING = (keys.ZONE, keys.CAPACITY_TYPE, keys.ZONE_ID, *keys.RESERVATION_LABELS)
_USUAL = {keys.OS: "linux", f"{keys.AWS_GROUP}/instance-tenancy": "default"}


@dataclass(eq=False, slots=True)
class FinalNode:
    """A node once it has booted and is initialised.

    ``room``: what is allocatable; ``pool``: the name of its NodePool, if any; ``is_leaving``: it is being deleted.
    ``only_for``: of a claim that is not launched yet, the only pods that may use it; ``may_be``: the types that it
    names. ``pods``: how many of each class run on it, ``planned``: the names of those that the plan puts there;
    ``claiming``: of these the ones that claim devices, in the plan's order.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    room: Resources
    capacity: Resources = field(default_factory=dict)
    pool: str = ""
    is_leaving: bool = False
    only_for: frozenset[str] | None = None
    may_be: tuple[str, ...] = ()
    pods: "dict[EquivalenceClass, int]" = field(default_factory=dict)
    planned: "dict[EquivalenceClass, list[str]]" = field(default_factory=dict)
    claiming: list[str] = field(default_factory=list)

    @property
    def planned_requests(self) -> Resources:
        """What the planned pods request together."""
        return total(
            {name: amount * len(pods) for name, amount in pod_class.requests.items()}
            for pod_class, pods in self.planned.items()
        )


@dataclass(eq=False)
class EquivalenceClass:
    """Pods that every rule treats alike: what is true of one of them is true of all.

    ``index``: which of the final state's classes it is; ``pod``: one of them; ``planned_on``: the nodes on which the
    plan puts some of them.
    """

    index: int
    pod: Pod
    namespace: str
    labels: Labels
    ports: frozenset[Port]
    is_terminating: bool
    planned_on: list[FinalNode] = field(default_factory=list)

    @cached_property
    def requests(self) -> Resources:
        """What one of the pods takes."""
        return requests_of(self.pod)


def existing_node(view: NodeView, node: Node | None) -> FinalNode:
    """A node or claim of the snapshot. A node that speaks for itself has exactly the labels it says."""
    labels = dict(view.labels)
    if node is not None and view.is_initialized:
        labels = {keys.HOSTNAME: view.name, **node.metadata.labels}
        if keys.ZONE in labels and view.claim and any(taint.key == keys.PLANNED_TAINT for taint in node.spec.taints):
            labels.setdefault(keys.EBS_ZONE, labels[keys.ZONE])  # kept for its pods: its driver may still be starting
    else:
        _add_aliases(labels)
    return FinalNode(
        name=view.name,
        labels=labels,
        taints=view.taints,
        room=view.allocatable,
        capacity=view.capacity,
        pool=view.pool,
        is_leaving=view.is_leaving,
        only_for=frozenset(view.planned) if view.is_unlaunched else None,
        may_be=view.may_be,
    )


def launched_node(launch: Launch, pool: NodePool, kind: InstanceType, offering: Offering) -> FinalNode:
    """The node that one offering would give: what the type and the offering say of a label wins over the launch."""
    labels = node_labels(launch.labels, pool, kind, requirements=(*launch.requirements,))
    labels |= offering_labels(kind, offering)
    labels |= {keys.HOSTNAME: launch.name}
    _add_aliases(labels)
    return FinalNode(
        name=launch.name,
        labels=labels,
        taints=tuple(Taint(key=t.key, value=t.value, effect=t.effect) for t in launch.taints),
        room=kind.allocatable,
        capacity=kind.capacity,
        pool=pool.metadata.name,
    )


def node_labels(
    own: Mapping[str, str], pool: NodePool, kind: InstanceType, *, requirements: Iterable[Requirement]
) -> dict[str, str]:
    """All labels but those of the offering."""
    wanted = (*requirements, *pool.requirements)
    reference = pool.spec.template.spec.node_class_ref
    labels = {
        keys.OS: "linux", keys.ARCH: "amd64", keys.REGISTERED: "true", keys.INITIALIZED: "true",
        reference.of_kind.label: reference.name,
        **own,
    }  # fmt: skip
    for key, values in kind.labels.items():
        if values and key not in DECIDED_BY_OFFERING:
            labels[key] = values[0] if len(values) == 1 else _pick(key, values, own.get(key, ""), wanted)
    labels[keys.INSTANCE_TYPE] = kind.name
    labels[keys.NODE_POOL] = pool.metadata.name
    return labels


def _pick(key: str, values: tuple[str, ...], pinned: str, wanted: Iterable[Requirement]) -> str:
    """The value the node will have of those its type allows: the one pinned, or the usual one, or the first."""
    rules = [r for r in wanted if r.key == key]
    ordered = [v for v in (pinned, _USUAL.get(key, "")) if v in values] + list(values)
    return next((v for v in ordered if all(allows(r, v) for r in rules)), ordered[0])


def offering_labels(kind: InstanceType, offering: Offering) -> dict[str, str]:
    """What the offering decides: zone, its id, capacity type, and the capacity reservation if it draws on one."""
    labels = {keys.ZONE: offering.zone, keys.CAPACITY_TYPE: offering.capacity_type}
    zone_id = next((o.zone_id for o in kind.offerings if o.zone == offering.zone and o.zone_id), "")
    if offering.reservation:
        labels |= offering.reservation.labels
    return labels | {keys.ZONE_ID: zone_id} if zone_id else labels


def sold(kind: InstanceType, chosen: PlacedOffering) -> Offering | None:
    """The offering of the type that a launch counts on."""
    wanted = (chosen.zone, chosen.capacity_type, chosen.reservation)
    return next((o for o in kind.offerings if (o.zone, o.capacity_type, o.reservation_id) == wanted), None)


def _add_aliases(labels: dict[str, str]) -> None:
    for alias, key in keys.ALIASES.items():
        if key in labels:
            labels.setdefault(alias, labels[key])
            if key in (keys.ZONE, keys.INSTANCE_TYPE):
                labels[alias] = labels[key]


def with_offering(labels: Mapping[str, str], kind: InstanceType, offering: Offering) -> dict[str, str]:
    """The same node's labels, from another offering."""
    kept = {key: value for key, value in labels.items() if key not in keys.RESERVATION_LABELS}
    changed = {**kept, **offering_labels(kind, offering)}
    _add_aliases(changed)
    return changed


def with_aliases(labels: Mapping[str, str]) -> dict[str, str]:
    """The same labels, and their older names."""
    changed = dict(labels)
    _add_aliases(changed)
    return changed
