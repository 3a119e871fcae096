"""What the launched pods demand of their nodes, as a bound reads it.

By hard rules alone, which no plan may break; or with the preferences that this plan keeps as rules too.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.constraints.requirements import Requirements
from joinery.scheduling.constraints.topology_rules import TopologyRule
from joinery.scheduling.firstfit.demand import Demand
from joinery.scheduling.firstfit.targets import NewNode
from joinery.scheduling.firstfit.workspace import Workspace
from joinery.scheduling.pools.market import Amounts


@dataclass(frozen=True, eq=False, kw_only=True)
class ProofDemand:
    """Pods of one class that need new nodes.

    ``count``: how many. ``row``: int64[resources], what one of them requests, with its place among a node's pods.
    ``ways``: a node must meet any one of them (one for each choice of node selector term and volume).
    ``rules``: topology rules, all of which must hold.
    ``is_settled``: neither a preference nor a choice of ways could send a pod past a pool that takes it.
    """

    pods: PodClass
    count: int
    row: Amounts
    ways: tuple[Requirements, ...]
    rules: tuple[TopologyRule, ...]
    is_settled: bool


def hard_demands(work: Workspace, nodes: Iterable[NewNode]) -> tuple[ProofDemand, ...]:
    """What no nodes for the launched pods may break."""
    counts: Counter[PodClass] = Counter()
    for batch in (batch for node in nodes for batch in node.placed):
        counts[batch.demand.pods] += len(batch.pods)
    return tuple(_hard(work, pods, count) for pods, count in counts.items())


def _hard(work: Workspace, pods: PodClass, count: int) -> ProofDemand:
    ways = tuple(term.intersect(volumes) for term in pods.terms for volumes in pods.volumes.alternatives)
    return ProofDemand(
        pods=pods,
        count=count,
        row=work.axis.vector(pods.requests),
        ways=ways,
        rules=tuple(rule for rule in work.topology.rules[pods] if rule.weight is None),
        is_settled=len(ways) == 1 and not pods.preferred,
    )


def kept_demands(nodes: Iterable[NewNode]) -> tuple[ProofDemand, ...]:
    """The same with the preferences that the plan keeps, which are no choice any more."""
    counts: Counter[Demand] = Counter()
    for batch in (batch for node in nodes for batch in node.placed):
        counts[batch.demand] += len(batch.pods)
    return tuple(
        ProofDemand(
            pods=demand.pods,
            count=count,
            row=demand.requests,
            ways=(demand.requirements,),
            rules=demand.variant.rules,
            is_settled=len(demand.pods.terms) == len(demand.pods.volumes.alternatives) == 1,
        )
        for demand, count in counts.items()
    )


def keeps_preferences(nodes: Sequence[NewNode]) -> bool:
    """Whether some pod has a preference that is kept."""
    return any(
        batch.demand.pods.preferred or any(rule.weight is not None for rule in batch.demand.variant.rules)
        for node in nodes
        for batch in node.placed
    )
