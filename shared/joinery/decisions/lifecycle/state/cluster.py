"""What lifecycle sees: the cluster's objects and EC2's instances, joined once.

A claim and a Node belong together when they have the same provider ID; the instance is the one whose id ends it.

The instances must be listed before the cluster is read. A claim is written before its instance is launched, so the
claim of every instance that is listed is in the snapshot then, unless it is gone. Those that claims name and no list
has are looked up afterwards: EC2 lists late, and may leave any out.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from types import MappingProxyType

from joinery.decisions.lifecycle.launching.fleet_groups import launched_unwritten
from joinery.decisions.lifecycle.state.command_outlook import StartedCommands, started_commands
from joinery.decisions.lifecycle.state.drift import DriftDetector
from joinery.decisions.lifecycle.state.eviction_order import awaiting_larger
from joinery.decisions.lifecycle.state.waiting import awaited_since
from joinery.decisions.termination.surge import Surge
from joinery.objects.actions import Announce, Ask, Change, Command, Tolerate
from joinery.objects.annotations.deaths import has_served
from joinery.objects.annotations.disruption import replaces_of
from joinery.objects.annotations.plans import expected
from joinery.objects.karpenter.labels import CAPACITY_TYPE, INSTANCE_TYPE, INTERRUPTED_AT, ZONE, ZONE_ID
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.refusals import Refusal, Refusals
from joinery.objects.snapshot.claims import INITIALIZED, INSTANCE_TERMINATING, has_joined, is_missed, may_be_unlisted
from joinery.objects.snapshot.instance_owners import copies, lost_provider_ids
from joinery.objects.snapshot.instances import NEVER_LISTED, TERMINATED, Instance, instance_id
from joinery.objects.snapshot.nodes import is_ready as is_ready
from joinery.objects.snapshot.nodes import is_silent, nodes_by_provider_id
from joinery.objects.snapshot.pod_events import Digests
from joinery.objects.snapshot.pods import is_active
from joinery.objects.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class LifecycleStep:
    """What to do for one object now.

    ``commands``: in this order; the first that fails stops those after it. ``tagging``: likewise, but no part of
    ``commands``, because a tag that is refused must not stop a node. ``launch``: the claim, if it is to be
    launched. Claims that share a CreateFleet call are launched together, after all steps. ``tolerate``: pods to be let
    onto its node. It is no part of ``commands``, because a pod that is refused must not stop the others.
    ``pod_events``: Events for its pods, which are sent after everything else, as far as there is time.
    ``in_progress``: whether it will need another step soon; ``rest``: not before so long, unless the webhook rings.
    ``is_short``: pods that it was bought for have no place after all, and have to be planned anew.
    """

    commands: tuple[Command, ...] = ()
    tagging: tuple[Change, ...] = ()
    launch: NodeClaim | None = None
    in_progress: bool = False
    rest: timedelta = timedelta()
    tolerate: Tolerate | None = None
    pod_events: tuple[Announce, ...] = ()
    is_short: bool = False


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    """A snapshot with its instances, indexed.

    ``instances``: by id, those that EC2 knows. ``are_instances_known``: whether EC2 could be asked for all that
    somebody in it names; if not, that one is not among them says nothing. ``nodes``: by provider ID. ``pods``: by the
    name of the node to which they are bound. ``waiting``: by namespace/name, the live pods without a node.
    ``expected``: by a claim's name, the pods (namespace/name) that it is there for now
    (``objects.annotations.plans.expected``).
    ``disruptions``: the disruption commands that go on, and what becomes of them. ``shifted``: the ids of the zones
    that traffic is shifted away from; None if that could not be learned. ``surges``: by namespace/name, pods of nodes
    that go whose successors are to come first (``lifecycle.draining.surging``). ``digests``: of the pods of each node.
    ``steers``: whether new nodes are kept for the pods that they were bought for (``lifecycle.joining.steering``).
    ``refusals``: what was refused lately.
    """

    snapshot: Snapshot
    instances: Mapping[str, Instance]
    nodes: Mapping[str, tuple[Node, ...]]
    pods: Mapping[str, tuple[Pod, ...]]
    waiting: Mapping[str, Pod]
    expected: Mapping[str, tuple[str, ...]]
    are_instances_known: bool = True
    shifted: frozenset[str] | None = frozenset()
    disruptions: StartedCommands = StartedCommands()
    surges: Mapping[str, Surge] = field(default_factory=dict)
    digests: Digests = field(default_factory=Digests)
    steers: bool = True
    refusals: Refusals = field(default_factory=dict)

    def refused(self, change: type[Change | Ask], subject: str) -> Sequence[Refusal]:
        """What was refused of such commands about the object of that name."""
        return self._refused.get(f"{change.__name__} {subject}", ()) if self.refusals else ()

    @cached_property
    def _refused(self) -> Mapping[str, Sequence[Refusal]]:
        found: dict[str, list[Refusal]] = defaultdict(list)
        for refusal in self.refusals.values():
            found[refusal.about].append(refusal)
        return found

    @cached_property
    def awaited_since(self) -> datetime | None:
        """``lifecycle.state.waiting.awaited_since`` of all claims: every kept node asks."""
        return awaited_since(self.snapshot.managed_claims, self.snapshot.now)

    @cached_property
    def of_short_gangs(self) -> frozenset[str]:
        """The pods (namespace/name) that are of no use before others of their gang have a node, and too few of them
        have one that is fit: every node that is kept no longer asks.
        """
        if not self.snapshot.gangs:
            return frozenset()
        fit = (claim.metadata.name for claim in self.snapshot.managed_claims if claim.is_true(INITIALIZED))
        have_place = {pod for name in fit for pod in self.expected.get(name, ())}
        short = (gang for gang in self.snapshot.gangs.values() if not gang.is_whole(have_place, frozenset()))
        return frozenset(pod for gang in short for pod in gang.members)

    @cached_property
    def drift(self) -> DriftDetector:
        """Compares claims with what they should be today: every claim is asked."""
        return DriftDetector(self.snapshot, self.instances)

    @cached_property
    def claims(self) -> Mapping[str, NodeClaim]:
        """The claims of our cloud, by name."""
        return {claim.metadata.name: claim for claim in self.snapshot.managed_claims}

    @cached_property
    def replaced_names(self) -> frozenset[str]:
        """The names of all claims that others say they replace, whether these are there or not."""
        links = map(replaces_of, self.snapshot.managed_claims)
        return frozenset(name for link in links if link is not None for name in link.candidates)

    def nodes_of(self, claim: NodeClaim) -> tuple[Node, ...]:
        """The Nodes of a claim's instance, the live one first: one, if all is well. A copy of a claim has none."""
        provider_id = claim.status.provider_id
        return self.nodes.get(provider_id, ()) if provider_id and claim.metadata.name not in self.copies else ()

    def owned_node(self, claim: NodeClaim) -> Node | None:
        """The Node by the name that the claim knows, if it says itself that it is the claim's."""
        node = self._nodes_by_name.get(claim.status.node_name)
        if node is None or claim.metadata.uid not in [owner.uid for owner in node.metadata.owner_references]:
            return None
        return node

    @cached_property
    def _nodes_by_name(self) -> Mapping[str, Node]:
        return {node.metadata.name: node for node in self.snapshot.nodes}

    @cached_property
    def copies(self) -> frozenset[str]:
        """The names of claims whose provider ID names the instance of another claim."""
        return copies(self.snapshot.managed_claims, self.snapshot.nodes, self.instances.values())

    @cached_property
    def lost_provider_ids(self) -> Mapping[str, str]:
        """By the name of a claim that has lost its provider ID, the provider ID of its instance."""
        return lost_provider_ids(self.snapshot.managed_claims, self.snapshot.nodes, self.instances.values())

    def is_shifted(self, node: Node) -> bool:
        """Whether traffic is shifted away from the node's zone."""
        return node.metadata.labels.get(ZONE_ID) in (self.shifted or ())

    def pods_on(self, node: Node) -> tuple[Pod, ...]:
        """The pods bound to a node."""
        return self.pods.get(node.metadata.name, ())

    def awaits_successor(self, pod: Pod) -> bool:
        """Whether the pod is not evicted for now, because its successor is to come first."""
        surge = self.surges.get(pod.key)
        return surge is not None and surge.is_kept

    @cached_property
    def launched_unwritten(self) -> frozenset[str]:
        """The names of claims that do not know yet which instance was launched for them."""
        return launched_unwritten(self.snapshot.node_claims, self.instances.values())

    @cached_property
    def awaiting_larger(self) -> frozenset[str]:
        """The pods (namespace/name) that are evicted later than others (``lifecycle.state.eviction_order``)."""
        draining = [
            (claim, tuple(self.snapshot.successor(pod) for pod in self.pods_on(node) if not self.awaits_successor(pod)))
            for claim in self.snapshot.managed_claims
            if claim.is_deleting
            for node in self.nodes_of(claim)[:1]
        ]
        leaving = (claim for claim in self.snapshot.managed_claims if claim.is_deleting)
        going = {claim.status.node_name for claim in leaving if claim.metadata.name not in self.copies}
        staying = [node for node in self.snapshot.nodes if node.metadata.name not in going]
        return awaiting_larger(draining, ((node, self.pods_on(node)) for node in staying), self.snapshot.now)

    def instance_of(self, owner: NodeClaim | Node) -> Instance | None:
        """The instance behind a claim or a Node; None if EC2 does not know it, or could not be asked."""
        provider_id = owner.status.provider_id if isinstance(owner, NodeClaim) else owner.spec.provider_id
        return self.instances.get(instance_id(provider_id))

    @cached_property
    def deaths(self) -> Mapping[str, Instance]:
        """By the names of claims, their instances that died before they had served for long
        (``objects.annotations.deaths``)."""
        new = (claim for claim in self.snapshot.managed_claims if not has_served(claim, self.snapshot.now))
        ends = ((claim, self.instance_of(claim) or self._never_listed(claim)) for claim in new)
        return {claim.metadata.name: end for claim, end in ends if end and (end.has_died or _was_ended(claim, end))}

    def _never_listed(self, claim: NodeClaim) -> Instance | None:
        """The instance of a claim, as if it had died: EC2 has not known it in all the time that it has to join, nor has
        it joined.
        """
        now, labels, name = self.snapshot.now, claim.metadata.labels, instance_id(claim.status.provider_id)
        is_awaited = has_joined(claim) or may_be_unlisted(claim, now) or bool(self.nodes_of(claim))
        if not name or is_awaited or not self.is_missing(claim):
            return None
        instance_type, zone, capacity_type = (labels.get(key, "") for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE))
        ended = Instance(name, instance_type, zone, capacity_type, TERMINATED, now, claim.status.image_id)
        return replace(ended, reason_code=NEVER_LISTED, reason="EC2 knows nothing of it")

    def is_missing(self, owner: NodeClaim | Node) -> bool:
        """Whether EC2 does not know the instance behind a claim or a Node. It may only not know it yet, or just now."""
        return self.are_instances_known and self.instance_of(owner) is None

    def is_gone(self, owner: NodeClaim | Node) -> bool:
        """Whether the instance behind a claim or a Node is gone for good: EC2 says that it is terminated, or has known
        nothing of it for long, and neither does its kubelet live.
        """
        instance, now = self.instance_of(owner), self.snapshot.now
        if instance is not None:
            return instance.state == TERMINATED
        if not self.are_instances_known:
            return False
        if isinstance(owner, Node):
            return is_silent(owner, now)
        return is_missed(owner, now) and not any(map(is_ready, self.nodes_of(owner)))


