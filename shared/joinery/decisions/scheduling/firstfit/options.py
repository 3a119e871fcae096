"""In which order first-fit places classes, and how it deals them out over domains.

First-fit settles one class after another, and each choice of domains is final. ``strategies`` says when other manners
than the usual one are tried, and for whom.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import HOSTNAME, ZONE

Dealing = Literal["even", "ahead", "gathered"]
"""How pods of a class are dealt out over domains.

even       where the fewest pods are that a spread counts
ahead      where the fewest are that others must be near to, so that there are some in every domain
gathered   as many as the rules allow where nodes are bought already
"""


@dataclass(frozen=True)
class Manner:
    """How first-fit goes about a packing.

    dealing          how pods of a class are dealt out over domains
    smallest_first   small classes come before large ones
    backwards        classes that others want to be near to come last instead of first
    shuffle          the number of a random order of classes of one priority; 0 for the usual order
    cautious         no host takes so many pods that a spread over hosts counts that its owners, which may
                     have to join them there, would be too many
    ignores_daemons  pods are dealt out as if new nodes brought no DaemonSets' pods that spreads count; that is right
                     where every domain gets as many nodes, and no node may be in several
    fitting          domains are ranked by the cheapest node there that holds a pod of the class. Usually they are
                     ranked by the cheapest of any size: that is the same for all classes, so that they share nodes
    listed           required node affinity terms are tried in the order in which they are listed, as in Karpenter
    neighbours_next  pods that must share a host with others come right after one of those, before the host is full
    """

    dealing: Dealing = "even"
    smallest_first: bool = False
    backwards: bool = False
    shuffle: int = 0
    cautious: bool = False
    ignores_daemons: bool = False
    fitting: bool = False
    listed: bool = False
    neighbours_next: bool = False

    def place(self, name: str, depth: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """The sort key of a class among those of one priority.

        ``depth``: how many classes come before it because it wants to be near them.
        ``sizes``: larger is harder to place.
        """
        if self.shuffle:
            return (zlib.crc32(f"{self.shuffle} {name}".encode()),)
        sign = 1 if self.smallest_first else -1
        return (-depth if self.backwards else depth, *(sign * size for size in sizes))


USUAL = Manner()


def manners_for_left(left: Sequence[PodClass], topology: Topology) -> Iterator[Manner]:
    """Manners that might place pods that are left, if rules about pods are what keeps them from a place."""
    if any(topology.rules[pod_class] or topology.concerns(pod_class) for pod_class in left):
        if any(_needs_spread_neighbours(pod_class, topology) for pod_class in left):
            yield Manner(cautious=True)
        if any(neighbours_on_host(pod_class, topology) for pod_class in left):
            yield Manner(neighbours_next=True)
        yield Manner(dealing="gathered")
        yield Manner(backwards=True)
        yield from (Manner(shuffle=number) for number in (1, 2, 3))


def neighbours_on_host(pod_class: PodClass, topology: Topology) -> tuple[TopologyRule, ...]:
    """The rules by which the class must share a host with others."""
    hard = (rule for rule in topology.rules[pod_class] if rule.weight is None)
    return tuple(rule for rule in hard if (rule.kind, rule.key) == ("affinity", HOSTNAME))


def _needs_spread_neighbours(pod_class: PodClass, topology: Topology) -> bool:
    """Whether the class must share a host with others, and a spread over hosts is its own or counts it."""
    hard = [rule for rule in topology.rules[pod_class] if rule.weight is None and rule.key == HOSTNAME]
    spreads = [rule for rule in hard if rule.kind == "spread"]
    foreign = [group for group in topology.foreign_over(pod_class, HOSTNAME) if group.rule.kind == "spread"]
    return bool(neighbours_on_host(pod_class, topology)) and bool(spreads or foreign)


def manners_for_price(nodes: Sequence[NewNode]) -> Iterator[Manner]:
    """Manners that might need fewer or cheaper nodes: none unless pods were dealt to domains, or have a choice of
    terms.
    """
    if any(len(batch.demand.pod_class.terms) > 1 for node in nodes for batch in node.placed):
        yield Manner(listed=True)
    if _are_dealt(nodes):
        yield Manner(fitting=True)
        if len(nodes) > 1:
            yield Manner(dealing="gathered")


def manners_for_much(nodes: Sequence[NewNode]) -> Iterator[Manner]:
    """More of them, for packings that are far above their bound: pods that are free go where others must be."""
    if len(nodes) > 1 and _are_dealt(nodes):
        yield Manner(dealing="gathered", smallest_first=True)
        yield Manner(dealing="gathered", fitting=True)


def _are_dealt(nodes: Sequence[NewNode]) -> bool:
    """Whether pods on them were dealt to domains."""
    return any(batch.domains for node in nodes for batch in node.placed)


def both_near_and_spread(pod_class: PodClass, topology: Topology) -> frozenset[str]:
    """The topology keys, without the host's, over which the class must be near other pods and evenly spread as well."""
    hard = [rule for rule in topology.rules[pod_class] if rule.weight is None and rule.key != HOSTNAME]
    near = {rule.key for rule in hard if rule.kind == "affinity"}
    return frozenset(near & {rule.key for rule in hard if rule.kind == "spread"})


def zones_without_neighbours(classes: Sequence[PodClass], topology: Topology) -> frozenset[tuple[str, str]]:
    """The zones that keep pods from a place only because their spread ranges over them.

    Their affinity lets no pod in there. Returned as places (topology key and zone). Zones over which another spread
    ranges are left out: it would be uneven without them.
    """
    torn = [pod_class for pod_class in classes if ZONE in both_near_and_spread(pod_class, topology)]
    ranged, others = set[str](), set[str]()
    for pod_class in classes:
        for rule in topology.rules[pod_class]:
            if (rule.kind, rule.key) == ("spread", ZONE):
                (ranged if pod_class in torn else others).update(topology.group(rule).domains)
    return frozenset((ZONE, zone) for zone in ranged - others - topology.neighbouring(torn, ZONE))
