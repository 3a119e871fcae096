"""The end of a claim: its node takes no more pods and is drained, its volumes are detached, its instance is terminated.

Each pass does what can be done now, and says whether it wants another; nothing waits. What has been reached is kept in
the claim's own conditions, so that a pass that was stopped anywhere is simply repeated. The finalizers go last, of the
Node and then of the claim, when EC2 no longer has the instance: as long as something could leak, its claim is there
(Karpenter node/termination).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from msgspec.structs import replace as changed

from joinery.decisions.lifecycle.draining import stall
from joinery.decisions.lifecycle.draining.pod_events import pod_events
from joinery.decisions.lifecycle.draining.surging import begun, surge_events
from joinery.decisions.lifecycle.joining.membership import with_missing
from joinery.decisions.lifecycle.launching.fleet_groups import is_needed
from joinery.decisions.lifecycle.state.cluster import ClusterState, LifecycleStep
from joinery.decisions.lifecycle.state.replacement import may_drain
from joinery.decisions.termination.drain import Drain, blocking_volumes, grace, plan_drain
from joinery.decisions.termination.taint import disrupted
from joinery.objects.actions import (
    Announce,
    Command,
    DeleteNode,
    DeletePod,
    Evict,
    TerminateInstance,
    UpdateClaim,
    UpdateNode,
)
from joinery.objects.annotations.drain_start import deadline, is_retired
from joinery.objects.karpenter.conditions import false, true, unknown
from joinery.objects.karpenter.labels import TERMINATION_FINALIZER, TERMINATION_TIMESTAMP
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClassKind
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.claims import (
    INSTANCE_TERMINATING,
    annotated,
    has_joined,
    may_be_unlisted,
    observed,
    with_condition,
    without_finalizer,
)
from joinery.objects.snapshot.instances import STOPPED, instance_id
from joinery.objects.snapshot.nodes import is_registered, unfinalized
from joinery.objects.wording import rfc3339

DRAINED, DETACHED = "Drained", "VolumesDetached"
#: A drain lasts at least this long: pods bound before the scheduler saw the taint are still to come.
SHORTEST_DRAIN = timedelta(seconds=5)


@dataclass(frozen=True)
class _Pass:
    """One pass over one claim.

    ``claim``: what it is to be, so far; ``stored``: what the cluster holds once the ``commands`` so far have run.
    ``keeps_pods``: whether the node keeps its pods until provisioning has a place for them. ``is_slow``: whether
    nothing is going to change soon.
    """

    state: ClusterState
    claim: NodeClaim
    stored: NodeClaim
    commands: tuple[Command, ...] = field(default=())
    keeps_pods: bool = False
    is_slow: bool = False

    @property
    def now(self) -> datetime:
        return self.state.snapshot.now

    def then(self, *commands: Command, claim: NodeClaim | None = None) -> "_Pass":
        return replace(self, commands=(*self.commands, *commands), claim=claim or self.claim)

    def written(self) -> "_Pass":
        """Write what was reached: what comes next may be refused for good."""
        if self.claim == self.stored:
            return self
        update = UpdateClaim(self.stored, self.claim, _progress(self.claim))
        return replace(self.then(update), stored=self.claim)


def finalize(state: ClusterState, claim: NodeClaim) -> LifecycleStep:
    """One pass over a claim that is being deleted."""
    if TERMINATION_FINALIZER not in claim.metadata.finalizers:
        return LifecycleStep()
    so_far = _with_deadline(_Pass(state, with_missing(state, claim), claim))
    # The claim may have lost the name of its Node. A Node that was never registered as this claim's is not drained.
    nodes = tuple(node for node in state.nodes_of(claim) if has_joined(claim) or is_registered(node))
    ended = _surge(_end_node(so_far, nodes[0]), nodes[0]) if nodes else _end_instance(so_far)
    ended = ended.written()
    is_over = TERMINATION_FINALIZER not in ended.claim.metadata.finalizers
    # To look again in seconds does not help a node that waits for its replacement: provisioning rings when it marks the
    # claim, and the schedule comes before a deadline. Nor does it help a stalled drain (``lifecycle.draining.stall``).
    events = pod_events(state, ended.claim, nodes[0]) if nodes else ()
    events += surge_events(state, state.pods_on(nodes[0])) if nodes else ()
    in_progress = not (is_over or ended.keeps_pods or ended.is_slow)
    return LifecycleStep(ended.commands, in_progress=in_progress, pod_events=events)


def finalize_node(state: ClusterState, node: Node) -> LifecycleStep:
    """One pass over a Node of ours that is being deleted and has no claim: it is drained, and its finalizer removed."""
    drain = plan_drain(state.pods_on(node), now=state.snapshot.now, deadline=None)
    if state.is_gone(node) or not drain.waiting:
        return LifecycleStep((UpdateNode(node, unfinalized(node), "nothing keeps it any more"),))
    pace = stall.pace(node.metadata.annotations, len(drain.waiting), state.snapshot.now)
    closed = disrupted(node)
    annotations = {**node.metadata.annotations, **pace.stall.annotation}
    closed = changed(closed, metadata=changed(closed.metadata, annotations=annotations))
    update = (UpdateNode(node, closed, "it is being deleted"),) if closed != node else ()
    commands = _drain_commands(state, node, drain, None) if pace.is_due else ()
    in_progress = pace.is_worth_ticks(state.snapshot.now)
    return LifecycleStep((*update, *commands), in_progress=in_progress, pod_events=pod_events(state, None, node))


def is_ours(node: Node, kind: NodeClassKind) -> bool:
    """Whether the Node waits for us when it is deleted; ``kind``: of our node classes."""
    return kind.label in node.metadata.labels and TERMINATION_FINALIZER in node.metadata.finalizers


def _with_deadline(so_far: _Pass) -> _Pass:
    """Stamp the moment by which everything must be over, once: the deletion and the claim's grace period."""
    claim = so_far.claim
    ends = deadline(claim)
    if ends is None or TERMINATION_TIMESTAMP in claim.metadata.annotations:
        return so_far
    return so_far.then(_expiring(claim, ends), claim=annotated(claim, {TERMINATION_TIMESTAMP: ends.isoformat()}))


