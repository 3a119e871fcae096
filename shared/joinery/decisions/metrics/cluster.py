"""How the cluster stands: its nodes, what they cost, how far that is from the least, and what holds nodes back."""

from collections import Counter
from collections.abc import Iterator, Mapping

from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.budget_check import BudgetCheck
from joinery.decisions.lifecycle.state.budgets import UNLIMITED
from joinery.decisions.metrics.definitions import MOST_NODE_POOLS, NODE_POOL_LABEL, Gauge, Measurement
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ON_DEMAND, SPOT, ZONE
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes import quantity
from joinery.objects.objections import ObjectionCode
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.snapshot import Snapshot

#: What keeps a node for a moment only, or because nothing speaks for disrupting it. All others can be changed by a
#: person: these are the values of the label ``code``.
PASSING = frozenset(
    {
        ObjectionCode.NOT_INITIALIZED, ObjectionCode.LEAVING, ObjectionCode.IN_COMMAND, ObjectionCode.NOMINATED,
        ObjectionCode.CONSOLIDATE_AFTER, ObjectionCode.NOT_REPAID, ObjectionCode.POLICY, ObjectionCode.NOT_WORTH_IT,
        ObjectionCode.PAUSED, ObjectionCode.TIME_LIMIT, ObjectionCode.CHANGED, ObjectionCode.DO_NOT_REPAIR,
        ObjectionCode.TOO_MANY_BROKEN,
    }
)  # fmt: skip
_BUDGETED = (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED, DisruptionReason.DRIFTED)
_MEASURED = ("cpu", "memory", "nodes")

#: By the name of a node class, its instance types by name.
Types = Mapping[str, Mapping[str, InstanceType]]


def standing(problem: DisruptionProblem, decision: DisruptionDecision) -> Iterator[Measurement]:
    """The figures of the whole cluster, after a decision about disruption."""
    snapshot, types = problem.packing.snapshot, _types(problem)
    claims = {claim.metadata.name: claim for claim in snapshot.managed_claims}
    listed = sum(_on_demand(claims.get(name), price, types) for name, price in decision.prices.items())
    joined = [claim for claim in claims.values() if claim.status.node_name]
    yield Measurement(Gauge.NODES, len(joined))
    yield Measurement(Gauge.SPOT, sum(claim.metadata.labels.get(CAPACITY_TYPE) == SPOT for claim in joined))
    yield Measurement(Gauge.SHARES_LACK, sum(share.lacking for share in snapshot.pool_shares.values()))
    yield Measurement(Gauge.COST, decision.before)
    # Where both are one figure, the second series would cost money and say nothing.
    yield Measurement(Gauge.LIST_COST, listed if abs(listed - decision.before) > 0.005 * listed else 0.0)
    yield Measurement(Gauge.GAP, 100.0 * decision.gap)
    codes = {node.node_claim: node.objection.code for node in decision.staying if node.objection.code not in PASSING}
    for code, number in Counter(codes.values()).items():
        yield Measurement(Gauge.STAYING, number, {"code": code.value})


def by_node_pool(problem: DisruptionProblem, decision: DisruptionDecision) -> Iterator[Measurement]:
    """The figures of each NodePool, the first by name: ``MOST_NODE_POOLS`` of them."""
    snapshot = problem.packing.snapshot
    pool_of = {claim.metadata.name: claim.metadata.labels.get(NODE_POOL, "") for claim in snapshot.managed_claims}
    costs: Counter[str] = Counter()
    for name, price in decision.prices.items():
        costs[pool_of.get(name, "")] += price  # type: ignore[assignment]  # of dollars
    budgets = BudgetCheck(problem, snapshot.views)
    for pool in sorted(_ours(snapshot), key=lambda pool: pool.metadata.name)[:MOST_NODE_POOLS]:
        label = {NODE_POOL_LABEL: pool.metadata.name}
        yield Measurement(Gauge.POOL_COST, costs[pool.metadata.name], label)
        yield from _amounts(Gauge.POOL_USAGE, pool.status.resources, label)
        yield from _amounts(Gauge.POOL_LIMIT, pool.spec.limits, label)
        for reason in _BUDGETED:
            left = budgets.left(pool.metadata.name, reason)
            if left < UNLIMITED:
                yield Measurement(Gauge.POOL_ALLOWED, left, {**label, "reason": reason.value.lower()})
    for reason, number in decision.eligible.items():
        yield Measurement(Gauge.ELIGIBLE, number, {"reason": reason.value.lower()})


def _ours(snapshot: Snapshot) -> Iterator[NodePool]:
    return (pool for pool in snapshot.node_pools if snapshot.serves(pool))


def _amounts(gauge: Gauge, amounts: Mapping[str, str], label: Mapping[str, str]) -> Iterator[Measurement]:
    for resource in _MEASURED:
        if resource in amounts:
            amount = float(quantity.parse(amounts[resource]))
            yield Measurement(gauge, amount, {**label, "resource_type": resource})


def _types(problem: DisruptionProblem) -> Types:
    listed = problem.packing.instance_types
    return {name: {instance_type.name: instance_type for instance_type in types} for name, types in listed.items()}


def _on_demand(claim: NodeClaim | None, price: float, types: Types) -> float:
    """$/h that the claim's node costs on demand; its own price where nobody sells it so."""
    labels = claim.metadata.labels if claim else {}
    sold = types.get(claim.spec.node_class_ref.name, {}).get(labels.get(INSTANCE_TYPE, "")) if claim else None
    if sold is None or labels.get(CAPACITY_TYPE) == ON_DEMAND:
        return price
    return sold.price(labels.get(ZONE, ""), ON_DEMAND) or price
