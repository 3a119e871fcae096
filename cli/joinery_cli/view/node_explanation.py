"""Why a node stays or goes: its price, its pods and what each costs to move, the rules that hold it, its command."""

from collections import defaultdict

from joinery.decisions.disruption.moves import MovePrice, MovePrices
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import is_reschedulable
from joinery_cli.view.disruption_view import DisruptionView, NodeExplanation, PricedPods
from joinery_cli.view.figures import natural
from joinery_cli.view.workloads import owner_of


def explain(name: str, problem: DisruptionProblem, seen: DisruptionView) -> NodeExplanation:
    """Explain the node of that name, of the Node or, where there is none, of the NodeClaim."""
    node_view = next(one for one in problem.packing.snapshot.views if one.name == name)
    node = next(one for one in seen.before if one.name == name)
    moving = [pod for pod in node_view.pods if is_reschedulable(pod)]
    pool = problem.packing.snapshot.pools_by_name.get(node_view.pool)
    prices = MovePrices(problem)
    return NodeExplanation(
        node=node,
        command=next((one for one in seen.commands if node.claim and node.claim in one.command.retire), None),
        receives=tuple((one.number, route) for one in seen.commands for route in one.routes if route.target == name),
        held=tuple(one for one in seen.disruptions.staying if node.claim and one.node_claim == node.claim),
        moving=_priced(moving, node_view, prices, node.price or 0.0) if pool else (),
        staying=len(node_view.pods) - len(moving) if pool else 0,
        payback=prices.terms(node_view.pool).payback if pool else problem.options.payback,
        is_static=pool is not None and pool.is_static,
    )


def _priced(pods: list[Pod], node: NodeView, prices: MovePrices, hourly: float) -> tuple[PricedPods, ...]:
    alike: dict[tuple[str, MovePrice], list[str]] = defaultdict(list)
    for pod in pods:
        alike[owner_of(pod), prices.price(pod, node, hourly)].append(pod.key)
    groups = [PricedPods(owner, tuple(sorted(keys, key=natural)), price) for (owner, price), keys in alike.items()]
    return tuple(sorted(groups, key=lambda one: (-one.price.dollars * len(one.pods), natural(one.owner))))
