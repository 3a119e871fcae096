"""What ``solve`` answers: where every pod goes, what to buy for it, and why some pods go nowhere."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from joinery.decisions.scheduling.reason import Reason
from joinery.objects.karpenter.meta import Requirement, Taint
from joinery.objects.kubernetes.quantity import Resources

#: $/h: prices this far apart count as equal. Nodes in capacity reservations cost less than that.
_NEGLIGIBLE = 1e-6


class Kept(StrEnum):
    """What comes before price in a plan, and is no hard rule."""

    PREFERENCES = "preferences"
    WEIGHTS = "weights"
    SHARES = "shares"
    SIZES = "sizes"


@dataclass(frozen=True, slots=True)
class PlacedOffering:
    """The offering that a launch counts on. EC2 may choose another one of those that the launch allows.

    ``price``: $/h. ``reservation``: the id of the capacity reservation; empty for spot and on-demand. ``listed``: $/h
    by AWS's list, where that is another price.
    """

    instance_type: str
    zone: str
    capacity_type: str
    price: float
    reservation: str = ""
    listed: float | None = None

    @property
    def list_price(self) -> float:
        """$/h, whatever NodeOverlays say: what the bill says."""
        return self.price if self.listed is None else self.listed


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A node to buy. It becomes a NodeClaim that allows every one of ``instance_types``.

    name                 of the NodeClaim to be
    node_pool            name of its NodePool
    requirements         of the NodeClaim
    labels               all that the node will have, except those that its instance type and offering decide
    taints               that the node keeps; ``startup_taints``: that it begins with
    requests             the sum of its pods' and its DaemonSets' requests
    instance_types       what the launch request carries, cheapest first
    offering             what it is expected to be, at what price
    pods                 that are placed on it (namespace/name): first those that claim devices, as they are served
    drivers              whose devices the pods claim
    min_values_relaxed   whether fewer values than minValues are possible (minValuesPolicy BestEffort)
    """

    name: str
    node_pool: str
    requirements: tuple[Requirement, ...]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    startup_taints: tuple[Taint, ...]
    requests: Resources
    instance_types: tuple[str, ...]
    offering: PlacedOffering
    pods: tuple[str, ...]
    min_values_relaxed: bool = False
    drivers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExistingPlacement:
    """Pods that are placed on capacity that is there or on its way.

    ``node``: name of the Node; empty if there is only a NodeClaim yet. ``node_claim``: name of the NodeClaim; empty for
    nodes that Joinery does not manage. ``pods``: namespace/name, first those that claim devices, as they are served.
    """

    node: str
    node_claim: str
    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A pending pod that the plan has no place for. ``reasons``: why, one or more."""

    pod: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Preferences of a placed pod that nothing could satisfy, in the order in which they were dropped."""

    pod: str
    dropped: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Packing:
    """A whole plan. Pods are named namespace/name; every pending pod is in it exactly once.

    existing          pods on nodes that exist or are on their way
    launches          nodes to buy, with their pods
    unplaced          pods without a place, and why
    relaxed           preferences of placed pods that were dropped
    pool_reasons      why NodePools took no part
    lower_bound       $/h: no set of new nodes for the pods in ``launches`` costs less; proven. A spread over hosts is
                      read as Karpenter reads it: one more, empty host may always come
    kept_bound        $/h: the same for sets that keep the preferences that this plan keeps, put no more pods of a class
                      in NodePools of lower weight, keep the shares on demand that it keeps, and give up no more of what
                      is wanted of nodes' sizes
    kept              which of these there are in this plan, and by how much each lifts the bound, $/h: about what it
                      costs. Empty where ``kept_bound`` is not worked out
    weaknesses        why the bounds are far below the price, in words; empty where they are not
    method            how the plan was made
    limit_struck      whether the time limit ended the search for a cheaper plan
    passed_over       domains (canonical topology key, value) in which nothing could be bought. Spreads do not wait for
                      them, so more pods have a place
    resilience_cost   $/h, about: what preferred node sizes and a choice of types for spot add to the price
    share_cost        $/h: what shares on demand of NodePools add to the price of these nodes
    risk_premium      $/h: by how much the plan is dearer than one that is made without rates of interruptions
    risk_spared       $/h: by how much less its interruptions are expected to cost than that one's
    covered           $/h: what commitments that are paid for anyway pay of the launches; the bounds are of the rest
    """

    existing: tuple[ExistingPlacement, ...] = ()
    launches: tuple[Launch, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    relaxed: tuple[Relaxed, ...] = ()
    pool_reasons: tuple[Reason, ...] = ()
    lower_bound: float = 0.0
    kept_bound: float = 0.0
    kept: Mapping[Kept, float] = field(default_factory=dict)
    weaknesses: tuple[str, ...] = ()
    method: str = "first-fit"
    limit_struck: bool = False
    passed_over: frozenset[tuple[str, str]] = frozenset()
    resilience_cost: float = 0.0
    share_cost: float = 0.0
    risk_premium: float = 0.0
    risk_spared: float = 0.0
    covered: float = 0.0

    @property
    def hourly(self) -> float:
        """$/h of all launches."""
        return sum(launch.offering.price for launch in self.launches)

    @property
    def paid(self) -> float:
        """$/h that all launches add to the bill."""
        return max(0.0, self.hourly - self.covered)

    @property
    def gap(self) -> float:
        """How far the price may be above the best possible: 0.02 is 2 %.

        It is 0 where all nodes are in capacity reservations, because there is nothing to gain.
        """
        return self._above(self.lower_bound)

    @property
    def kept_gap(self) -> float:
        """How far the price may be above the best possible with the preferences, weights and node sizes that
        this plan keeps.
        """
        return self._above(max(self.lower_bound, self.kept_bound))

    def without_proof(self) -> "Packing":
        """The same plan, with nothing proven of it."""
        return replace(self, lower_bound=0.0, kept_bound=0.0, kept={}, weaknesses=())

    def without_bounds(self) -> "Packing":
        """The same plan, with nothing proven of it, and compared with no other."""
        return replace(self.without_proof(), risk_premium=0.0, risk_spared=0.0)

    def _above(self, bound: float) -> float:
        above = self.paid - bound
        return above / bound if above > _NEGLIGIBLE and bound > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Unproven:
    """A packing to act upon, of which nothing is proven yet.

    ``prove`` returns it with its bounds. That may take seconds, so it is for when no pod waits for it.
    """

    packing: Packing
    prove: Callable[[], Packing]

    def then(self, change: Callable[[Packing], Packing]) -> "Unproven":
        """With the packing changed, whether it is proven or not."""
        return Unproven(change(self.packing), lambda: change(self.prove()))


def placed_pods(existing: Iterable[ExistingPlacement], launches: Iterable[Launch]) -> Iterator[str]:
    """The pods (namespace/name) that have a place in these."""
    for placement in existing:
        yield from placement.pods
    for launch in launches:
        yield from launch.pods


def placements_of(existing: Iterable[ExistingPlacement], pods: Container[str]) -> Iterator[ExistingPlacement]:
    """The placements of these pods only (namespace/name)."""
    for placement in existing:
        own = tuple(pod for pod in placement.pods if pod in pods)
        if own:
            yield replace(placement, pods=own)
