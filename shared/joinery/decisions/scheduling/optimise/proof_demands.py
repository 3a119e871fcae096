"""What the launched pods demand of their nodes, as a bound reads it.

By hard rules alone, which no plan may break; or with what comes before price as rules too: the preferences that this
plan keeps, and the weights of the NodePools in which it puts pods.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.requirements import Requirements
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule
from joinery.decisions.scheduling.devices.needs import Needs
from joinery.decisions.scheduling.firstfit.demand import Demand, Identity
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.packing import Kept
from joinery.decisions.scheduling.pools.market import Amounts
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.objects.karpenter.labels import HOSTNAME


@dataclass(frozen=True, eq=False, kw_only=True)
class ProofDemand:
    """Pods of one class that need new nodes.

    ``count``: how many. ``row``: int64[resources], what one of them requests, with its place among a node's pods.
    ``ways``: a node must meet any one of them (one for each choice of node selector term and volume).
    ``rules``: topology rules, all of which must hold.
    ``is_settled``: neither a preference nor a choice of ways could send a pod past a pool that takes it.
    ``least_weight``: of the NodePools that may be used, the weight of the lightest; None where all may be.
    ``identity``: of the demand that it is made from; empty where it is for all tries of a class.
    ``devices``: what one of them claims of its node by itself (``_with_devices``).
    """

    pod_class: PodClass
    count: int
    row: Amounts
    ways: tuple[Requirements, ...]
    rules: tuple[TopologyRule, ...]
    is_settled: bool
    least_weight: int | None = None
    identity: Identity = ()
    devices: Needs = ()


def hard_demands(work: Workspace, nodes: Iterable[NewNode], *, keeps_weights: bool = False) -> tuple[ProofDemand, ...]:
    """What no nodes for the launched pods may break. ``keeps_weights``: nor the weights, as ``kept_demands`` has it."""
    counts: Counter[tuple[PodClass, int | None]] = Counter()
    for node in nodes:
        for batch in node.placed:
            counts[batch.demand.pod_class, node.pool.weight if keeps_weights else None] += len(batch.pods)
    return _with_devices(_hard(work, pod_class, count, weight) for (pod_class, weight), count in counts.items())


def _hard(work: Workspace, pod_class: PodClass, count: int, least_weight: int | None) -> ProofDemand:
    ways = tuple(term.intersect(volumes) for term in pod_class.terms for volumes in pod_class.volumes.alternatives)
    return ProofDemand(
        pod_class=pod_class,
        count=count,
        row=work.axis.asked(pod_class.requests),
        ways=ways,
        rules=tuple(rule for rule in work.topology.rules[pod_class] if rule.weight is None),
        is_settled=len(ways) == 1 and not pod_class.preferred,
        least_weight=least_weight,
    )


def kept_demands(nodes: Iterable[NewNode]) -> tuple[ProofDemand, ...]:
    """The same with the preferences that the plan keeps, which are no choice any more, and with its weights: as many
    pods of a class as the plan puts in NodePools of a weight are in pools of that weight or more.
    """
    counts: Counter[tuple[Demand, int]] = Counter()
    for node in nodes:
        for batch in node.placed:
            counts[batch.demand, node.pool.weight] += len(batch.pods)
    return _with_devices(
        ProofDemand(
            pod_class=demand.pod_class,
            count=count,
            row=demand.requests,
            ways=(demand.requirements,),
            rules=demand.variant.rules,
            is_settled=len(demand.pod_class.terms) == len(demand.pod_class.volumes.alternatives) == 1,
            least_weight=weight,
            identity=demand.identity,
        )
        for (demand, weight), count in counts.items()
    )


def _with_devices(demands: Iterable[ProofDemand]) -> tuple[ProofDemand, ...]:
    """The demands with what their pods claim. A claim that pods share has its devices once, on the node where all of
    them are: of the first demand that names it, one pod claims them.
    """
    served = set[str]()
    result = []
    for demand in demands:
        claims = demand.pod_class.devices
        first = {claim.shared for claim in claims if claim.shared} - served
        served |= first
        if first:
            asked = tuple(replace(it, shared="") for it in claims if not it.shared or it.shared in first)
            result.append(replace(demand, count=1, devices=asked))
        if others := demand.count - bool(first):
            own = tuple(claim for claim in claims if not claim.shared)
            result.append(replace(demand, count=others, devices=own))
    return tuple(result)


def with_gathered(work: Workspace, demands: Sequence[ProofDemand]) -> tuple[ProofDemand, ...]:
    """The demands, but pods that must all share one host are one large pod.

    Affinity over hosts to none but each other says so: a pod may go only where another one is, but for the first of
    all (kube-scheduler InterPodAffinity). So do claims for a node's devices that pods share. Where any other rule
    counts such pods they stay single.
    """
    demands = _with_shared_claims(work, demands)
    if not any(_gathering(demand) for demand in demands):
        return tuple(demands)
    of_class = Counter(demand.pod_class for demand in demands)
    counted = {rule: work.topology.selected((rule,)) for demand in demands for rule in demand.rules}
    counting: dict[PodClass, set[TopologyRule]] = defaultdict(set)
    for rule, classes in counted.items():
        for pods in classes:
            counting[pods].add(rule)

    def is_gathered(demand: ProofDemand) -> bool:
        gathering = _gathering(demand)
        return (
            bool(gathering)
            and counting[demand.pod_class] <= set(gathering)
            and all(work.topology.group(rule).counts.total() == demand.count for rule in gathering)
            and of_class[demand.pod_class] == 1
            and all([pods for pods in counted[rule] if of_class[pods]] == [demand.pod_class] for rule in gathering)
        )

    return tuple(
        replace(demand, count=1, row=demand.row * demand.count) if is_gathered(demand) else demand for demand in demands
    )


def _with_shared_claims(work: Workspace, demands: Sequence[ProofDemand]) -> Sequence[ProofDemand]:
    """The demands, but pods that share claims, directly or through others, are one large pod."""
    if not any(demand.pod_class.shared_claims for demand in demands):
        return demands
    ruled = set(work.topology.selected({rule for demand in demands for rule in demand.rules}))
    groups: list[tuple[set[str], list[ProofDemand]]] = []
    others = []
    for demand in demands:
        claims = set(demand.pod_class.shared_claims)
        if not claims or demand.rules or demand.pod_class in ruled:
            others.append(demand)
            continue
        members = [demand]
        for group in [group for group in groups if group[0] & claims]:
            groups.remove(group)
            claims |= group[0]
            members = [*group[1], *members]
        groups.append((claims, members))
    return [*others, *(_joined(members) for _, members in groups)]


def _joined(members: Sequence[ProofDemand]) -> ProofDemand:
    """One pod in place of all of these: where it may be, the first of them may be."""
    weights = [demand.least_weight for demand in members]
    return replace(
        members[0],
        count=1,
        row=sum((demand.row * demand.count for demand in members), np.zeros_like(members[0].row)),
        devices=tuple(claim for demand in members for claim in demand.devices * demand.count),
        is_settled=all(demand.is_settled for demand in members),
        least_weight=None if None in weights else min(weight for weight in weights if weight is not None),
    )


def _gathering(demand: ProofDemand) -> Sequence[TopologyRule]:
    return [rule for rule in demand.rules if rule.key == HOSTNAME and rule.kind == "affinity"]


def kept_by(nodes: Sequence[NewNode], pools: Iterable[Pool]) -> tuple[Kept, ...]:
    """What comes before price in a packing with these nodes, weights before preferences."""
    kept = {Kept.WEIGHTS: _keep_weights(nodes, pools), Kept.PREFERENCES: _keep_preferences(nodes)}
    return tuple(one for one, is_kept in kept.items() if is_kept)


def _keep_weights(nodes: Sequence[NewNode], pools: Iterable[Pool]) -> bool:
    """Whether some pod is in a heavier NodePool than the lightest there is."""
    lightest = min(pool.weight for pool in pools)
    return any(node.pool.weight > lightest for node in nodes)


def _keep_preferences(nodes: Sequence[NewNode]) -> bool:
    """Whether some pod has a preference that is kept."""
    return any(
        batch.demand.pod_class.preferred or any(rule.weight is not None for rule in batch.demand.variant.rules)
        for node in nodes
        for batch in node.placed
    )
