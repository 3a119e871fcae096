"""Which nodes earn their price: ``decide(problem)``.

So far nodes without pods are given up, within the budgets of their NodePools. The conditions are Karpenter's
(disruption, Emptiness).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from joinery.apis.disruption import DisruptionReason
from joinery.apis.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, ZONE
from joinery.disruption.budgets import UNLIMITED, Allowance, PoolNodes, allowed, pool_nodes
from joinery.disruption.disruptions import CurvePoint, Disruption, Disruptions, Held, HeldCode
from joinery.disruption.problem import DisruptionProblem
from joinery.state.nodes import NodeView, views
from joinery.state.pods import is_reschedulable

Stopwatch = Callable[[], float]
"""Seconds since the decision began."""


def decide(problem: DisruptionProblem, *, stopwatch: Stopwatch = lambda: 0.0) -> Disruptions:
    """The commands that make the nodes cheapest, in the order in which they should be carried out."""
    nodes = views(problem.packing.snapshot)
    prices = _prices(problem, nodes)
    before = sum(prices.values())
    commands, held = _split(problem, nodes, prices)
    after = before - sum(command.savings for command in commands)
    return Disruptions(
        commands=tuple(commands),
        held=tuple(held),
        before=before,
        after=after,
        curve=(CurvePoint(0, after, is_chosen=True),),
        method="emptiness",
    )


def _prices(problem: DisruptionProblem, nodes: Iterable[NodeView]) -> dict[str, float]:
    """$/h by name of the claim, of those that the catalogue sells."""
    types = {
        (class_name, kind.name): kind for class_name, kinds in problem.packing.instance_types.items() for kind in kinds
    }
    pools = problem.packing.snapshot.pools_by_name
    prices = {}
    for node in nodes:
        pool = pools.get(node.pool)
        if not node.claim or pool is None:
            continue
        kind = types.get((pool.spec.template.spec.node_class_ref.name, node.labels.get(INSTANCE_TYPE, "")))
        price = kind.price(node.labels.get(ZONE, ""), node.labels.get(CAPACITY_TYPE, "")) if kind else None
        if price is not None:
            prices[node.claim] = price
    return prices


def _split(
    problem: DisruptionProblem, nodes: tuple[NodeView, ...], prices: dict[str, float]
) -> tuple[list[Disruption], list[Held]]:
    """The empty nodes that go, the dearest first, and those that are held."""
    commands: list[Disruption] = []
    held: list[Held] = []
    allowances = _allowances(problem, nodes)
    used: dict[str, int] = defaultdict(int)
    for node in sorted(nodes, key=lambda node: (-prices.get(node.claim, 0.0), node.claim)):
        if not node.claim or not node.is_initialized or node.is_leaving or any(map(is_reschedulable, node.pods)):
            continue
        objection = next(_objections(problem, node), None)
        allowance = allowances.get(node.pool, Allowance(0, ""))
        if objection is not None:
            held.append(objection)
        elif used[node.pool] >= allowance.allowed and not problem.options.ignore_budgets:
            held.append(Held(node.claim, HeldCode.BUDGET, f"NodePool {node.pool}: {allowance.why}"))
        else:
            used[node.pool] += 1
            price = prices.get(node.claim, 0.0)
            message = f"node {node.name} runs no pods that need a node, and costs ${price:.4f}/h"
            commands.append(
                Disruption(reason=DisruptionReason.EMPTY, message=message, retire=(node.claim,), savings=price)
            )
    return commands, held


def _objections(problem: DisruptionProblem, node: NodeView) -> Iterator[Held]:
    pool = problem.packing.snapshot.pools_by_name.get(node.pool)
    if pool is None:
        yield Held(node.claim, HeldCode.NO_NODE_POOL, f"there is no NodePool {node.pool}")
    elif pool.is_static or pool.spec.disruption.consolidate_after == "Never":
        yield Held(node.claim, HeldCode.POLICY, f"NodePool {node.pool} does not consolidate")
    if node.annotations.get(DO_NOT_DISRUPT) == "true":
        yield Held(node.claim, HeldCode.DO_NOT_DISRUPT, f"node {node.name} has the annotation {DO_NOT_DISRUPT}")


def _allowances(problem: DisruptionProblem, nodes: tuple[NodeView, ...]) -> dict[str, Allowance]:
    snapshot, counted = problem.packing.snapshot, pool_nodes(nodes)
    if problem.options.ignore_budgets:
        return {name: Allowance(UNLIMITED, "") for name in snapshot.pools_by_name}
    return {
        name: allowed(pool, DisruptionReason.EMPTY, counted.get(name, PoolNodes()), snapshot.now)
        for name, pool in snapshot.pools_by_name.items()
    }
