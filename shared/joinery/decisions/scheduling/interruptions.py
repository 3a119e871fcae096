"""Spot nodes that EC2 takes back: what that is expected to cost, in the choice of nodes and of a whole plan.

While nodes are chosen, a spot offering counts as its price and what interruptions of a node that is full of the
pending pods are expected to cost: the share of such nodes that is interrupted within an hour, times what the evictions
of its pods cost, times a weight. What a node will hold is not known before it is chosen, so all pods count as alike: a
node that has room for a tenth of what they ask for holds a tenth of them. All that chooses by price, chooses by that:
instance types, NodePools, and between spot and on demand.

A plan's own prices are the catalogue's, and so are its bounds. Its risk is that of the pods that are on its nodes. By
both it is compared with the plan that is made without: no search is exact, and this one must not make it worse.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from msgspec.structs import replace as with_fields

from joinery.decisions.scheduling.constraints.resources import PODS, requests_of
from joinery.decisions.scheduling.firstfit.pending import pending
from joinery.decisions.scheduling.packing import Launch, Packing, PlacedOffering, Unplaced, Unproven
from joinery.decisions.scheduling.pool_shares import planned_shares
from joinery.decisions.scheduling.problem import EvictionPrices, Interruptions, Problem
from joinery.decisions.scheduling.solve import Stopwatch, solve_unproven
from joinery.objects.karpenter.labels import CAPACITY_TYPE, INSTANCE_TYPE, RESERVED, SPOT, ZONE
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.quantity import Resources, total
from joinery.objects.snapshot.offerings import InstanceType, Offering, changed_types

#: As AWS bills a month.
HOURS_A_MONTH = 730.0
#: What a node has a share of. Few pods ask for devices, and most nodes have none.
_SHARED = ("cpu", "memory", PODS)
#: $/h: prices that differ by less are one price.
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Risk:
    """What interruptions of a plan's new nodes are expected to be.

    nodes          how many of them are on spot
    interrupted    how many of those are interrupted within a month
    evicted        how many pods are evicted by that within a month
    hourly         $/h that these evictions cost
    """

    nodes: int = 0
    interrupted: float = 0.0
    evicted: float = 0.0
    hourly: float = 0.0


def risk_of(launches: Iterable[Launch], interruptions: Interruptions) -> Risk:
    """The risk of these launches, each in the offering that it counts on."""
    nodes, interrupted, evicted, hourly = 0, 0.0, 0.0, 0.0
    for launch in launches:
        if launch.offering.capacity_type == SPOT:
            rate = interruptions.rate(launch.offering.instance_type)
            cost = sum(interruptions.evictions.of(pod, launch.node_pool) for pod in launch.pods)
            nodes, interrupted, evicted = nodes + 1, interrupted + rate, evicted + rate * len(launch.pods)
            hourly += rate / HOURS_A_MONTH * cost
    return Risk(nodes=nodes, interrupted=interrupted, evicted=evicted, hourly=hourly)


def solve_at_risk(
    problem: Problem,
    *,
    stopwatch: Stopwatch = lambda: 0.0,
    refused: Mapping[str, Unplaced] = MappingProxyType({}),
    bounded_at: Problem | None = None,
) -> Unproven:
    """``solve``, with what interruptions are expected to cost in the choice of nodes; the same as ``solve`` where
    nothing is known of them, or where their weight is 0.

    Costs twice as much as ``solve``: nodes are chosen with and without it, and the better plan counts. Once the time
    limit has passed they are not chosen anew.
    """
    usual = solve_unproven(problem, stopwatch=stopwatch, refused=refused, bounded_at=bounded_at)
    interruptions, limit = problem.interruptions, problem.options.time_limit
    if interruptions is None or not interruptions.weight or (limit is not None and stopwatch() >= limit):
        return usual
    counted = with_risk(problem, interruptions)
    careful = solve_unproven(counted, stopwatch=stopwatch, refused=refused, bounded_at=bounded_at or problem)
    return _better(problem, interruptions, usual, careful.then(partial(_priced, problem)))


def _better(problem: Problem, interruptions: Interruptions, usual: Unproven, careful: Unproven) -> Unproven:
    """The careful plan where it costs less with its risk, and is no worse in what comes before price; else the usual
    one.
    """
    packings = (usual.packing, careful.packing)
    risks = [risk_of(packing.launches, interruptions).hourly for packing in packings]
    costs = [
        packing.hourly + packing.resilience_cost + interruptions.weight * risk
        for packing, risk in zip(packings, risks, strict=True)
    ]
    debts = [owed(problem, packing) for packing in packings]
    is_as_good = unplaced(packings[1]) == unplaced(packings[0]) and debts[1] <= debts[0]
    if not is_as_good or costs[1] >= costs[0] - _NEGLIGIBLE:
        return usual
    premium, spared = packings[1].hourly - packings[0].hourly, risks[0] - risks[1]
    return careful.then(lambda packing: replace(packing, risk_premium=premium, risk_spared=spared))


def unplaced(packing: Packing) -> set[str]:
    return {one.pod for one in packing.unplaced}


def owed(problem: Problem, packing: Packing) -> tuple[object, ...]:
    """What a plan that places the same pods owes its users before it is cheap (``attempt.Rank``). Lower is better."""
    weights = Counter[int]()
    for launch in packing.launches:
        weights[problem.snapshot.pools_by_name[launch.node_pool].spec.weight or 0] += len(launch.pods)
    shares = planned_shares(problem.snapshot.pool_shares, packing.launches)
    return (
        sum(share.lacking for share in shares.values()),
        sum(len(relaxed.dropped) for relaxed in packing.relaxed),
        -sum(len(placement.pods) for placement in packing.existing),
        [(-weight, -count) for weight, count in sorted(weights.items(), reverse=True)],
        sum(len(launch.pods) for launch in packing.launches if launch.min_values_relaxed),
    )


def with_risk(problem: Problem, interruptions: Interruptions) -> Problem:
    """The problem with spot at what it counts as."""
    pods = pending(problem, problem.snapshot.views)
    asked = total(_requests(pods))

    def counted(_: str, kinds: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
        worth = _worth(problem, kinds, pods, interruptions.evictions)
        return kinds if worth is None else tuple(_counted(kind, asked, worth, interruptions) for kind in kinds)

    return replace(problem, instance_types=changed_types(problem.instance_types, counted))


def _requests(pods: Iterable[Pod]) -> Iterator[Resources]:
    """What pods ask for. One whose quantities cannot be read has no place, and nothing is bought for it."""
    for pod in pods:
        with suppress(ValueError):
            yield requests_of(pod)


def _worth(
    problem: Problem, kinds: Sequence[InstanceType], pods: Iterable[Pod], evictions: EvictionPrices
) -> float | None:
    """Dollars that evicting all pods costs; None where no NodePool's nodes are of these types.

    Its NodePools may price an eviction each in their own way, and share their instance types; the highest price counts.
    """
    pools = (pool for pool in problem.snapshot.node_pools if problem.types_of(pool) is kinds)
    dearest = max((pool.metadata.name for pool in pools), key=evictions.ordinary.__getitem__, default=None)
    return None if dearest is None else sum(evictions.of(pod.key, dearest) for pod in pods)


def _counted(kind: InstanceType, asked: Resources, worth: float, interruptions: Interruptions) -> InstanceType:
    """The type with its spot offerings at what they count as. ``worth``: dollars for the evictions of all pods."""
    shares = (kind.allocatable.get(name, 0) / asked[name] for name in _SHARED if asked.get(name))
    share = min(1.0, max(0.0, min(shares, default=0.0)))
    added = interruptions.weight * interruptions.rate(kind.name) / HOURS_A_MONTH * share * worth
    if not added:
        return kind
    offerings = (
        with_fields(offering, price=offering.price + added) if offering.capacity_type == SPOT else offering
        for offering in kind.offerings
    )
    return replace(kind, offerings=tuple(offerings))


def _priced(problem: Problem, packing: Packing) -> Packing:
    """The packing at the catalogue's prices, of which its bounds are already."""
    catalogue = {
        pool.metadata.name: {kind.name: kind for kind in problem.types_of(pool)} for pool in problem.snapshot.node_pools
    }
    launches, alike = [], dict[Hashable, Launch]()
    for launch in packing.launches:
        # Nodes of one recipe share what they require.
        key = launch.node_pool, launch.instance_types, launch.offering, id(launch.requirements)
        if key not in alike:
            alike[key] = _at_price(launch, catalogue[launch.node_pool])
        launches.append(replace(alike[key], name=launch.name, pods=launch.pods))
    return replace(packing, launches=tuple(launches))


