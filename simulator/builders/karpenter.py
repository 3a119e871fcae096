"""Karpenter's objects: NodePool, EC2NodeClass and NodeClaim."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.autoscaling.provisioningrequest import ATOMIC, CHECK, ProvisioningRequest
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from simulator.builders.defaults import EPOCH, ZONES, zone_id
from simulator.kubernetes import shapes

Owned = TypeVar("Owned", NodePool, NodeClaim)


def node_pool(
    name: str = "default",
    *,
    requirements: Iterable[Any] = (),
    taints: Iterable[Any] = (),
    startup_taints: Iterable[Any] = (),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    weight: int | None = None,
    budgets: Iterable[Any] | None = None,
    replicas: int | None = None,
    node_class: str = "default",
    expire_after: str = "720h",
    termination_grace_period: str | None = None,
    ready: bool = True,
    **disruption: Any,
) -> NodePool:
    """A NodePool that allows every instance type, zone and capacity type unless ``requirements`` says otherwise.

    ``requirements``: documents, or ``"key=a,b"``, which means that the key is In those values.
    ``ready``: whether its conditions are True; a pool without them is not used.
    ``disruption``: further fields of ``spec.disruption``, in camel case.
    """
    document: dict[str, Any] = {
        "metadata": {"name": name, "uid": f"uid-nodepool-{name}"},
        "spec": {
            "template": {
                "metadata": {"labels": dict(labels or {}), "annotations": dict(annotations or {})},
                "spec": {
                    "nodeClassRef": {"group": keys.AWS_GROUP, "kind": "EC2NodeClass", "name": node_class},
                    "requirements": [_requirement(requirement) for requirement in requirements],
                    "taints": list(taints), "startupTaints": list(startup_taints), "expireAfter": expire_after,
                    "terminationGracePeriod": termination_grace_period,
                },
            },
            "disruption": disruption | ({"budgets": list(budgets)} if budgets is not None else {}),
            "limits": dict(limits or {}), "weight": weight, "replicas": replicas,
        },
        "status": {"conditions": _true("ValidationSucceeded", "NodeClassReady", "Ready") if ready else []},
    }  # fmt: skip
    return shapes.read_model(document, NodePool)


def node_class(name: str = "default", *, zones: Sequence[str] = ZONES, ready: bool = True, **spec: Any) -> EC2NodeClass:
    """An EC2NodeClass of AL2023 with its selectors resolved in the status.

    There is a subnet for each of the ``zones``, one security group, and an AMI for each architecture. ``spec``: further
    fields of the spec, in camel case.
    """
    return shapes.read_model({
        "metadata": {"name": name, "uid": f"uid-ec2nodeclass-{name}", "generation": 1},
        "spec": {
            "subnetSelectorTerms": [{"tags": {"joinery.dev/discovery": "simulated"}}],
            "securityGroupSelectorTerms": [{"tags": {"joinery.dev/discovery": "simulated"}}],
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "role": "joinery-node", **spec,
        },
        "status": {
            "subnets": [{"id": f"subnet-{zone[-1]}", "zone": zone, "zoneID": zone_id(zone)} for zone in zones],
            "securityGroups": [{"id": "sg-nodes", "name": "nodes"}],
            "amis": [_ami("amd64"), _ami("arm64")],
            "instanceProfile": "joinery-node",
            "conditions": _true(
                "SubnetsReady", "SecurityGroupsReady", "AMIsReady", "InstanceProfileReady", "PlacementGroupReady",
                "CapacityReservationsReady", "ValidationSucceeded", "Ready",
            ) if ready else [],
        },
    }, EC2NodeClass)  # fmt: skip


def _ami(arch: str) -> dict[str, Any]:
    rule = {"key": keys.ARCH, "operator": "In", "values": [arch]}
    return {"id": f"ami-{arch}", "name": f"al2023-{arch}", "requirements": [rule]}


def node_claim(
    name: str = "default-1",
    *,
    node: str = "",
    node_pool: str = "default",
    instance_type: str = "m7a.xlarge",
    zone: str = ZONES[0],
    capacity_type: str = keys.ON_DEMAND,
    provider_id: str | None = None,
    conditions: Sequence[str] = ("Launched", "Registered", "Initialized"),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Sequence[str] = (keys.TERMINATION_FINALIZER,),
    requirements: Iterable[Any] = (),
    requests: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
    expire_after: str = "720h",
    termination_grace_period: str | None = None,
    created: datetime | None = None,
    deleted: datetime | None = None,
    **spec: Any,
) -> NodeClaim:
    """A NodeClaim whose ``conditions`` are True. Without Launched it has no instance, and without ``node`` no node.

    ``provider_id``: by default the one that ``builders.node(node)`` has.
    ``resources``: added to its capacity, which is all allocatable. ``requests``: what its planned pods ask for
    together.
    ``spec``: further fields of the spec, in camel case.
    """
    launched = "Launched" in conditions
    if provider_id is None:
        provider_id = f"aws:///{zone}/i-{node or name}" if launched else ""
    capacity = {"cpu": "4", "memory": "16Gi", "pods": "110", **(resources or {})} if launched else {}
    bought = {keys.INSTANCE_TYPE: instance_type, keys.ZONE: zone, keys.CAPACITY_TYPE: capacity_type} if launched else {}
    return shapes.read_model({
        "metadata": {
            "name": name, "labels": {keys.NODE_POOL: node_pool, keys.NODE_CLASS: "default", **bought, **(labels or {})},
            "annotations": dict(annotations or {}), "finalizers": list(finalizers), "creationTimestamp": created,
            "deletionTimestamp": deleted,
            "ownerReferences": [{
                "apiVersion": f"{keys.CORE_GROUP}/v1", "kind": "NodePool", "name": node_pool,
                "uid": f"uid-nodepool-{node_pool}", "blockOwnerDeletion": True,
            }],
        },
        "spec": {
            "nodeClassRef": {"group": keys.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"},
            "requirements": [_requirement(requirement) for requirement in requirements],
            "resources": {"requests": dict(requests or {})},
            "expireAfter": expire_after, "terminationGracePeriod": termination_grace_period, **spec,
        },
        "status": {
            "nodeName": node, "providerID": provider_id, "imageID": "ami-amd64" if launched else "",
            "capacity": capacity, "allocatable": capacity, "conditions": _true(*conditions),
        },
    }, NodeClaim)  # fmt: skip


def foreign(owned: Owned) -> Owned:
    """The same NodePool or NodeClaim, with a node class of EKS Auto Mode: not Joinery's to act on."""
    document = owned.model_dump(mode="json", by_alias=True)
    spec = document["spec"].get("template", document)["spec"]
    spec["nodeClassRef"] = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": spec["nodeClassRef"]["name"]}
    return type(owned).model_validate(document)


