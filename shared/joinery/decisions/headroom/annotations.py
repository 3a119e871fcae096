"""What our annotations on a CapacityBuffer say: when it counts, and of which capacity types its nodes may be."""

from collections.abc import Mapping
from datetime import datetime

from joinery.objects.karpenter.cron import local_windows
from joinery.objects.karpenter.labels import BUFFER_CAPACITY_TYPES, BUFFER_SCHEDULE, ON_DEMAND, RESERVED, SPOT

_TYPES = (SPOT, ON_DEMAND, RESERVED)


def is_in_force(annotations: Mapping[str, str], now: datetime) -> bool:
    """Whether the buffer counts at that moment: always, where it has no schedule.

    Raises ``ValueError`` naming the annotation, for a schedule that cannot be read.
    """
    text = annotations.get(BUFFER_SCHEDULE)
    if text is None:
        return True
    try:
        return any(one.is_open(now) for one in local_windows(text))
    except ValueError as error:
        raise ValueError(f"the annotation {BUFFER_SCHEDULE}: {error}") from error


def capacity_types(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """The capacity types that the buffer's nodes may be of, in place of what its pods ask for; empty where these say.

    Raises ``ValueError`` naming the annotation, for anything but such types.
    """
    text = annotations.get(BUFFER_CAPACITY_TYPES)
    if text is None:
        return ()
    types = tuple(sorted({part.strip() for part in text.split(",")}))
    if unknown := [one for one in types if one not in _TYPES]:
        raise ValueError(f"the annotation {BUFFER_CAPACITY_TYPES}: {unknown[0]!r} is none of {', '.join(_TYPES)}")
    return types
