"""Unavailable offerings and refused requests in DynamoDB: one item for each, which the table's TTL removes.

Refusals are read once a process, and written when something is refused or granted after all: rarely.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from joinery.gateways.memory.table import EXPIRES, KEY, Table
from joinery.gateways.memory.unavailable import LONGEST_MARK, RememberedRefusals
from joinery.objects.annotations.marks import MOST_AHEAD
from joinery.objects.errors import JoineryError
from joinery.objects.refusals import REMEMBERED, Refusal, Refusals
from joinery.objects.snapshot import shortages
from joinery.objects.snapshot.offerings import OfferingKey
from joinery.objects.snapshot.shortages import MARKED_FOR, Shortage

_OFFERING, _REFUSED = "offering#", "refused#"
#: What no request begins with.
_OF_MEMBER = "@"


class DynamoUnavailableOfferings(Table):
    """Implements ``UnavailableOfferings``.

    What the table does not take is remembered in the process: EC2 would be asked for it once a second, and each time
    its claims be written and given up.
    """

    def __init__(self, table: str, region: str) -> None:
        super().__init__(table, region)
        self._known: dict[OfferingKey, Shortage] = {}
        self._unwritten: dict[OfferingKey, Shortage] = {}

    def at(self, now: datetime) -> frozenset[OfferingKey]:
        items = self.items(_OFFERING, now, until=now + LONGEST_MARK + shortages.REMEMBERED)
        self._known = dict(_marks(items, now)) | self._unwritten
        return shortages.unavailable(self._known, now)

    def mark(self, pools: Iterable[OfferingKey], *, now: datetime, reason: str) -> None:
        marked = {pool: shortages.renewed(pool, self._known.get(pool), now) for pool in sorted(set(pools))}
        self._known |= marked
        try:
            self.write({"PutRequest": {"Item": _marked(pool, marked[pool], reason)}} for pool in marked)
        except JoineryError:
            kept = {pool: shortage for pool, shortage in self._unwritten.items() if shortage.until > now}
            self._unwritten = kept | marked
            raise

    def forget(self, pools: Iterable[OfferingKey]) -> None:
        over = shortages.refuted(self._known, pools)
        for known in (self._known, self._unwritten):
            for pool in over:
                known.pop(pool, None)
        self.write({"DeleteRequest": {"Key": {KEY: {"S": _key(pool)}}}} for pool in sorted(over))


def _marked(pool: OfferingKey, shortage: Shortage, reason: str) -> Mapping[str, Any]:
    """An item. It is kept for longer than the mark, so that the next one can be longer."""
    expires = shortage.until + shortages.REMEMBERED
    return {
        KEY: {"S": _key(pool)},
        EXPIRES: {"N": str(int(expires.timestamp()))},
        "until": {"N": str(shortage.until.timestamp())},
        "lasts": {"N": str(shortage.lasts.total_seconds())},
        "reason": {"S": reason},
    }


def _marks(items: Iterable[Mapping[str, Any]], now: datetime) -> Iterator[tuple[OfferingKey, Shortage]]:
    """The marks of the items that can be read: another version of Joinery may write them in another way.

    Up to 0.1 an item had no ``until``, and expired when its mark did.
    """
    for item in items:
        pool = _pool(item[KEY]["S"])
        ends, lasts = _number(item, "until") or _number(item, EXPIRES), _number(item, "lasts")
        until = datetime.fromtimestamp(ends, UTC) if ends else now + MARKED_FOR
        if pool is not None and until <= now + LONGEST_MARK:
            yield pool, Shortage(until, timedelta(seconds=lasts) if lasts else MARKED_FOR)


def _number(item: Mapping[str, Any], name: str) -> float | None:
    try:
        return float(item[name]["N"])
    except (KeyError, TypeError, ValueError):
        return None


def _key(pool: OfferingKey) -> str:
    parts = [pool.instance_type, pool.zone, pool.capacity_type]
    parts += [pool.reservation] if pool.reservation or pool.scope else []
    return _OFFERING + "#".join((*parts, f"@{pool.scope}") if pool.scope else parts)


def _pool(key: str) -> OfferingKey | None:
    """The pool of an item; None for one that another version of Joinery has written in another way."""
    pool, has_scope, scope = key.removeprefix(_OFFERING).partition("#@")
    match pool.split("#"):
        case [instance_type, zone, capacity_type, reservation]:
            return OfferingKey(instance_type, zone, capacity_type, reservation, scope)
        case [instance_type, zone, capacity_type] if not has_scope:
            return OfferingKey(instance_type, zone, capacity_type)
        case _:
            return None


class DynamoRefusals(RememberedRefusals):
    """Implements ``RefusedRequests``, for the processes to come as well. ``member``: whose they are, if they are not
    those of the stack's own cluster: objects of two clusters may have one name.
    """

    def __init__(self, table: Table, member: str = "") -> None:
        super().__init__()
        self._table = table
        self._prefix = f"{_REFUSED}{_OF_MEMBER}{member}#" if member else _REFUSED
        self._is_read = False

    def at(self, now: datetime) -> Refusals:
        if not self._is_read:
            self._is_read = True  # also if it fails: a table that is silent costs its time once
            with suppress(JoineryError):
                items = self._table.items(self._prefix, now, until=now + REMEMBERED + MOST_AHEAD)
                super().note(_read(items, self._prefix, now))
        return super().at(now)

    def note(self, refusals: Iterable[Refusal]) -> None:
        noted = list(refusals)
        super().note(noted)
        self._write({"PutRequest": {"Item": _item(refusal, self._prefix)}} for refusal in noted)

    def forget(self, requests: Iterable[str]) -> None:
        granted = list(requests)
        super().forget(granted)
        self._write({"DeleteRequest": {"Key": {KEY: {"S": f"{self._prefix}{request}"}}}} for request in granted)

    def _write(self, changes: Iterable[Mapping[str, Any]]) -> None:
        with suppress(JoineryError):
            self._table.write(changes)


def _item(refusal: Refusal, prefix: str) -> Mapping[str, Any]:
    return {
        KEY: {"S": f"{prefix}{refusal.request}"},
        EXPIRES: {"N": str(int((refusal.tried + REMEMBERED).timestamp()))},
        "since": {"N": str(refusal.since.timestamp())},
        "asked": {"N": str(refusal.tried.timestamp())},
        "reason": {"S": refusal.message},
    }


def _read(items: Iterable[Mapping[str, Any]], prefix: str, now: datetime) -> Iterator[Refusal]:
    """The refusals of the items that can be read: another version of Joinery may write them in another way."""
    for item in items:
        try:
            since, tried = (datetime.fromtimestamp(float(item[name]["N"]), UTC) for name in ("since", "asked"))
            refusal = Refusal(item[KEY]["S"].removeprefix(prefix), since, tried, item["reason"]["S"])
        except (KeyError, TypeError, ValueError, OverflowError, OSError):
            continue
        if since <= tried <= now and not refusal.request.startswith(_OF_MEMBER):
            yield refusal
