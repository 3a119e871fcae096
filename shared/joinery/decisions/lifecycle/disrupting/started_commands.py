"""Started disruption commands, one claim a step: replacements first, then a last check, then the candidates go.

::

    started ── replacements ready ── last check ─── candidates retired ── drained, as every claim that is deleted
       │               │                  │
       └───────────────┴──────────────────┴── rolled back: candidates stay, unused replacements go

A door starts a command (``controllers.starting_commands``): it marks the candidates and writes the replacements. What
follows is decided here anew in every run, from what the claims carry (``objects.annotations.disruption``,
``lifecycle.state.command_outlook``), so a crash at any call costs a tick. The rules, for whoever starts commands:

- While a command goes on, its candidates count as leaving: no pod is planned onto them, and their Node has the taint
  ``karpenter.sh/disrupted``. Their pods count as pending only as far as a replacement was bought for them
  (``joinery.dev/planned-pods``): plans keep its room for them, and buy nothing else.
- A voluntary command waits until all replacements are initialised, a forced one until their launches are accepted. One
  without replacements goes on at once.
- Where a command says so, candidates end first: it waits for the claims of its replacements alone, and these are
  launched when the candidates are gone. Their pods wait meanwhile, so their node is drained without a replacement.
- A candidate is retired by the mark and the deletion that expiration uses (``objects.annotations.drain_start``): its
  pods stay until they have another place.
- The command is rolled back if a replacement is lost, at its deadline, if the last check finds a reason, or if it says
  that it began at a time to come. The candidates take pods again. Replacements that nobody uses are retired, others
  become ordinary nodes.
- A candidate that leaves for another reason, or whose annotation somebody removes, drops out of the command. The others
  go on.
- An annotation that cannot be read is removed with a warning, and its node takes pods again.
"""

from collections.abc import Iterator
from datetime import timedelta

import msgspec

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.decisions.lifecycle.state.command_outlook import CommandOutlook, NextStep
from joinery.decisions.lifecycle.state.waiting import backoff_since
from joinery.decisions.termination.taint import undisrupted
from joinery.objects.actions import Announce, Command, DeleteClaim, Subject, UpdateClaim
from joinery.objects.annotations.disruption import (
    DISRUPTION_REASON,
    DisruptionCommand,
    encoded,
    ends_first,
    is_postponed,
    record_of,
    replaces_of,
)
from joinery.objects.karpenter.conditions import drop, unknown
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import BOUGHT_FOR, DISRUPTION_COMMAND, REPLACES, RETIRED_FOR
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.claims import (
    INITIALIZED,
    LAUNCHED,
    REGISTERED,
    annotated,
    observed,
    unannotated,
    with_condition,
    with_status,
)
from joinery.objects.snapshot.nodes import is_leaving
from joinery.objects.snapshot.pods import is_reschedulable

#: How long a replacement's node is kept for the pods of a node that is being drained, from its deletion: as long as a
#: new node is kept at most (``lifecycle.joining.steering``).
LONGEST_DRAIN_AWAITED = timedelta(minutes=5)
#: How long a replacement waits for nodes that are to end first, from their deletion. Their pods may be kept there by a
#: budget that would only let go if those that were evicted ran again: then these get another place.
LONGEST_END_AWAITED = timedelta(minutes=10)


def retired(state: ClusterState, claim: NodeClaim) -> tuple[Command, ...]:
    """The commands that retire a claim: a candidate whose time has come, or a replacement that nobody needs."""
    command, outlook = _command_of(state, claim)
    if command is not None and outlook.next_step is NextStep.FINISH:
        why = "what replaces it is ready" if command.record.replacements else "nothing has to replace it"
        why = "it has to end before it can be replaced" if ends_first(claim) else why
        return tuple(_retire(state, claim, command.record.reason, why))
    if is_postponed(claim) and _waits_too_long(state, claim):
        return tuple(_retire(state, claim, DisruptionReason.ABANDONED, "the node that is to end first does not end"))
    if _is_released(state, claim) and not _is_used(state, claim):
        return tuple(_retire(state, claim, DisruptionReason.ABANDONED, "the node that it was to replace stays"))
    return ()


