"""Readiness: whether a NodePool and its node class may be used, written into their status.

The conditions are those of Karpenter nodepool/readiness. A class is ready when what its selectors select exists; the
cloud has looked. A pool is ready when it is valid and its class is ready. A resource that cannot be read takes no part,
and its status says why. Pools of another provider's classes are left to that provider.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from joinery.decisions.lifecycle.pools.canary import ImageTrials, canary_events
from joinery.decisions.lifecycle.pools.pausing import with_pause
from joinery.decisions.lifecycle.pools.registration_health import health_events, with_registration_health
from joinery.decisions.lifecycle.pools.shares import with_share
from joinery.decisions.lifecycle.pools.zonal_shift import shift_events, with_shift
from joinery.objects.actions import Announce, Command, Reject, UpdateClass, UpdatePool
from joinery.objects.annotations.deaths import with_deaths
from joinery.objects.annotations.displacement import with_moves
from joinery.objects.annotations.recent_disruptions import with_retirements
from joinery.objects.karpenter.conditions import (
    NODE_POOL_DEPENDENTS,
    READY,
    Observation,
    drop,
    false,
    find,
    put,
    true,
    unknown,
    with_ready,
)
from joinery.objects.karpenter.hashing import HASH_VERSION, node_pool_hash
from joinery.objects.karpenter.labels import INITIALIZED, NODE_POOL, NODE_POOL_HASH, NODE_POOL_HASH_VERSION, OWN_GROUP
from joinery.objects.karpenter.meta import Condition, with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass, NodeClassRef, NodeClassStatus
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.validation import validate
from joinery.objects.kubernetes.core import Node
from joinery.objects.kubernetes.quantity import amounts, texts, total
from joinery.objects.snapshot.claims import REGISTERED
from joinery.objects.snapshot.instances import Instance
from joinery.objects.snapshot.nodes import nodes_by_provider_id
from joinery.objects.snapshot.snapshot import ALL, Snapshot

#: An older version said of pools that their ``spec.disruption`` did not act.
_OUTLIVED = f"{OWN_GROUP}/DisruptionNotSupported"
_VALID, _CLASS_READY = NODE_POOL_DEPENDENTS
#: Resources that a pool's status names even when it has none.
_ALWAYS = ("cpu", "memory", "pods", "ephemeral-storage")


def readiness(
    snapshot: Snapshot,
    statuses: Mapping[str, NodeClassStatus],
    shifted: frozenset[str] | None = frozenset(),
    judged: ImageTrials = ImageTrials(),  # noqa: B008 - frozen
    deaths: Mapping[str, Instance] = MappingProxyType({}),
) -> Iterable[tuple[Command, ...]]:
    """A chain of commands for each NodePool, node class and invalid resource whose status has changed.

    ``statuses``: by the class's name, what the cloud says of it. A class that it could not look at is left as it is.
    ``shifted``: the ids of the zones that traffic is shifted away from; None if that could not be learned. ``judged``:
    the trials of images, whose outcome the classes remember. ``deaths``: by claim, instances that died at launch.
    """
    # Kinds whose status says what is wrong with them.
    with_conditions = (NodePool.kind, NodeClaim.kind, NodeOverlay.kind, snapshot.node_class_kind.kind)
    for invalid in snapshot.invalid:
        if invalid.kind in with_conditions and invalid.name != ALL:
            yield (Reject(invalid.kind, invalid.name, invalid.reason),)
    used = _used_classes(snapshot)
    classes = {}
    for node_class in snapshot.node_classes:
        name = node_class.metadata.name
        of_class = [claim for claim in snapshot.managed_claims if claim.spec.node_class_ref.name == name]
        known = with_deaths(node_class, of_class, deaths, snapshot.now)
        classes[name] = judged.remembered(_class(known, statuses.get(name), is_used=bool({name, ""} & used)))
    for before in snapshot.node_classes:
        after = classes[before.metadata.name]
        if after != before:
            yield UpdateClass(before, after, _why(after.status.conditions)), *canary_events(before, after)
        if after.is_deleting and after.identity().finalizer in after.metadata.finalizers:
            yield (Announce("WaitingOnNodeClaimTermination", "there are still NodeClaims that need it", after),)
    launches, initialized = _known_launches(snapshot), _initialized(snapshot)
    for pool in filter(snapshot.serves, snapshot.node_pools):
        of_pool = classes.get(pool.spec.template.spec.node_class_ref.name)
        healthy = with_registration_health(pool, launches, of_pool, snapshot.now, deaths)
        ready = _pool(healthy, of_pool, snapshot, initialized, shifted)
        if ready != pool:
            events = (*shift_events(pool, ready), *health_events(pool, ready))
            yield UpdatePool(pool, ready, _why(ready.status.conditions)), *events


def unresolved(node_class: NodeClass, why: Exception, now: datetime) -> NodeClassStatus:
    """The status of a class that the cloud could not be asked about.

    What was resolved of it as it is written today stays, because it is good for launches. Otherwise it says why nobody
    knows whether it is ready.
    """
    before, at = node_class.ready, Observation(now=now, generation=node_class.metadata.generation)
    if before and before.status != "Unknown" and before.observed_generation == at.generation:
        return node_class.status
    unknown_yet = unknown(READY, "NotResolved", str(why), at)
    return node_class.status.model_copy(update={"conditions": put(node_class.status.conditions, unknown_yet)})


def _used_classes(snapshot: Snapshot) -> set[str]:
    """The names of the classes that claims need.

    The empty name stands for any: a claim needs it whose class cannot be read.
    """
    of_unreadable = {invalid.node_class for invalid in snapshot.invalid if invalid.kind == NodeClaim.kind}
    return of_unreadable | {claim.spec.node_class_ref.name for claim in snapshot.managed_claims}


def _known_launches(snapshot: Snapshot) -> Sequence[NodeClaim]:
    """The claims of ours whose launch may be judged: not those whose Node is there and about to be registered."""
    there = {node.spec.provider_id for node in snapshot.nodes} - {""}
    return [
        claim
        for claim in snapshot.managed_claims
        if claim.is_deleting or claim.is_true(REGISTERED) or claim.status.provider_id not in there
    ]


def _initialized(snapshot: Snapshot) -> Mapping[str, Node]:
    """The Nodes that are fit for pods, by their instances' provider IDs."""
    fit = (node for node in snapshot.nodes if node.metadata.labels.get(INITIALIZED) == "true")
    return {provider_id: nodes[0] for provider_id, nodes in nodes_by_provider_id(fit).items()}


