"""The register: which further clusters the functions serve, in the table, one item each and without an end.

A function reads its cluster's item at the start of each run, so that a setting which was changed holds for the next
one. A client of boto3 would cost a cold start more than the read; so it is asked as the doorbell is rung
(``joinery.gateways.doorbell.json_api``), with the function's own role.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from joinery.gateways.doorbell.json_api import JsonApi
from joinery.gateways.partitions import endpoint
from joinery.objects.errors import ConfigurationError, UnavailableError
from joinery.objects.member import Member

_PREFIX = "cluster#"
#: Pages of a megabyte: whoever fills the table must not have every review wait.
_MOST_PAGES = 10


class DynamoRegister:
    """Implements ``Register``. Safe to use from several threads: they ask one after another."""

    def __init__(
        self, table: str, region: str, *, now: Callable[[], datetime], environment: Mapping[str, str] = os.environ
    ) -> None:
        self._table = table
        given = environment.get("AWS_ENDPOINT_URL_DYNAMODB") or environment.get("AWS_ENDPOINT_URL")
        self._endpoint = urlsplit(given or endpoint("dynamodb", region))
        self._api = JsonApi("dynamodb", "1.0", region, now=now, environment=environment)
        self._asking = Lock()

    def get(self, cluster: str) -> Member | None:
        answer = self._call("GetItem", Key=key_of(cluster), ConsistentRead=True)
        return _member(answer["Item"]) if "Item" in answer else None

    def all(self) -> tuple[Member, ...]:
        return tuple(self._all())

    def put(self, member: Member) -> None:
        texts = {**asdict(member), "roles": json.dumps(dict(member.roles), sort_keys=True)}
        del texts["cluster"]
        self._call("PutItem", Item=key_of(member.cluster) | {name: {"S": text} for name, text in texts.items()})

    def remove(self, cluster: str) -> None:
        self._call("DeleteItem", Key=key_of(cluster))

    def _all(self) -> Iterator[Member]:
        asked: dict[str, Any] = {
            "FilterExpression": "begins_with(pk, :prefix)",
            "ExpressionAttributeValues": {":prefix": {"S": _PREFIX}},
            "ConsistentRead": True,
        }
        for _ in range(_MOST_PAGES):
            answer = self._call("Scan", **asked)
            for item in answer.get("Items", ()):
                try:
                    yield _member(item)
                except ConfigurationError:
                    continue
            if "LastEvaluatedKey" not in answer:
                return
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _call(self, operation: str, **asked: Any) -> Any:
        doing = f"DynamoDB {operation} on {self._table}, the register of clusters"
        body = {"TableName": self._table, **asked}
        with self._asking:
            answer = self._api.call(doing, self._endpoint, f"DynamoDB_20120810.{operation}", body)
        try:
            return json.loads(answer)
        except ValueError:
            raise UnavailableError(f"{doing}: the answer is not JSON") from None


def key_of(cluster: str) -> dict[str, Any]:
    """The key of a member's item, as DynamoDB takes it."""
    return {"pk": {"S": f"{_PREFIX}{cluster}"}}


def _member(item: Mapping[str, Any]) -> Member:
    """The member in an item. What it lacks is empty: another version of Joinery may have written it."""
    try:
        texts = {name: str(value["S"]) for name, value in item.items() if "S" in value}
        cluster = texts["pk"].removeprefix(_PREFIX)
        roles = {str(door): str(role) for door, role in json.loads(texts["roles"]).items()}
    except (KeyError, TypeError, ValueError, AttributeError) as wrong:
        raise ConfigurationError(f"the register's item {item.get('pk')} cannot be read: {wrong!r}") from None
    known = ("settings", "mode", "secret", "stack", "version")
    return Member(cluster, roles, **{name: texts.get(name, "") for name in known})
