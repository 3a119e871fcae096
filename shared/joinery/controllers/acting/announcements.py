"""Announcements, sent as Kubernetes Events."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.telemetry import logger
from joinery.gateways.bundles import Gateways
from joinery.gateways.kubernetes.gateway import LONGEST_CALL, Event
from joinery.objects.actions import Announce, Subject
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.wording import shortened

#: At most so many Events a run of each sort: they are for people, and each is a request to the API server.
MOST_EVENTS = 100

T = TypeVar("T")


def announce(gateways: Gateways, invocation: Invocation, announcements: Iterable[Announce]) -> None:
    """Send them to the cluster, several at a time, as long as the run has time. Never raises, as ``Recorder`` never
    does.

    Of several with one reason about one object only the first is sent: the API server would answer the others with 409.
    """
    events: dict[tuple[str, str, str, str, str], Event] = {}
    for event in map(_event, announcements):
        events.setdefault((event.uid, event.kind, event.namespace, event.name, event.reason), event)
    gateways.workers.run([partial(_send, gateways, invocation, event) for event in events.values()])


def news(gateways: Gateways, announcements: Iterable[Announce]) -> Sequence[Announce]:
    """Those that are news: of each sort as many as a run may send, in turns of namespaces. Later runs send the rest."""
    fresh = [one for one in announcements if gateways.recorder.is_news(_event(one))]
    numbers: Counter[str] = Counter()
    chosen = []
    for one in in_turns(fresh, lambda one: one.subject.metadata.namespace):
        numbers[one.reason] += 1
        if numbers[one.reason] <= MOST_EVENTS:
            chosen.append(one)
    if len(chosen) < len(fresh):
        logger.info(f"{len(fresh) - len(chosen)} Events are left to later runs")
    return chosen


def in_turns(items: Iterable[T], whose: Callable[[T], str]) -> Iterator[T]:
    """The items in turns of their owners, those of each in the order given: a thousand of one leave room for others."""
    queues: dict[str, list[T]] = {}
    for item in items:
        queues.setdefault(whose(item), []).append(item)
    longest = max(map(len, queues.values()), default=0)
    return (queue[turn] for turn in range(longest) for queue in queues.values() if turn < len(queue))


def _send(gateways: Gateways, invocation: Invocation, event: Event) -> None:
    if invocation.has_time_for(LONGEST_CALL):
        gateways.recorder.emit([event])


def _event(announcement: Announce) -> Event:
    """The Event, about the object that was read."""
    api_version, kind = _kind_of(announcement.subject)
    metadata = announcement.subject.metadata
    return Event(
        reason=announcement.reason,
        message=shortened(announcement.message),
        kind=kind,
        name=metadata.name,
        uid=metadata.uid,
        namespace=metadata.namespace,
        api_version=api_version,
        warning=announcement.warning,
    )


def _kind_of(subject: Subject) -> tuple[str, str]:
    """API version and kind. Custom resources know their own."""
    if isinstance(subject, Pod | Node):
        return "v1", type(subject).__name__
    return subject.stored_as
