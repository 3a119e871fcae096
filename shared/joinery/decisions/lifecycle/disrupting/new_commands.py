"""New disruption commands: whether one may start, and what its claims and nodes look like once it has.

``lifecycle.disrupting.started_commands`` says what becomes of a command that has started.

Replacing drifted nodes may raise the bill. Nothing checks whether it pays, so an Event says what it costs. Most drift
costs nothing: the same type is bought again. It does cost where the NodePool now requires dearer types, or where the
old node was on spot or in a reservation that has no more room.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from joinery.decisions.lifecycle.state.command_outlook import deadline
from joinery.decisions.lifecycle.state.drift import drift_noted
from joinery.decisions.scheduling.packing import Packing
from joinery.objects.actions import Announce
from joinery.objects.annotations.disruption import (
    DISRUPTION_REASON,
    BoughtFor,
    CommandRecord,
    Readiness,
    Replaces,
    encoded,
    is_candidate,
    record_of,
    replaces_of,
)
from joinery.objects.karpenter.conditions import put
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import (
    BOUGHT_FOR,
    CAPACITY_TYPE,
    DISRUPTION_COMMAND,
    INSTANCE_TYPE,
    NODE_POOL,
    RAN_WELL,
    REPLACES,
    ZONE,
)
from joinery.objects.karpenter.meta import Condition, with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.claims import INITIALIZED, annotated, types_of, with_status
from joinery.objects.snapshot.nodes import is_leaving
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.pods import is_reschedulable
from joinery.objects.snapshot.snapshot import Snapshot

#: $/h: prices this far apart count as equal.
_NEGLIGIBLE = 1e-6

_BOUND_BY_BUDGETS = (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED, DisruptionReason.DRIFTED)


@dataclass(frozen=True, kw_only=True)
class NewCommand:
    """A disruption command that a door wants to start.

    ``candidates``: the claims to retire, as they were read. ``replacements``: complete claims that are not written yet
    (``lifecycle.launching.new_claims`` makes them); none where the candidates' pods have room elsewhere, or no pods are
    left.
    ``waits_for``: what the replacements must have reached before the candidates go. ``savings``: $/h, negative where it
    is dearer; ``move_price``: dollars that its evictions count as; ``moves``: how many pods it moves, by UID of their
    controllers (``objects.annotations.displacement``).
    """

    reason: DisruptionReason
    candidates: tuple[NodeClaim, ...]
    replacements: tuple[NodeClaim, ...] = ()
    waits_for: Readiness = Readiness.INITIALIZED
    savings: float = 0.0
    move_price: float = 0.0
    moves: Mapping[str, int] = field(default_factory=dict)


def record_for(command: NewCommand, claims: Iterable[NodeClaim], now: datetime) -> CommandRecord:
    """The record of a new command. ``claims``: all that there are; the more of them are candidates, the more time it
    gets.
    """
    candidates = sorted(claim.metadata.name for claim in command.candidates)
    under_way = sum(map(is_candidate, claims))
    return CommandRecord(
        # A claim is in one command at a time, and starts none twice in a moment.
        id=f"{candidates[0]}-{now:%Y%m%dt%H%M%S%f}",
        reason=command.reason,
        started=now,
        deadline=deadline(now, under_way + len(candidates)),
        candidates=tuple(candidates),
        replacements=tuple(claim.metadata.name for claim in command.replacements),
        waits_for=command.waits_for,
        savings=command.savings,
        move_price=command.move_price,
        moves=tuple(command.moves),
        moved_pods=tuple(command.moves.values()),
    )


def overtaken(command: NewCommand, newly_leaving: Mapping[str, str]) -> Objection | None:
    """Why the budgets that the command was decided by may have no room for it any more.

    ``newly_leaving``: see ``objects.snapshot.claim_changes``. Budgets do not bind commands for other reasons than
    these.
    """
    if command.reason not in _BOUND_BY_BUDGETS:
        return None
    pools = (candidate.metadata.labels.get(NODE_POOL, "") for candidate in command.candidates)
    pool = next((pool for pool in pools if pool in newly_leaving), None)
    if pool is None:
        return None
    return Objection(ObjectionCode.CHANGED, f"{newly_leaving[pool]} of NodePool {pool} has begun to leave meanwhile")


def out_of_date(command: NewCommand, claims: Mapping[str, NodeClaim]) -> Objection | None:
    """Why the command may not start with the claims as they are. ``claims``: by name, all that there are now."""
    why = next(_changes(command, claims), None)
    return Objection(ObjectionCode.CHANGED, why) if why else None


def _changes(command: NewCommand, claims: Mapping[str, NodeClaim]) -> Iterator[str]:
    if not command.candidates:
        yield "it has no candidates"
    for candidate in command.candidates:
        name = candidate.metadata.name
        current = claims.get(name)
        if current is None or current.metadata.uid != candidate.metadata.uid:
            yield f"{name} is gone"
        elif record_of(current) is not None:
            yield f"{name} is in a command already"
        elif replaces_of(current) is not None:
            yield f"{name} is a replacement in a command"
        elif is_leaving(None, current):
            yield f"{name} is leaving already"
        elif not current.is_true(INITIALIZED):
            yield f"{name} is not initialised"
    for claim in command.replacements:
        if claim.metadata.name in claims:
            yield f"there is a claim named {claim.metadata.name} already"


def as_candidate(claim: NodeClaim, record: CommandRecord) -> NodeClaim:
    """The claim as a candidate: it carries the command, and says why in a condition."""
    reason = record.reason.value
    condition = Condition(
        type=DISRUPTION_REASON,
        status="True",
        reason=reason,
        message=reason,
        last_transition_time=record.started,
        observed_generation=claim.metadata.generation,
    )
    marked = annotated(claim, {DISRUPTION_COMMAND: encoded(record)})
    return with_status(marked, conditions=put(claim.status.conditions, condition))


def as_replacement(claim: NodeClaim, record: CommandRecord, ran_well: Collection[str] = ()) -> NodeClaim:
    """The claim as a replacement: it says whom it replaces, and what it has to repay if it is to save money.

    ``ran_well``: the owners whose pods ran well there, so that its image can be judged (``lifecycle.pools.canary``).
    """
    link = Replaces(record.id, record.candidates, launches_after=record.waits_for is Readiness.WRITTEN)
    links = {REPLACES: encoded(link)}
    if ran_well:
        links[RAN_WELL] = json.dumps(sorted(ran_well))
    if record.reason is DisruptionReason.UNDERUTILIZED and record.savings > 0:
        links[BOUGHT_FOR] = encoded(BoughtFor(record.savings, record.move_price))
    return annotated(claim, links)


# --- what a command needs ---


def as_if_retired(snapshot: Snapshot, names: Iterable[str]) -> Snapshot:
    """The snapshot as it would be if these claims were being deleted: a plan made from it places their pods anew."""
    retired = set(names)
    claims = tuple(
        with_metadata(claim, deletion_timestamp=claim.metadata.deletion_timestamp or snapshot.now)
        if claim.metadata.name in retired
        else claim
        for claim in snapshot.node_claims
    )
    return replace(snapshot, node_claims=claims)


def for_moves(packing: Packing, snapshot: Snapshot, names: Iterable[str]) -> Packing:
    """The launches of a plan, as ``as_if_retired`` makes one, that are for pods of these claims.

    Pods that wait for other reasons are provisioning's.
    """
    retired = set(names)
    nodes = {claim.status.node_name for claim in snapshot.node_claims if claim.metadata.name in retired}
    moving = {pod.key for pod in snapshot.pods if pod.spec.node_name in nodes and is_reschedulable(pod)}
    return replace(packing, launches=tuple(launch for launch in packing.launches if moving & set(launch.pods)))


def added_cost(command: NewCommand, hourly: float, types: Mapping[str, Sequence[InstanceType]]) -> float:
    """$/h that a command for drift adds to the bill; 0 where it adds nothing, and where a price is not known.

    ``hourly``: $/h of its replacements. ``types``: by name of the node class, with the prices of what is sold.
    """
    if command.reason is not DisruptionReason.DRIFTED:
        return 0.0
    before = [_price(claim, types) for claim in command.candidates]
    if None in before:
        return 0.0
    more = hourly - sum(filter(None, before))
    return more if more > _NEGLIGIBLE else 0.0


def dearer_events(command: NewCommand, more: float) -> Iterable[Announce]:
    """Events about it. ``more``: $/h, above 0."""
    for claim in command.candidates:
        noted = drift_noted(claim)
        why = f" ({noted.reason}: {noted.message})" if noted else ""
        text = f"to replace it for drift{why} costs ${more:.4f}/h more"
        yield Announce("DriftCostsMore", text, claim)


def _price(claim: NodeClaim, types: Mapping[str, Sequence[InstanceType]]) -> float | None:
    """$/h of the claim's node by AWS's list; None where nobody knows."""
    labels = claim.metadata.labels
    sold = types_of(claim, types) or ()
    own = next((kind for kind in sold if kind.name == labels.get(INSTANCE_TYPE)), None)
    place = labels.get(ZONE), labels.get(CAPACITY_TYPE)
    return next((o.list_price for o in own.offerings if (o.zone, o.capacity_type) == place), None) if own else None