def _at_price(launch: Launch, kinds: Mapping[str, InstanceType]) -> Launch:
    """The launch at the catalogue's price, and without what is cheaper and more of a risk: EC2 would take that first.

    Where minValues ask for several types, all stay, and the plan counts on the cheapest.
    """
    if launch.offering.capacity_type == RESERVED:
        return launch
    sold = {name: [*_allowed(launch, kinds[name])] for name in launch.instance_types}
    if any(one.min_values is not None for one in launch.requirements):
        return _counting_on_cheapest(launch, sold)
    counted_on = launch.offering
    price = kinds[counted_on.instance_type].price(counted_on.zone, counted_on.capacity_type) or 0.0
    cheaper = [one for offerings in sold.values() for one in offerings if one.price < price - _NEGLIGIBLE]
    requirements = launch.requirements
    if cheaper and counted_on.capacity_type != SPOT:
        # What is on demand has no risk, so what is cheaper is on spot.
        sold = {name: [one for one in offerings if one.capacity_type != SPOT] for name, offerings in sold.items()}
        requirements = only(requirements, CAPACITY_TYPE, (counted_on.capacity_type,))
    least = {name: min(one.price for one in offerings) for name, offerings in sold.items() if offerings}
    kept = sorted((name for name in least if least[name] >= price - _NEGLIGIBLE), key=least.__getitem__)
    return replace(
        launch,
        instance_types=tuple(kept),
        requirements=only(requirements, INSTANCE_TYPE, kept),
        offering=replace(counted_on, price=price),
    )


