"""Small worlds and hand-made right plans over them, for tests that spoil them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from joinery.decisions.scheduling.packing import ExistingPlacement, Launch, Packing, PlacedOffering, Unplaced
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import INSTANCE_TYPE, NODE_POOL
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes import core, dynamic_resources
from joinery.objects.kubernetes.podgroups import PodGroup
from joinery.objects.kubernetes.quantity import amounts, total
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.snapshot import Snapshot
from simulator.builders import EPOCH, instance_type, node_class

SMALL, LARGE = instance_type("m7a.large", price=0.1, spot=None), instance_type("m7a.xlarge", price=0.2, spot=None)
A, B, C = "us-east-1a", "us-east-1b", "us-east-1c"
PENDING = Options(only_marked_unschedulable=False)

_FIELDS = {
    core.Pod: "pods",
    core.Node: "nodes",
    NodeClaim: "node_claims",
    NodePool: "node_pools",
    core.DaemonSet: "daemon_sets",
    core.Namespace: "namespaces",
    core.PersistentVolumeClaim: "volume_claims",
    core.PersistentVolume: "volumes",
    core.StorageClass: "storage_classes",
    core.CSINode: "csi_nodes",
    core.CSIDriver: "csi_drivers",
    core.CSIStorageCapacity: "storage_capacities",
    core.PodDisruptionBudget: "disruption_budgets",
    PodGroup: "scheduling_groups",
    dynamic_resources.ResourceClaim: "resource_claims",
    dynamic_resources.ResourceClaimTemplate: "resource_claim_templates",
    dynamic_resources.DeviceClass: "device_classes",
    dynamic_resources.ResourceSlice: "resource_slices",
}


def problem(*objects: Any, types: Iterable[InstanceType] = (SMALL, LARGE), options: Options = PENDING) -> Problem:
    """A snapshot of the objects and a ready EC2NodeClass ``default`` whose nodes may be of two types, on demand."""
    fields: dict[str, Any] = {}
    for one in objects:
        name = _FIELDS[type(one)]
        fields[name] = (*fields.get(name, ()), one)
    snapshot = Snapshot(now=EPOCH, node_classes=(node_class(),), **fields)
    return Problem(snapshot=snapshot, instance_types={"default": tuple(types)}, options=options)


def launch(  # noqa: PLR0913
    asked: Problem,
    *pods: str,
    name: str = "default-1",
    pool: str = "default",
    kind: str = "m7a.large",
    zone: str = A,
    zones: tuple[str, ...] = (),
    types: tuple[str, ...] = (),
    capacity_type: str = "on-demand",
    labels: Mapping[str, str] | None = None,
    daemons: Mapping[str, int] | None = None,
) -> Launch:
    """A launch for these pods as a planner should write it: pinned to its zone, with the pool's labels and taints."""
    template = next(p for p in asked.snapshot.node_pools if p.metadata.name == pool).spec.template
    offered = next(t for t in asked.instance_types["default"] if t.name == kind)
    named = types or (kind,)
    return Launch(
        name=name,
        node_pool=pool,
        requirements=(
            Requirement(key=NODE_POOL, operator="In", values=[pool]),
            Requirement(key="topology.kubernetes.io/zone", operator="In", values=list(zones or (zone,))),
            Requirement(key=INSTANCE_TYPE, operator="In", values=list(named)),
        ),
        labels={**template.metadata.labels, **(labels or {})},
        taints=tuple(template.spec.taints),
        startup_taints=tuple(template.spec.startup_taints),
        requests=total((*(_requests(asked, pod) for pod in pods), daemons or {})),
        instance_types=named,
        offering=PlacedOffering(kind, zone, capacity_type, offered.price(zone, capacity_type) or 0.0),
        pods=pods,
    )


def _requests(asked: Problem, key: str) -> dict[str, int]:
    pod = next(p for p in asked.snapshot.pods if p.key == key)
    return total((*(amounts(c.resources.requests) for c in pod.spec.containers), {"pods": 1}))


def packing(*launches: Launch, on: Mapping[str, tuple[str, ...]] | None = None, left: tuple[str, ...] = ()) -> Packing:
    """A whole plan: launches, pods on existing nodes by name, and pods left with a reason."""
    return Packing(
        launches=launches,
        existing=tuple(ExistingPlacement(node, "", pods) for node, pods in (on or {}).items()),
        unplaced=tuple(Unplaced(pod, (Reason(ReasonCode.RESOURCES, "no room"),)) for pod in left),
    )


def violated(asked: Problem, plan: Packing) -> set[str]:
    """The codes of everything that verification refuses."""
    return {violation.code for violation in verify(asked, plan)}


def renamed(given: Launch, **changes: Any) -> Launch:
    """The launch with some fields changed."""
    return replace(given, **changes)
