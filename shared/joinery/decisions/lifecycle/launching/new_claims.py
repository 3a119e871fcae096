"""New claims: each launch of a packing as the NodeClaim that will be written.

What a claim takes over from its NodePool is as in Karpenter `NodeClaimTemplate.ToNodeClaim`. A claim is complete when
it is written. Its finalizer is on it before any instance exists, so nothing that is bought can be forgotten. It names
the pods that it was bought for, and by its launch token the claims with which it shares a CreateFleet call. Names
derive from the snapshot's moment and the plan, so a replayed decision writes the same claims.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from joinery import __version__
from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.objects.annotations import displacement
from joinery.objects.annotations.plans import remembered
from joinery.objects.karpenter.hashing import HASH_VERSION, node_pool_hash
from joinery.objects.karpenter.labels import (
    BOUGHT_FOR_DISPLACED,
    DEVICE_DRIVERS,
    GANGS,
    HOSTNAME,
    INSTANCE_TYPE,
    LAUNCH_TOKEN,
    MIN_VALUES_RELAXED,
    NODE_POOL,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
    TERMINATION_FINALIZER,
    VERSION,
)
from joinery.objects.karpenter.meta import ObjectMeta, OwnerReference, Requirement
from joinery.objects.karpenter.nodeclaim import ClaimResources, NodeClaim, NodeClaimSpec
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.quantity import texts
from joinery.objects.snapshot.gangs import gangs_by_pod
from joinery.objects.snapshot.offerings import EFA, EFA_DRIVER
from joinery.objects.snapshot.snapshot import Snapshot

#: The letters of Kubernetes' generated names: no vowels, so no words.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX = 5


def claims_of(packing: Packing, snapshot: Snapshot) -> tuple[NodeClaim, ...]:
    """One claim for each launch, in the plan's order. ``snapshot`` is the one that was planned for."""
    pools = snapshot.pools_by_name
    names = _names(packing.launches, snapshot)
    gangs = gangs_by_pod(snapshot)
    tokens = _tokens(packing.launches, names, gangs)
    pods = snapshot.pods_by_key
    displaced = _displaced(packing, snapshot, pods)
    return tuple(
        _claim(
            launch,
            pools[launch.node_pool],
            snapshot,
            pods,
            {LAUNCH_TOKEN: token, **_bought_for(launch, pods, displaced, gangs)},
            name=name,
        )
        for launch, name, token in zip(packing.launches, names, tokens, strict=True)
    )


def _claim(
    launch: Launch,
    pool: NodePool,
    snapshot: Snapshot,
    pods: Mapping[str, Pod],
    own: Mapping[str, str],
    *,
    name: str,
) -> NodeClaim:
    """``own``: annotations that depend on what else is planned."""
    template = pool.spec.template
    annotations = {
        **template.metadata.annotations,
        **hashes(pool, snapshot),
        **remembered(launch.pods, {name: snapshot.successor(pods[name]) for name in launch.pods if name in pods}),
        **own,
        VERSION: __version__,
        **({MIN_VALUES_RELAXED: "true"} if launch.min_values_relaxed else {}),
        **({DEVICE_DRIVERS: ",".join(launch.drivers)} if launch.drivers else {}),
    }
    return NodeClaim(
        metadata=ObjectMeta(
            name=name,
            labels=_labels(launch, pool),
            annotations=annotations,
            finalizers=[TERMINATION_FINALIZER],
            owner_references=[owner(pool)],
        ),
        # Not validated here: a claim that our model refused would stop all others of the plan. The API server refuses
        # it alone.
        spec=NodeClaimSpec.model_construct(
            node_class_ref=template.spec.node_class_ref,
            requirements=_requirements(launch),
            resources=ClaimResources(requests=texts(launch.requests)),
            taints=list(launch.taints),
            startup_taints=list(launch.startup_taints),
            expire_after=template.spec.expire_after,
            termination_grace_period=template.spec.termination_grace_period,
        ),
    )


def _labels(launch: Launch, pool: NodePool) -> dict[str, str]:
    template = pool.spec.template
    labels = {
        **template.metadata.labels,
        **launch.labels,
        NODE_POOL: pool.metadata.name,
        template.spec.node_class_ref.of_kind.label: template.spec.node_class_ref.name,
    }
    return {key: value for key, value in labels.items() if key != HOSTNAME}


