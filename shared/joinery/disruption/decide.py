"""Which nodes earn their price: ``decide(problem)``.

So far nodes without pods are given up, within the budgets of their NodePools.
"""

from collections.abc import Callable, Iterable

from joinery.apis.disruption import DisruptionReason
from joinery.apis.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from joinery.disruption.admission import admit
from joinery.disruption.candidates import Candidate, candidates
from joinery.disruption.disruptions import CurvePoint, Disruption, Disruptions
from joinery.disruption.problem import DisruptionProblem
from joinery.state.nodes import NodeView

Stopwatch = Callable[[], float]
"""Seconds since the decision began."""


def decide(problem: DisruptionProblem, *, stopwatch: Stopwatch = lambda: 0.0) -> Disruptions:
    """The commands that make the nodes cheapest, in the order in which they should be carried out."""
    judged = candidates(problem)
    empty = [one for one in judged.candidates if DisruptionReason.EMPTY in one.reasons and not one.pods]
    ranked = sorted(empty, key=lambda one: (-one.price, one.claim.metadata.name))
    admitted = admit([_command(one) for one in ranked], problem, judged.nodes)
    before = _bill(problem, judged.nodes)
    after = before - sum(command.savings for command in admitted.commands)
    return Disruptions(
        commands=admitted.commands,
        held=(*judged.held, *admitted.held),
        before=before,
        after=after,
        curve=(CurvePoint(0, after, is_chosen=True),),
        method="emptiness",
    )


def _command(candidate: Candidate) -> Disruption:
    return Disruption(
        reason=DisruptionReason.EMPTY,
        message="no pod runs there that needs a node",
        retire=(candidate.claim.metadata.name,),
        savings=candidate.price,
    )


def _bill(problem: DisruptionProblem, nodes: Iterable[NodeView]) -> float:
    """$/h of our nodes, of those that the catalogue sells."""
    pools = problem.packing.snapshot.pools_by_name
    types = {
        (class_name, kind.name): kind for class_name, kinds in problem.packing.instance_types.items() for kind in kinds
    }
    bill = 0.0
    for node in nodes:
        pool = pools.get(node.pool) if node.claim else None
        if pool is None:
            continue
        kind = types.get((pool.spec.template.spec.node_class_ref.name, node.labels.get(INSTANCE_TYPE, "")))
        price = kind.price(node.labels.get(ZONE, ""), node.labels.get(CAPACITY_TYPE, "")) if kind else None
        bill += price or 0.0
    return bill
