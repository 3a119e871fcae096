"""What it is worth to move pods: the price of an eviction, in dollars, and how soon savings must repay it.

An ordinary pod costs ``DisruptionOptions.move_price``, or what its NodePool says (``joinery.dev/disruption-price``). A
price of 0 asks what the cluster could cost, so then no pod costs anything.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from joinery.apis.core import Pod
from joinery.apis.nodepool import NodePool
from joinery.disruption.costs import eviction_cost
from joinery.disruption.problem import DisruptionProblem
from joinery.state.nodes import NodeView
from joinery.state.pods import is_reschedulable, is_terminating
from joinery.state.priorities import priorities_of


class MoveCause(StrEnum):
    """Why a move costs what it does. The spelling is part of what users see."""

    EVICTION = "Eviction"
    DISRUPTION_COST = "DisruptionCost"


@dataclass(frozen=True, slots=True)
class MovePart:
    """A part of a price. ``dollars``: what it adds; negative where it makes the move cheaper."""

    cause: MoveCause
    dollars: float
    message: str


@dataclass(frozen=True, slots=True)
class MovePrice:
    """What moving one pod costs. ``parts`` add up to ``dollars``.

    ``fault``: what is wrong with an annotation of the pod, as a sentence about it; empty if nothing is. Its price is
    not known then.
    """

    dollars: float = 0.0
    parts: tuple[MovePart, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class PoolTerms:
    """What a NodePool says of moves from its nodes.

    ``ordinary``: dollars for an ordinary pod. ``payback``: what a command saves must repay its moves within this time.
    ``fault``: what is wrong with an annotation of the pool; empty if nothing is.
    """

    ordinary: float
    payback: timedelta
    fault: str = ""


FREE = MovePrice()


class MovePrices:
    """Prices the moves of one problem. Most pods are ordinary, and all of these share one price."""

    def __init__(self, problem: DisruptionProblem) -> None:
        self._options = problem.options
        self._priorities = priorities_of(problem.packing.snapshot.priority_classes)
        self._terms: dict[str, PoolTerms] = {}
        self._ordinary: dict[float, MovePrice] = {}

    def terms(self, pool: NodePool) -> PoolTerms:
        """What the NodePool says of moves from its nodes."""
        return PoolTerms(self._options.move_price, self._options.payback)

    def price(self, pod: Pod, pool: NodePool, view: NodeView, hourly: float) -> MovePrice:
        """What moving the pod costs. ``view``: its node, of that pool; ``hourly``: what the node costs, in $/h.

        Pods that do not move cost nothing: those of DaemonSets and of the kubelet itself, and those that have finished.
        Nor does a pod that is on its way out already.
        """
        ordinary = self.terms(pool).ordinary
        if not ordinary or not is_reschedulable(pod) or is_terminating(pod):
            return FREE
        weight = max(0.0, eviction_cost(pod, self._priorities))
        if weight == 1.0:
            return self._shared(ordinary)
        message = f"its priority and its pod-deletion-cost make it count {weight:.3g} evictions"
        return _sum(
            MovePart(MoveCause.EVICTION, ordinary, "an eviction"),
            MovePart(MoveCause.DISRUPTION_COST, ordinary * (weight - 1.0), message),
        )

    def _shared(self, ordinary: float) -> MovePrice:
        if ordinary not in self._ordinary:
            self._ordinary[ordinary] = _sum(MovePart(MoveCause.EVICTION, ordinary, "an eviction"))
        return self._ordinary[ordinary]


def _sum(*parts: MovePart) -> MovePrice:
    return MovePrice(sum(part.dollars for part in parts), parts)
