"""Announcements, sent as Kubernetes Events."""

from collections.abc import Iterable

from joinery.apis.core import Node, Pod
from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.nodepool import NodePool
from joinery.cluster.gateway import Event, Recorder
from joinery.commands import Announce, Subject

_KINDS: dict[type[Subject], tuple[str, str]] = {
    Pod: ("v1", "Pod"),
    Node: ("v1", "Node"),
    NodeClaim: ("karpenter.sh/v1", "NodeClaim"),
    NodePool: ("karpenter.sh/v1", "NodePool"),
    EC2NodeClass: ("karpenter.k8s.aws/v1", "EC2NodeClass"),
}


def announce(recorder: Recorder, announcements: Iterable[Announce]) -> None:
    """Send them to the cluster. Never raises, as ``Recorder`` never does."""
    recorder.emit([_event(announcement) for announcement in announcements])


def _event(announcement: Announce) -> Event:
    """The Event, about the object that was read."""
    api_version, kind = _KINDS[type(announcement.subject)]
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
