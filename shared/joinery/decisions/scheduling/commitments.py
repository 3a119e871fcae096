"""Commitments: hours that are paid for whether they are used or not, and which nodes use them.

A Reserved Instance pays for on-demand instances of a type, in a zone or in the region; a Savings Plan for so many $/h
of on-demand instances, at rates of its own. What is left of either costs nothing more to use, so at the margin a node
that it covers is free, up to the end of the stock. AWS decides by the hour which instances are covered: Reserved
Instances come before Savings Plans, those of a zone before those of the region, Savings Plans of a family before those
of all, and among instances those first of which the most is saved (AWS, "Understanding how Savings Plans apply to your
usage", "How Reserved Instances are applied"). The last one may be covered in part.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from joinery.objects.karpenter.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, ZONE
from joinery.objects.snapshot.nodes import NodeView

#: What EKS calls the capacity type of a managed node group's nodes, in capitals.
_EKS_CAPACITY_TYPE = "eks.amazonaws.com/capacityType"
#: Of a node or a stock: less is none.
NEGLIGIBLE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Commitment:
    """A stock of hours. They are used in the order in which commitments are listed.

    name    as a person knows it
    stock   how much there is for these nodes: $/h of a Savings Plan; of Reserved Instances how many instances, or
            normalized units where their size is flexible
    rates   by instance type that it covers, how much of the stock a node uses
    zone    the only one in which it covers; empty for the whole region
    """

    name: str
    stock: float
    rates: Mapping[str, float]
    zone: str = ""

    def rate(self, instance_type: str, zone: str) -> float | None:
        """How much of the stock a node uses there; None where it is not covered."""
        return self.rates.get(instance_type) if self.zone in ("", zone) else None


@dataclass(frozen=True, slots=True)
class Usage:
    """An on-demand node. ``price``: $/h, were it not covered."""

    node: str
    instance_type: str
    zone: str
    price: float


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What commitments pay for. ``shares``: by node, of its price, from 0 to 1. ``left``: of each stock, by name."""

    shares: Mapping[str, float] = field(default_factory=dict)
    left: Mapping[str, float] = field(default_factory=dict)


def coverage(usages: Iterable[Usage], commitments: Iterable[Commitment]) -> Coverage:
    """Which nodes are covered, as AWS would have it; of nodes that save the same the first by name."""
    nodes = list(usages)
    open_shares, left = {usage.node: 1.0 for usage in nodes}, dict[str, float]()
    for commitment in commitments:
        stock = commitment.stock
        rated = [(rate, usage) for usage in nodes if (rate := commitment.rate(usage.instance_type, usage.zone))]
        for rate, usage in sorted(rated, key=lambda each: (-each[1].price / each[0], each[1].node)):
            taken = min(open_shares[usage.node], stock / rate)
            open_shares[usage.node] -= taken
            stock -= taken * rate
        left[commitment.name] = max(0.0, stock)
    return Coverage(shares={node: 1.0 - share for node, share in open_shares.items()}, left=left)


def saved(usages: Sequence[Usage], covered: Coverage) -> float:
    """$/h of these nodes that commitments pay."""
    return sum(usage.price * covered.shares[usage.node] for usage in usages)


def is_on_demand(view: NodeView) -> bool:
    """Whether a node is billed by on-demand prices: Karpenter's by its label, a managed node group's by EKS's. One of
    which nobody says it is taken to be.
    """
    said = view.labels.get(CAPACITY_TYPE) or view.labels.get(_EKS_CAPACITY_TYPE, ON_DEMAND)
    return said.lower().replace("_", "-") == ON_DEMAND and bool(view.labels.get(INSTANCE_TYPE))


def usage_of(view: NodeView, price: float) -> Usage:
    """An existing node's."""
    return Usage(view.name, view.labels[INSTANCE_TYPE], view.labels.get(ZONE, ""), price)