def _expiring(subject: NodeClaim | Node, ends: datetime) -> Announce:
    text = f"all of its pods will be gone by {rfc3339(ends)}"
    return Announce("TerminationGracePeriodExpiring", text, subject)


def _end_node(so_far: _Pass, node: Node) -> _Pass:
    if so_far.state.is_gone(so_far.claim):
        gone = _let_go(so_far, node, "its instance is gone")
        return gone if node.metadata.deletion_timestamp else gone.then(DeleteNode(node, "its instance is gone"))
    so_far = _close(so_far, node)
    instance = so_far.state.instance_of(so_far.claim)
    if instance is not None and instance.state == STOPPED:
        return _end_instance(so_far, node)  # no kubelet would end its pods or detach their volumes
    # An empty node has nothing to wait for.
    has_pods = bool(plan_drain(so_far.state.pods_on(node), now=so_far.now, deadline=None).waiting)
    if has_pods and not may_drain(so_far.claim, so_far.state.pods_on(node), so_far.now):
        return _keep_pods(so_far, node)
    so_far = _drain(so_far, node)
    if so_far.claim.is_true(DRAINED):
        so_far = _await_detachment(so_far, node)
    return _end_instance(so_far, node) if _is_past_volumes(so_far.claim) else so_far


def _close(so_far: _Pass, node: Node) -> _Pass:
    """Keep new pods away, and ask for the Node's deletion; its finalizer holds it until the end."""
    tainted, ends = disrupted(node), deadline(so_far.claim)
    if ends is not None and (tainted != node or node.metadata.deletion_timestamp is None):
        so_far = so_far.then(_expiring(node, ends))
    if tainted != node:
        so_far = so_far.then(UpdateNode(node, tainted, "its claim is being deleted"))
    if node.metadata.deletion_timestamp is None:
        so_far = so_far.then(DeleteNode(node, "its claim is being deleted"))
    return so_far


