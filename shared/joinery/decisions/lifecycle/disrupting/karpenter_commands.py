"""Karpenter's commands that nobody carries out: a node that it had chosen for disruption takes pods again.

Karpenter taints its candidates, sets the condition ``DisruptionReason`` on their claims, and keeps the command itself
in memory only. A Karpenter that was scaled down in the middle of a command leaves the taint behind: the node costs
money and takes no pod. Karpenter removes such taints whenever it looks for candidates (disruption controller,
`Reconcile`); here lifecycle does, as soon as no command can be alive any more.

A claim that is being deleted, or that EC2 has warned of, goes for good, and keeps its taint. Candidates of our own
commands keep it too: ``lifecycle.disrupting.started_commands`` sees to them.
"""

from datetime import timedelta

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.decisions.termination.taint import is_disrupted, undisrupted
from joinery.objects.annotations.disruption import DISRUPTION_REASON, is_candidate
from joinery.objects.karpenter.conditions import drop
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.claims import leaving_since, with_status

#: How long a command of Karpenter lasts at most, unless thousands of nodes are in its queue (disruption queue,
#: `maxRetryDuration`).
#: A user who scales Karpenter down a little after Joinery was deployed loses no command by that.
LONGEST_COMMAND = timedelta(minutes=10)


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
