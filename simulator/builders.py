"""Objects with defaults, for tests and scenarios: ``pod(cpu="500m")`` says only what matters.

They return the structs of ``joinery.apis`` and ``joinery.state``. Nested parts may be given as the structs or as documents
(dictionaries with the API's own camel-case names).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from joinery.apis import core
from joinery.apis import labels as keys
from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.nodepool import NodePool
from joinery.apis.quantity import amounts
from joinery.state.offerings import InstanceType, Offering
from simulator.kubernetes import shapes

T = TypeVar("T")
Owned = TypeVar("Owned", NodePool, NodeClaim)
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
EPOCH = datetime.fromisoformat("2026-08-24T08:00:00+00:00")
#: What the volume controller writes on a claim once it and its volume know each other.
BOUND = "pv.kubernetes.io/bind-completed"
Given = Mapping[str, Any]

#: GiB of memory per vCPU by family letter.
_RATIO = {"c": 2, "m": 4, "r": 8, "t": 4, "x": 16}
_SIZES = {"medium": 1, "large": 2, "xlarge": 4}


def pod(  # noqa: PLR0913
    name: str = "pod-1",
    *,
    cpu: str = "500m",
    memory: str = "512Mi",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    node: str = "",
    node_selector: Mapping[str, str] | None = None,
    tolerations: Iterable[Any] = (),
    affinity: Any = None,
    spread: Iterable[Any] = (),
    volumes: Iterable[Any] = (),
    owner: Any = None,
    unschedulable: bool = True,
    phase: str = "",
    requests: Mapping[str, str] | None = None,
    uid: str = "",
    annotations: Mapping[str, str] | None = None,
    created: datetime | None = None,
    deleted: datetime | None = None,
    **spec: Any,
) -> core.Pod:
    """A pod with one container: running and ready if it has a ``node``, else pending and (unless told not to be) marked.

    ``volumes`` are names of PersistentVolumeClaims or volume documents; ``owner`` an OwnerReference, or a ReplicaSet's name.
    ``requests`` adds resources to cpu and memory; an empty string leaves one out.
    """
    wanted = {name: value for name, value in {"cpu": cpu, "memory": memory, **(requests or {})}.items() if value != ""}
    return shapes.read_again(core.Pod(
        metadata=core.ObjectMeta(
            name=name, namespace=namespace, uid=uid, labels=dict(labels or {}), annotations=dict(annotations or {}),
            creation_timestamp=created, deletion_timestamp=deleted, owner_references=_owners(owner),
        ),
        spec=core.PodSpec(
            node_name=node,
            node_selector=dict(node_selector or {}),
            tolerations=_structs(tolerations, core.Toleration),
            affinity=_struct(affinity, core.Affinity) if affinity else None,
            topology_spread_constraints=_structs(spread, core.TopologySpreadConstraint),
            containers=[core.Container(name="main", resources=core.ResourceRequirements(requests=dict(wanted)))],
            volumes=[_volume(found) for found in volumes],
            **_fields(spec, core.PodSpec),
        ),
        status=core.PodStatus(phase=phase or ("Running" if node else "Pending"), conditions=_pod_conditions(node, unschedulable)),
    ))  # fmt: skip


def _pod_conditions(node: str, unschedulable: bool) -> list[core.Condition]:
    if node:
        return [core.Condition(type="PodScheduled", status="True"), core.Condition(type="Ready", status="True")]
    return [core.Condition(type="PodScheduled", status="False", reason="Unschedulable")] if unschedulable else []


def _volume(given: Any) -> core.Volume:
    if isinstance(given, str):
        source = core.PersistentVolumeClaimVolumeSource(claim_name=given)
        return core.Volume(name=given, persistent_volume_claim=source)
    return _struct(given, core.Volume)


def owner(kind: str, name: str, *, uid: str = "", api_version: str = "apps/v1") -> core.OwnerReference:
    """A controlling owner; its UID derives from kind and name unless given."""
    return core.OwnerReference(
        api_version=api_version, kind=kind, name=name, uid=uid or f"uid-{kind.lower()}-{name}", controller=True
    )


def _owners(given: Any) -> list[core.OwnerReference]:
    if given is None:
        return []
    return [owner("ReplicaSet", given) if isinstance(given, str) else _struct(given, core.OwnerReference)]


def node(  # noqa: PLR0913
    name: str = "node-1",
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    zone: str = ZONES[0],
    instance_type: str = "m7a.xlarge",
    capacity_type: str = keys.ON_DEMAND,
    node_pool: str = "default",
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Any] = (),
    ready: bool = True,
    initialized: bool = True,
    provider_id: str | None = None,
    resources: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Sequence[str] | None = None,
    created: datetime | None = None,
    deleted: datetime | None = None,
    unschedulable: bool = False,
) -> core.Node:
    """A node of ours, registered, Ready and initialized. ``node_pool=""`` makes it somebody else's."""
    ours = _node_labels(node_pool, capacity_type, initialized) if node_pool else {}
    room = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "17Gi", **(resources or {})}
    where = {
        keys.HOSTNAME: name,
        keys.ZONE: zone,
        keys.REGION: zone[:-1],
        keys.INSTANCE_TYPE: instance_type,
        keys.ARCH: "amd64",
        keys.OS: "linux",
    }
    default_finalizers = [keys.TERMINATION_FINALIZER] if node_pool else []
    return shapes.read_again(core.Node(
        metadata=core.ObjectMeta(
            name=name, labels=where | ours | dict(labels or {}), annotations=dict(annotations or {}),
            finalizers=default_finalizers if finalizers is None else list(finalizers),
            creation_timestamp=created, deletion_timestamp=deleted,
        ),
        spec=core.NodeSpec(
            provider_id=f"aws:///{zone}/i-{name}" if provider_id is None else provider_id,
            taints=_structs(taints, core.Taint), unschedulable=unschedulable,
        ),
        status=core.NodeStatus(
            capacity=shapes.capacity(room), allocatable=shapes.allocatable(room),
            conditions=[core.Condition(type="Ready", status="True" if ready else "False")],
        ),
    ))  # fmt: skip


