"""What the selectors of node classes found, kept for a minute.

To find it out takes nine calls of AWS a class, and lifecycle asks every five seconds while anything is in progress.
Nothing that is kept here decides alone: a launch that is refused, as for a subnet that is gone, makes the class be
looked at anew.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock

from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.cloudprovider.nodeclass.readiness import Selection

#: How long a selection is good for (Karpenter for AWS `DefaultTTL`, for subnets and security groups).
TIME_TO_LIVE = timedelta(minutes=1)


class Selections:
    """The last selection of each class, by what it was asked for. Safe to use from several threads."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = Lock()
        self._kept: dict[str, tuple[str, datetime, Selection]] = {}

    def of(self, node_class: EC2NodeClass, purpose: str, select: Callable[[], Selection]) -> Selection:
        """The selection of a class, from memory or from ``select``, whose errors are raised and not remembered.

        ``purpose``: selections for different purposes are different, as one may make what another only looks for. A
        class whose spec has changed, that lacks something, or whose status names another instance profile is looked at
        anew.
        """
        name, now = node_class.metadata.name, self._now()
        asked = f"{purpose}/{node_class.metadata.uid}/{node_class.spec.model_dump_json()}"
        with self._lock:
            before, at, selection = self._kept.get(name, ("", now, Selection()))
        agrees = node_class.status.instance_profile in ("", selection.instance_profile)
        if before == asked and now - at < TIME_TO_LIVE and _is_whole(selection) and agrees:
            return selection
        selection = select()
        with self._lock:
            self._kept[name] = (asked, now, selection)
        return selection

    def forget(self, name: str) -> None:
        """Look at the class of that name anew the next time."""
        with self._lock:
            self._kept.pop(name, None)


def _is_whole(selection: Selection) -> bool:
    """Whether a node can be launched with it. Somebody is waiting to see that what was missing is there now."""
    needed = (selection.subnets, selection.security_groups, selection.amis, selection.instance_profile)
    return all(needed) and not (selection.ami_problem or selection.profile_problem)
