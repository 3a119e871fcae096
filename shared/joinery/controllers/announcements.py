"""Announcements, sent as Kubernetes Events."""

from collections.abc import Iterable

from joinery.apis.core import Node, Pod
from joinery.cluster.gateway import Event, Recorder
from joinery.commands import Announce, Subject

#: At most so many Events a run of each sort: they are for people, and each is a request to the API server.
MOST_EVENTS = 100


def announce(recorder: Recorder, announcements: Iterable[Announce]) -> None:
    """Send them to the cluster. Never raises, as ``Recorder`` never does."""
    recorder.emit([_event(announcement) for announcement in announcements])


def _event(announcement: Announce) -> Event:
    """The Event, about the object that was read."""
    api_version, kind = _kind_of(announcement.subject)
    metadata = announcement.subject.metadata
    return Event(
        reason=announcement.event,
        message=announcement.reason,
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
    return subject.api_version, subject.kind
