"""Another way to deal a small plan's pods out over domains, at less cost.

First-fit deals one class after another, evenly, and the optimizer keeps to that. Whether two workloads share their
zones may decide how many nodes there are. The instance of the proof (``proof_instance``) leaves open how pods are
dealt; solved for what prices count as, its bins say where pods would be. What it knows nothing of (affinity, minValues)
first-fit asks again.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from joinery.decisions.optimizer.bounds.exact import SMALL_DEMAND, is_small, solve_exactly
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.patterns import Pattern
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule
from joinery.decisions.scheduling.firstfit.demand import Dealt, Identity
from joinery.decisions.scheduling.firstfit.new_nodes import NewNodes
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.optimise.bin_types import Preferences
from joinery.decisions.scheduling.optimise.domain_rows import Item, by_domain
from joinery.decisions.scheduling.optimise.improve import cost_of, size_factors
from joinery.decisions.scheduling.optimise.proof_demands import ProofDemand, kept_demands
from joinery.decisions.scheduling.optimise.proof_instance import ProofInstances
from joinery.objects.karpenter.labels import HOSTNAME


def dealt_for_less(work: Workspace, bought: NewNodes, effort: Effort) -> Dealt:
    """How the pods on new nodes could be dealt out so that these cost less. Empty where no such way was found, or if
    there is no time to look for one.
    """
    nodes = bought.opened.nodes
    keys = sorted({key for node in nodes for batch in node.placed for key in batch.domains})
    # The rows for domains alone take many pods far longer than they are worth.
    is_small_plan = sum(len(node.pods) for node in nodes) <= SMALL_DEMAND
    if not keys or not is_small_plan or effort.is_over():
        return {}
    pools, factors = by_domain(work.pools, keys), size_factors(work, nodes, ())
    preferences = Preferences(
        size_factors=[factors[pool.name] for pool in pools], spot_types=work.problem.options.spot_types
    )
    demands = kept_demands(nodes)
    items, constrained = ProofInstances(work, demands, nodes, pools, preferences, keys).constrained()
    if not is_small(constrained):
        return {}
    result = solve_exactly(constrained, cost_of(work, bought, factors), patience=effort.patience())
    return _dealt(items, demands, result.patterns or ())


def _dealt(items: Sequence[Item], demands: Sequence[ProofDemand], patterns: Iterable[Pattern]) -> Dealt:
    dealt: dict[Identity, Counter[tuple[tuple[str, str], ...]]] = {}
    for pattern in patterns:
        for number in np.flatnonzero(pattern.counts):
            demand, domains = demands[items[number].demand], items[number].domains
            if domains and all(map(_is_known, demand.rules)):
                counts = dealt.setdefault(demand.identity, Counter())
                counts[tuple(domains.items())] += int(pattern.counts[number]) * pattern.copies
    return {one: [(dict(domains), count) for domains, count in counts.items()] for one, counts in dealt.items()}


def _is_known(rule: TopologyRule) -> bool:
    """Whether the instance's rows are all that the rule says of domains. What is preferred may be kept by some pods."""
    return rule.kind != "affinity" and (rule.key == HOSTNAME or rule.weight is None)
