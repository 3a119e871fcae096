"""What a person looks at in a plan: a few kinds of nodes, and on them workloads instead of thousands of pods.

Launches with the same offering that hold the same numbers of the same workloads are one **group**; groups of one
NodePool are one **section**. Table, page and pictures draw these; ``plan_groups`` derives them.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from joinery.decisions.scheduling.packing import ExistingPlacement, Launch, Packing
from joinery.objects.karpenter.labels import ZONE
from joinery.objects.kubernetes.quantity import total
from joinery_cli.notices import UserNotice
from joinery_cli.prices import Prices
from joinery_cli.view.costs import Costs
from joinery_cli.view.figures import NOTED_COST, in_order
from joinery_cli.view.workloads import DrawnWorkload, Filled

if TYPE_CHECKING:
    # Made for --explain alone.
    from joinery.decisions.scheduling.explain.explanation import Explanation


@dataclass(frozen=True, kw_only=True)
class Group:
    """Launches that nobody needs to tell apart. ``nodes`` are in the order of ``launches``."""

    launches: tuple[Launch, ...]
    nodes: tuple[Filled, ...]

    @property
    def price(self) -> float:
        """$/h of all of them."""
        return self.launches[0].offering.price * len(self.launches)

    @property
    def where(self) -> str:
        """Where each of them is launched."""
        return where_launched(self.launches[0])


def zones_allowed(launch: Launch) -> int:
    """In how many zones the launch may end; the offering that it counts on is in the cheapest of them."""
    return next((len(r.values) for r in launch.requirements if r.key == ZONE and r.operator == "In"), 1)


def where_launched(launch: Launch) -> str:
    """Its zone; ``any of 3 zones`` where it may choose."""
    choice = zones_allowed(launch)
    return f"any of {choice} zones" if choice > 1 else launch.offering.zone


@dataclass(frozen=True, kw_only=True)
class Section:
    """What is bought of one NodePool; the dearest group first."""

    node_pool: str
    groups: tuple[Group, ...]

    @property
    def price(self) -> float:
        return sum(group.price for group in self.groups)

    @property
    def nodes(self) -> tuple[Filled, ...]:
        return tuple(node for group in self.groups for node in group.nodes)


@dataclass(frozen=True, kw_only=True)
class Existing:
    """A node, or a claim whose node is on its way, that takes pods of the plan."""

    placement: ExistingPlacement
    node_pool: str
    instance_type: str
    zone: str
    node: Filled

    @property
    def name(self) -> str:
        return self.placement.node or self.placement.node_claim


@dataclass(frozen=True, slots=True)
class Refused:
    """Pods that stay pending for the same reasons."""

    reasons: tuple[str, ...]
    pods: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PlanView:
    """A whole plan to look at. ``seconds``: from parsed objects to verified plan."""

    packing: Packing
    costs: Costs
    prices: Prices
    notices: tuple[UserNotice, ...]
    now: datetime
    seconds: float
    workloads: tuple[DrawnWorkload, ...]
    sections: tuple[Section, ...]
    existing: tuple[Existing, ...]
    refused: tuple[Refused, ...]
    dropped: tuple[tuple[str, int], ...]
    """Preferences that were given up, and by how many pods; the most frequent first."""
    chunks: int = 0
    """How many of the placed pods only stand for room that a buffer keeps free."""
    explanations: "tuple[Explanation, ...]" = ()
    """Of the pods that were asked for by ``--explain``."""

    @property
    def listed(self) -> float | None:
        """$/h of its launches by AWS's list, where they count as something else."""
        listed = self.costs.listed
        return listed if listed is not None and abs(listed - self.packing.hourly) >= NOTED_COST else None

    @property
    def placed(self) -> int:
        existing = sum(len(one.pods) for one in self.packing.existing)
        return existing + sum(len(launch.pods) for launch in self.packing.launches)

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """What nodes are measured by: CPU, memory, and whatever else some pod of a new node asks for."""
        asked = total(part.workload.requests for section in self.sections for n in section.nodes for part in n.parts)
        return tuple(dict.fromkeys(("cpu", "memory", *in_order({name for name in asked if asked[name]}))))