def _was_ended(claim: NodeClaim, end: Instance) -> bool:
    """Whether a caller other than Joinery terminated the claim's instance: what ends one before it has joined will
    end the next. EC2 gives one reason for all callers, so the claim says whether Joinery asked for it.
    """
    is_asked = claim.condition(INSTANCE_TERMINATING) is not None
    if end.serves or end.is_out_of_stock or is_asked:
        return False
    is_ours = claim.is_deleting and INTERRUPTED_AT not in claim.metadata.annotations
    return not end.reason_code or not (has_joined(claim) or is_ours)


def state_of(
    snapshot: Snapshot,
    instances: Iterable[Instance] | None,
    *,
    shifted: frozenset[str] | None = frozenset(),
    digests: Digests | None = None,
    steers: bool = True,
    refusals: Refusals = MappingProxyType({}),
    are_complete: bool = True,
) -> ClusterState:
    """The snapshot joined with the instances that were listed before it was read; None if they could not be listed.

    ``are_complete``: whether those that the snapshot names and no list had were looked up, and are among them.
    ``shifted``, ``steers``, ``refusals``: as in ``ClusterState``. ``digests``: of the state before, if there
    are any.
    """
    pods: dict[str, list[Pod]] = defaultdict(list)
    for pod in snapshot.pods:
        pods[pod.spec.node_name].append(pod)
    digests = digests or Digests()
    digests.keep(pods)
    return ClusterState(
        snapshot=snapshot,
        instances={instance.instance_id: instance for instance in instances or ()},
        are_instances_known=instances is not None and are_complete,
        nodes=nodes_by_provider_id(snapshot.nodes),
        pods={name: tuple(listed) for name, listed in pods.items() if name},
        waiting={pod.key: pod for pod in pods[""] if is_active(pod)},
        expected=expected(snapshot.node_claims, snapshot.nodes, snapshot.pods),
        disruptions=started_commands(snapshot),
        shifted=shifted,
        digests=digests,
        steers=steers,
        refusals=refusals,
    )


def unlisted(snapshot: Snapshot, listed: Iterable[Instance]) -> tuple[str, ...]:
    """The ids of the instances that claims, or Nodes that are being deleted, have and that were not listed."""
    known = {instance.instance_id for instance in listed}
    provider_ids = [claim.status.provider_id for claim in snapshot.managed_claims]
    provider_ids += [node.spec.provider_id for node in snapshot.nodes if node.metadata.deletion_timestamp]
    named = dict.fromkeys(map(instance_id, filter(None, provider_ids)))
    return tuple(name for name in named if name not in known)
