"""Adoption: taking over a claim that another controller wrote, without calling its node drifted.

A claim carries the hash of the template that it was made from, and the version of the hash function. A hash of another
version cannot be compared with ours, so such a claim is stamped with the hash of today's template. A claim that is
marked Drifted already keeps the hash that it has: with today's it would look as if it were not drifted (Karpenter
nodepool/hash, nodeclass/hash).
"""

from collections.abc import Callable

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.objects.karpenter.hashing import HASH_VERSION, node_pool_hash
from joinery.objects.karpenter.labels import NODE_POOL, NODE_POOL_HASH, NODE_POOL_HASH_VERSION
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import DRIFTED, annotated


def adopted(state: ClusterState, claim: NodeClaim) -> NodeClaim:
    """The claim with hashes of our version, as far as its NodePool and its node class are there."""
    pool = state.snapshot.pools_by_name.get(claim.metadata.labels.get(NODE_POOL, ""))
    node_class = state.snapshot.classes_by_name.get(claim.spec.node_class_ref.name)
    if pool is not None:
        claim = _stamped(claim, NODE_POOL_HASH, NODE_POOL_HASH_VERSION, lambda: node_pool_hash(pool))
    if node_class is not None:
        kind = node_class.identity()
        claim = _stamped(claim, kind.hash_annotation, kind.hash_version_annotation, lambda: node_class.static_hash)
    return claim


def _stamped(claim: NodeClaim, key: str, version_key: str, value: Callable[[], str]) -> NodeClaim:
    """``value``: works out the hash, which takes most of a claim's step and which hardly any claim needs."""
    if claim.metadata.annotations.get(version_key) == HASH_VERSION:
        return claim
    stamp = {version_key: HASH_VERSION}
    return annotated(claim, stamp if claim.is_true(DRIFTED) else {**stamp, key: value()})
