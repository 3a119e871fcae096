"""Where the pods of some nodes would go if these went: Karpenter's scheduling simulation, by the product's core.

Karpenter wants at most one new node. The core buys what is cheapest, which may be several, so these are put together
where one type holds all their pods.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from joinery.decisions.disruption.candidates import Candidate, Candidates
from joinery.decisions.disruption.consolidation.simulation import simulate
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.decisions.scheduling.packing import ExistingPlacement, Launch
from joinery.decisions.scheduling.problem import Wishes
from joinery.decisions.verification.predicates import unmet
from joinery.objects.karpenter.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.kubernetes.quantity import Resources, total
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.offerings import InstanceType, Offering
from joinery.objects.snapshot.pods import is_active

_LAUNCHED_FIRST = (RESERVED, SPOT, ON_DEMAND)
#: What a stopwatch says when all time has been used up.
_LATE = 1.0


@dataclass(frozen=True)
class Replacement:
    """A new node. ``types``: by name, all that its node class sells."""

    launch: Launch
    types: Mapping[str, InstanceType]

    @property
    def capacity_types(self) -> frozenset[str]:
        """Those of the offerings that the launch allows."""
        return frozenset(offering.capacity_type for name in self.launch.instance_types for offering in self._of(name))

    def worst_price(self, name: str) -> float:
        """$/h of the dearest offering that a launch of the type may come to (Karpenter `WorstLaunchPrice`)."""
        offerings = self._of(name)
        for capacity_type in _LAUNCHED_FIRST:
            prices = [offering.price for offering in offerings if offering.capacity_type == capacity_type]
            if prices:
                return max(prices)
        return float("inf")

    def of_capacity_type(self, capacity_type: str) -> "Replacement":
        """The same, of that capacity type only."""
        kept = [rule for rule in self.launch.requirements if rule.key != CAPACITY_TYPE]
        rules = (*kept, Requirement(key=CAPACITY_TYPE, operator="In", values=[capacity_type]))
        narrowed = replace(self, launch=replace(self.launch, requirements=rules))
        sold = tuple(name for name in self.launch.instance_types if narrowed._of(name))
        return replace(narrowed, launch=replace(narrowed.launch, instance_types=sold))

    def narrowed(self, names: Sequence[str]) -> Launch | None:
        """The launch with these types only, counting on the cheapest of them; None without any."""
        offers = [(offering.price, name, offering) for name in names for offering in self._of(name)]
        if not offers:
            return None
        price, name, offering = min(offers, key=lambda offer: offer[:2])
        chosen = replace(
            self.launch.offering,
            instance_type=name,
            zone=offering.zone,
            capacity_type=offering.capacity_type,
            price=price,
        )
        return replace(self.launch, instance_types=tuple(names), offering=chosen)

    def _of(self, name: str) -> list[Offering]:
        """The offerings of a type that the launch's zones and capacity types allow."""
        rules = [rule for rule in self.launch.requirements if rule.key in (ZONE, CAPACITY_TYPE)]
        return [
            offering
            for offering in self.types[name].offerings
            if offering.available and unmet(rules, {ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type}) is None
        ]


@dataclass(frozen=True)
class Moved:
    """All pods have another place. ``existing``: on nodes that stay. ``new``: the node to buy for the others."""

    existing: tuple[ExistingPlacement, ...] = ()
    new: Replacement | None = None


