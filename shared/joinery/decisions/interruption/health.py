"""AWS Health: which instances an event threatens (AWS Health User Guide, "EventBridge schema").

Health sends events about many things, and about each of them several times. Only one kind is about a node: a change
that EC2 has scheduled, that is not over, and for which the instance is still waiting.

The state of the event is in ``statusCode``. That of an entity is in ``status`` or in ``statusCode``, depending on who
composed the event; older events have neither. An event may name no entity at all, and public ones never do.

A planned lifecycle event is a scheduled change, too: half a year ahead it names every instance of a generation, or of
an image, that AWS gives up (AWS Health User Guide, "Planned lifecycle events"). Their hosts are sound, and what would
be bought in their place would be named next. It is for people, who change a NodePool or a node class; what EC2 then
does to an instance has events of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from joinery.decisions.interruption.envelope import Ignored, MalformedNoticeError, mapping, text
from joinery.objects.snapshot.claims import moment

_TO_COME = ("open", "upcoming")
_OVER = ("RESOLVED", "UNIMPAIRED")
_LIFECYCLE = "_PLANNED_LIFECYCLE_EVENT"


@dataclass(frozen=True, slots=True)
class Threatened:
    """The ids of the instances that a scheduled change is still to come for.

    ``unread``: what is wrong with the first entity that could not be read; empty if all could. ``starts``: when the
    change begins; None if the event does not say.
    """

    instances: tuple[str, ...]
    unread: str = ""
    starts: datetime | None = None


def threatened(detail: Mapping[str, Any]) -> Threatened | Ignored:
    """The instances that the event is about. Raises ``MalformedNoticeError`` if none of its entities can be read."""
    service, category = detail.get("service"), detail.get("eventTypeCategory")
    if (service, category) != ("EC2", "scheduledChange"):
        return Ignored(f"Health speaks of {service} {category}, not of a change that EC2 has scheduled")
    kind = detail.get("eventTypeCode")
    if isinstance(kind, str) and kind.endswith(_LIFECYCLE):
        return Ignored(f"{kind} is for people: nodes go as NodePools and node classes are changed")
    state = detail.get("statusCode")
    if state not in (None, "") and str(state).lower() not in _TO_COME:
        return Ignored(f"the scheduled change is {state}")
    entities = detail.get("affectedEntities")
    if not entities:
        return Ignored("the scheduled change names no instance")
    if not isinstance(entities, list):
        raise MalformedNoticeError("detail.affectedEntities is not a list")
    about = _of_entities(entities)
    return about if isinstance(about, Ignored) else replace(about, starts=_start(detail.get("startTime")))


def _of_entities(entities: Iterable[object]) -> Threatened | Ignored:
    instances, unread = [], ""
    for entity in entities:
        try:
            instances += _waiting(mapping(entity, "detail.affectedEntities[]"))
        except MalformedNoticeError as error:
            unread = unread or str(error)
    if not instances and unread:
        raise MalformedNoticeError(unread)
    if not instances:
        return Ignored("the scheduled change waits for no instance: its entities are resolved, or no instances")
    return Threatened(tuple(dict.fromkeys(instances)), unread)


def _waiting(entity: Mapping[str, Any]) -> list[str]:
    """The entity's instance, if it is one and the change has yet to come."""
    if any(str(entity.get(field)).upper() in _OVER for field in ("status", "statusCode")):
        return []
    name = _without_arn(text(entity, "entityValue"))
    return [name] if name.startswith("i-") else []


def _start(said: object) -> datetime | None:
    """The moment as Health writes it, ``Fri, 20 Mar 2026 09:00:00 GMT``, or as other services do."""
    if not isinstance(said, str):
        return None
    try:
        return moment(parsedate_to_datetime(said).isoformat())
    except (ValueError, OverflowError):
        return moment(said)


def _without_arn(value: str) -> str:
    """``i-…`` out of ``arn:aws:ec2:region:account:instance/i-…``; anything else as it is."""
    return value.rpartition(":instance/")[2] if value.startswith("arn:") else value
