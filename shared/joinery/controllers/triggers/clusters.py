"""Which cluster woke a function: it may serve further ones, its members (``joinery.objects.member``).

Whatever a member's schedules send names it. A bell has no data, and is in the message group that is called like its
cluster (``joinery.gateways.doorbell.sqs``). The groups of schedules, and of whoever rings by hand, say nothing.
"""

import json
from collections.abc import Mapping
from typing import Any

CLUSTER = "cluster"
#: What bodies have whose message group is no cluster's name.
_SAYS_MORE = ("schedule", "door")


def clusters_of(event: Mapping[str, Any], own: str) -> tuple[str, ...]:
    """The clusters that an event is for, as they come first; ``own``, the stack's, for one that names none."""
    records = event.get("Records")
    if not isinstance(records, list):
        return (_named(event) or own,)
    named = dict.fromkeys(_cluster_of(record, own) for record in records if isinstance(record, Mapping))
    return tuple(named) or (own,)


def member_called(path: bytes) -> str:
    """The cluster that the webhook's path names: ``/<cluster>/<token>``. Empty for ``/<token>``, the stack's own."""
    parts = path.decode(errors="replace").split("/")
    return parts[1] if len(parts) == 3 and not parts[0] else ""


def _cluster_of(record: Mapping[str, Any], own: str) -> str:
    body = _body(record.get("body"))
    if named := _named(body):
        return named
    attributes = record.get("attributes")
    group = attributes.get("MessageGroupId") if isinstance(attributes, Mapping) else None
    says_more = any(key in body for key in _SAYS_MORE)
    return group if isinstance(group, str) and group and not says_more else own


def _named(body: Mapping[str, Any]) -> str:
    name = body.get(CLUSTER)
    return name if isinstance(name, str) else ""


def _body(text: object) -> Mapping[str, Any]:
    try:
        body = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