def command_step(
    state: ClusterState, claim: NodeClaim, node: Node | None
) -> tuple[NodeClaim, Node | None, tuple[Command, ...]]:
    """The claim and its node as commands leave them, and Events to send."""
    command, outlook = _command_of(state, claim)
    if command is not None and outlook.next_step is NextStep.ROLL_BACK:
        return _rolled_back(claim, node, command, str(outlook.objection))
    if DISRUPTION_COMMAND in claim.metadata.annotations and command is None:
        text = f"the annotation {DISRUPTION_COMMAND} cannot be read: it is removed, and the node stays"
        return *_freed(unannotated(claim, DISRUPTION_COMMAND), node), _rollback_events(claim, node, text)
    if _is_taken_out(state, claim):
        return *_freed(claim, node), _rollback_events(claim, node, "somebody took the node out of its command")
    if _is_released(state, claim):
        # It saves nothing, so from now on it is a node like one for pods that waited (``disruption.repayment``).
        return unannotated(claim, REPLACES, BOUGHT_FOR), node, ()
    if _has_taken_over(state, claim):
        return unannotated(claim, REPLACES), node, ()
    if is_replacement(state, claim) and not claim.is_true(INITIALIZED):
        text = "the nodes that it replaces stay until it is initialised"
        return claim, node, (Announce("DisruptionWaitingReadiness", text, claim),)
    return claim, node, ()


def launched_from_now_on(state: ClusterState, claim: NodeClaim) -> tuple[Command, ...]:
    """The command that lets a postponed claim be launched, once everything that it replaces is gone.

    Its time begins then, or it would be given up for its age (``lifecycle.joining.liveness``).
    """
    link = replaces_of(claim)
    if link is None or any(_replaced_by(state, claim)):
        return ()
    at = observed(claim, state.snapshot.now)
    begun = with_condition(claim, unknown(LAUNCHED, "AwaitingReconciliation", "", at))
    begun = with_condition(begun, unknown(REGISTERED, "AwaitingReconciliation", "", at))
    due = annotated(begun, {REPLACES: encoded(msgspec.structs.replace(link, launches_after=False))})
    return (UpdateClaim(claim, due, "what it replaces is gone"),)


def is_candidate_in(state: ClusterState, claim: NodeClaim) -> bool:
    """Whether a command is about to do something with the claim, so that it wants another step soon."""
    return _command_of(state, claim)[0] is not None


def rest_of_candidate(state: ClusterState, claim: NodeClaim) -> timedelta:
    """How long its command needs no step of the claim, because it waits until its replacements are fit for pods."""
    command, outlook = _command_of(state, claim)
    if command is None or outlook.next_step is not NextStep.WAIT:
        return timedelta()
    return backoff_since(command.record.started, state.snapshot.now)


def is_replacement(state: ClusterState, claim: NodeClaim) -> bool:
    """Whether the claim is a replacement in a command that goes on."""
    link = replaces_of(claim)
    command = state.disruptions.commands.get(link.command) if link else None
    if command is None or not command.candidates:
        return False
    return state.disruptions.outlooks[command.record.id].next_step is not NextStep.ROLL_BACK


def is_kept_for_moves(state: ClusterState, claim: NodeClaim) -> bool:
    """Whether the claim's node has to be kept for pods that still run on a node that it replaces.

    It is while its command goes on, and then for as long as pods usually need to move.
    """
    if is_replacement(state, claim):
        return True
    deletions = (other.metadata.deletion_timestamp for other in _replaced_by(state, claim))
    return any(at is not None and state.snapshot.now - at < LONGEST_DRAIN_AWAITED for at in deletions)


def _command_of(state: ClusterState, claim: NodeClaim) -> tuple[DisruptionCommand | None, CommandOutlook]:
    """The command that the claim is a candidate of, and what becomes of it."""
    record = record_of(claim)
    if record is None:
        return None, CommandOutlook(NextStep.WAIT)
    return state.disruptions.commands[record.id], state.disruptions.outlooks[record.id]


# --- candidates ---


