"""Whether a node is as large as the instance type said it would be (Karpenter nodeclaim/consistency).

A node that is smaller than planned holds fewer pods than it was bought for: somebody should know, but nothing is done
about it. A verdict stands for ten minutes from the moment at which it became so, which is the condition's transition
time. So a claim gets one Event in ten minutes at most, though nothing is remembered anywhere else.
"""

from collections.abc import Iterable
from datetime import timedelta

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.objects.actions import Announce, Command
from joinery.objects.karpenter.conditions import false, true
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.kubernetes.quantity import amount
from joinery.objects.snapshot.claims import INITIALIZED, observed, with_condition

CONSISTENT = "ConsistentStateFound"
STANDS_FOR = timedelta(minutes=10)
#: How much of a resource a node must have of what was expected. The rest is the kernel's, and differs by its version.
_ENOUGH = 0.9


def checked(state: ClusterState, claim: NodeClaim, node: Node | None) -> tuple[NodeClaim, tuple[Command, ...]]:
    """The claim with the verdict, and an Event if that has just become a bad one. ``node``: its Node, if it has one."""
    if node is None or not claim.is_true(INITIALIZED) or len(state.nodes_of(claim)) != 1:
        return claim, ()
    before = claim.condition(CONSISTENT)
    since = before.last_transition_time if before is not None else None
    if since is not None and state.snapshot.now - since < STANDS_FOR:
        return claim, ()
    at, missing = observed(claim, state.snapshot.now), "; ".join(_missing(claim, node))
    if not missing:
        if before is not None and before.status == "True" and before.observed_generation == at.generation:
            return claim, ()  # So it is with nearly all claims in nearly every run.
        return with_condition(claim, true(CONSISTENT, at)), ()
    after = with_condition(claim, false(CONSISTENT, "ConsistencyCheckFailed", missing, at))
    is_news = before is None or before.status != "False"
    return after, (Announce("FailedConsistencyCheck", missing, claim),) if is_news else ()


def _missing(claim: NodeClaim, node: Node) -> Iterable[str]:
    """For each resource that the claim's pods asked for, how much of what was expected is not there."""
    expected, actual = claim.status.capacity, node.status.capacity
    for name, text in sorted(claim.spec.resources.requests.items()):
        wanted, there = amount(name, expected.get(name, 0)), actual.get(name, 0)
        if amount(name, text) > 0 and wanted > 0 and amount(name, there) / wanted < _ENOUGH:
            yield f"expected {expected[name]} of {name}, but node {node.metadata.name} has {there}"