def _class(node_class: NodeClass, status: NodeClassStatus | None, *, is_used: bool) -> NodeClass:
    """The class with its status and hash, and with a finalizer, which goes when it is being deleted and no claim needs
    it (Karpenter for AWS, nodeclass/termination).
    """
    metadata, kind = node_class.metadata, node_class.identity()
    if node_class.is_deleting and not is_used:
        kept = [finalizer for finalizer in metadata.finalizers if finalizer != kind.finalizer]
        return with_metadata(node_class, finalizers=kept)
    stamp = {kind.hash_annotation: node_class.static_hash, kind.hash_version_annotation: HASH_VERSION}
    # Nodes whose class is gone cannot be judged any more. An object of an older API is left as its controller knows it;
    # and what is being deleted takes no new finalizer.
    is_guarded = kind.finalizer in metadata.finalizers or node_class.is_deleting or node_class.origin is not None
    finalizers = metadata.finalizers if is_guarded else [*metadata.finalizers, kind.finalizer]
    guarded = metadata.model_copy(update={"finalizers": finalizers})
    return node_class.model_copy(
        update={"metadata": _annotated(guarded, stamp), "status": node_class.status if status is None else status}
    )


def _pool(
    pool: NodePool,
    node_class: NodeClass | None,
    snapshot: Snapshot,
    initialized: Mapping[str, Node],
    shifted: frozenset[str] | None,
) -> NodePool:
    at = Observation(now=snapshot.now, generation=pool.metadata.generation)
    ref = pool.spec.template.spec.node_class_ref
    pool = with_retirements(pool, snapshot.managed_claims, snapshot.now)
    pool = with_moves(pool, snapshot.managed_claims, snapshot.now)
    conditions = put(pool.status.conditions, _valid(pool, at))
    conditions = put(conditions, _class_ready(node_class, at) if node_class else _no_class(ref, snapshot, at))
    conditions = with_shift(drop(conditions, _OUTLIVED), pool, node_class, shifted, at)
    conditions = with_pause(conditions, snapshot.pauses.get(pool.metadata.name), at)
    conditions = with_share(conditions, snapshot.pool_shares.get(pool.metadata.name), at)
    claims = [claim for claim in snapshot.managed_claims if _counts(claim, pool)]
    status = pool.status.model_copy(
        update={
            "conditions": with_ready(conditions, NODE_POOL_DEPENDENTS, at),
            "resources": _resources(claims, initialized),
            "nodes": len(claims),
        }
    )
    stamp = {NODE_POOL_HASH: node_pool_hash(pool), NODE_POOL_HASH_VERSION: HASH_VERSION}
    return pool.model_copy(update={"metadata": _annotated(pool.metadata, stamp), "status": status})