def _requirement(requirement: Any) -> Any:
    if not isinstance(requirement, str):
        return requirement
    key, _, values = requirement.partition("=")
    return {"key": key, "operator": "In", "values": values.split(",")}


def _true(*condition_types: str) -> list[dict[str, Any]]:
    since = {"lastTransitionTime": EPOCH, "observedGeneration": 1}
    return [{"type": name, "status": "True", "reason": name, **since} for name in condition_types]


def node_overlay(
    name: str = "overlay",
    *,
    requirements: Iterable[Any] = (),
    price: str | None = None,
    adjustment: str | None = None,
    capacity: Mapping[str, str] | None = None,
    weight: int | None = None,
) -> NodeOverlay:
    """A NodeOverlay for all instance types, where it names none."""
    spec = {
        "requirements": list(requirements),
        "price": price,
        "priceAdjustment": adjustment,
        "capacity": dict(capacity or {}),
        "weight": weight,
    }
    return NodeOverlay.model_validate({"metadata": {"name": name, "generation": 1}, "spec": spec})


def provisioning_request(
    name: str = "train",
    *,
    template: str = "worker",
    count: int = 4,
    namespace: str = "default",
    check: bool = False,
    created: datetime = EPOCH,
    **parameters: str,
) -> ProvisioningRequest:
    """A ProvisioningRequest for so many pods of a PodTemplate. ``check``: only whether there is room is asked."""
    spec = {
        "provisioningClassName": CHECK if check else ATOMIC,
        "podSets": [{"podTemplateRef": {"name": template}, "count": count}],
        "parameters": parameters,
    }
    metadata = {
        "name": name, "namespace": namespace, "uid": f"uid-request-{name}", "generation": 1,
        "creationTimestamp": created,
    }  # fmt: skip
    return ProvisioningRequest.model_validate({"metadata": metadata, "spec": spec})


def capacity_buffer(
    name: str = "buffer",
    *,
    namespace: str = "default",
    template: str = "",
    workload: str = "",
    kind: str = "Deployment",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> CapacityBuffer:
    """A CapacityBuffer for pods like those of a PodTemplate, or of a ``workload`` of that ``kind``."""
    if template:
        spec["podTemplateRef"] = {"name": template}
    if workload:
        spec["scalableRef"] = {"apiGroup": "apps", "kind": kind, "name": workload}
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "generation": 1,
        "annotations": dict(annotations or {}),
    }
    return CapacityBuffer.model_validate({"metadata": metadata, "spec": spec})
