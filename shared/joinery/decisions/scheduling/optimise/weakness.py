"""Why a bound is weak, in words: what the pods and NodePools of a plan ask for that its proof leaves out."""

from collections.abc import Iterator, Sequence

from joinery.decisions.optimizer.bounds.exact import SMALL_DEMAND
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.optimise.domain_rows import KEYS
from joinery.decisions.scheduling.optimise.proof_demands import ProofDemand, kept_by
from joinery.decisions.scheduling.packing import Kept
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.objects.karpenter.labels import HOSTNAME

#: A gap to the bound, as a share of it, beyond which people are told why.
WEAK = 0.05


def weaknesses(
    demands: Sequence[ProofDemand], nodes: Sequence[NewNode], pools: Sequence[Pool], *, is_tight: bool
) -> tuple[str, ...]:
    """``is_tight``: the bound is tight for what the proof knows of, so that only what it leaves out can explain the
    gap.
    """
    reasons = [*_of_rules(demands), *_of_min_values(nodes)]
    # Of small plans a second bound keeps preferences, and of all plans weights.
    is_small_plan = sum(demand.count for demand in demands) <= SMALL_DEMAND
    if not is_small_plan and kept_by(nodes, pools) == (Kept.PREFERENCES,):
        reasons.append("preferences that are kept count as if they were given up")
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
