"""Unavailable offerings and refused requests in DynamoDB: one item for each, which the table's TTL removes.

Refusals are read once a process, and written when something is refused or granted after all: rarely.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from joinery.gateways.memory.table import EXPIRES, KEY, Table
from joinery.gateways.memory.unavailable import LONGEST_MARK, MARKED_FOR, RememberedRefusals
from joinery.objects.annotations.marks import MOST_AHEAD
from joinery.objects.errors import JoineryError
from joinery.objects.refusals import REMEMBERED, Refusal, Refusals
from joinery.objects.snapshot.offerings import OfferingKey

_OFFERING, _REFUSED = "offering#", "refused#"


class DynamoUnavailableOfferings(Table):
    """Implements ``UnavailableOfferings``.

    What the table does not take is remembered in the process: EC2 would be asked for it once a second, and each time
    its claims be written and given up.
    """

    def __init__(self, table: str, region: str) -> None:
        super().__init__(table, region)
        self._unwritten: dict[OfferingKey, datetime] = {}

    def at(self, now: datetime) -> frozenset[OfferingKey]:
        items = self.items(_OFFERING, now, until=now + LONGEST_MARK)
        taken = frozenset(pool for item in items if (pool := _pool(item[KEY]["S"])) is not None)
        return taken | {pool for pool, until in self._unwritten.items() if until > now}

    def mark(self, pools: Iterable[OfferingKey], *, now: datetime, reason: str) -> None:
        marked, until = sorted(set(pools)), now + MARKED_FOR
        expires = str(int(until.timestamp()))
        items = [{KEY: {"S": _key(pool)}, EXPIRES: {"N": expires}, "reason": {"S": reason}} for pool in marked]
        try:
            self.write({"PutRequest": {"Item": item}} for item in items)
        except JoineryError:
            kept = {pool: end for pool, end in self._unwritten.items() if end > now}
            self._unwritten = kept | dict.fromkeys(marked, until)
            raise


def _key(pool: OfferingKey) -> str:
    reservation = f"#{pool.reservation}" if pool.reservation else ""
    return f"{_OFFERING}{pool.instance_type}#{pool.zone}#{pool.capacity_type}{reservation}"


def _pool(key: str) -> OfferingKey | None:
    """The pool of an item; None for one that another version of Joinery has written in another way."""
    parts = key.removeprefix(_OFFERING).split("#")
    return OfferingKey(*parts) if len(parts) in (3, 4) else None


class DynamoRefusals(RememberedRefusals):
    """Implements ``RefusedRequests``, for the processes to come as well."""

    def __init__(self, table: str, region: str) -> None:
        super().__init__()
        self._table = Table(table, region)
        self._is_read = False

    def at(self, now: datetime) -> Refusals:
        if not self._is_read:
            self._is_read = True  # also if it fails: a table that is silent costs its time once
            with suppress(JoineryError):
                super().note(_read(self._table.items(_REFUSED, now, until=now + REMEMBERED + MOST_AHEAD), now))
        return super().at(now)

    def note(self, refusals: Iterable[Refusal]) -> None:
        noted = list(refusals)
        super().note(noted)
        self._write({"PutRequest": {"Item": _item(refusal)}} for refusal in noted)

    def forget(self, requests: Iterable[str]) -> None:
        granted = list(requests)
        super().forget(granted)
        self._write({"DeleteRequest": {"Key": {KEY: {"S": f"{_REFUSED}{request}"}}}} for request in granted)

    def _write(self, changes: Iterable[Mapping[str, Any]]) -> None:
        with suppress(JoineryError):
            self._table.write(changes)


def _item(refusal: Refusal) -> Mapping[str, Any]:
    return {
        KEY: {"S": f"{_REFUSED}{refusal.request}"},
        EXPIRES: {"N": str(int((refusal.tried + REMEMBERED).timestamp()))},
        "since": {"N": str(refusal.since.timestamp())},
        "asked": {"N": str(refusal.tried.timestamp())},
        "reason": {"S": refusal.message},
    }


def _read(items: Iterable[Mapping[str, Any]], now: datetime) -> Iterator[Refusal]:
    """The refusals of the items that can be read: another version of Joinery may write them in another way."""
    for item in items:
        try:
            since, tried = (datetime.fromtimestamp(float(item[name]["N"]), UTC) for name in ("since", "asked"))
            refusal = Refusal(item[KEY]["S"].removeprefix(_REFUSED), since, tried, item["reason"]["S"])
        except (KeyError, TypeError, ValueError, OverflowError, OSError):
            continue
        if since <= tried <= now:
            yield refusal
