"""Disruption commands, as NodeClaims carry them: which nodes go, and what has to be there before they do.

A command survives any crash because it is kept in the objects that it is about. Each candidate carries the whole
command (``joinery.dev/disruption-command``), each replacement says whom it replaces (``joinery.dev/replaces``). Both
are written by whoever starts the command (``controllers.starting_commands``); from then on lifecycle carries it out
(``lifecycle.disrupting.started_commands``).

A claim has one annotation, so it is in at most one command. Users may edit annotations: one that cannot be read stands
for no command.

A command moves pods, which counts as dollars, and saves dollars an hour in return. Its new nodes say how much of both
until they are gone (``joinery.dev/bought-for``), so that nobody gives them up before that has paid
(``disruption.repayment``).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import BOUGHT_FOR, DISRUPTION_COMMAND, INTERRUPTED_AT, REPLACES
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.decoding import decode_mark

#: The condition of a claim whose command has begun; its reason is the command's (Karpenter disruption queue).
DISRUPTION_REASON = "DisruptionReason"


class Readiness(StrEnum):
    """What replacements must have reached before their candidates go.

    ``INITIALIZED``: they are fit for pods; for voluntary commands, which have time. ``LAUNCHED``: EC2 has accepted
    their launch; for forced ones, whose candidates may be gone before a node can boot. ``WRITTEN``: their claims are
    there; for candidates that end first, because their replacements need what they hold.
    """

    INITIALIZED = "Initialized"
    LAUNCHED = "Launched"
    WRITTEN = "Written"


class CommandRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A disruption command. ``objects.annotations.disruption.DisruptionCommand`` joins it with the claims that it
    names.

    ``id``: unlike any other command's. ``started``, ``deadline``: moments with a time zone; a command whose
    replacements are not ready at the deadline is rolled back. ``candidates``, ``replacements``: names of NodeClaims.
    ``waits_for``: what the replacements must have reached. ``savings``: $/h, and ``move_price``: dollars that its
    evictions count as; 0 where nobody computed that. ``moves``: UIDs of the controllers whose pods it moves
    (``objects.annotations.displacement``); ``moved_pods``: how many of each. ``rollback``: why the command is being
    rolled back; empty while it goes on.
    """

    id: str
    reason: DisruptionReason
    started: datetime
    deadline: datetime
    candidates: tuple[str, ...]
    replacements: tuple[str, ...] = ()
    waits_for: Readiness = Readiness.INITIALIZED
    savings: float = 0.0
    move_price: float = 0.0
    moves: tuple[str, ...] = ()
    moved_pods: tuple[int, ...] = ()
    rollback: str = ""


class Replaces(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Whom a claim replaces. ``command``: the id of its command. ``candidates``: names of NodeClaims.

    ``launches_after``: whether it is launched only when these are gone.
    """

    command: str
    candidates: tuple[str, ...]
    launches_after: bool = False


class BoughtFor(msgspec.Struct, frozen=True, rename="camel"):
    """What a command is worth. ``savings``: $/h, more than 0. ``move_price``: dollars that its evictions count as."""

    savings: float
    move_price: float

    def repaid_within(self, longest: timedelta) -> timedelta:
        """How long it takes until the savings are worth the moves; the ``longest`` time if that is less."""
        if self.move_price >= self.savings * (longest / timedelta(hours=1)):
            return longest
        return timedelta(hours=max(0.0, self.move_price) / self.savings)


def record_of(claim: NodeClaim | None) -> CommandRecord | None:
    """The command that the claim is a candidate of; None without one that can be read."""
    record = decode_mark(claim.metadata.annotations.get(DISRUPTION_COMMAND), CommandRecord) if claim else None
    if claim is None or record is None:
        return None
    has_zones = record.started.tzinfo is not None and record.deadline.tzinfo is not None
    # One that names other candidates only was copied from them.
    return record if has_zones and claim.metadata.name in record.candidates else None


def replaces_of(claim: NodeClaim | None) -> Replaces | None:
    """Whom the claim replaces; None for a claim that replaces nobody, or whose annotation cannot be read."""
    return decode_mark(claim.metadata.annotations.get(REPLACES), Replaces) if claim else None


def is_postponed(claim: NodeClaim) -> bool:
    """Whether the claim is not launched yet because what it replaces has to end first."""
    link = replaces_of(claim) if not claim.status.provider_id else None
    return link is not None and link.launches_after


def ends_first(claim: NodeClaim) -> bool:
    """Whether a command ends the claim's node before anything replaces it."""
    record = record_of(claim)
    return record is not None and record.waits_for is Readiness.WRITTEN and not record.rollback


def is_candidate(claim: NodeClaim | None) -> bool:
    """Whether a command that goes on will retire the claim."""
    record = record_of(claim)
    return record is not None and not record.rollback


def encoded(record: CommandRecord | Replaces | BoughtFor) -> str:
    """The value of the annotation."""
    return msgspec.json.encode(record).decode()


@dataclass(frozen=True)
class DisruptionCommand:
    """A command, joined with the claims that it names.

    ``record``: the command; its ``rollback`` is set if that of any candidate is. ``candidates``: those that carry the
    command and stay until it retires them; not those that are leaving already, for whatever reason.
    ``replacements``: those that are there and stay. ``absent``: the names of those that are not there. ``lost``: the
    names of those that are there and leaving.
    """

    record: CommandRecord
    candidates: tuple[NodeClaim, ...]
    replacements: tuple[NodeClaim, ...]
    absent: tuple[str, ...]
    lost: tuple[str, ...]


def commands_of(claims: Iterable[NodeClaim]) -> Mapping[str, DisruptionCommand]:
    """By their ids, the commands that these claims carry."""
    by_name = {claim.metadata.name: claim for claim in claims}
    carriers: dict[str, list[tuple[CommandRecord, NodeClaim]]] = defaultdict(list)
    for claim in by_name.values():
        if (record := record_of(claim)) is not None:
            carriers[record.id].append((record, claim))
    return {command: _joined(carried, by_name) for command, carried in carriers.items()}


def _joined(carried: list[tuple[CommandRecord, NodeClaim]], claims: Mapping[str, NodeClaim]) -> DisruptionCommand:
    record = next((record for record, _ in carried if record.rollback), carried[0][0])
    there = [claims[name] for name in record.replacements if name in claims]
    return DisruptionCommand(
        record=record,
        candidates=tuple(claim for _, claim in carried if not goes_by_itself(claim)),
        replacements=tuple(claim for claim in there if not goes_by_itself(claim)),
        absent=tuple(name for name in record.replacements if name not in claims),
        lost=tuple(claim.metadata.name for claim in there if goes_by_itself(claim)),
    )


def goes_by_itself(claim: NodeClaim) -> bool:
    """Whether the claim is leaving whatever becomes of the command."""
    return claim.is_deleting or INTERRUPTED_AT in claim.metadata.annotations


def purchase_of(claim: NodeClaim) -> BoughtFor | None:
    """What the claim's node was bought for; None where no command bought it to save money.

    An annotation that cannot be read, or that saves nothing, stands for no purchase.
    """
    purchase = decode_mark(claim.metadata.annotations.get(BOUGHT_FOR), BoughtFor)
    return purchase if purchase and purchase.savings > 0 else None