def _displaced(packing: Packing, snapshot: Snapshot, pods: Mapping[str, Pod]) -> Mapping[str, int]:
    """The owners whose pods wait because a consolidation has moved them, as ``displacement.displaced`` takes them."""
    served = [pods[name] for launch in packing.launches for name in launch.pods if name in pods]
    if not served:
        return {}
    moved = displacement.owners_moved(snapshot.managed_claims, snapshot.node_pools, snapshot.now)
    return displacement.displaced_owners(moved, (pod for pod in served if not pod.spec.node_name))


def _bought_for(
    launch: Launch, pods: Mapping[str, Pod], displaced: Mapping[str, int], gangs: Mapping[str, str]
) -> Mapping[str, str]:
    """The annotations of a claim for pods that a consolidation had moved, and for gangs, if it is for such."""
    served = (pods[name] for name in launch.pods if name in pods)
    bought_for = displacement.displaced(served, displaced, launch.offering.price)
    together = ", ".join(_gangs_of(launch, gangs))
    return ({BOUGHT_FOR_DISPLACED: displacement.encoded(bought_for)} if bought_for else {}) | (
        {GANGS: together} if together else {}
    )


def owner(pool: NodePool) -> OwnerReference:
    """The owner of the pool's claims: they are collected once it has gone."""
    api_version, kind = pool.stored_as
    return OwnerReference(
        api_version=api_version,
        kind=kind,
        name=pool.metadata.name,
        uid=pool.metadata.uid,
        block_owner_deletion=True,
    )


def hashes(pool: NodePool, snapshot: Snapshot) -> Mapping[str, str]:
    """The annotations by which drift of the pool's template, and of its class, is seen later."""
    ref = pool.spec.template.spec.node_class_ref
    node_class = snapshot.classes_by_name.get(ref.name)
    stamps = {NODE_POOL_HASH: node_pool_hash(pool), NODE_POOL_HASH_VERSION: HASH_VERSION}
    if node_class is None:
        return stamps
    hashes = {ref.of_kind.hash_annotation: node_class.static_hash, ref.of_kind.hash_version_annotation: HASH_VERSION}
    return {**stamps, **hashes}


def _requirements(launch: Launch) -> list[Requirement]:
    """The plan's requirements, but of instance types exactly those that can hold the pods.

    A host is left out: the node has no name yet.
    """
    kept = [rule for rule in launch.requirements if rule.key not in (HOSTNAME, INSTANCE_TYPE)]
    minimum = max((rule.min_values or 0 for rule in launch.requirements if rule.key == INSTANCE_TYPE), default=0)
    types = Requirement(
        key=INSTANCE_TYPE, operator="In", values=list(launch.instance_types), min_values=minimum or None
    )
    return [*kept, types]


def _names(launches: Sequence[Launch], snapshot: Snapshot) -> list[str]:
    taken = {claim.metadata.name for claim in snapshot.node_claims}
    names = []
    for index, launch in enumerate(launches):
        seed = f"{snapshot.now.isoformat()}/{index}"
        name = f"{launch.node_pool}-{_suffix(seed)}"
        while name in taken:
            seed += "'"
            name = f"{launch.node_pool}-{_suffix(seed)}"
        taken.add(name)
        names.append(name)
    return names


def _suffix(seed: str) -> str:
    """Five letters, as Kubernetes generates them, that depend on nothing but the seed."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
    letters = []
    for _ in range(_SUFFIX):
        number, index = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[index])
    return "".join(letters)


def _tokens(launches: Iterable[Launch], names: Sequence[str], gangs: Mapping[str, str]) -> list[str]:
    """By launch. Identical ones share a token, which is the name of the first of them."""
    first: dict[Any, str] = {}
    return [first.setdefault(_identity(launch, gangs), name) for launch, name in zip(launches, names, strict=True)]


def _gangs_of(launch: Launch, gangs: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted({gangs[pod] for pod in launch.pods if pod in gangs}))


def _identity(launch: Launch, gangs: Mapping[str, str]) -> Any:
    """All parameters that CreateFleet gets for a launch, apart from how many."""
    parts = (launch.requirements, launch.taints, launch.startup_taints)
    text = json.dumps([[item.model_dump() for item in part] for part in parts], sort_keys=True)
    has_efa = launch.requests.get(EFA, 0) > 0 or EFA_DRIVER in launch.drivers
    labels = tuple(sorted(launch.labels.items()))
    return launch.node_pool, labels, launch.instance_types, has_efa, text, _gangs_of(launch, gangs)
