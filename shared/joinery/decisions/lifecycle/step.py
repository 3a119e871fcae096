"""One step of one claim: the state machine, drawn by the conditions that the claim carries.

::

    created ── Launched ── Registered ── Initialized          (lives)
       │          │            │              │
       └──────────┴────────────┴──────────────┴── deleted ── drained ── detached ── terminated ── gone

What a step finds out goes into the claim's conditions; what it wants done, into its commands. These are in an order in
which it is safe to stop anywhere: a Node is written before the claim that says so (``_written`` has the one
exception). Repeating a step that was stopped does the rest of it.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from joinery.decisions.lifecycle.conditions.pod_activity import tracked, with_consolidatable, with_emptiness
from joinery.decisions.lifecycle.conditions.refused import with_refused
from joinery.decisions.lifecycle.disrupting.started_commands import (
    command_step,
    is_candidate_in,
    launched_from_now_on,
    rest_of_candidate,
    retired,
)
from joinery.decisions.lifecycle.draining.finalization import finalize
from joinery.decisions.lifecycle.garbage import lost_instance
from joinery.decisions.lifecycle.joining.adoption import adopted, without_karpenter_command
from joinery.decisions.lifecycle.joining.initialization import checked, initialize
from joinery.decisions.lifecycle.joining.liveness import REGISTRATION_TIMEOUT, overdue, rest_of_boot
from joinery.decisions.lifecycle.joining.membership import (
    demoted,
    given_up_copy,
    launched,
    left_behind,
    restored,
    with_missing,
)
from joinery.decisions.lifecycle.joining.registration import owned, register, uninitialized, unjoined
from joinery.decisions.lifecycle.joining.steering import Steered, steer
from joinery.decisions.lifecycle.launching.asks import launching
from joinery.decisions.lifecycle.launching.fleet_groups import postponed
from joinery.decisions.lifecycle.state.cluster import ClusterState, LifecycleStep
from joinery.decisions.termination.taint import is_disrupted
from joinery.objects.actions import Announce, Change, Command, DeleteClaim, TagInstance, UpdateClaim, UpdateNode
from joinery.objects.annotations.disruption import is_postponed, replaces_of
from joinery.objects.annotations.plans import unserved, unserved_needs
from joinery.objects.karpenter.labels import INSTANCE_TAGGED, INTERRUPTED_AT, TERMINATION_FINALIZER
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.refusals import request
from joinery.objects.snapshot.claims import (
    INITIALIZED,
    LAUNCHED,
    REGISTERED,
    annotated,
    has_lost_node,
    with_derived_ready,
    with_status,
)
from joinery.objects.snapshot.instances import INSTANCE_CLAIM_TAG
from joinery.objects.snapshot.nodes import is_registered

#: How long provisioning has for the launch of the claims that it wrote. Longer than its function's timeout (60 s):
#: nobody is launching an older claim any more. Shorter than the Lease of a killed provisioning (90 s): its claims are
#: launched, and their room is known, when the next one decides.
LAUNCHING = timedelta(seconds=65)


def advance(state: ClusterState, claim: NodeClaim) -> LifecycleStep:
    """What to do about one claim now."""
    rightful = restored(state, claim)
    if rightful:
        return LifecycleStep(rightful, in_progress=True)
    noted = with_refused(state, claim)
    if noted != claim:
        # By itself: what is refused further down must not keep it from being written.
        return LifecycleStep((UpdateClaim(claim, noted, "what is refused is said"),), in_progress=True)
    if claim.is_deleting:
        return finalize(state, claim)
    if claim.metadata.name in state.copies:
        return LifecycleStep(given_up_copy(claim), in_progress=True)
    if TERMINATION_FINALIZER not in claim.metadata.finalizers:
        guarded = with_metadata(claim, finalizers=[*claim.metadata.finalizers, TERMINATION_FINALIZER])
        return LifecycleStep((UpdateClaim(claim, guarded, "no instance without a finalizer"),), in_progress=True)
    ended = _ended(state, claim)
    if ended:
        return LifecycleStep(ended, in_progress=True)
    return _living(state, claim) if claim.status.provider_id else _launching(state, claim)


def _ended(state: ClusterState, claim: NodeClaim) -> tuple[Command, ...]:
    """The commands that give the claim up, if there is a reason for it."""
    # One Node is registered by this very run, however late: lifecycle may have been switched off meanwhile. Where there
    # are two, the run first writes that the claim is not registered, and its time counts from then.
    registered, node_count = claim.condition(REGISTERED), len(state.nodes_of(claim))
    is_found_double = registered is not None and registered.status == "False"
    is_joining = node_count == 1 or (node_count > 1 and not is_found_double)
    given_up = overdue(claim, state.snapshot.now)
    # An instance that EC2 has launched for it is written by this very run, however late: else it would be bought anew.
    if given_up is not None and not is_joining and claim.metadata.name not in state.launched_unwritten:
        return Announce("GivenUp", given_up, claim), DeleteClaim(claim, given_up)
    # The first is the live one: what its kubelet has left behind under another name may go.
    if any(node.metadata.deletion_timestamp for node in state.nodes_of(claim)[:1]):
        return (DeleteClaim(claim, "its Node is being deleted"),)
    # Whoever marked it was to delete it as well, and was stopped before that.
    if INTERRUPTED_AT in claim.metadata.annotations:
        return (DeleteClaim(claim, "EC2 takes its instance away"),)
    return lost_instance(state, claim) or retired(state, claim)


def _launching(state: ClusterState, claim: NodeClaim) -> LifecycleStep:
    if is_postponed(claim):
        chain = launched_from_now_on(state, claim)
        return LifecycleStep(chain, in_progress=True)
    now = state.snapshot.now
    refusals = [
        state.refusals.get(request(ask)) for ask in (launching(claim, state.snapshot) if state.refusals else ())
    ]
    for refusal in filter(None, refusals):
        if not refusal.is_due(now):
            chain = postponed(claim, "LaunchFailed", refusal.message, now)
            return LifecycleStep(chain, in_progress=refusal.is_worth_ticks(now))
    if not may_launch(claim, now):
        return LifecycleStep(in_progress=True)
    # An instance that cannot be written to its claim is waited for as long as the write is refused.
    return LifecycleStep(launch=claim, in_progress=not state.refused(UpdateClaim, claim.metadata.name))


def may_launch(claim: NodeClaim, now: datetime) -> bool:
    """Whether nobody else can be launching the claim: the attempt before failed and said so, or its time is over."""
    condition, created = claim.condition(LAUNCHED), claim.metadata.creation_timestamp
    has_failed = condition is not None and condition.reason != "AwaitingReconciliation"
    return has_failed or created is None or now - created >= LAUNCHING


def _living(state: ClusterState, claim: NodeClaim) -> LifecycleStep:
    """What becomes of a claim with an instance, in the order of the lines below: each goes on from where the one before
    left it.
    """
    after, node, before_node = _joined(state, with_missing(state, launched(state, claim)))
    if after.is_true(REGISTERED) and not after.is_true(INITIALIZED):
        after, node = initialize(state, after, node)
    after, node, events = command_step(state, after, node)
    if claim.is_true(INITIALIZED):
        after, node = without_karpenter_command(state, *demoted(state, after, node))
    after, too_small = checked(state, after, node)
    steered = steer(state, after, with_emptiness(state, after, node))
    if steered.unserved:
        after = annotated(after, unserved(steered.unserved | unserved_needs(after)))
    after = adopted(state, with_derived_ready(tracked(state, after, node), state.snapshot.now))
    # Behind adoption, for which it matters whether another controller has called the claim drifted.
    after = state.drift.judged(with_consolidatable(state, after))
    is_booting = not after.is_true(INITIALIZED) and _is_young(after, state.snapshot.now)
    step = LifecycleStep(
        (*before_node, *events, *too_small, *_written(state, claim, after, steered), *left_behind(state, claim)),
        tagging=_tagging(state, claim) if after is claim or after == claim else (),
        in_progress=is_booting
        or (steered.is_kept and not _waits_for_undeletable(state, claim))
        or is_candidate_in(state, claim),
        tolerate=steered.tolerate,
        is_short=steered.is_short,
    )
    # Only a change that the webhook reports may be waited for. It does not report pods that are bound to a node.
    if steered.is_kept or any(not isinstance(command, Announce) for command in step.commands):
        return step
    return replace(
        step, rest=rest_of_boot(claim, state.snapshot.now) if is_booting else rest_of_candidate(state, claim)
    )


def _waits_for_undeletable(state: ClusterState, claim: NodeClaim) -> bool:
    """Whether pods are to come from a node that may not be deleted."""
    link = replaces_of(claim)
    return link is not None and any(state.refused(DeleteClaim, name) for name in link.candidates)


def _joined(state: ClusterState, claim: NodeClaim) -> tuple[NodeClaim, Node | None, tuple[Command, ...]]:
    """The claim, its node if it has one, and what to do before they are written. Registers the node if it is new."""
    if not claim.is_true(REGISTERED):
        return register(state, claim)
    nodes = state.nodes_of(claim)
    if nodes and not is_registered(nodes[0]) and TERMINATION_FINALIZER not in nodes[0].metadata.finalizers:
        return register(state, uninitialized(state, claim, "its kubelet has registered anew"))
    if nodes:
        name = nodes[0].metadata.name
        named = claim if claim.status.node_name == name else with_status(claim, node_name=name)
        # The claim that the Node names may be one that has no right to it, and goes.
        return named, owned(nodes[0], claim) if state.copies else nodes[0], ()
    return unjoined(state, claim) if has_lost_node(claim, state.snapshot.now) else (claim, None, ())


def _tagging(state: ClusterState, claim: NodeClaim) -> tuple[Change, ...]:
    """Tag the instance with the names of its node and claim, once (Karpenter for AWS, nodeclaim/tagging).

    At its launch the node had no name yet. The tags are for people and for bills, so they come last: after
    initialization, and in a step that writes nothing else to the claim, which a refused tag could keep from it. An
    instance of an older Karpenter keeps the tags that it has; a ``Name`` that the node class gives stays.
    """
    name, instance = claim.status.node_name, state.instance_of(claim)
    is_of_ours = claim.is_true(INITIALIZED) and claim.origin is None
    if not is_of_ours or not name or instance is None or claim.metadata.annotations.get(INSTANCE_TAGGED) == "true":
        return ()
    wanted, text = {"Name": name, INSTANCE_CLAIM_TAG: claim.metadata.name}, f"it is the node {name}"
    missing = {key: value for key, value in wanted.items() if key not in (instance.tags or {})}
    tagged = UpdateClaim(claim, annotated(claim, {INSTANCE_TAGGED: "true"}), text)
    return (TagInstance(instance.instance_id, missing, text, claim), tagged) if missing else (tagged,)


def _written(state: ClusterState, before: NodeClaim, after: NodeClaim, steered: Steered) -> Iterable[Command]:
    """The writes that make the Node and the claim what they should be, the Node before the claim that says so.

    Only what steering found out is written before the Node shows it no longer.
    """
    node, current = steered.node, next(iter(state.nodes_of(before)), None)
    if steered.unserved and after != before:
        yield UpdateClaim(before, after, "its node was kept for pods that did not come")
    if node is not None and current is not None and node is not current and node != current:
        forgotten = "no command disrupts it any more" if is_disrupted(current) and not is_disrupted(node) else ""
        yield UpdateNode(current, node, steered.ended or forgotten or f"it belongs to {before.metadata.name}")
    if after is not before and after != before and not steered.unserved:
        yield UpdateClaim(before, after, _progress(after))


def _progress(claim: NodeClaim) -> str:
    """How far the claim has come, for the log."""
    reached = [kind for kind in (LAUNCHED, REGISTERED, INITIALIZED) if claim.is_true(kind)]
    return f"reached: {reached[-1]}"


def _is_young(claim: NodeClaim, now: datetime) -> bool:
    """Whether it is worth a tick. A node that never initializes is left to the schedule that rings once a minute."""
    created = claim.metadata.creation_timestamp
    return created is None or now - created < REGISTRATION_TIMEOUT
