"""Ways to go about a packing, where the usual one leaves pods or money on the table.

First-fit settles one class after another, and each choice of domains is final. What suits one class may leave the next
without a place: neighbours in two zones, for pods that are to be spread over five; or make it dear: one more node in
each zone that a class is dealt to without need. No single way is right for all, so a few others are tried where they
might help, and the best plan is kept.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from joinery.apis.labels import HOSTNAME, ZONE
from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.firstfit.targets import NewNode
from joinery.scheduling.firstfit.topology import Topology

Dealing = Literal["even", "ahead", "gathered"]
"""How pods of a class are dealt out over domains: where fewest are that a spread counts; where fewest are that others
must be near to; or as many as the rules allow where nodes are bought already.
"""


@dataclass(frozen=True)
class Manner:
    """``backwards``: those that others' affinity waits for come last. ``shuffle``: classes of one priority in an order
    of that number; 0 for the usual one. ``cautious``: no host takes more of the pods that a spread over hosts counts
    than its owners, which may have to join them, could be beside. ``heedless``: pods are dealt out as if new nodes
    brought no DaemonSets' pods that spreads count; that is right where every domain gets as many nodes, and none may be
    in several.
    """

    dealing: Dealing = "even"
    smallest_first: bool = False
    backwards: bool = False
    shuffle: int = 0
    cautious: bool = False
    heedless: bool = False

    def place(self, name: str, depth: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """By which classes of one priority are sorted."""
        if self.shuffle:
            return (zlib.crc32(f"{self.shuffle} {name}".encode()),)
        sign = 1 if self.smallest_first else -1
        return (-depth if self.backwards else depth, *(sign * size for size in sizes))


USUAL = Manner()


def manners_for_left(left: Sequence[PodClass], topology: Topology) -> Iterator[Manner]:
    """What might place the pods that have no place; nothing where no rule about pods is theirs or looks at them."""
    if any(topology.rules[pods] or topology.minds(pods) for pods in left):
        if any(_needs_spread_neighbours(pods, topology) for pods in left):
            yield Manner(cautious=True)
        yield Manner(dealing="gathered")
        yield Manner(backwards=True)
        yield from (Manner(shuffle=number) for number in (1, 2, 3))


def _needs_spread_neighbours(pods: PodClass, topology: Topology) -> bool:
    """Whether the class must share a host with others, and a spread over hosts is in the way somewhere."""
    hard = [rule for rule in topology.rules[pods] if rule.weight is None and rule.key == HOSTNAME]
    spreads = [rule for rule in hard if rule.kind == "spread"]
    foreign = [group for group in topology.foreign_over(pods, HOSTNAME) if group.rule.kind == "spread"]
    return any(rule.kind == "affinity" for rule in hard) and bool(spreads or foreign)


def manners_for_price(nodes: Sequence[NewNode]) -> Iterator[Manner]:
    """What might need fewer nodes: nothing where one is bought,
    or where no pod was dealt to one domain rather than another.
    """
    if len(nodes) > 1 and any(batch.domains for node in nodes for batch in node.placed):
        yield Manner(dealing="gathered")


def both_near_and_spread(pods: PodClass, topology: Topology) -> frozenset[str]:
    """The keys over which the class must be near other pods and evenly spread as well, hosts apart."""
    hard = [rule for rule in topology.rules[pods] if rule.weight is None and rule.key != HOSTNAME]
    near = {rule.key for rule in hard if rule.kind == "affinity"}
    return frozenset(near & {rule.key for rule in hard if rule.kind == "spread"})


def zones_without_neighbours(classes: Sequence[PodClass], topology: Topology) -> frozenset[tuple[str, str]]:
    """The zones (key and domain) that may keep pods from being placed only because their spread ranges over them: their
    affinity lets none in there.

    None over which another spread ranges: it would be uneven without them.
    """
    torn = [pods for pods in classes if ZONE in both_near_and_spread(pods, topology)]
    ranged, others = set[str](), set[str]()
    for pods in classes:
        for rule in topology.rules[pods]:
            if (rule.kind, rule.key) == ("spread", ZONE):
                (ranged if pods in torn else others).update(topology.group(rule).domains)
    return frozenset((ZONE, zone) for zone in ranged - others - topology.neighbouring(torn, ZONE))
