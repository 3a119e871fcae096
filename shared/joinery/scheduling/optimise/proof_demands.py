"""What the launched pods demand for, as the bound reads it: by hard rules alone, or with the preferences that the plan keeps as rules too."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.constraints.requirements import Requirements
from joinery.scheduling.constraints.topology_rules import Rule
from joinery.scheduling.firstfit.targets import Demand, NewNode
from joinery.scheduling.firstfit.workspace import Workspace
from joinery.scheduling.pools.pool import Amounts


@dataclass(frozen=True, eq=False, kw_only=True)
class ProofDemand:
    """``count`` pods of a class. ``ways``: any of them will do for where they run; ``rules``: all of them must hold. ``is_settled``: no
    preference and no choice of ways could send a pod past a pool that takes it.
    """

    pods: PodClass
    count: int
    row: Amounts
    ways: tuple[Requirements, ...]
    rules: tuple[Rule, ...]
    is_settled: bool


def hard_demands(work: Workspace, nodes: Iterable[NewNode]) -> tuple[ProofDemand, ...]:
    """By hard rules: what no nodes for the launched pods may break."""
    counts: dict[int, int] = {}
    classes: dict[int, PodClass] = {}
    for node in nodes:
        for batch in node.placed:
            pods = batch.demand.pods
            classes[id(pods)] = pods
            counts[id(pods)] = counts.get(id(pods), 0) + len(batch.pods)
    return tuple(_hard(work, pods, counts[key]) for key, pods in classes.items())


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
    """With the preferences that the plan keeps, which are no choice any more."""
    demands: dict[int, tuple[Demand, int]] = {}
    for node in nodes:
        for batch in node.placed:
            _, count = demands.get(id(batch.demand), (batch.demand, 0))
            demands[id(batch.demand)] = batch.demand, count + len(batch.pods)
    return tuple(
        ProofDemand(
            pods=demand.pods,
            count=count,
            row=demand.row,
            ways=(demand.requirements,),
            rules=demand.variant.rules,
            is_settled=len(demand.pods.terms) == len(demand.pods.volumes.alternatives) == 1,
        )
        for demand, count in demands.values()
    )


def keeps_preferences(nodes: Sequence[NewNode]) -> bool:
    """Whether some pod has a preference that is kept."""
    return any(
        batch.demand.pods.preferred or any(rule.weight is not None for rule in batch.demand.variant.rules)
        for node in nodes
        for batch in node.placed
    )