class Mover:
    """Asks about sets of candidates of one problem."""

    def __init__(self, problem: DisruptionProblem, judged: Candidates) -> None:
        # Karpenter's simulation is first-fit too. Nobody asks for a bound, so time is up from the beginning.
        options = replace(problem.packing.options, first_fit_only=True, time_limit=_LATE / 2)
        self._problem, self._judged = replace(problem, packing=replace(problem.packing, options=options)), judged
        self._types = {
            name: {sold.name: sold for sold in types} for name, types in problem.packing.instance_types.items()
        }
        self._rooms = [
            (min(offering.price for offering in sold.offerings), sold.allocatable)
            for types in self._types.values()
            for sold in types.values()
            if sold.offerings
        ]
        self._free = {view.name: _free(view) for view in judged.nodes if view.node in judged.destinations}

    def move(self, members: Sequence[Candidate], *, below: float = float("inf")) -> Moved | None:
        """Where their pods go; None if some have no other place, or more than one new node is needed.

        ``below``: $/h; a new node that costs as much or more is of no interest.
        """
        if not self._fits_first(members, below):
            return None
        tried = simulate(self._problem, self._judged, members, Wishes(), lambda: _LATE)
        if tried.stuck:
            return None
        if not tried.launches:
            return Moved(tried.existing)
        launch = tried.launches[0] if len(tried.launches) == 1 else self._together(tried.launches)
        return Moved(tried.existing, Replacement(launch, self._sold(launch))) if launch else None

    def _fits_first(self, members: Sequence[Candidate], below: float) -> bool:
        """Whether first-fit by room alone finds a place for all pods, at most one of them a new node.

        In Karpenter's order: pods by cpu and memory, largest first, onto nodes by name. What this does not find,
        Karpenter does not find either; and it takes a hundredth of the time of all rules, which are asked afterwards.
        """
        gone = {candidate.view.name for candidate in members}
        rooms = [dict(room) for name, room in self._free.items() if name not in gone]
        left: dict[str, int] = {}
        for asked in sorted((requests_of(pod) for one in members for pod in one.pods), key=_largest_first):
            room = next((room for room in rooms if _fits(asked, room)), None)
            if room is None:
                left = {name: left.get(name, 0) + value for name, value in asked.items()}
                if not self._is_sold(left, below):
                    return False
            else:
                for name, value in asked.items():
                    room[name] -= value
        return True

    def _is_sold(self, asked: Resources, below: float) -> bool:
        """Whether any type that costs less holds so much."""
        return any(_fits(asked, room) for price, room in self._rooms if price < below)

    def _sold(self, launch: Launch) -> Mapping[str, InstanceType]:
        pool = self._problem.packing.snapshot.pools_by_name[launch.node_pool]
        return self._types[pool.spec.template.spec.node_class_ref.name]

    def _together(self, launches: Sequence[Launch]) -> Launch | None:
        """One launch for the pods of all; None if no type holds them, or they may not be together."""
        first = launches[0]
        if any((other.node_pool, other.taints) != (first.node_pool, first.taints) for other in launches):
            return None
        pods = {pod.key: pod for pod in self._problem.packing.snapshot.pods}
        own = total(requests_of(pods[pod]) for pod in first.pods)
        daemons = {name: value - own.get(name, 0) for name, value in first.requests.items()}
        moved = tuple(pod for launch in launches for pod in launch.pods)
        requests = total((daemons, *(requests_of(pods[pod]) for pod in moved)))
        rules = tuple(rule for launch in launches for rule in launch.requirements if rule.key != INSTANCE_TYPE)
        sold = self._sold(first)
        names = [
            name
            for name in sorted({name for launch in launches for name in launch.instance_types} | set(sold))
            if _fits(requests, sold[name].allocatable) and _is_allowed(sold[name], rules)
        ]
        whole = replace(first, pods=moved, requests=requests, requirements=rules, instance_types=tuple(names))
        return Replacement(whole, sold).narrowed(names)


def _is_allowed(sold: InstanceType, rules: Sequence[Requirement]) -> bool:
    """Whether requirements other than those on zone and capacity type allow the type."""
    labels = {key: values[0] for key, values in sold.labels.items() if len(values) == 1}
    return unmet([rule for rule in rules if rule.key in labels], labels) is None


def _free(view: NodeView) -> Resources:
    """What the node has left."""
    used = total(requests_of(pod) for pod in view.pods if is_active(pod))
    return {name: value - used.get(name, 0) for name, value in view.allocatable.items()}


def _largest_first(asked: Resources) -> tuple[int, int]:
    return -asked.get("cpu", 0), -asked.get("memory", 0)


def _fits(asked: Resources, room: Resources) -> bool:
    return all(room.get(name, 0) >= value for name, value in asked.items())
