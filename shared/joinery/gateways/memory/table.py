"""The table of offerings and requests that would fail again: items with a key and a TTL.

DynamoDB removes expired items late, up to days, so they are filtered out on reading. The table is small (a few hundred
items on the worst day), so reading all of it takes one or two requests.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any

from joinery.gateways.answers import entries
from joinery.gateways.aws import Clients, translated
from joinery.objects.errors import ConfigurationError, NotFoundError, UnavailableError

#: The table's partition key and its TTL attribute (whole seconds since 1970), as the template declares them.
KEY, EXPIRES = "pk", "expires"
_BATCH, _ROUNDS = 25, 4
#: Pages of a megabyte: ours are one or two. Whoever fills the table must not have every run read for minutes.
_MOST_PAGES = 10


class Table:
    """Reads are consistent: the next plan must not ask for what this one found out of stock."""

    def __init__(self, name: str, region: str) -> None:
        self._name = name
        self._clients = Clients(region)

    def items(self, prefix: str, now: datetime, *, until: datetime) -> list[Any]:
        """The items whose key begins with that and that have not expired. ``until``: none of ours lasts longer.

        One that does would be believed for ever: somebody else has written it, and several roles may.
        """
        with self._doing("reading"):
            pages = self._clients.dynamodb.get_paginator("scan").paginate(
                TableName=self._name,
                ConsistentRead=True,
                FilterExpression="begins_with(#key, :prefix) AND #expires > :now AND #expires <= :until",
                ExpressionAttributeNames={"#key": KEY, "#expires": EXPIRES},
                ExpressionAttributeValues={
                    ":prefix": {"S": prefix},
                    ":now": {"N": str(now.timestamp())},
                    ":until": {"N": str(until.timestamp())},
                },
            )
            read = islice(pages, _MOST_PAGES)
            return [item for page in read for item in entries(page, "Items", f"{KEY}.S", call="DynamoDB Scan")]

    def write(self, changes: Iterable[Mapping[str, Any]]) -> None:
        """Make these ``PutRequest``s and ``DeleteRequest``s."""
        listed = list(changes)
        for start in range(0, len(listed), _BATCH):
            self._write(listed[start : start + _BATCH])

    @contextmanager
    def _doing(self, what: str) -> Iterator[None]:
        """A missing table is a wrong setting of ours. It must not read as "nothing is marked"."""
        try:
            with translated(f"{what} table {self._name}"):
                yield
        except NotFoundError as missing:
            raise ConfigurationError(str(missing)) from missing

    def _write(self, waiting: list[Any]) -> None:
        for _ in range(_ROUNDS):
            with self._doing("writing"):
                answer = self._clients.dynamodb.batch_write_item(RequestItems={self._name: waiting})
            waiting = list(answer.get("UnprocessedItems", {}).get(self._name, []))
            if not waiting:
                return
        raise UnavailableError(f"writing table {self._name}: {len(waiting)} items were not taken")