def _annotated(metadata: Any, stamp: Mapping[str, str]) -> Any:
    return metadata.model_copy(update={"annotations": {**metadata.annotations, **stamp}})


def _valid(pool: NodePool, at: Observation) -> Condition:
    reasons = validate(pool)
    return false(_VALID, "NodePoolValidationFailed", "; ".join(reasons), at) if reasons else true(_VALID, at)


def _no_class(ref: NodeClassRef, snapshot: Snapshot, at: Observation) -> Condition:
    """Why the class that a pool names cannot be used: it cannot be read, or it is not there."""
    for invalid in snapshot.invalid:
        if (invalid.kind, invalid.name) == (ref.kind, ref.name):
            return false(_CLASS_READY, "NodeClassNotReady", f"{ref.kind} {ref.name} is invalid: {invalid.reason}", at)
    return false(_CLASS_READY, "NodeClassNotFound", f"{ref.kind} {ref.name} does not exist", at)


def _class_ready(node_class: NodeClass, at: Observation) -> Condition:
    if node_class.is_deleting:
        return false(_CLASS_READY, "NodeClassTerminating", f"the {node_class.kind} is being deleted", at)
    ready = node_class.ready
    if ready is None or ready.status == "Unknown" or ready.observed_generation != node_class.metadata.generation:
        return false(_CLASS_READY, "NodeClassReadinessUnknown", f"the {node_class.kind} is not known to be ready", at)
    if ready.status == "False":
        return false(_CLASS_READY, ready.reason, ready.message, at)
    return true(_CLASS_READY, at)


def _counts(claim: NodeClaim, pool: NodePool) -> bool:
    """Whether the claim counts in the pool's status. One that is being deleted does not."""
    return claim.metadata.labels.get(NODE_POOL) == pool.metadata.name and not claim.is_deleting


def _resources(claims: Iterable[NodeClaim], initialized: Mapping[str, Node]) -> dict[str, str]:
    """What the nodes of these claims have, as it counts against limits: what their claims expect, until they are
    initialized.
    """
    nodes = ((claim, initialized.get(claim.status.provider_id)) for claim in claims)
    capacities = [amounts(node.status.capacity if node else claim.status.capacity) for claim, node in nodes]
    return {**texts({**dict.fromkeys(_ALWAYS, 0), **total(capacities)}), "nodes": str(len(capacities))}


def _why(conditions: Iterable[Condition]) -> str:
    ready = find(conditions, READY)
    if ready is None or ready.status == "True":
        return "ready"
    return f"not ready: {ready.message or ready.reason}"
