"""A proven lower bound on what the launches of a packing must cost.

Preferences are no rules, so where they cost something no plan that keeps them is near the bound; and a right plan may
pass over a NodePool of higher weight, though it need not (decision 97). A second bound takes for rules what the plan
keeps of both. What either of them knows is in ``proof_instance``, and the proofs are in
``optimizer/bounds``. Where a bound is weak, the plan says what its pods and NodePools ask for
that the proof leaves out.
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
from joinery.decisions.scheduling.optimise.domain_rows import KEYS
from joinery.decisions.scheduling.optimise.proof_demands import (
    ProofDemand,
    hard_demands,
    kept_by,
    kept_demands,
    with_gathered,
)
from joinery.decisions.scheduling.optimise.proof_instance import ProofInstances
from joinery.decisions.scheduling.packing import Kept
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.objects.karpenter.labels import HOSTNAME

#: A gap to the bound, as a share of it, beyond which the plan says why.
WEAK = 0.05
#: Simplex iterations times rows that one linear program of a proof may take, some 3 s. Sixty times as many as that of
#: any scenario whose times are published.
_WORK = 200_000_000
#: Pairs of a class and a NodePool for which the simplest bound takes a moment, even where time is up: .1 ms for each.
_SOON_BOUNDED = 2_000
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


def bounds(work: Workspace, nodes: Sequence[NewNode], pools: Sequence[Pool], price: float, effort: Effort) -> Bounds:
    """Of a packing's new nodes, which cost ``price`` ($/h) together; zero where all of them are reserved, and so paid
    for.

    ``pools``: with all that they sell, also what the packing kept out of. ``effort``: whether there is time for proofs.
    """
    if all(node.reservation for node in nodes):
        return Bounds()
    demands = hard_demands(work, nodes)
    if effort.is_over() and len(demands) * len(pools) > _SOON_BOUNDED:
        return Bounds(weaknesses=(_NO_TIME,))
    # What users want of a node's size is no rule, so no part of the bound.
    pools = [replace(pool, room=pool.market.allocatable - pool.overhead) for pool in pools]
    rules = kept_by(nodes, pools)
    # Of many classes a proof takes seconds. What is kept is most of the difference, so the last bound gets them.
    is_many = len(demands) > _MANY_CLASSES
    bound = _proven(work, demands, nodes, pools, price, effort, is_brief=is_many and bool(rules))
    hard = keeping = bound.cost
    kept: dict[Kept, float] = {}
    for rule in rules:
        if keeping >= price * (1 - _ROUNDING):
            break
        is_last = rule is rules[-1]
        demands = kept_demands(nodes) if is_last else hard_demands(work, nodes, keeps_weights=True)
        bound = _proven(work, demands, nodes, pools, price, effort, is_brief=is_many and not is_last)
        kept[rule] = max(bound.cost - keeping, 0.0)
        keeping += kept[rule]
    weak = _weaknesses(demands, nodes, bound) if price > keeping * (1 + WEAK) else ()
    return Bounds(hard=hard, keeping=keeping, kept=kept, weaknesses=weak)


def _weaknesses(demands: Sequence[ProofDemand], nodes: Sequence[NewNode], bound: _Bound) -> tuple[str, ...]:
    if bound.cut_short:
        # What else the proof leaves out may matter less than that.
        return bound.cut_short, *weaknesses(demands, nodes, is_tight=True)
    return weaknesses(demands, nodes, is_tight=bound.is_tight)


def _proven(
    work: Workspace,
    demands: Sequence[ProofDemand],
    nodes: Sequence[NewNode],
    pools: Sequence[Pool],
    price: float,
    effort: Effort,
    *,
    is_brief: bool = False,
) -> _Bound:
    """The best bound for its time, or ``is_brief`` the one that takes a moment; no more than ``price``, because nodes
    that cost so much are known.
    """
    demands = with_gathered(work, demands)
    instances = ProofInstances(work, demands, nodes, pools)
    if sum(demand.count for demand in demands) <= SMALL_DEMAND and not effort.is_over():
        _, constrained = instances.constrained()
        result = solve_exactly(constrained, price, patience=effort.patience()) if is_small(constrained) else None
        # A bound above the price means that the plan reads some rule in another way than the rows do. Then they prove
        # nothing of it.
        if result and result.bound <= price * (1 + _ROUNDING):
            return _Bound(min(result.bound, price), result.is_tight)
    plain = instances.plain()
    return _Bound(market_bound_of_parts(plain), cut_short=_TOO_MUCH) if is_brief else _of_any_size(plain, effort)


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
