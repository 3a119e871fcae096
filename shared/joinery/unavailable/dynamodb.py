"""Unavailable offerings in DynamoDB: one item for each, which the table's TTL removes.

DynamoDB removes expired items late, up to days, so they are filtered out on reading. The table is small (a few hundred
items on the worst day), so reading all of it takes one or two requests.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from joinery.answers import entries
from joinery.aws import Clients, translated
from joinery.errors import ConfigurationError, JoineryError, NotFoundError, UnavailableError
from joinery.state.offerings import OfferingKey
from joinery.unavailable.gateway import MARKED_FOR

#: The table's partition key and its TTL attribute (whole seconds since 1970), as the template declares them.
KEY, EXPIRES = "pk", "expires"
_PREFIX = "offering#"
_BATCH, _ROUNDS = 25, 4


class DynamoUnavailableOfferings:
    """Implements ``UnavailableOfferings``.

    Reads are consistent, because the next plan must not ask for what this one found out of stock. For the same reason
    what the table does not take is remembered in the process: EC2 would be asked for it once a second, and each time
    its claims be written and given up.
    """

    def __init__(self, table: str, region: str) -> None:
        self._table = table
        self._clients = Clients(region)
        self._untaken: dict[OfferingKey, datetime] = {}

    def at(self, now: datetime) -> frozenset[OfferingKey]:
        with self._table_of("reading"):
            pages = self._clients.dynamodb.get_paginator("scan").paginate(
                TableName=self._table,
                ConsistentRead=True,
                FilterExpression="begins_with(#key, :prefix) AND #expires > :now",
                ExpressionAttributeNames={"#key": KEY, "#expires": EXPIRES},
                ExpressionAttributeValues={":prefix": {"S": _PREFIX}, ":now": {"N": str(now.timestamp())}},
            )
            items = (item for page in pages for item in entries(page, "Items", f"{KEY}.S", call="DynamoDB Scan"))
            taken = frozenset(pool for item in items if (pool := _pool(item[KEY]["S"])) is not None)
        return taken | {pool for pool, until in self._untaken.items() if until > now}

    def mark(self, pools: Iterable[OfferingKey], *, now: datetime, reason: str) -> None:
        marked, until = sorted(set(pools)), now + MARKED_FOR
        expires = str(int(until.timestamp()))
        items = [{KEY: {"S": _key(pool)}, EXPIRES: {"N": expires}, "reason": {"S": reason}} for pool in marked]
        try:
            for start in range(0, len(items), _BATCH):
                self._write([{"PutRequest": {"Item": item}} for item in items[start : start + _BATCH]])
        except JoineryError:
            kept = {pool: end for pool, end in self._untaken.items() if end > now}
            self._untaken = kept | dict.fromkeys(marked, until)
            raise

    @contextmanager
    def _table_of(self, doing: str) -> Iterator[None]:
        """A missing table is a wrong setting of ours. It must not read as "nothing is marked"."""
        try:
            with translated(f"{doing} table {self._table}"):
                yield
        except NotFoundError as missing:
            raise ConfigurationError(str(missing)) from missing

    def _write(self, waiting: list[Any]) -> None:
        for _ in range(_ROUNDS):
            with self._table_of("writing"):
                answer = self._clients.dynamodb.batch_write_item(RequestItems={self._table: waiting})
            waiting = list(answer.get("UnprocessedItems", {}).get(self._table, []))
            if not waiting:
                return
        raise UnavailableError(f"writing table {self._table}: {len(waiting)} items were not taken")


def _key(pool: OfferingKey) -> str:
    reservation = f"#{pool.reservation}" if pool.reservation else ""
    return f"{_PREFIX}{pool.instance_type}#{pool.zone}#{pool.capacity_type}{reservation}"


def _pool(key: str) -> OfferingKey | None:
    """The pool of an item; None for one that another version of Joinery has written in another way."""
    parts = key.removeprefix(_PREFIX).split("#")
    return OfferingKey(*parts) if len(parts) in (3, 4) else None