def _keep_pods(so_far: _Pass, node: Node) -> _Pass:
    """Leave the pods where they are. A node that is retired gets an Event that says what it waits for."""
    if not is_retired(so_far.claim):
        return so_far
    text = "its pods stay until they have another place: their own Events say what is in the way"
    return replace(so_far.then(Announce("AwaitingReplacement", text, node)), keeps_pods=True)


def _surge(so_far: _Pass, node: Node) -> _Pass:
    """Have the successors of pods made that ask for it, until their node is drained."""
    if TERMINATION_FINALIZER not in so_far.claim.metadata.finalizers or so_far.claim.is_true(DRAINED):
        return so_far
    commands, claim = begun(so_far.state, so_far.claim, so_far.state.pods_on(node))
    return (so_far.written() if commands else so_far).then(*commands, claim=claim)


def _drain(so_far: _Pass, node: Node) -> _Pass:
    if so_far.claim.is_true(INSTANCE_TERMINATING):
        return so_far
    at, ends = observed(so_far.claim, so_far.now), deadline(so_far.claim)
    drain = plan_drain(so_far.state.pods_on(node), now=so_far.now, deadline=ends)
    # Volumes may take minutes. A pod that came meanwhile (a scheduler of its own bound it) is asked to go as well.
    if so_far.claim.is_true(DRAINED) and not drain.waiting:
        return so_far
    if drain.waiting:
        so_far = _evict(so_far, node, drain, ends)
    draining = so_far.claim.condition(DRAINED)
    since = draining.last_transition_time if draining else None
    if drain.waiting or since is None or so_far.now - since < SHORTEST_DRAIN:
        message = f"{len(drain.waiting)} pods are waiting to be evicted"
        return so_far.then(claim=with_condition(so_far.claim, unknown(DRAINED, "Draining", message, at)))
    return so_far.then(claim=with_condition(so_far.claim, true(DRAINED, at)))


def _evict(so_far: _Pass, node: Node, drain: Drain, ends: datetime | None) -> _Pass:
    """Evict the pods, unless that failed a moment ago. Pods whose deadline has come are deleted in any case."""
    later = so_far.state.awaiting_larger
    chosen = tuple(pod for pod in drain.evict if pod.key not in later)
    if drain.evict and not chosen:
        # No eviction was tried, so none failed. No pod is to be deleted either: a claim with a deadline waits for none.
        return so_far
    drain = replace(drain, evict=chosen)
    annotations, now = so_far.claim.metadata.annotations, so_far.now
    pace = stall.pace(annotations, len(drain.waiting), now)
    is_slow = not (
        pace.is_worth_ticks(now)
        or stall.is_hurried(annotations, now)
        or stall.is_deadline_near(ends, drain.waiting, now)
    )
    if not pace.is_due:
        drain = replace(drain, evict=())
    commands = _drain_commands(so_far.state, node, drain, ends) if pace.is_due or drain.force else ()
    asked = annotated(so_far.claim, pace.stall.annotation)
    return replace(so_far.then(*commands, claim=asked), is_slow=is_slow)


def _drain_commands(state: ClusterState, node: Node, drain: Drain, ends: datetime | None) -> Iterable[Command]:
    if drain.waiting:
        text = f"{len(drain.waiting)} pods are waiting to be evicted"
        yield Announce("FailedDraining", text, node)
    if ends is not None:
        text = f"its node must be gone by {rfc3339(ends)}"
        yield from (DeletePod(pod, grace(state.snapshot.now, ends), text) for pod in drain.force)
    yield from (Evict(pod, node, "its node is being drained") for pod in drain.evict if not state.awaits_successor(pod))


