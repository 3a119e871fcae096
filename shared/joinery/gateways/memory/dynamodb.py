"""Unavailable offerings in DynamoDB: one item for each."""

from collections.abc import Iterable
from datetime import datetime

from joinery.gateways.memory.table import EXPIRES, KEY, Table
from joinery.gateways.memory.unavailable import LONGEST_MARK, MARKED_FOR
from joinery.objects.errors import JoineryError
from joinery.objects.snapshot.offerings import OfferingKey

_PREFIX = "offering#"


class DynamoUnavailableOfferings(Table):
    """Implements ``UnavailableOfferings``.

    What the table does not take is remembered in the process: EC2 would be asked for it once a second, and each time
    its claims be written and given up.
    """

    def __init__(self, table: str, region: str) -> None:
        super().__init__(table, region)
        self._untaken: dict[OfferingKey, datetime] = {}

    def at(self, now: datetime) -> frozenset[OfferingKey]:
        items = self.items(_PREFIX, now, until=now + LONGEST_MARK)
        taken = frozenset(pool for item in items if (pool := _pool(item[KEY]["S"])) is not None)
        return taken | {pool for pool, until in self._untaken.items() if until > now}

    def mark(self, pools: Iterable[OfferingKey], *, now: datetime, reason: str) -> None:
        marked, until = sorted(set(pools)), now + MARKED_FOR
        expires = str(int(until.timestamp()))
        items = [{KEY: {"S": _key(pool)}, EXPIRES: {"N": expires}, "reason": {"S": reason}} for pool in marked]
        try:
            self.write({"PutRequest": {"Item": item}} for item in items)
        except JoineryError:
            kept = {pool: end for pool, end in self._untaken.items() if end > now}
            self._untaken = kept | dict.fromkeys(marked, until)
            raise


def _key(pool: OfferingKey) -> str:
    reservation = f"#{pool.reservation}" if pool.reservation else ""
    return f"{_PREFIX}{pool.instance_type}#{pool.zone}#{pool.capacity_type}{reservation}"


def _pool(key: str) -> OfferingKey | None:
    """The pool of an item; None for one that another version of Joinery has written in another way."""
    parts = key.removeprefix(_PREFIX).split("#")
    return OfferingKey(*parts) if len(parts) in (3, 4) else None
