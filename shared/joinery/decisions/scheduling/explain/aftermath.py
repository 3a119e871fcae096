"""The cluster as it will be once a plan is carried out, but for one pod that still waits.

What a plan did with a pod is explained by asking again, with everything else of the plan in place. Then counts, room
and limits are those that the pod really met, and the packing itself needs to keep no trace of what it tried.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

import msgspec

from joinery.decisions.scheduling.firstfit.unforeseen import closed
from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    NODE_POOL,
    OS,
    PLANNED_TAINT,
    REGISTERED,
    ZONE,
    ZONE_ID,
    with_aliases,
)
from joinery.objects.kubernetes.core import Node, NodeSpec, NodeStatus, ObjectMeta, Pod, Taint
from joinery.objects.kubernetes.quantity import Resources, texts
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.pods import bound_to

_KEPT = Taint(key=PLANNED_TAINT, effect="NoSchedule")


def aftermath(problem: Problem, packing: Packing, pod: str) -> Problem:
    """The problem of one pod (namespace/name) that the packing knows, after everything else of the packing is done.

    Nodes and claims of ours are nodes here, and so are the launches; a launch for this pod alone is left out. All pods
    of the packing but this one are bound where it put them, and pods without a place are gone.
    """
    snapshot = problem.snapshot
    target = {name: placement.node or placement.node_claim for placement in packing.existing for name in placement.pods}
    target |= {name: launch.name for launch in packing.launches for name in launch.pods}
    launches = [launch for launch in packing.launches if launch.pods != (pod,)]
    existing = (_standing(problem, view, pod) for view in snapshot.views)
    after = replace(
        snapshot,
        pods=tuple(_pods(snapshot.pods, target, pod)),
        nodes=(*existing, *(_booted(launch, problem) for launch in launches)),
        node_claims=(),
    )
    options = replace(problem.options, only_marked_unschedulable=False, first_fit_only=True)
    # What the plan passed over is no domain of its spreads either.
    return closed(replace(problem, snapshot=after, options=options), packing.passed_over)


def _pods(pods: Iterable[Pod], target: Mapping[str, str], waiting: str) -> Iterator[Pod]:
    for pod in pods:
        if pod.key == waiting:
            # A StatefulSet's pod on a node that goes is terminating already, and comes back under its name.
            living = msgspec.structs.replace(pod.metadata, deletion_timestamp=None)
            yield msgspec.structs.replace(bound_to(pod, ""), metadata=living)
        elif pod.key in target:
            yield bound_to(pod, target[pod.key])
        elif pod.spec.node_name or pod.status.nominated_node_name:
            # Pods that found no new place stay on the node that goes.
            annotations = {**pod.metadata.annotations, DO_NOT_DISRUPT: "true"}
            yield msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations))


def _standing(problem: Problem, view: NodeView, pod: str) -> Node:
    """A node or claim as the packing counted it. One whose room is for other pods has a taint that says so."""
    labels = {**view.labels, NODE_POOL: view.pool} if view.pool else dict(view.labels)
    is_kept = view.is_unlaunched and pod not in view.planned
    taints = [*view.taints, _KEPT] if is_kept else list(view.taints)
    deleted = problem.snapshot.now if view.is_leaving else None
    return _node(view.name, labels, taints, (problem.charged(view), view.allocatable), deleted)


def _booted(launch: Launch, problem: Problem) -> Node:
    """The node that the launch's own offering gives."""
    pool = problem.snapshot.pools_by_name[launch.node_pool]
    kind = next(kind for kind in problem.types_of(pool) if kind.name == launch.offering.instance_type)
    taints = [Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in launch.taints]
    return _node(launch.name, _labels(launch, kind), taints, (kind.capacity, kind.allocatable))


def _labels(launch: Launch, kind: InstanceType) -> dict[str, str]:
    """What the type and the offering say of a label wins over the launch, as on the node that EC2 gives."""
    offering = launch.offering
    allowed = {r.key: r.values for r in launch.requirements if r.operator == "In"}
    labels = {OS: "linux", REGISTERED: "true", INITIALIZED: "true", **launch.labels}
    for key, values in kind.labels.items():
        if values:
            labels[key] = next((value for value in values if value in allowed.get(key, values)), values[0])
    labels |= {
        INSTANCE_TYPE: kind.name,
        ZONE: offering.zone,
        CAPACITY_TYPE: offering.capacity_type,
        HOSTNAME: launch.name,
    }
    for sold in kind.offerings:
        if sold.zone == offering.zone and sold.zone_id:
            labels[ZONE_ID] = sold.zone_id
        if offering.reservation and sold.reservation and sold.reservation_id == offering.reservation:
            labels |= sold.reservation.labels
    return with_aliases(labels)


def _node(
    name: str,
    labels: dict[str, str],
    taints: list[Taint],
    amounts: tuple[Resources, Resources],
    deleted: datetime | None = None,
) -> Node:
    """``amounts``: capacity and what is allocatable."""
    capacity, allocatable = (dict[str, str | int | float](texts(resources)) for resources in amounts)
    return Node(
        metadata=ObjectMeta(name=name, labels=labels, deletion_timestamp=deleted),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(capacity=capacity, allocatable=allocatable),
    )
