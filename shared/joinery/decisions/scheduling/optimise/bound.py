"""A proven lower bound on what the launches of a packing must cost.

Preferences are no rules, so where they cost something no plan that keeps them is near the bound; and a right plan may
pass over a NodePool of higher weight, though it need not (decision 97). What is wanted of nodes' sizes is no rule
either. A second bound takes for rules what the plan keeps of all three (decision 169). What either of them knows is in
``proof_instance``, and the proofs are in ``optimizer/bounds``. Where a bound is weak, the plan says what its pods and
NodePools ask for that the proof leaves out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from joinery.decisions.optimizer.bounds.exact import SMALL_DEMAND, is_small, solve_exactly
from joinery.decisions.optimizer.bounds.lower_bound import lower_bound
from joinery.decisions.optimizer.bounds.market_bound import market_bound_of_parts
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.optimise.bin_types import Preferences
from joinery.decisions.scheduling.optimise.domain_rows import KEYS
from joinery.decisions.scheduling.optimise.improve import size_factors
from joinery.decisions.scheduling.optimise.proof_demands import (
    ProofDemand,
    hard_demands,
    kept_by,
    kept_demands,
    with_gathered,
)
from joinery.decisions.scheduling.optimise.proof_instance import ProofInstances
from joinery.decisions.scheduling.optimise.share_bound import share_prices
from joinery.decisions.scheduling.packing import Kept
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.objects.karpenter.labels import HOSTNAME
from joinery.objects.snapshot.pool_shares import PoolShare

#: A gap to the bound, as a share of it, beyond which the plan says why.
WEAK = 0.05
#: Simplex iterations times rows that one linear program of a proof may take, some 3 s. Sixty times as many as that of
#: any scenario whose times are published.
_WORK = 200_000_000
#: Pairs of a class and a NodePool for which the simplest bound takes a moment, even where time is up: .1 ms for each.
_SOON_BOUNDED = 2_000
#: Pods of a plan up to which shares on demand and the sizes that users want are kept by a bound. For 200 pods that
#: takes half as long as the plan, and proves nothing more.
_FEW_PODS = 60
#: Classes of which the relaxation's bound takes seconds.
_MANY_CLASSES = 150
_NO_TIME = "the time limit struck before a better one was proven"
_TOO_MUCH = "the pods differ too much from each other to prove a better one"
#: A bound may exceed the price of a plan by so small a share, for sums of floats.
_ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What no set of new nodes for the launched pods can undercut, in $/h.

    ``hard``: under hard rules. ``keeping``: if what comes before price in the plan is a rule too. ``kept``: what that
    is, and by how much each of it lifts the bound, $/h.
    ``weaknesses``: where the latter bound is far from what the plan costs, what its proof leaves out, in words.
    """

    hard: float = 0.0
    keeping: float = 0.0
    kept: Mapping[Kept, float] = field(default_factory=dict)
    weaknesses: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Bound:
    """``cost``: $/h. ``is_tight``: nodes that cost just that keep all that the proof knows of. ``cut_short``: why
    nothing better was proven, in words; empty where the proof came to its end.
    """

    cost: float
    is_tight: bool = False
    cut_short: str = ""


def bounds(  # noqa: PLR0913
    work: Workspace,
    nodes: Sequence[NewNode],
    pools: Sequence[Pool],
    price: float,
    effort: Effort,
    *,
    shares: Mapping[str, PoolShare],
    keeps_sizes: bool = False,
) -> Bounds:
    """Of a packing's new nodes, which cost ``price`` ($/h) together; zero where all of them are reserved, and so paid
    for.

    ``pools``: with all that they sell, also what the packing kept out of. ``effort``: whether there is time for proofs.
    ``shares``: on demand, of NodePools, which the packing keeps. ``keeps_sizes``: whether what is wanted of nodes'
    sizes is kept too; only where the packing had these pools.
    """
    if all(node.reservation for node in nodes):
        return Bounds()
    demands = hard_demands(work, nodes)
    if effort.is_over() and len(demands) * len(pools) > _SOON_BOUNDED:
        return Bounds(weaknesses=(_NO_TIME,))
    hard = keeping = 0.0
    kept: dict[Kept, float] = {}
    for reading in _readings(work, nodes, pools, demands, effort, shares=shares, keeps_sizes=keeps_sizes):
        bound = _proven(work, reading, nodes, price, effort)
        if reading.rule is None:
            hard = keeping = bound.cost
        else:
            kept[reading.rule] = max(bound.cost - keeping, 0.0)
            keeping += kept[reading.rule]
        if keeping >= price * (1 - _ROUNDING):
            break
    weak = _weaknesses(reading.demands, nodes, bound) if price > keeping * (1 + WEAK) else ()
    return Bounds(hard=hard, keeping=keeping, kept=kept, weaknesses=weak)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Reading:
    """What a bound takes for rules. ``rule``: what it keeps that the one before it does not; None for hard rules alone.
    ``is_brief``: whether others keep more. ``preferences``: what makes prices count as other than they are. ``given``:
    $/h, by how much more than their prices the plan's nodes count.

    Nodes that count as no more than that above their prices cost at least the least that any count as, less that.
    """

    rule: Kept | None
    demands: Sequence[ProofDemand]
    pools: Sequence[Pool]
    is_brief: bool = False
    preferences: Preferences | None = None
    given: float = 0.0


