"""Nodes that are there when a story begins: launched, registered and initialized as long ago as they are old."""

from datetime import datetime

from joinery.decisions.lifecycle.launching.new_claims import hashes, owner
from joinery.gateways.ec2.gateway import LaunchRequest, Override
from joinery.gateways.ec2.offline import instance_types
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter import conditions
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.kubernetes.core import OwnerReference
from joinery.objects.kubernetes.quantity import texts
from joinery.objects.snapshot.offerings import InstanceType
from simulator import builders
from simulator.actors.kubelet import Kubelets
from simulator.cloud.network import DISCOVERY_TAG
from simulator.kubernetes.resources import with_fields, with_metadata
from simulator.story.scenario import Running
from simulator.world import CLUSTER, World

_TAGGED = f"; those of the simulation have the tag {DISCOVERY_TAG}: {CLUSTER}"
#: What a class can select here, by why it is not Ready.
_THERE_IS = {
    "SubnetsNotFound": _TAGGED,
    "SecurityGroupsNotFound": _TAGGED,
    "AMINotFound": "; the simulation has AL2023's alone",
}


def start(world: World, kubelets: Kubelets, running: Running, number: int) -> None:
    """Launch it at the world's present moment, with everything in place.

    Raises ``ConfigurationError`` for one that its NodePool could not have launched.
    """
    name = f"{running.node_pool}-{number:05d}"
    snapshot = world.cluster.snapshot()
    pool = snapshot.pools_by_name.get(running.node_pool)
    if pool is None:
        raise ConfigurationError(f"running: there is no NodePool {running.node_pool}")
    class_name = pool.spec.template.spec.node_class_ref.name
    node_class = snapshot.classes_by_name.get(class_name)
    if node_class is None:
        raise ConfigurationError(f"running: NodePool {running.node_pool}: there is no EC2NodeClass {class_name}")
    if why := unready(node_class):
        raise ConfigurationError(f"running: {why}")
    kind, price = _bought(world, node_class, running)
    single = {key: values[0] for key, values in kind.labels.items() if len(values) == 1}
    bought = {keys.ZONE: running.zone, keys.CAPACITY_TYPE: running.capacity_type}
    ours = {keys.NODE_POOL: running.node_pool, keys.NODE_CLASS: node_class.metadata.name}
    labels = {**single, **bought, **ours, **pool.spec.template.metadata.labels}
    request = LaunchRequest(
        token=name,
        count=1,
        node_pool=running.node_pool,
        node_class=node_class,
        capacity_type=running.capacity_type,
        overrides=(Override(running.instance_type, running.zone, price, kind.capacity.get("pods", 110)),),
        labels=labels,
    )
    instance = world.cloud.launch(request).instances[0]
    node_name = _join(world, kubelets, instance.instance_id, name)
    claim = builders.node_claim(
        name,
        node=node_name,
        node_pool=running.node_pool,
        instance_type=running.instance_type,
        zone=running.zone,
        capacity_type=running.capacity_type,
        provider_id=f"aws:///{running.zone}/{instance.instance_id}",
        labels=labels,
        resources=texts(kind.capacity),
        annotations={**pool.spec.template.metadata.annotations, **hashes(pool, snapshot)},
        expire_after=pool.spec.template.spec.expire_after,
        termination_grace_period=pool.spec.template.spec.termination_grace_period,
    )
    claim = with_metadata(claim, owner_references=[owner(pool)])
    status = with_fields(claim.status, allocatable=dict(texts(kind.allocatable)), image_id=instance.image_id)
    world.cluster.add(_since(with_fields(claim, status=status), world.clock.now()))
    _own(world, node_name, name)


def unready(node_class: NodeClass) -> str:
    """Why nothing can be launched with the class, as a sentence; empty for one that is Ready."""
    ready = next((one for one in node_class.status.conditions if one.type == conditions.READY), None)
    if ready is None or ready.status == "True":
        return ""
    return f"EC2NodeClass {node_class.metadata.name} is not Ready: {ready.message}{_THERE_IS.get(ready.reason, '')}"


def _bought(world: World, node_class: NodeClass, running: Running) -> tuple[InstanceType, float]:
    """The instance type of the node, and what it costs there."""
    (types,) = instance_types([node_class], world.cloud.catalog()).values()
    kind = next((one for one in types if one.name == running.instance_type), None)
    if kind is None:
        raise ConfigurationError(f"running: the market has no instance type {running.instance_type}")
    price = kind.price(running.zone, running.capacity_type)
    if price is None:
        raise ConfigurationError(
            f"running: {running.instance_type} is not sold {running.capacity_type} in {running.zone}"
        )
    return kind, price


def _join(world: World, kubelets: Kubelets, instance_id: str, claim: str) -> str:
    """Create the instance's Node, Ready and initialized. Returns its name."""
    node = kubelets.register(instance_id)
    joined = with_metadata(
        node,
        labels={**node.metadata.labels, keys.REGISTERED: "true", keys.INITIALIZED: "true"},
        finalizers=[keys.TERMINATION_FINALIZER],
    )
    ready = [with_fields(condition, status="True", reason="KubeletReady") for condition in node.status.conditions]
    spec, status = with_fields(node.spec, taints=[]), with_fields(node.status, conditions=ready)
    world.cluster.api.update(with_fields(joined, spec=spec, status=status))
    return node.metadata.name


def _own(world: World, node_name: str, claim: str) -> None:
    node = world.cluster.nodes[node_name]
    uid = world.cluster.node_claims[claim].metadata.uid
    owner = OwnerReference(
        api_version="karpenter.sh/v1", kind="NodeClaim", name=claim, uid=uid, block_owner_deletion=True
    )
    world.cluster.api.update(with_metadata(node, owner_references=[owner]))


def _since(claim: NodeClaim, moment: datetime) -> NodeClaim:
    conditions = [with_fields(condition, last_transition_time=moment) for condition in claim.status.conditions]
    dated = with_metadata(claim, creation_timestamp=moment)
    return with_fields(dated, status=with_fields(claim.status, conditions=conditions))
