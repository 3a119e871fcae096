"""Drift, as node classes speak of it: what an instance was made of, and why that is not what its class says today."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MadeOf:
    """What an instance was made of, as far as its node class decides it.

    ``labels``: its claim's, by which images fit or do not. ``image_id``: the image that it booted. ``subnet_id``,
    ``security_groups`` (ids): where its primary network interface is. ``reservation``: the id of the capacity
    reservation that it was launched into. ``placement_group_id``, ``placement_group``: id and name of the placement
    group that it is in. What is empty is not known, or there is none.
    """

    labels: Mapping[str, str]
    image_id: str = ""
    subnet_id: str = ""
    security_groups: frozenset[str] = frozenset()
    reservation: str = ""
    placement_group_id: str = ""
    placement_group: str = ""


@dataclass(frozen=True, slots=True)
class Drift:
    """Why a claim has drifted: ``reason`` is the condition's, ``message`` says it to a person."""

    reason: str
    message: str
