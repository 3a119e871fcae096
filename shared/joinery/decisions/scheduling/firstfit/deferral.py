"""Pods that first-fit buys no nodes for, because the optimizer will.

First-fit looks at each class by itself, and keeps its books for each. Where there are hundreds of classes that nothing
but their size tells apart (the vertical autoscaler gives every pod requests of its own), that takes longer than packing
them, and the optimizer uses nothing of it: any nodes do that hold all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.firstfit.demand import Demand
from joinery.decisions.scheduling.firstfit.new_nodes import is_open_to
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.pools.reserved import is_sold_unreserved

#: For fewer classes first-fit is soon done, and its nodes are there should the optimizer find no cheaper ones.
_MANY = 300


@dataclass(frozen=True, eq=False)
class Deferred:
    """Pods (names) of one demand that some pool of this weight takes."""

    demand: Demand
    weight: int
    pods: Sequence[str]


class Deferral:
    """Whether pods may wait for the optimizer's nodes: none, unless all classes are many and without rules.

    ``pools``: the heaviest ones.
    """

    def __init__(self, work: Workspace, pools: Sequence[Pool], classes: Sequence[PodClass]) -> None:
        is_bounded = bool(work.reservations) or any(pool.limits or pool.min_values for pool in pools)
        is_free = len(classes) >= _MANY and not is_bounded and all(_is_plain(work, pods) for pods in classes)
        self._topology = work.topology
        self._pools = pools if is_free else ()

    def of(self, demand: Demand, pods: Sequence[str]) -> Deferred | None:
        """The pods, if a node of some pool would take any one of them; else None."""
        for pool in self._pools:
            _, fit = demand.fit(pool, {})
            if is_open_to(pool, demand, self._topology) and is_sold_unreserved(pool, fit, demand.requests):
                return Deferred(demand, pool.weight, pods)
        return None


def _is_plain(work: Workspace, pods: PodClass) -> bool:
    """Whether nothing matters but requests, one node selector and tolerations."""
    is_bound = (
        work.topology.rules[pods]
        or work.topology.concerns(pods)
        or pods.ports
        or pods.volumes.shared
        or pods.volumes.choices
        or pods.devices
    )
    return not is_bound and not pods.preferred and len(pods.terms) == len(pods.volumes.alternatives) == 1
