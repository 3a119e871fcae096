"""The Events that Joinery sends, by their reason: about which objects, what each means, and what to do about it.

The words are here and nowhere else: the reference is generated from them, and a test compares the reasons and types
with the calls of ``joinery.objects.actions.Announce``. Where Karpenter sends an Event for the same fact, the reason is
Karpenter's ("Events" of its controllers). What an Event says beyond its meaning (which node, until when) is its
message.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from joinery.objects.own_keys import CAPACITY_BUFFER, NODE, NODE_CLAIM, NODE_CLASS, NODE_POOL, POD

_BOTH = (NODE_CLAIM, NODE)


@dataclass(frozen=True, slots=True)
class EventReason:
    """``about``: the kinds of object that have the Event. ``meaning``: what happened. ``remedy``: what to do if it
    comes again and again; empty where it only tells what happens. ``is_warning``: its type is Warning, not Normal.
    """

    about: tuple[str, ...]
    meaning: str
    is_warning: bool = False
    remedy: str = ""


_NEEDS_NOTHING = {
    "Nominated": EventReason((POD,), "where the pod is expected to run"),
    "Observed": EventReason((POD, *_BOTH), "with `Mode=observe`: what would be launched for it, or why it would go"),
    "NodeLeaving": EventReason((POD,), "its node goes: why, and until when it may stay", is_warning=True),
    "Evicted": EventReason((POD,), "it was evicted, because its node goes"),
    "Disrupted": EventReason((POD,), "it was deleted past its disruption budget, because time was over"),
    "DoNotDisruptUntil": EventReason((POD,), "`karpenter.sh/do-not-disrupt` keeps it on its node, until then"),
    "AwaitingVolumeDetachment": EventReason((NODE,), "its pods are gone, and volumes are still attached"),
    "NodeUnhealthy": EventReason((NODE,), "it is replaced because it is unhealthy (`NodeRepair`)", is_warning=True),
    "NodeRebooted": EventReason((NODE,), "it is rebooted because it is unhealthy (`NodeRepair`)", is_warning=True),
    "TerminatingOnInterruption": EventReason(
        _BOTH, "EC2 takes it, so it goes; a second Event, one of those below, says why", is_warning=True
    ),
    "SpotInterrupted": EventReason(_BOTH, "a spot warning: EC2 takes the instance in two minutes", is_warning=True),
    "CapacityReservationInstanceInterrupted": EventReason(
        _BOTH, "its capacity reservation is taken back", is_warning=True
    ),
    "CapacityBlockExpiring": EventReason(_BOTH, "its capacity block ends", is_warning=True),
    "SpotRebalanceRecommendation": EventReason(
        _BOTH, "EC2 finds the spot instance at a higher risk; it goes only if `Rebalance` says so"
    ),
    "InstanceUnhealthy": EventReason(_BOTH, "EC2 has scheduled an event, or a status check fails", is_warning=True),
    "InstanceStopping": EventReason(_BOTH, "somebody stops the instance", is_warning=True),
    "InstanceTerminating": EventReason(_BOTH, "somebody else ends the instance", is_warning=True),
    "Expired": EventReason((NODE_CLAIM,), "it is older than its `expireAfter`, so it goes"),
    "Paused": EventReason((NODE_CLAIM,), "its NodePool is paused (`joinery.dev/pause`), so it goes; what that saves"),
    "TerminationGracePeriodExpiring": EventReason(
        _BOTH, "its deadline: all of its pods will be gone by then", is_warning=True
    ),
    "InsufficientCapacityError": EventReason(
        (NODE_CLAIM,), "EC2 has none of its instance types now; others are tried", is_warning=True
    ),
    "NodeLeftBehind": EventReason((NODE_CLAIM,), "a silent Node of an earlier name was deleted"),
    "DisruptionLaunching": EventReason((NODE_CLAIM,), "it is new, and replaces a node that is to go"),
    "DisruptionWaitingReadiness": EventReason((NODE_CLAIM,), "what it replaces waits until it is initialised"),
    "DisruptionTerminating": EventReason(_BOTH, "it goes: its pods have another place, or its replacement is ready"),
    "Unconsolidatable": EventReason(_BOTH, "it may go, and nothing better was found, or its NodePool does not want it"),
    "ConsolidationCandidate": EventReason(_BOTH, "it is consolidated, and what that saves"),
    "ConsolidationApproved": EventReason(
        (NODE_POOL, *_BOTH), "its NodePool is Balanced and agrees to a command: with which score"
    ),
    "ConsolidationRejected": EventReason(
        _BOTH, "it was to go, and stays: the cluster changed (`churn`, `budget`, `scheduling`) before that began"
    ),
    "ScaledUp": EventReason((NODE_POOL,), "a static NodePool gets nodes"),
    "ScaledDown": EventReason((NODE_CLAIM,), "its static NodePool has too many nodes"),
    "CanaryPassed": EventReason((NODE_CLASS,), "nodes may be moved to a new AMI: it ran well"),
    "WaitingOnNodeClaimTermination": EventReason(
        (NODE_CLASS,), "it is deleted, and stays until the NodeClaims that use it are gone"
    ),
    "ZonalShiftActive": EventReason((NODE_POOL,), "nothing is bought in these zones (`ZonalShift`)", is_warning=True),
    "ZonalShiftCleared": EventReason((NODE_POOL,), "nodes are bought in all zones again"),
}

_WANTS_A_PERSON = {
    "Refused": EventReason(
        (POD, *_BOTH, NODE_POOL, NODE_CLASS),
        "what Joinery asked for it was refused: by EC2, by an admission policy, or for a missing right. It is asked "
        "for again, ever less often, with one Event. Its NodeClaim has the condition `joinery.dev/Refused`",
        is_warning=True,
        remedy="the message says who refused what, and what to do",
    ),
    "FailedScheduling": EventReason(
        (POD,),
        "there is no node for it, and why, by NodePool. kube-scheduler's own Events have the same reason",
        is_warning=True,
        remedy="`joinery plan --explain POD` shows which rule leaves which instance types",
    ),
    "HeadroomLacking": EventReason(
        (CAPACITY_BUFFER,),
        "a part of its room has no node, and why",
        is_warning=True,
        remedy="the message names the rule: raise a limit or a cap, or make the buffer smaller",
    ),
    "NotBound": EventReason(
        (POD,),
        "it has room on a node that was kept for it, nothing more is bought, and kube-scheduler does not bind it there",
        is_warning=True,
        remedy="read kube-scheduler's own words in the message: they name a plugin or a policy",
    ),
    "FailedEviction": EventReason(
        (POD,),
        "a disruption budget keeps it, or the eviction was refused",
        is_warning=True,
        remedy="look at its PodDisruptionBudget: does it ever allow an eviction? A pod that is deleted goes at once",
    ),
    "AwaitingSuccessor": EventReason(
        (POD,),
        "a rollout makes its successor, and it stays meanwhile: until when",
        remedy="without a time there is no deadline: ask `kubectl rollout status` why the rollout does not progress",
    ),
    "CannotSurge": EventReason(
        (POD,),
        "it asks for its successor first, and no rollout can do that: why, and what is waited for instead",
        is_warning=True,
        remedy="remove `joinery.dev/surge-before-eviction`, or let the Deployment surge",
    ),
    "SurgeTimedOut": EventReason(
        (POD,),
        "time was over before its successor was Ready, so it was evicted like any other",
        is_warning=True,
        remedy="look at why the rollout takes so long",
    ),
    "FailedSurge": EventReason(
        (POD,),
        "its Deployment could not be restarted",
        is_warning=True,
        remedy="a policy of yours is against it, or Joinery's rights are of an older version: `joinery doctor`",
    ),
    "OnDemandShareNotKept": EventReason(
        (NODE_POOL,),
        "with what is bought now, fewer of its nodes are on demand than `joinery.dev/on-demand` asks for, and why",
        is_warning=True,
        remedy="let the NodePool and its pods be on demand, or ask for less. Nodes that are bought or replaced later "
        "make up for it",
    ),
    "InvalidOnDemandShare": EventReason(
        (POD,),
        "it waits at the gate `joinery.dev/on-demand`, and its annotation of that name is none, so nothing lets it "
        "through",
        is_warning=True,
        remedy="write `2`, `30%` or `2 + 30%` into the template of its workload, or take the gate out",
    ),
    "InvalidDoNotDisruptAnnotation": EventReason(
        (POD,),
        "the value of `karpenter.sh/do-not-disrupt` is none, so it protects nothing",
        is_warning=True,
        remedy='write `"true"`, or a duration such as `4h`',
    ),
    "AwaitingReplacement": EventReason(
        (NODE,),
        "it has expired, and keeps its pods until they have another place",
        remedy="the Events of its pods say what is in the way: a cap, `limits`, a rule that no node satisfies",
    ),
    "FailedDraining": EventReason(
        (NODE,),
        "it goes, and so many pods still wait to be evicted",
        is_warning=True,
        remedy="the Events of its pods say what keeps them",
    ),
    "NodeRepairBlocked": EventReason(
        (NODE,),
        "it is not repaired: more than a fifth of the nodes of its NodePool or of the cluster are unhealthy at once, "
        "a budget that names `Unhealthy` has no room, or it has the annotation `karpenter.sh/do-not-repair`",
        is_warning=True,
        remedy="look for what they share: the network, a DaemonSet, the API server. Repair goes on by itself",
    ),
    "InstanceGone": EventReason(
        (NODE_CLAIM,),
        "its instance is gone, ends, or is stopped, without a warning",
        is_warning=True,
        remedy="ask CloudTrail who ended it",
    ),
    "LaunchHeldBack": EventReason(
        (NODE_CLAIM,),
        "a killed run left it, and it does not fit under the caps now; a later run launches it",
        is_warning=True,
        remedy="if all is as it should be, raise `MaxLaunches` or `MaxHourly`",
    ),
    "GivenUp": EventReason(
        (NODE_CLAIM,),
        "it did not launch, or its node did not join, in its time",
        is_warning=True,
        remedy="look at the instance's console output: user data, role, a subnet without a route",
    ),
    "GangIncomplete": EventReason(
        (NODE_CLAIM,),
        "its pods are of no use without others of their gang, which have no node after 15 minutes; it goes back",
        is_warning=True,
        remedy="look at the pods' own Events: what EC2 is out of, a limit, pods that were deleted",
    ),
    "UnregisteredTaintMissing": EventReason(
        (NODE_CLAIM,),
        "its node came without the taint `karpenter.sh/unregistered`: pods may have come too soon",
        is_warning=True,
        remedy="your own user data must have the kubelet set that taint",
    ),
    "FailedConsistencyCheck": EventReason(
        (NODE_CLAIM,),
        "its node is smaller than it should be",
        is_warning=True,
        remedy="compare what the message names with the instance type and the kubelet's settings",
    ),
    "NodeVanished": EventReason(
        (NODE_CLAIM,),
        "its Node is gone, and its instance runs on: no pods are planned onto it",
        is_warning=True,
        remedy="restart its kubelet, and it is registered anew; otherwise claim and instance go after 15 minutes",
    ),
    "ProviderIDRestored": EventReason(
        (NODE_CLAIM,), "somebody changed its provider ID", is_warning=True, remedy="ask the audit log who did"
    ),
    "InstanceClaimedTwice": EventReason(
        (NODE_CLAIM,),
        "its provider ID names the instance of another claim: it goes, and node and instance stay",
        is_warning=True,
        remedy="ask the audit log who copied a NodeClaim with its status",
    ),
    "DisruptionRolledBack": EventReason(
        _BOTH,
        "its disruption command was given up, so it stays: why",
        is_warning=True,
        remedy="the message says what was in the way: capacity, a budget, a stop",
    ),
    "DriftCostsMore": EventReason(
        (NODE_CLAIM,),
        "it is replaced for drift by something dearer: by how much",
        is_warning=True,
        remedy="if you did not mean that, look at what changed in its NodePool or EC2NodeClass",
    ),
    "DisruptionBlocked": EventReason(
        (NODE_POOL, *_BOTH),
        "a rule keeps it, or all nodes of the NodePool, from going: which",
        remedy="the codes are explained under [which nodes may go](disruption-rules.md#which-nodes-may-go)",
    ),
    "NodeRegistrationUnhealthy": EventReason(
        (NODE_POOL,),
        "its nodes do not join the cluster (`NodeRegistrationHealthy` is False), and why. Where EC2 ends them at "
        "launch, launches with that node class and image wait, ever longer, up to an hour",
        is_warning=True,
        remedy="mend what the message names: a key, an image, user data. A change of the EC2NodeClass is tried at once",
    ),
    "ReplicasNotReached": EventReason(
        (NODE_POOL,),
        "a static NodePool lacks nodes, and why",
        is_warning=True,
        remedy="the message names the limit, the cap or the capacity that is lacking",
    ),
    "CanaryFailed": EventReason(
        (NODE_CLASS,),
        "no more nodes are moved to a new AMI, and why",
        is_warning=True,
        remedy="select another AMI, or approve it: [a new AMI](disruption-rules.md#a-new-ami)",
    ),
}

EVENTS: Mapping[str, EventReason] = MappingProxyType(_NEEDS_NOTHING | _WANTS_A_PERSON)