def _await_detachment(so_far: _Pass, node: Node) -> _Pass:
    at, ends = observed(so_far.claim, so_far.now), deadline(so_far.claim)
    volumes = blocking_volumes(so_far.state.snapshot, node.metadata.name, so_far.state.pods_on(node))
    if not volumes:
        return so_far.then(claim=with_condition(so_far.claim, true(DETACHED, at)))
    shown = ", ".join(volumes[:5])
    if ends is not None and so_far.now > ends:
        late = false(DETACHED, "TerminationGracePeriodElapsed", f"still attached: {shown}", at)
        return so_far.then(claim=with_condition(so_far.claim, late))
    waiting = unknown(DETACHED, "AwaitingVolumeDetachment", f"still attached: {shown}", at)
    event = Announce("AwaitingVolumeDetachment", f"waiting for volumes to be detached: {shown}", node)
    is_slow = _has_waited(so_far.claim, DETACHED, at.now) and not stall.is_deadline_near(ends, (), at.now)
    return replace(so_far.then(event, claim=with_condition(so_far.claim, waiting)), is_slow=is_slow)


def _has_waited(claim: NodeClaim, kind: str, now: datetime) -> bool:
    """Whether a condition has not changed for so long that the minute's schedule looks often enough."""
    condition = claim.condition(kind)
    since = condition.last_transition_time if condition else None
    return since is not None and now - since >= stall.WORTH_TICKS


def _is_past_volumes(claim: NodeClaim) -> bool:
    """Whether the volumes are detached, or their time is over."""
    detached = claim.condition(DETACHED)
    return claim.is_true(DRAINED) and detached is not None and detached.status != "Unknown"


def _end_instance(so_far: _Pass, node: Node | None = None) -> _Pass:
    """Terminate the instance, and remove the finalizers once EC2 no longer has it.

    A claim that never got one goes at once, and so does the copy of another claim.
    """
    claim, state = so_far.claim, so_far.state
    if not claim.status.provider_id:
        return _let_go(so_far, node, "it has no instance")
    if claim.metadata.name in state.copies:
        return _let_go(so_far, node, "its instance is another claim's")
    instance = state.instance_of(claim)
    if state.is_gone(claim) or (state.is_missing(claim) and claim.is_true(INSTANCE_TERMINATING)):
        return _let_go(so_far, node, "its instance is terminated")
    if instance is None or not instance.is_going:
        text = "its claim is being deleted"
        so_far = so_far.written().then(TerminateInstance(instance_id(claim.status.provider_id), text, claim))
    is_slow = _has_waited(claim, INSTANCE_TERMINATING, so_far.now)
    # EC2 may not list a new instance yet, and then the first call may have ended nothing: it is repeated.
    if state.is_missing(claim) and may_be_unlisted(claim, so_far.now):
        return replace(so_far, is_slow=is_slow)
    ending = with_condition(claim, true(INSTANCE_TERMINATING, observed(claim, so_far.now)))
    return replace(so_far.then(claim=ending), is_slow=is_slow)


def _let_go(so_far: _Pass, node: Node | None, reason: str) -> _Pass:
    if node is not None and TERMINATION_FINALIZER in node.metadata.finalizers:
        so_far = so_far.then(UpdateNode(node, unfinalized(node), reason))
    if is_needed(so_far.claim, so_far.state.snapshot.managed_claims):
        return so_far
    return so_far.then(claim=without_finalizer(so_far.claim))


def _progress(claim: NodeClaim) -> str:
    """How far the end has come, for the log."""
    if TERMINATION_FINALIZER not in claim.metadata.finalizers:
        return "its instance is gone"
    reached = [kind for kind in (DRAINED, DETACHED, INSTANCE_TERMINATING) if claim.is_true(kind)]
    return f"reached: {reached[-1]}" if reached else "its end has begun"