def _retire(state: ClusterState, claim: NodeClaim, reason: DisruptionReason, why: str) -> Iterator[Command]:
    text = f"{reason.value}: {why}"
    subjects: tuple[Subject, ...] = (claim, *state.nodes_of(claim))
    yield from (Announce("DisruptionTerminating", text, subject) for subject in subjects)
    # The mark first: a deletion without it would be drained after fifteen seconds.
    marked = annotated(claim, {RETIRED_FOR: reason.value})
    if marked != claim:
        yield UpdateClaim(claim, marked, text)
    yield DeleteClaim(claim, text)


def _rolled_back(
    claim: NodeClaim, node: Node | None, command: DisruptionCommand, why: str
) -> tuple[NodeClaim, Node | None, tuple[Command, ...]]:
    """One step of a rollback.

    In the first, each candidate takes pods again and notes the rollback. They forget the command once all have noted
    it: one whose write failed would go on with it otherwise.
    """
    own = record_of(claim)
    if own is not None and not own.rollback:
        noted = annotated(claim, {DISRUPTION_COMMAND: encoded(msgspec.structs.replace(own, rollback=why))})
        return *_freed(noted, node), _rollback_events(claim, node, f"{own.reason.value}: the node stays: {why}")
    records = [record_of(candidate) for candidate in command.candidates]
    if all(record is not None and record.rollback for record in records):
        return *_freed(unannotated(claim, DISRUPTION_COMMAND), node), ()
    return claim, node, ()


def _freed(claim: NodeClaim, node: Node | None) -> tuple[NodeClaim, Node | None]:
    """The claim without the marks of a command, and its node without the taint."""
    # A deletion that failed left the mark of retirement behind.
    unmarked = unannotated(claim, RETIRED_FOR)
    after = with_status(unmarked, conditions=drop(claim.status.conditions, DISRUPTION_REASON))
    return after, undisrupted(node) if node is not None else None


def _rollback_events(claim: NodeClaim, node: Node | None, why: str) -> tuple[Command, ...]:
    subjects: tuple[Subject, ...] = (claim, node) if node is not None else (claim,)
    return tuple(Announce("DisruptionRolledBack", why, subject) for subject in subjects)


def _is_taken_out(state: ClusterState, claim: NodeClaim) -> bool:
    """Whether somebody removed the claim's annotation: its replacements still name it.

    A condition that nobody replaces it for may be Karpenter's (``lifecycle.joining.adoption``).
    """
    if DISRUPTION_COMMAND in claim.metadata.annotations or claim.condition(DISRUPTION_REASON) is None:
        return False
    return claim.metadata.name in state.replaced_names


# --- replacements ---


def _replaced_by(state: ClusterState, claim: NodeClaim) -> Iterator[NodeClaim]:
    """The claims that are still there of those that the claim replaces."""
    link = replaces_of(claim)
    names = link.candidates if link else ()
    return (state.claims[name] for name in names if name in state.claims)


def _waits_too_long(state: ClusterState, claim: NodeClaim) -> bool:
    deletions = (other.metadata.deletion_timestamp for other in _replaced_by(state, claim))
    return any(at is not None and state.snapshot.now - at >= LONGEST_END_AWAITED for at in deletions)


def _is_released(state: ClusterState, claim: NodeClaim) -> bool:
    """Whether the claim was a replacement in a command that is rolled back or forgotten: a node that it was to replace
    stays.
    """
    link = replaces_of(claim)
    if link is None:
        return False
    if link.command in state.disruptions.commands:
        return state.disruptions.outlooks[link.command].next_step is NextStep.ROLL_BACK
    return any(not is_leaving(None, other) for other in _replaced_by(state, claim))


def _has_taken_over(state: ClusterState, claim: NodeClaim) -> bool:
    """Whether everything that the claim replaces is gone."""
    return replaces_of(claim) is not None and not any(_replaced_by(state, claim))


def _is_used(state: ClusterState, claim: NodeClaim) -> bool:
    """Whether pods run on the claim's node that need a place, or wait for it."""
    running = (pod for node in state.nodes_of(claim) for pod in state.pods_on(node))
    awaited = state.expected.get(claim.metadata.name, ())
    return any(is_reschedulable(pod) for pod in running) or any(pod in state.waiting for pod in awaited)
