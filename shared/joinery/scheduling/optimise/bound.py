"""A proven lower bound on what the launches of a packing must cost.

Preferences are no rules, so where they cost something no plan that keeps them is near the bound; and a right plan may
pass over a NodePool of higher weight, though it need not (decision 97). A second bound takes for rules what the plan
keeps of both. What either of them knows is in ``proof_instance``, and the proofs are in
``optimizer/bounds``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from joinery.optimizer.bounds.exact import SMALL_DEMAND, is_small, solve_exactly
from joinery.optimizer.bounds.lower_bound import lower_bound
from joinery.scheduling.firstfit.targets import NewNode
from joinery.scheduling.firstfit.workspace import Workspace
from joinery.scheduling.optimise.proof_demands import (
    ProofDemand,
    hard_demands,
    keeps_preferences,
    keeps_weights,
    kept_demands,
    with_gathered,
)
from joinery.scheduling.optimise.proof_instance import ProofInstances
from joinery.scheduling.optimise.weakness import WEAK, weaknesses
from joinery.scheduling.pools.pool import Pool

_ROUNDING = 1e-6
"""A bound may exceed the price of a plan by so small a share, for sums of floats."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What no set of new nodes for the launched pods can undercut, in $/h.

    ``hard``: under hard rules. ``kept``: if the preferences and weights that the plan keeps are rules too.
    ``weaknesses``: where the latter is far from what the plan costs, what its proof leaves out, in words.
    """

    hard: float = 0.0
    kept: float = 0.0
    weaknesses: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Bound:
    """``cost``: $/h. ``is_tight``: nodes that cost just that keep all that the proof knows of."""

    cost: float
    is_tight: bool


def bounds(work: Workspace, nodes: Sequence[NewNode], pools: Sequence[Pool], price: float) -> Bounds:
    """Of a packing's new nodes, which cost ``price`` ($/h) together; zero where all of them are reserved, and so paid
    for.

    ``pools``: with all that they sell, also what the packing kept out of.
    """
    if all(node.reservation for node in nodes):
        return Bounds()
    # What users want of a node's size is no rule, so no part of the bound.
    pools = [replace(pool, room=pool.market.allocatable - pool.overhead) for pool in pools]
    demands = hard_demands(work, nodes)
    bound = _proven(work, demands, nodes, pools, price)
    hard = kept = bound.cost
    is_small_plan = sum(len(node.pods) for node in nodes) <= SMALL_DEMAND
    # For larger plans a bound that keeps preferences would take as long as packing them.
    keeps_more = keeps_weights(nodes, pools) or (is_small_plan and keeps_preferences(nodes))
    if hard < price * (1 - _ROUNDING) and keeps_more:
        demands = kept_demands(nodes)
        bound = _proven(work, demands, nodes, pools, price)
        kept = max(hard, bound.cost)
    is_weak = price > kept * (1 + WEAK)
    return Bounds(
        hard=hard,
        kept=kept,
        weaknesses=weaknesses(demands, nodes, pools, is_tight=bound.is_tight) if is_weak else (),
    )


def _proven(
    work: Workspace,
    demands: Sequence[ProofDemand],
    nodes: Sequence[NewNode],
    pools: Sequence[Pool],
    price: float,
) -> _Bound:
    """The best bound for its time; no more than ``price``, because nodes that cost so much are known."""
    demands = with_gathered(work, demands)
    instances = ProofInstances(work, demands, nodes, pools)
    if sum(demand.count for demand in demands) <= SMALL_DEMAND:
        constrained = instances.constrained()
        result = solve_exactly(constrained, price) if is_small(constrained) else None
        # A bound above the price means that the plan reads some rule in another way than the rows do. Then they prove
        # nothing of it.
        if result and result.bound <= price * (1 + _ROUNDING):
            return _Bound(min(result.bound, price), result.is_tight)
    return _Bound(lower_bound(instances.plain()), is_tight=False)
