"""Readiness: may a NodePool be used, and may its EC2NodeClass? Written into their status, where users look.

A class is ready when what its selectors select exists (the cloud has looked); a pool is ready when it is valid and its
class is ready. A resource that does not even parse is told so, and takes no part (Karpenter nodepool/readiness). Pools of
another provider's classes are that provider's business.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from joinery.apis.conditions import NODE_POOL_DEPENDENTS, READY, Observation, drop, false, find, put, true, with_ready
from joinery.apis.ec2nodeclass import EC2NodeClass, EC2NodeClassStatus
from joinery.apis.hashing import HASH_VERSION, node_class_hash, node_pool_hash
from joinery.apis.labels import (
    AWS_GROUP,
    NODE_CLASS_HASH,
    NODE_CLASS_HASH_VERSION,
    NODE_POOL,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
    OWN_GROUP,
)
from joinery.apis.meta import Condition
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.nodepool import NodePool
from joinery.apis.quantity import amounts, texts, total
from joinery.apis.support import UNTIL_THEN, disruption_in_vain
from joinery.apis.validation import validate
from joinery.commands import Command, Reject, UpdateClass, UpdatePool
from joinery.state.claims import is_managed
from joinery.state.snapshot import Snapshot

#: Karpenter's finalizer on a class: one that came with the cluster is honoured, so that its class can be deleted here.
CLASS_FINALIZER = f"{AWS_GROUP}/termination"
#: Not part of ``Ready``: the pool is used, and only its disruption does not act.
NOT_DONE_YET = f"{OWN_GROUP}/DisruptionNotSupported"
_VALID, _CLASS_READY = NODE_POOL_DEPENDENTS
#: Kinds whose status says what is wrong with them.
_WITH_CONDITIONS = (NodePool.kind, NodeClaim.kind, EC2NodeClass.kind)
#: Resources that a pool's status names even when it has none.
_ALWAYS = ("cpu", "memory", "pods", "ephemeral-storage")


def readiness(snapshot: Snapshot, found: Mapping[str, EC2NodeClassStatus]) -> Iterable[tuple[Command, ...]]:
    """A chain for each NodePool, EC2NodeClass and invalid resource whose status has changed.

    ``found`` is what the cloud says of each class; a class that it could not look at is left as it is.
    """
    yield from (
        (Reject(each.kind, each.name, each.reason),) for each in snapshot.invalid if each.kind in _WITH_CONDITIONS
    )
    used = _used(snapshot)
    classes = {
        each.metadata.name: _class(each, found.get(each.metadata.name), is_used=bool({each.metadata.name, ""} & used))
        for each in snapshot.node_classes
    }
    for before in snapshot.node_classes:
        after = classes[before.metadata.name]
        if after != before:
            yield (UpdateClass(before, after, _why(after.status.conditions)),)
    for pool in filter(_is_served, snapshot.node_pools):
        ready = _pool(pool, classes, snapshot)
        if ready != pool:
            yield (UpdatePool(pool, ready, _why(ready.status.conditions)),)


def _used(snapshot: Snapshot) -> set[str]:
    """The classes that claims need, the empty name for whichever a claim needs that does not even tell its class."""
    unread = {bad.node_class for bad in snapshot.invalid if bad.kind == NodeClaim.kind}
    return unread | {claim.spec.node_class_ref.name for claim in snapshot.node_claims if is_managed(claim)}


def _class(node_class: EC2NodeClass, found: EC2NodeClassStatus | None, *, is_used: bool) -> EC2NodeClass:
    """With its status and hash; one that is being deleted goes once no claim needs it (Karpenter for AWS, nodeclass/termination)."""
    metadata = node_class.metadata
    if metadata.deletion_timestamp is not None and not is_used:
        kept = [finalizer for finalizer in metadata.finalizers if finalizer != CLASS_FINALIZER]
        return node_class.model_copy(update={"metadata": metadata.model_copy(update={"finalizers": kept})})
    stamp = {NODE_CLASS_HASH: node_class_hash(node_class), NODE_CLASS_HASH_VERSION: HASH_VERSION}
    status = found if found is not None else node_class.status
    return node_class.model_copy(update={"metadata": _annotated(metadata, stamp), "status": status})


def _pool(pool: NodePool, classes: Mapping[str, EC2NodeClass], snapshot: Snapshot) -> NodePool:
    at = Observation(now=snapshot.now, generation=pool.metadata.generation)
    conditions = put(pool.status.conditions, _valid(pool, at))
    name = pool.spec.template.spec.node_class_ref.name
    node_class = classes.get(name)
    found = _class_ready(node_class, at) if node_class else _no_class(name, snapshot, at)
    conditions = put(conditions, found)
    conditions = _told_in_vain(conditions, pool, at)
    claims = [claim for claim in snapshot.node_claims if _counts(claim, pool)]
    status = pool.status.model_copy(
        update={
            "conditions": with_ready(conditions, NODE_POOL_DEPENDENTS, at),
            "resources": _resources(claims),
            "nodes": len(claims),
        }
    )
    stamp = {NODE_POOL_HASH: node_pool_hash(pool), NODE_POOL_HASH_VERSION: HASH_VERSION}
    return pool.model_copy(update={"metadata": _annotated(pool.metadata, stamp), "status": status})


def _told_in_vain(conditions: list[Condition], pool: NodePool, at: Observation) -> list[Condition]:
    """With what the pool asks for and does not get yet. Of our own domain and True, so that no tool takes it for a failure."""
    lacking = disruption_in_vain(pool)
    if not lacking:
        return drop(conditions, NOT_DONE_YET)
    told = true(NOT_DONE_YET, at).model_copy(
        update={"reason": "NotSupportedYet", "message": f"not supported yet: {lacking}. {UNTIL_THEN}"}
    )
    return put(conditions, told)


def _annotated(metadata: Any, stamp: Mapping[str, str]) -> Any:
    return metadata.model_copy(update={"annotations": {**metadata.annotations, **stamp}})


def _is_served(pool: NodePool) -> bool:
    return pool.spec.template.spec.node_class_ref.is_ours


def _valid(pool: NodePool, at: Observation) -> Condition:
    reasons = validate(pool)
    return false(_VALID, "NodePoolValidationFailed", "; ".join(reasons), at) if reasons else true(_VALID, at)


def _no_class(name: str, snapshot: Snapshot, at: Observation) -> Condition:
    """The class that a pool names is not among those that can be used: is it there at all?"""
    for bad in snapshot.invalid:
        if (bad.kind, bad.name) == (EC2NodeClass.kind, name):
            return false(_CLASS_READY, "NodeClassNotReady", f"EC2NodeClass {name} is invalid: {bad.reason}", at)
    return false(_CLASS_READY, "NodeClassNotFound", f"EC2NodeClass {name} does not exist", at)


def _class_ready(node_class: EC2NodeClass, at: Observation) -> Condition:
    if node_class.metadata.deletion_timestamp is not None:
        return false(_CLASS_READY, "NodeClassTerminating", "the EC2NodeClass is being deleted", at)
    ready = find(node_class.status.conditions, READY)
    if ready is None or ready.status == "Unknown" or ready.observed_generation != node_class.metadata.generation:
        return false(_CLASS_READY, "NodeClassReadinessUnknown", "the EC2NodeClass is not known to be ready", at)
    if ready.status == "False":
        return false(_CLASS_READY, ready.reason, ready.message, at)
    return true(_CLASS_READY, at)


def _counts(claim: NodeClaim, pool: NodePool) -> bool:
    """A node that goes is no longer the pool's."""
    is_its = is_managed(claim) and claim.metadata.labels.get(NODE_POOL) == pool.metadata.name
    return is_its and not claim.is_deleting


def _resources(claims: Iterable[NodeClaim]) -> dict[str, str]:
    listed = [amounts(claim.status.capacity) for claim in claims]
    return {**texts({**dict.fromkeys(_ALWAYS, 0), **total(listed)}), "nodes": str(len(listed))}


def _why(conditions: Iterable[Condition]) -> str:
    ready = find(conditions, READY)
    if ready is None or ready.status == "True":
        return "ready"
    return f"not ready: {ready.message or ready.reason}"
