"""The small gateways in memory: bells, bucket, unavailable offerings, the register of members."""

import gzip
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from joinery.gateways.doorbell.gateway import DELAYS, Bell, message, slot
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.memory.bucket import sealed
from joinery.gateways.memory.unavailable import LONGEST_MARK
from joinery.objects.commitments import PaidFor
from joinery.objects.errors import NotFoundError
from joinery.objects.member import Member
from joinery.objects.snapshot import shortages
from joinery.objects.snapshot.offerings import OfferingKey
from joinery.objects.snapshot.shortages import Shortage
from simulator.clock import Clock


@dataclass
class InMemoryDoorbell:
    """Implements ``Doorbell``, with what a FIFO queue does: a delay, and one message for all rings of a slot.

    The engine asks ``next_due``, moves the clock there and takes what is ``due``.
    """

    clock: Clock
    rings: list[tuple[datetime, Bell]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._waiting: list[tuple[datetime, Ring]] = []
        self._last_slot: dict[tuple[Bell, bool], int] = {}

    def ring(self, bell: Bell, not_before: datetime | None = None) -> None:
        now, sort = self.clock.now(), (bell, not_before is not None)
        self.rings.append((now, bell))
        if self._last_slot.get(sort) != slot(bell, now):
            self._last_slot[sort] = slot(bell, now)
            self._waiting.append((now + DELAYS[bell], Ring(bell, message(not_before))))

    @property
    def next_due(self) -> datetime | None:
        """When the next message is delivered, None where none waits."""
        return min((moment for moment, _ in self._waiting), default=None)

    def due(self) -> tuple["Ring", ...]:
        """Take the messages that are delivered by now, in their order."""
        now = self.clock.now()
        taken = sorted((m for m in self._waiting if m[0] <= now), key=lambda m: m[0])
        self._waiting = [m for m in self._waiting if m[0] > now]
        return tuple(ring for _, ring in taken)


@dataclass(frozen=True)
class Ring:
    """A message that is delivered, with its ``body``."""

    bell: Bell
    body: str


@dataclass
class InMemoryStore:
    """Implements ``Store``. ``documents`` are the records as written, by key."""

    documents: dict[str, bytes] = field(default_factory=dict)
    stored: Catalog | None = None
    stored_paid_for: PaidFor | None = None
    member: str = ""

    def of_member(self, cluster: str) -> "InMemoryStore":
        """The same documents for a member, whose records are its own."""
        return InMemoryStore(self.documents, self.stored, self.stored_paid_for, cluster)

    def catalog(self) -> Catalog:
        if self.stored is None:
            raise NotFoundError("no catalogue has been stored yet")
        return self.stored

    def put_catalog(self, catalog: Catalog) -> None:
        self.stored = catalog

    def paid_for(self) -> PaidFor:
        if self.stored_paid_for is None:
            raise NotFoundError("nothing is known to be paid for")
        return self.stored_paid_for

    def put_paid_for(self, document: PaidFor) -> None:
        self.stored_paid_for = document

    def record(self, controller: str, now: datetime, decision: dict[str, Any]) -> str:
        key, document = sealed(controller, now, decision, member=self.member)
        self.documents[key] = document
        return key

    def read(self, key: str) -> dict[str, Any]:
        """The record of that key."""
        return msgspec.json.decode(gzip.decompress(self.documents[key]), type=dict[str, Any])


@dataclass
class InMemoryUnavailableOfferings:
    """Implements ``UnavailableOfferings``. ``shortages``: all that were marked and not forgotten since."""

    shortages: dict[OfferingKey, Shortage] = field(default_factory=dict)

    def at(self, now: datetime) -> frozenset[OfferingKey]:
        known = {pool: mark for pool, mark in self.shortages.items() if mark.until <= now + LONGEST_MARK}
        return shortages.unavailable(known, now)

    def mark(self, pools: Iterable[OfferingKey], *, now: datetime, reason: str) -> None:
        self.shortages |= {pool: shortages.renewed(pool, self.shortages.get(pool), now) for pool in pools}

    def forget(self, pools: Iterable[OfferingKey]) -> None:
        for pool in shortages.refuted(self.shortages, pools):
            del self.shortages[pool]


@dataclass
class InMemoryRegister:
    """Implements ``Register``. ``reads``: the clusters that were asked for, in order. ``failure``: what reads raise."""

    members: dict[str, Member] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    failure: Exception | None = None

    def get(self, cluster: str) -> Member | None:
        self.reads.append(cluster)
        if self.failure is not None:
            raise self.failure
        return self.members.get(cluster)

    def all(self) -> tuple[Member, ...]:
        self.reads.append("*")
        return tuple(self.members.values())

    def put(self, member: Member) -> None:
        self.members[member.cluster] = member

    def remove(self, cluster: str) -> None:
        self.members.pop(cluster, None)
