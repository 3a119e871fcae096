"""Records of decisions as a course of time: what the cluster cost, of what it was made, and what was decided when.

Nothing is decided here, and no price is looked up: a record has the prices that its decision was made with.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from joinery.objects.karpenter.labels import CAPACITY_TYPE, INSTANCE_TYPE, INTERRUPTED_AT, SPOT, ZONE
from joinery_cli.notices import some_of
from joinery_cli.reading.records import Record, RecordedObject
from joinery_cli.view.figures import count, money

#: Instance type, zone, capacity type.
_Kind = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The cluster at the moment of a record, before anything of what was decided was done.

    hourly        $/h of the nodes whose price some record says; ``unpriced`` have none
    bound         $/h: what was proven; None where the record is not about all nodes
    spot          how many of the ``nodes`` are spot
    evictions     of the commands that were decided for the first time, as the savings
    interrupted   how many nodes EC2 has announced to take since the record before
    savings       $/h by reason; negative where it got dearer
    bought        $/h of the nodes that were bought for pods, and how many
    said          what was decided, line by line; the first is the sum
    """

    record: str
    door: str
    now: datetime
    nodes: int
    spot: int
    hourly: float
    unpriced: int
    bound: float | None = None
    evictions: int = 0
    interrupted: int = 0
    savings: Mapping[str, float] = field(default_factory=dict)
    bought: float = 0.0
    launches: int = 0
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class History:
    """The moments, the oldest first."""

    moments: tuple[Moment, ...]

    @property
    def savings(self) -> Mapping[str, float]:
        """$/h by reason of all that was decided, the most first."""
        total: dict[str, float] = defaultdict(float)
        for moment in self.moments:
            for reason, dollars in moment.savings.items():
                total[reason] += dollars
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    @property
    def evictions(self) -> int:
        return sum(moment.evictions for moment in self.moments)

    @property
    def interrupted(self) -> int:
        return sum(moment.interrupted for moment in self.moments)

    @property
    def average(self) -> float:
        """$/h. What a decision changes is there soon after it: between two moments the later one counts."""
        pairs = list(zip(self.moments, self.moments[1:], strict=False))
        spans = [((later.now - one.now).total_seconds(), later.hourly) for one, later in pairs]
        whole = sum(seconds for seconds, _ in spans)
        return sum(seconds * hourly for seconds, hourly in spans) / whole if whole else self.moments[-1].hourly


def sentences(history: History) -> Iterator[str]:
    """What all of it comes to."""
    first, last = history.moments[0], history.moments[-1]
    span = f"{first.now:%Y-%m-%d %H:%M} to {last.now:%Y-%m-%d %H:%M}"
    yield f"{count(len(history.moments), 'decision')} from {span}: {money(history.average)}/h on average"
    for reason, dollars in history.savings.items():
        yield f"{reason}: decided to save {money(dollars)}/h"
    yield f"{count(history.evictions, 'eviction')} decided, {count(history.interrupted, 'interruption')}"
    if unpriced := max(moment.unpriced for moment in history.moments):
        yield f"At some moment {count(unpriced, 'node')} had no price in any record, and count as nothing"


def history(records: Sequence[Record]) -> History:
    """The records in the order of their moments, at least one.

    A command that could not begin is decided again in the next run; it counts once, when it was decided first.
    """
    ordered = sorted(records, key=lambda record: (record.now, record.path))
    prices = dict(price for record in ordered for price in _prices(record))
    seen: set[frozenset[str]] = set()
    interrupted: set[str] = set()
    moments = []
    for record in ordered:
        taken = {name for name, claim in record.claims.items() if INTERRUPTED_AT in claim.metadata.annotations}
        moments.append(_moment(record, prices, seen, len(taken - interrupted)))
        interrupted |= taken
        seen |= {frozenset(command.retire) for command in record.outline.commands}
    return History(tuple(moments))


def _prices(record: Record) -> Iterator[tuple[_Kind, float]]:
    """What nodes of a kind cost, as the record's decision took it."""
    for launch in record.outline.launches:
        offering = launch.offering
        yield (offering.instance_type, offering.zone, offering.capacity_type), offering.price
    for name, price in record.outline.prices.items():
        if name in record.claims:
            yield _kind(record.claims[name]), price


def _kind(claim: RecordedObject) -> _Kind:
    labels = claim.metadata.labels
    return labels.get(INSTANCE_TYPE, ""), labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, "")


def _moment(record: Record, prices: Mapping[_Kind, float], seen: set[frozenset[str]], interrupted: int) -> Moment:
    outline = record.outline
    costs = [outline.prices.get(name, prices.get(_kind(claim))) for name, claim in record.claims.items()]
    new = [command for command in outline.commands if frozenset(command.retire) not in seen]
    savings: dict[str, float] = defaultdict(float)
    for command in new:
        savings[command.reason] += command.savings
    return Moment(
        record=record.path,
        door=record.door,
        now=record.now,
        nodes=len(record.claims),
        spot=sum(_kind(claim)[2] == SPOT for claim in record.claims.values()),
        hourly=sum(cost for cost in costs if cost is not None),
        unpriced=sum(cost is None for cost in costs),
        bound=None if record.is_plan else outline.lower_bound,
        evictions=sum(len(command.pods) for command in new),
        interrupted=interrupted,
        savings=dict(savings),
        bought=sum(launch.offering.price for launch in outline.launches),
        launches=len(outline.launches),
        said=tuple(_said(record)),
    )


def _said(record: Record) -> Iterator[str]:
    """What was decided: a sum, then node by node or command by command."""
    outline = record.outline
    if record.is_plan:
        hourly = sum(launch.offering.price for launch in outline.launches)
        waiting = f"; {count(len(outline.unplaced), 'pod')} without a place" if outline.unplaced else ""
        yield f"{count(len(outline.launches), 'node')} bought, {money(hourly)}/h{waiting}"
    else:
        retired = sum(len(command.retire) for command in outline.commands)
        yield f"{count(len(outline.commands), 'command')}, {count(retired, 'node')} to go"
    for launch in outline.launches:
        offering = launch.offering
        kind = f"{offering.instance_type}, {offering.capacity_type}, {offering.zone}, {money(offering.price)}/h"
        yield f"{launch.name} of NodePool {launch.node_pool}: {kind}, for {count(len(launch.pods), 'pod')}"
    for command in outline.commands:
        yield f"{command.reason}: {some_of(command.retire)}: {command.message}"