def _counting_on_cheapest(launch: Launch, sold: Mapping[str, Sequence[Offering]]) -> Launch:
    cheapest = {name: min(offerings, key=lambda one: one.price) for name, offerings in sold.items()}
    by_price = sorted(cheapest, key=lambda name: cheapest[name].price)
    offering = cheapest[by_price[0]]
    counted_on = PlacedOffering(
        by_price[0], offering.zone, offering.capacity_type, offering.price, listed=offering.listed
    )
    return replace(launch, instance_types=tuple(by_price), offering=counted_on)


def _allowed(launch: Launch, kind: InstanceType) -> Iterator[Offering]:
    """What EC2 may take of the type: available, in the zones and capacity types of the launch, and in no
    reservation.
    """
    wanted = {one.key: one.values for one in launch.requirements if one.key in (ZONE, CAPACITY_TYPE)}
    for offering in kind.offerings:
        is_wanted = offering.zone in wanted[ZONE] and offering.capacity_type in wanted[CAPACITY_TYPE]
        if offering.available and is_wanted and not offering.reservation:
            yield offering


def only(requirements: Iterable[Requirement], key: str, values: Iterable[str]) -> tuple[Requirement, ...]:
    """The requirements with these values of the label."""
    return tuple(one.model_copy(update={"values": sorted(values)}) if one.key == key else one for one in requirements)
