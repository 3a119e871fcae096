"""Adoption: a claim that Karpenter wrote is not called drifted, and is freed of commands that nobody carries out.

**Hashes.** A claim carries the hash of the template that it was made from, and the version of the hash function. A hash
of another version cannot be compared with ours, so such a claim is stamped with the hash of today's template. A claim
that is marked Drifted already keeps the hash that it has: with today's it would look as if it were not drifted
(Karpenter nodepool/hash, nodeclass/hash).

**Commands.** Karpenter taints its candidates, sets the condition ``DisruptionReason`` on their
claims, and keeps the command itself in memory only. A Karpenter that was scaled down in the middle of a command leaves
the taint behind: the node costs money and takes no pod. Karpenter removes such taints whenever it looks for candidates
(disruption controller, `Reconcile`); here lifecycle does, as soon as no command can be alive any more. A claim that is
being deleted, or that EC2 has warned of, goes for good, and keeps its taint. Candidates of our own commands keep it
too: ``lifecycle.disrupting.started_commands`` sees to them.
"""

from collections.abc import Callable
from datetime import timedelta

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.decisions.termination.taint import is_disrupted, undisrupted
from joinery.objects.annotations.disruption import DISRUPTION_REASON, is_candidate
from joinery.objects.karpenter.conditions import drop
from joinery.objects.karpenter.hashing import HASH_VERSION, node_pool_hash
from joinery.objects.karpenter.labels import NODE_POOL, NODE_POOL_HASH, NODE_POOL_HASH_VERSION
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.claims import DRIFTED, annotated, leaving_since, with_status

#: How long a command of Karpenter lasts at most, unless thousands of nodes are in its queue (disruption queue,
#: `maxRetryDuration`). A user who scales Karpenter down a little after Joinery was deployed loses no command by that.
LONGEST_COMMAND = timedelta(minutes=10)


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


def without_karpenter_command(
    state: ClusterState, claim: NodeClaim, node: Node | None
) -> tuple[NodeClaim, Node | None]:
    """The claim without the condition and its node without the taint, if they were left behind."""
    if leaving_since(claim) is not None or is_candidate(claim) or _may_be_alive(state, claim):
        return claim, node
    after = claim
    if claim.condition(DISRUPTION_REASON) is not None:
        after = with_status(claim, conditions=drop(claim.status.conditions, DISRUPTION_REASON))
    return after, undisrupted(node) if node is not None and is_disrupted(node) else node


def _may_be_alive(state: ClusterState, claim: NodeClaim) -> bool:
    """Whether a Karpenter may still be carrying out the command. It sets the condition after the taint, so without the
    condition it was stopped in between.
    """
    begun = claim.condition(DISRUPTION_REASON)
    since = begun.last_transition_time if begun is not None and begun.status == "True" else None
    return since is not None and state.snapshot.now - since < LONGEST_COMMAND
