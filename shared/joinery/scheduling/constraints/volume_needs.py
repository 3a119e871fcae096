"""What a pod's volumes ask of its node, as data."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from joinery.scheduling.constraints.requirements import NO_REQUIREMENTS, Requirements
from joinery.scheduling.reason import Reason

_MAX_ALTERNATIVES = 64
"""How many combinations of volumes' places are gone on with: their number may grow exponentially with the volumes."""


@dataclass(frozen=True, slots=True)
class FreeVolume:
    """A PersistentVolume that one more claim may bind. ``places``: requirements on the node; any one will do."""

    name: str
    places: tuple[Requirements, ...]

    def is_at(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels can use it."""
        return any(place.matches(labels) for place in self.places)


class Choice(NamedTuple):
    """A claim (namespace/name) that binds one of these volumes, the first that is left: the smallest comes first.

    Pods of a class have claims of their own: there the name is empty, but for a claim that several pods share, and
    claims that choose from the same are one with their ``number``.
    """

    claim: str
    volumes: tuple[FreeVolume, ...]
    number: int = 1


class Way(NamedTuple):
    """One way to have volumes: what it demands of the node, and which claims bind free volumes there."""

    requirements: Requirements = NO_REQUIREMENTS
    choices: tuple[Choice, ...] = ()


ANYWHERE = (Way(),)


@dataclass(frozen=True, kw_only=True)
class VolumeNeeds:
    """What a pod's volumes ask of its node. Claims are named namespace/name.

    alternatives   requirements on the node; any one of them will do
    choices        by alternative: which of its claims bind free volumes there; empty where none ever does
    drivers        by CSI driver: how many volumes the pod attaches
    unbound        claims whose zone the first pod that uses them decides
    claims         all claims that the pod uses
    exclusive      claims that only one pod may use (ReadWriteOncePod)
    shared         (claim, driver) of claims that other pods use too; pods on one node share the attachment. ``drivers``
                   counts them too
    made_for       (claim, node) of claims whose volume is being made for a node
    problems       why the pod cannot be scheduled at all
    """

    alternatives: tuple[Requirements, ...] = (NO_REQUIREMENTS,)
    choices: tuple[tuple[Choice, ...], ...] = ()
    drivers: tuple[tuple[str, int], ...] = ()
    unbound: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    exclusive: tuple[str, ...] = ()
    shared: tuple[tuple[str, str], ...] = ()
    made_for: tuple[tuple[str, str], ...] = ()
    problems: tuple[Reason, ...] = ()

    @property
    def ways(self) -> Iterable[Way]:
        """The alternatives, each with its choices."""
        return map(Way, self.alternatives, self.choices or ((),) * len(self.alternatives))

    def taken(self, drivers: Container[str], attached: Container[str]) -> dict[str, tuple[int, int]]:
        """What pods of the class take of a node's attachments, by limited driver, as (once, each).

        ``once`` is for the volumes that they share, however many pods there are; ``each`` is for every pod's own.
        ``drivers``: those that the node limits. ``attached``: the claims that the node has attached already.
        """
        attachments = {}
        for driver, count in self.drivers:
            if driver in drivers:
                common = [claim for claim, claim_driver in self.shared if claim_driver == driver]
                attachments[driver] = sum(claim not in attached for claim in common), count - len(common)
        return attachments


NO_VOLUMES = VolumeNeeds()


def combined(needs: Iterable[tuple[Way, ...]]) -> tuple[Way, ...]:
    """One way of each volume, in every combination: volume after volume, because many combinations are alike.

    Combinations that contradict themselves are left out. If all do, they are kept: then they say why there is no place.
    """
    merged: list[Way] = [Way()]
    for ways in needs:
        grown: list[Way] = []
        for one, other in product(merged, ways):
            joint = Way(one.requirements.intersect(other.requirements), one.choices + other.choices)
            if joint not in grown:
                grown.append(joint)
        possible = [way for way in grown if not any(one.is_impossible for one in way.requirements.sets.values())]
        merged = (possible or grown)[:_MAX_ALTERNATIVES]
    return tuple(merged)