def _node_labels(node_pool: str, capacity_type: str, initialized: bool) -> dict[str, str]:
    ours = {
        keys.NODE_POOL: node_pool,
        keys.NODE_CLASS: "default",
        keys.CAPACITY_TYPE: capacity_type,
        keys.REGISTERED: "true",
    }
    return ours | {keys.INITIALIZED: "true"} if initialized else ours


def node_pool(  # noqa: PLR0913
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
    """A NodePool that allows every type, zone and both capacity types unless ``requirements`` says otherwise.

    A requirement may be a document or a ``key=a,b`` string, which means In.
    """
    document: dict[str, Any] = {
        "metadata": {"name": name, "uid": f"uid-nodepool-{name}"},
        "spec": {
            "template": {
                "metadata": {"labels": dict(labels or {}), "annotations": dict(annotations or {})},
                "spec": {
                    "nodeClassRef": {"group": keys.AWS_GROUP, "kind": "EC2NodeClass", "name": node_class},
                    "requirements": [_requirement(found) for found in requirements],
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


def _requirement(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    key, _, values = given.partition("=")
    return {"key": key, "operator": "In", "values": values.split(",")}


def node_class(name: str = "default", *, zones: Sequence[str] = ZONES, ready: bool = True, **spec: Any) -> EC2NodeClass:
    """An EC2NodeClass of AL2023 whose status says what its selectors select: a subnet a zone, a group, two AMIs."""
    images = [
        {
            "id": f"ami-{arch}",
            "name": f"al2023-{arch}",
            "requirements": [{"key": keys.ARCH, "operator": "In", "values": [arch]}],
        }
        for arch in ("amd64", "arm64")
    ]
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
            "securityGroups": [{"id": "sg-nodes", "name": "nodes"}], "amis": images, "instanceProfile": "joinery-node",
            "conditions": _true(
                "SubnetsReady", "SecurityGroupsReady", "AMIsReady", "InstanceProfileReady", "PlacementGroupReady",
                "CapacityReservationsReady", "ValidationSucceeded", "Ready",
            ) if ready else [],
        },
    }, EC2NodeClass)  # fmt: skip


def zone_id(zone: str) -> str:
    """``use1-az1`` for ``us-east-1a``, the way EC2 writes them."""
    return f"use1-az{ord(zone[-1]) - ord('a') + 1}"


def node_claim(  # noqa: PLR0913
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
    """A NodeClaim whose ``conditions`` are True. One that is not Launched has no instance; one without ``node`` no node.

    The default ``provider_id`` is the one that ``builders.node(node)`` has.
    """
    launched = "Launched" in conditions
    given = (f"aws:///{zone}/i-{node or name}" if launched else "") if provider_id is None else provider_id
    room = {"cpu": "4", "memory": "16Gi", "pods": "110", **(resources or {})} if launched else {}
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
            "requirements": [_requirement(found) for found in requirements], "resources": {"requests": dict(requests or {})},
            "expireAfter": expire_after, "terminationGracePeriod": termination_grace_period, **spec,
        },
        "status": {
            "nodeName": node, "providerID": given, "imageID": "ami-amd64" if launched else "",
            "capacity": room, "allocatable": room, "conditions": _true(*conditions),
        },
    }, NodeClaim)  # fmt: skip


def foreign(owned: Owned) -> Owned:
    """The same NodePool or NodeClaim as EKS Auto Mode would own it."""
    document = owned.model_dump(mode="json", by_alias=True)
    spec = document["spec"].get("template", document)["spec"]
    spec["nodeClassRef"] = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": spec["nodeClassRef"]["name"]}
    return type(owned).model_validate(document)


def _true(*kinds: str) -> list[dict[str, Any]]:
    return [
        {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": EPOCH, "observedGeneration": 1}
        for kind in kinds
    ]


def daemon_set(
    name: str = "agent", *, cpu: str = "100m", memory: str = "128Mi", namespace: str = "kube-system", **spec: Any
) -> core.DaemonSet:
    """A DaemonSet that tolerates everything, unless ``tolerations`` says otherwise."""
    spec.setdefault("tolerations", [{"operator": "Exists"}])
    template = pod(name, cpu=cpu, memory=memory, labels={"app": name}, **spec)
    return shapes.read_again(core.DaemonSet(
        metadata=core.ObjectMeta(name=name, namespace=namespace, uid=f"uid-daemonset-{name}"),
        spec=core.DaemonSetSpec(
            selector=core.LabelSelector(match_labels={"app": name}),
            template=core.PodTemplateSpec(metadata=core.ObjectMeta(labels={"app": name}), spec=template.spec),
        ),
    ))  # fmt: skip


def instance_type(  # noqa: PLR0913
    name: str = "m7a.large",
    *,
    price: float | None = None,
    zones: Sequence[str] = ZONES,
    spot: float | None = 0.4,
    cpu: int | None = None,
    memory: int | None = None,
    pods: int | None = None,
    arch: str = "amd64",
    labels: Mapping[str, Sequence[str]] | None = None,
    resources: Mapping[str, str] | None = None,
) -> InstanceType:
    """A type by its name: size gives vCPUs, family letter memory. ``price`` in $/h on demand, ``spot`` a share of it, or None.

    Allocatable is capacity less what kubelet reserves on AL2023, roughly; give ``cpu`` (vCPUs) and ``memory`` (GiB) to differ.
    """
    vcpus = cpu or _vcpus(name)
    gib = memory or vcpus * _RATIO.get(name[0], 4)
    density = pods or min(110, 29 if vcpus <= 2 else 58)
    capacity = amounts(
        {
            "cpu": str(vcpus),
            "memory": f"{gib}Gi",
            "pods": str(density),
            "ephemeral-storage": "20Gi",
            **(resources or {}),
        }
    )
    reserved = amounts(
        {"cpu": f"{60 + 10 * vcpus}m", "memory": f"{255 + 11 * density + 100}Mi", "ephemeral-storage": "3Gi"}
    )
    each = price if price is not None else round(0.05 * vcpus + 0.003 * gib, 4)
    shares = {keys.ON_DEMAND: 1.0} | ({keys.SPOT: spot} if spot else {})
    return InstanceType(
        name=name,
        labels=_type_labels(name, vcpus, gib, arch, zones, tuple(shares)) | {key: tuple(found) for key, found in (labels or {}).items()},
        capacity=capacity,
        allocatable={resource: value - reserved.get(resource, 0) for resource, value in capacity.items()},
        offerings=tuple(
            Offering(zone=zone, capacity_type=kind, price=round(each * share, 5), zone_id=zone_id(zone))
            for zone in zones for kind, share in shares.items()
        ),
    )  # fmt: skip


def _vcpus(name: str) -> int:
    size = name.partition(".")[2]
    return _SIZES.get(size) or 4 * int(size.removesuffix("xlarge"))


def _type_labels(
    name: str, vcpus: int, gib: int, arch: str, zones: Sequence[str], kinds: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    family, _, size = name.partition(".")
    generation = next((letter for letter in family if letter.isdigit()), "7")
    described = {
        "instance-category": family[0], "instance-generation": generation, "instance-family": family, "instance-size": size,
        "instance-cpu": str(vcpus), "instance-memory": str(gib * 1024), "instance-hypervisor": "nitro",
    }  # fmt: skip
    return {
        keys.INSTANCE_TYPE: (name,), keys.ARCH: (arch,), keys.OS: ("linux",), keys.REGION: (zones[0][:-1],),
        keys.ZONE: tuple(zones), keys.ZONE_ID: tuple(zone_id(zone) for zone in zones), keys.CAPACITY_TYPE: tuple(kinds),
        **{f"{keys.AWS_GROUP}/{key}": (value,) for key, value in described.items()},
    }  # fmt: skip


def pdb(  # noqa: PLR0913
    name: str = "budget",
    *,
    labels: Mapping[str, str] | None = None,
    allowed: int = 0,
    min_available: str | int | None = None,
    max_unavailable: str | int | None = None,
    namespace: str = "default",
    unhealthy: str = "",
) -> core.PodDisruptionBudget:
    """A budget over the pods with ``labels``. Without min or max, ``allowed`` disruptions stay as stated."""
    return core.PodDisruptionBudget(
        metadata=core.ObjectMeta(name=name, namespace=namespace),
        spec=core.PodDisruptionBudgetSpec(
            selector=core.LabelSelector(match_labels=dict(labels or {})), min_available=min_available,
            max_unavailable=max_unavailable, unhealthy_pod_eviction_policy=unhealthy,
        ),
        status=core.PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )  # fmt: skip


def volume_claim(
    name: str = "data", *, volume: str = "", storage_class: str | None = "gp3", namespace: str = "default"
) -> core.PersistentVolumeClaim:
    """A PersistentVolumeClaim, bound if it names a ``volume``."""
    return core.PersistentVolumeClaim(
        metadata=core.ObjectMeta(name=name, namespace=namespace, annotations={BOUND: "yes"} if volume else {}),
        spec=core.PersistentVolumeClaimSpec(
            storage_class_name=storage_class, volume_name=volume, access_modes=["ReadWriteOnce"]
        ),
        status=core.PersistentVolumeClaimStatus(phase="Bound" if volume else "Pending"),
    )


def volume(name: str = "pv-data", *, zone: str = ZONES[0], storage_class: str = "gp3") -> core.PersistentVolume:
    """An EBS volume: reachable from one zone only."""
    terms = [{"matchExpressions": [{"key": keys.ZONE, "operator": "In", "values": [zone]}]}]
    return core.PersistentVolume(
        metadata=core.ObjectMeta(name=name),
        spec=core.PersistentVolumeSpec(
            storage_class_name=storage_class,
            csi=core.CSIPersistentVolumeSource(driver="ebs.csi.aws.com", volume_handle=f"vol-{name}"),
            node_affinity=_struct({"required": {"nodeSelectorTerms": terms}}, core.VolumeNodeAffinity),
        ),
    )


def storage_class(
    name: str = "gp3", *, binding: str = "WaitForFirstConsumer", zones: Sequence[str] = ()
) -> core.StorageClass:
    """The EBS CSI driver's StorageClass, restricted to ``zones`` if any are given."""
    topologies = (
        [{"matchLabelExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "values": list(zones)}]}] if zones else []
    )
    return core.StorageClass(
        metadata=core.ObjectMeta(name=name),
        provisioner="ebs.csi.aws.com",
        volume_binding_mode=binding,
        allowed_topologies=_structs(topologies, core.TopologySelectorTerm),
    )


def namespace(name: str, *, labels: Mapping[str, str] | None = None) -> core.Namespace:
    return core.Namespace(
        metadata=core.ObjectMeta(name=name, labels={"kubernetes.io/metadata.name": name, **(labels or {})})
    )


def _struct(given: Any, struct: type[T]) -> T:
    return given if isinstance(given, struct) else msgspec.convert(given, struct)


def _structs(given: Iterable[Any], struct: type[T]) -> list[T]:
    return [_struct(found, struct) for found in given]


def _fields(given: Given, struct: Any) -> dict[str, Any]:
    """Remaining fields by their Python names; documents in them become structs."""
    types = {field.name: field.type for field in msgspec.structs.fields(struct)}
    return {name: msgspec.convert(value, types[name]) if name in types else value for name, value in given.items()}
