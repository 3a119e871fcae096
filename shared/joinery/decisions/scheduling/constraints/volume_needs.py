"""What a pod's volumes ask of its node, as data."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from joinery.decisions.scheduling.constraints.requirements import NO_REQUIREMENTS, Requirements
from joinery.decisions.scheduling.constraints.volume_stocks import Stock
from joinery.decisions.scheduling.reason import Reason

#: How many combinations of volumes' places are gone on with: their number may grow exponentially with the volumes.
_MAX_ALTERNATIVES = 64


class VolumeChoice(NamedTuple):
    """A claim (namespace/name) that binds a volume of the stock, the first that is left and has ``size`` bytes.

    Pods of a class have claims of their own: there the name is empty, but for a claim that several pods share, and
    claims that choose alike are one with their ``number``.
    """

    claim: str
    stock: Stock
    size: int
    number: int = 1


class VolumeWay(NamedTuple):
    """One way to have volumes: what it demands of the node, and which claims bind free volumes there."""

    requirements: Requirements = NO_REQUIREMENTS
    choices: tuple[VolumeChoice, ...] = ()


ANYWHERE = (VolumeWay(),)


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
    choices: tuple[tuple[VolumeChoice, ...], ...] = ()
    drivers: tuple[tuple[str, int], ...] = ()
    unbound: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    exclusive: tuple[str, ...] = ()
    shared: tuple[tuple[str, str], ...] = ()
    made_for: tuple[tuple[str, str], ...] = ()
    problems: tuple[Reason, ...] = ()

    @property
    def ways(self) -> Iterable[VolumeWay]:
        """The alternatives, each with its choices."""
        return map(VolumeWay, self.alternatives, self.choices or ((),) * len(self.alternatives))

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


def combined(needs: Iterable[tuple[VolumeWay, ...]]) -> tuple[VolumeWay, ...]:
    """One way of each volume, in every combination: volume after volume, because many combinations are alike.

    Combinations that contradict themselves are left out. If all do, they are kept: then they say why there is no place.
    """
    merged: tuple[VolumeWay, ...] = ANYWHERE
    for ways in sorted(needs, key=len):  # the fewer come first, the fewer are tried
        merged = ways if merged == ANYWHERE else _joined(merged, ways)
    # kube-scheduler chooses for the smallest claim first.
    return tuple(
        way._replace(choices=tuple(sorted(way.choices, key=lambda choice: choice.size)))
        for way in merged[:_MAX_ALTERNATIVES]
    )


def _joined(merged: tuple[VolumeWay, ...], ways: tuple[VolumeWay, ...]) -> tuple[VolumeWay, ...]:
    possible: dict[object, VolumeWay] = {}
    contradictory: dict[object, VolumeWay] = {}
    near = _Near(ways)
    for one in merged[:_MAX_ALTERNATIVES]:
        for other in near.to(one):
            joint = VolumeWay(one.requirements.intersect(other.requirements), one.choices + other.choices)
            is_impossible = any(allowed.is_impossible for allowed in joint.requirements.sets.values())
            listed = contradictory if is_impossible else possible
            listed.setdefault((frozenset(joint.requirements.sets.items()), joint.choices), joint)
            if len(possible) == _MAX_ALTERNATIVES:
                return tuple(possible.values())
    if possible:
        return tuple(possible.values())
    # Nothing of them is near: any two say why.
    return tuple(contradictory.values()) or (
        VolumeWay(merged[0].requirements.intersect(ways[0].requirements), merged[0].choices + ways[0].choices),
    )


class _Near:
    """Ways by the value of the label that most of them name: two that name others there are not combined."""

    def __init__(self, ways: Sequence[VolumeWay]) -> None:
        named = Counter(key for way in ways for key, allowed in way.requirements.sets.items() if not allowed.complement)
        self._key = max(named, key=lambda key: named[key], default="")
        self._by_value: dict[str, list[VolumeWay]] = {}
        self._others: list[VolumeWay] = []
        for way in ways:
            allowed = way.requirements.get(self._key)
            only = next(iter(allowed.values)) if not allowed.complement and len(allowed.values) == 1 else None
            (self._others if only is None else self._by_value.setdefault(only, [])).append(way)

    def to(self, way: VolumeWay) -> Iterator[VolumeWay]:
        """Those that do not contradict it for that label."""
        allowed = way.requirements.get(self._key)
        is_long = allowed.complement or len(allowed.values) > len(self._by_value)
        for value in self._by_value if is_long else sorted(allowed.values):
            if allowed.has(value):
                yield from self._by_value.get(value, ())
        for other in self._others:
            listed = other.requirements.get(self._key)
            if allowed.complement or listed.complement or not allowed.values.isdisjoint(listed.values):
                yield other
