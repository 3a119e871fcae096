"""What ``solve`` answers: where every pod goes, what to buy for it, and why some pods go nowhere."""

from collections.abc import Mapping
from dataclasses import dataclass

from joinery.apis.meta import Requirement, Taint
from joinery.apis.quantity import Resources
from joinery.scheduling.reason import Reason

_NOTHING = 1e-6
"""$/h: what reserved nodes cost."""


@dataclass(frozen=True, slots=True)
class PlacedOffering:
    """The offering a launch counts on; price in $/h.

    ``reservation``: the id of the capacity reservation, where it is in one.
    """

    instance_type: str
    zone: str
    capacity_type: str
    price: float
    reservation: str = ""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A node to buy. It becomes a NodeClaim that allows every one of ``instance_types``.

    ``requests`` is the sum of its pods and its daemon overhead. ``labels`` holds every label the node will have that
    its instance type and offering do not decide. ``instance_types`` is what the request carries, cheapest first.
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


@dataclass(frozen=True, slots=True)
class ExistingPlacement:
    """Pods that fit on a node that exists (``node``) or on a claim that is on its way (``node`` empty)."""

    node: str
    node_claim: str
    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unplaced:
    pod: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Preferences of a placed pod that nothing could satisfy, in the order in which they were dropped."""

    pod: str
    dropped: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Packing:
    """A whole plan. Pods are named ``namespace/name``; every pending pod is in it exactly once.

    ``lower_bound`` is a proven bound on the hourly price of any set of new nodes for the pods in ``launches``;
    ``kept_bound``: if they keep the preferences that this plan keeps. ``weaknesses``: why even that is far below the
    price, in words, where it is.
    ``passed_over``: domains (canonical key, value) in which nothing was to be bought, so that spreads do not wait for
    them and more pods have a place. ``resilience_cost``: about what preferred node sizes and a choice of types for spot
    add to the price, in $/h (``sizes``, ``kinds``).
    """

    existing: tuple[ExistingPlacement, ...] = ()
    launches: tuple[Launch, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    relaxed: tuple[Relaxed, ...] = ()
    pool_reasons: tuple[Reason, ...] = ()
    lower_bound: float = 0.0
    kept_bound: float = 0.0
    weaknesses: tuple[str, ...] = ()
    method: str = "first-fit"
    limit_struck: bool = False
    passed_over: frozenset[tuple[str, str]] = frozenset()
    resilience_cost: float = 0.0

    @property
    def hourly(self) -> float:
        """$/h of all launches."""
        return sum(launch.offering.price for launch in self.launches)

    @property
    def gap(self) -> float:
        """How far the price may be above the best possible: 0.02 is two percent.

        Where all is reserved there is nothing to gain.
        """
        return self._above(self.lower_bound)

    @property
    def kept_gap(self) -> float:
        """The same, of what is possible with the preferences that this plan keeps."""
        return self._above(max(self.lower_bound, self.kept_bound))

    def _above(self, bound: float) -> float:
        above = self.hourly - bound
        return above / bound if above > _NOTHING and bound > 0 else 0.0
