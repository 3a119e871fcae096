"""What the selectors of node classes found, kept for a minute.

To find it out takes nine calls of AWS a class, and lifecycle asks every five seconds while anything is in progress.
Where nobody answers, that is kept as well, for half a minute: a run that gets no answer has less time for nodes.
Nothing that is kept here decides alone: a launch that is refused, as for a subnet that is gone, makes the class be
looked at anew.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

from joinery.gateways.ec2.nodeclass.readiness import SelectedResources
from joinery.objects.errors import TimeIsOverError, UnavailableError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass

#: How long a selection is good for (Karpenter for AWS `DefaultTTL`, for subnets and security groups).
TIME_TO_LIVE = timedelta(minutes=1)
#: How long AWS is not asked again for a class where it has not answered.
SILENCE_REMEMBERED = timedelta(seconds=30)


@dataclass(frozen=True)
class _Kept:
    """``key``: purpose and class, as written then. ``images``: those that the class's status named then."""

    key: str
    at: datetime
    selection: SelectedResources
    images: frozenset[str]

    def agrees_with(self, node_class: EC2NodeClass) -> bool:
        """Whether it is whole, and nobody else has written anything else of the class since."""
        selected = frozenset(image.id for image in self.selection.amis)
        return (
            _is_whole(self.selection)
            and node_class.status.instance_profile in ("", self.selection.instance_profile)
            and node_class.images in (frozenset(), selected, self.images)
        )


class Selections:
    """The last selection of each class. Safe to use from several threads."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = Lock()
        self._kept: dict[str, _Kept] = {}
        self._silences: dict[str, tuple[str, datetime, UnavailableError]] = {}

    def of(self, node_class: EC2NodeClass, purpose: str, select: Callable[[], SelectedResources]) -> SelectedResources:
        """The selection of a class, from memory or from ``select``, whose errors are raised. Of these a silence
        alone is remembered.

        ``purpose``: selections for different purposes are different, as one may make what another only looks for. A
        class whose spec has changed, that lacks something, or whose status names another instance profile or other
        images is looked at anew.
        """
        name, now = node_class.metadata.name, self._now()
        key = f"{purpose}/{node_class.metadata.uid}/{node_class.spec.model_dump_json()}"
        with self._lock:
            kept = self._kept.get(name)
        if kept and kept.key == key and now - kept.at < TIME_TO_LIVE and kept.agrees_with(node_class):
            return kept.selection
        selection = self._selected(name, key, now, select)
        with self._lock:
            self._kept[name] = _Kept(key, now, selection, node_class.images)
        return selection

    def forget(self, name: str) -> None:
        """Look at the class of that name anew the next time."""
        with self._lock:
            self._kept.pop(name, None)
            self._silences.pop(name, None)

    def _selected(
        self, name: str, key: str, now: datetime, select: Callable[[], SelectedResources]
    ) -> SelectedResources:
        with self._lock:
            before, at, silence = self._silences.get(name, ("", now, None))
        if silence is not None and before == key and now - at < SILENCE_REMEMBERED:
            raise silence
        try:
            return select()
        except UnavailableError as error:
            if not (error.code or error.is_answer or isinstance(error, TimeIsOverError)):
                with self._lock:
                    # From its end: the waiting may have taken as long.
                    self._silences[name] = (key, self._now(), error)
            raise


def _is_whole(selection: SelectedResources) -> bool:
    """Whether a node can be launched with it. Somebody is waiting to see that what was missing is there now."""
    needed = (selection.subnets, selection.security_groups, selection.amis, selection.instance_profile)
    return all(needed) and not selection.problems
