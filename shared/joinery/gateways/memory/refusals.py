"""Refused requests in DynamoDB, beside the unavailable offerings: one item for each, which the table's TTL removes.

They are read once a process, and written when something is refused or granted after all: rarely.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from joinery.gateways.memory.remembered import RememberedRefusals
from joinery.gateways.memory.table import EXPIRES, KEY, Table
from joinery.objects.annotations.marks import MOST_AHEAD
from joinery.objects.errors import JoineryError
from joinery.objects.refusals import REMEMBERED, Refusal, Refusals

_PREFIX = "refused#"


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
                super().note(_read(self._table.items(_PREFIX, now, until=now + REMEMBERED + MOST_AHEAD), now))
        return super().at(now)

    def note(self, refusals: Iterable[Refusal]) -> None:
        noted = list(refusals)
        super().note(noted)
        self._write({"PutRequest": {"Item": _item(refusal)}} for refusal in noted)

    def forget(self, requests: Iterable[str]) -> None:
        granted = list(requests)
        super().forget(granted)
        self._write({"DeleteRequest": {"Key": {KEY: {"S": f"{_PREFIX}{request}"}}}} for request in granted)

    def _write(self, changes: Iterable[Mapping[str, Any]]) -> None:
        with suppress(JoineryError):
            self._table.write(changes)


def _item(refusal: Refusal) -> Mapping[str, Any]:
    return {
        KEY: {"S": f"{_PREFIX}{refusal.request}"},
        EXPIRES: {"N": str(int((refusal.asked + REMEMBERED).timestamp()))},
        "since": {"N": str(refusal.since.timestamp())},
        "asked": {"N": str(refusal.asked.timestamp())},
        "reason": {"S": refusal.message},
    }


def _read(items: Iterable[Mapping[str, Any]], now: datetime) -> Iterator[Refusal]:
    """The refusals of the items that can be read: another version of Joinery may write them in another way."""
    for item in items:
        try:
            since, asked = (datetime.fromtimestamp(float(item[name]["N"]), UTC) for name in ("since", "asked"))
            refusal = Refusal(item[KEY]["S"].removeprefix(_PREFIX), since, asked, item["reason"]["S"])
        except (KeyError, TypeError, ValueError, OverflowError, OSError):
            continue
        if since <= asked <= now:
            yield refusal