def _readings(  # noqa: PLR0913
    work: Workspace,
    nodes: Sequence[NewNode],
    pools: Sequence[Pool],
    hard: Sequence[ProofDemand],
    effort: Effort,
    *,
    shares: Mapping[str, PoolShare],
    keeps_sizes: bool,
) -> Iterator[_Reading]:
    """Hard rules alone first; then with one thing after another that the plan keeps."""
    # What users want of a node's size is no rule.
    whole = [replace(pool, room=pool.market.allocatable - pool.overhead) for pool in pools]
    rules = kept_by(nodes, pools)
    yield _Reading(rule=None, demands=hard, pools=whole, is_brief=bool(rules))
    for rule in rules:
        is_last = rule is rules[-1]
        demands = kept_demands(nodes) if is_last else hard_demands(work, nodes, keeps_weights=True)
        yield _Reading(rule=rule, demands=demands, pools=whole, is_brief=not is_last)
    # In larger plans sizes are a small part of the gap, and shares might be kept by nodes that are hardly there. Prices
    # of reservations count as something of their own.
    if sum(len(node.pods) for node in nodes) > _FEW_PODS or work.reservations:
        return
    if shares:
        yield from _with_shares(work, nodes, whole, kept_demands(nodes) if rules else hard, effort, shares)
    if keeps_sizes:
        yield from _with_sizes(work, nodes, pools)


def _with_shares(  # noqa: PLR0913
    work: Workspace,
    nodes: Sequence[NewNode],
    pools: Sequence[Pool],
    demands: Sequence[ProofDemand],
    effort: Effort,
    shares: Mapping[str, PoolShare],
) -> Iterator[_Reading]:
    """With shares on demand, too; none where they say nothing about the price."""

    def least(repriced: Sequence[Pool], price: float) -> float:
        counting = _Reading(rule=None, demands=demands, pools=repriced, is_brief=True)
        return _proven(work, counting, nodes, price, effort).cost

    prices = share_prices(shares, nodes, pools, demands, least)
    if prices is not None:
        yield _Reading(rule=Kept.SHARES, demands=demands, pools=prices.pools, given=-prices.added)


def _with_sizes(work: Workspace, nodes: Sequence[NewNode], pools: Sequence[Pool]) -> Iterator[_Reading]:
    """With all that the plan keeps, and what is wanted of nodes' sizes; none where each size counts as its price."""
    of_pools = size_factors(work, nodes, ())
    if any((of_pool > 1).any() for of_pool in of_pools.values()):
        given = sum(
            float(node.least_prices[node.cheapest()] * (of_pools[node.pool.name][node.cheapest()] - 1.0))
            for node in nodes
        )
        yield _Reading(
            rule=Kept.SIZES,
            demands=kept_demands(nodes),
            pools=pools,
            preferences=Preferences(size_factors=[of_pools[pool.name] for pool in pools], spot_types=0),
            given=given,
        )


def _weaknesses(demands: Sequence[ProofDemand], nodes: Sequence[NewNode], bound: _Bound) -> tuple[str, ...]:
    if bound.cut_short:
        # What else the proof leaves out may matter less than that.
        return bound.cut_short, *weaknesses(demands, nodes, is_tight=True)
    return weaknesses(demands, nodes, is_tight=bound.is_tight)


def _proven(work: Workspace, reading: _Reading, nodes: Sequence[NewNode], price: float, effort: Effort) -> _Bound:
    """The best bound for its time; no more than ``price``, because nodes that cost so much are known.

    Of many classes a proof takes seconds. What is kept is most of the difference, so the reading that keeps most gets
    them, and the others the bound that takes a moment.
    """
    demands = with_gathered(work, reading.demands)
    instances = ProofInstances(work, demands, nodes, reading.pools, reading.preferences)
    if sum(demand.count for demand in demands) <= SMALL_DEMAND and not effort.is_over():
        _, constrained = instances.constrained()
        cutoff = price + reading.given
        if is_small(constrained):
            result = solve_exactly(constrained, cutoff, patience=effort.patience())
            # A bound above the price means that the plan reads some rule in another way than the rows do. Then they
            # prove nothing of it.
            if result.bound <= cutoff * (1 + _ROUNDING):
                return _Bound(min(result.bound - reading.given, price), result.is_tight)
    plain = instances.plain()
    if reading.is_brief and len(demands) > _MANY_CLASSES:
        return _Bound(market_bound_of_parts(plain) - reading.given, cut_short=_TOO_MUCH)
    bound = _of_any_size(plain, effort)
    return replace(bound, cost=bound.cost - reading.given)


def _of_any_size(instance: PackingInstance, effort: Effort) -> _Bound:
    if effort.is_over():
        return _Bound(market_bound_of_parts(instance), cut_short=_NO_TIME)
    patience = effort.patience(_WORK)
    cost = lower_bound(instance, patience)
    if not patience.ran_out:
        return _Bound(cost)
    return _Bound(cost, cut_short=_NO_TIME if effort.struck else _TOO_MUCH)


def weaknesses(demands: Sequence[ProofDemand], nodes: Sequence[NewNode], *, is_tight: bool) -> tuple[str, ...]:
    """``is_tight``: the bound is tight for what the proof knows of, so that only what it leaves out can explain the
    gap.
    """
    reasons = [*_of_rules(demands), *_of_min_values(nodes)]
    if not is_tight:
        reasons.append("the ways to fill nodes are too many to try all, so that fractions of nodes count")
    return tuple(dict.fromkeys(reasons))


def _of_rules(demands: Sequence[ProofDemand]) -> Iterator[str]:
    for rule in (rule for demand in demands for rule in demand.rules):
        if rule.kind == "affinity":
            yield "pods that must be beside others count as if they might be anywhere"
        elif rule.key not in (*KEYS, HOSTNAME):
            yield f"rules over {rule.key} are left out"


def _of_min_values(nodes: Sequence[NewNode]) -> Iterator[str]:
    used = {node.pool.name: node.pool for node in nodes}
    for pool in used.values():
        if pool.min_values:
            yield f"the minValues of NodePool {pool.name} are left out"
