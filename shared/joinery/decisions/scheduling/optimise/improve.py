"""Cheaper nodes for what first-fit promised: its orders are carried out anew (``rebuilding``), in a way or two.

The new nodes replace first-fit's only if they cost less and leave every count per domain as it was, and no pod is in a
NodePool of lower weight than it need be (``limited``).
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain, groupby, product

import numpy as np

from joinery.decisions.optimizer.arrays import Floats
from joinery.decisions.optimizer.bounds.exact import SMALL_DEMAND
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.constraints.node_pods import asked_for
from joinery.decisions.scheduling.firstfit.deferral import Deferred
from joinery.decisions.scheduling.firstfit.demand import Demand
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.new_nodes import NewNodes
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.optimise.bin_types import Preferences, spot_factor
from joinery.decisions.scheduling.optimise.limited import passed_over
from joinery.decisions.scheduling.optimise.orders import all_together, are_joined, gathers, order_of, orders_of
from joinery.decisions.scheduling.optimise.rebuilding import Better, Incumbent, Rebuilding
from joinery.decisions.scheduling.pools.node_size import factors
from joinery.decisions.scheduling.pools.reserved import is_sold_unreserved
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.kubernetes.quantity import total


def cheaper(work: Workspace, bought: NewNodes, deferred: Sequence[Deferred], effort: Effort) -> Better | None:
    """Nodes that cost less, as their size is preferred, or hold the deferred pods too; then the workspace's counts are
    those of these nodes.

    None if none were found, if there is no time to look for them, or if all are in reservations, which are paid for.
    Then the counts are as they were.
    """
    nodes = bought.opened.nodes
    if effort.is_over() or (not deferred and all(node.reservation for node in nodes)):
        return None
    return _Rebuildings(work, bought, deferred, effort).cheapest()


class _Rebuildings:
    """Attempts to carry out what was bought with other nodes, of which all or some may change, and with the deferred
    pods.
    """

    def __init__(self, work: Workspace, bought: NewNodes, deferred: Sequence[Deferred], effort: Effort) -> None:
        self._work, self._bought, self._deferred, self._effort = work, bought, deferred, effort
        self._together = all_together(bought.opened.nodes, work.topology)
        self._size_factors = size_factors(work, bought.opened.nodes, deferred)
        self._before = work.topology.saved()

    def cheapest(self) -> Better | None:
        """The cheapest that is right and cheaper than what was bought, with its counts. Without one the counts are as
        before.
        """
        # What was bought does not hold the deferred pods.
        least = np.inf if self._deferred else cost_of(self._work, self._bought, self._size_factors)
        best, counts = None, self._before
        for across_tiers, stay_joined in _ways(self._bought.opened.nodes, self._work.topology):
            is_over = self._effort.is_over()
            better = None if is_over else self._rebuilt(across_tiers=across_tiers, stay_joined=stay_joined)
            if better is not None:
                cost = cost_of(self._work, better.buyer.nodes, self._size_factors)
                # Saved before anything is asked of nodes that are only thought of.
                now = self._work.topology.saved()
                if cost < least - 1e-9 and self._is_right(better.buyer.nodes):
                    best, least, counts = better, cost, now
            self._work.topology.restore(self._before)
        self._work.topology.restore(counts)
        return best

    def _rebuilt(self, *, across_tiers: bool, stay_joined: bool) -> Better | None:
        """Nodes that stay, and others for the pods of those that may change."""
        work = self._work
        kept, free = _kept_and_free(work, self._bought.opened.nodes, self._together, across_tiers=across_tiers)
        orders = (*orders_of(free, self._together, stay_joined=stay_joined), *map(order_of, self._deferred))
        if not orders:
            return None
        for node in free:
            for batch in node.placed:
                work.topology.erase(batch.record)
        spot_types = work.problem.options.spot_types
        preferences = Preferences(size_factors=list(self._size_factors.values()), spot_types=spot_types)
        costs = _costs(free, self._size_factors, spot_types)
        rebuilding = Rebuilding(work, orders, kept, preferences, across_tiers=across_tiers)
        return rebuilding.run(self._effort, Incumbent(self._bought, free, costs))

    def _is_right(self, nodes: NewNodes) -> bool:
        """Whether every count per domain is as it was, and no pod is in a lighter pool than it need be."""
        pools = self._work.pools
        is_counted = not self._work.topology.differs(self._before)
        return is_counted and passed_over(pools, nodes) <= passed_over(pools, self._bought)


def size_factors(work: Workspace, nodes: Sequence[NewNode], deferred: Sequence[Deferred]) -> dict[str, Floats]:
    """By pool, what the price of each type counts as, given all pods that run in pools of its weight or are to run
    there.
    """
    by_pool: dict[str, Floats] = {}
    for weight, pools in groupby(work.pools, key=lambda pool: pool.weight):
        tier = list(pools)
        names = {pool.name for pool in tier}
        running = total(view.derived(asked_for) for view in work.views if view.pool in names)
        new = (node.used for node in nodes if node.pool.weight == weight)
        to_come = (pods.demand.requests * len(pods.pods) for pods in deferred if pods.weight == weight)
        requested = sum(chain(new, to_come), work.axis.vector(running))
        by_pool |= {pool.name: factors(pool, requested, work.problem.options.node_size) for pool in tier}
    return by_pool


def cost_of(work: Workspace, bought: NewNodes, size_factors: Mapping[str, Floats]) -> float:
    """$/h, what the prices of the nodes count as."""
    return sum(_costs(bought.opened.nodes, size_factors, work.problem.options.spot_types))


def _costs(nodes: Iterable[NewNode], size_factors: Mapping[str, Floats], spot_types: int) -> list[float]:
    return [
        float(node.least_prices[node.cheapest()] * size_factors[node.pool.name][node.cheapest()])
        * spot_factor(node, spot_types)
        for node in nodes
    ]


def _ways(nodes: Sequence[NewNode], topology: Topology) -> Iterable[tuple[bool, bool]]:
    """Whether to pack across tiers, and whether pods stay joined (``orders``): both ways are tried where limited pools
    and lighter ones are used, and where pods are joined.

    Not for large plans, of which the optimizer packs no limits.
    """
    is_small_plan = sum(len(node.pods) for node in nodes) <= SMALL_DEMAND
    across_tiers = (True, False) if is_small_plan and any(_are_limited_above_others(nodes)) else (False,)
    return product(across_tiers, (False, True) if is_small_plan and are_joined(nodes, topology) else (False,))


def _are_limited_above_others(nodes: Sequence[NewNode]) -> list[bool]:
    """Of each node whether it is a limited pool's while lighter pools are used too."""
    lightest = min((node.pool.weight for node in nodes), default=0)
    return [bool(node.pool.limits) and node.pool.weight > lightest for node in nodes]


def _kept_and_free(
    work: Workspace, nodes: Sequence[NewNode], together: Container[Demand], *, across_tiers: bool
) -> tuple[list[NewNode], list[NewNode]]:
    """Nodes that stay as they are, and those that may change.

    Nodes stay whose pods must share a host with others than their like (``together``), or have nothing but a capacity
    reservation. Unless it is packed ``across_tiers``, so does a limited pool's node while lighter pools are used too:
    another packing might leave room under the limit, and then the lighter pools' pods would be in the wrong pool.
    """
    stays = [
        gathers(node, together)
        or _has_no_choice(work, node)
        or (is_limited and (not across_tiers or bool(node.reservation)))
        for node, is_limited in zip(nodes, _are_limited_above_others(nodes), strict=True)
    ]
    kept = [node for node, stay in zip(nodes, stays, strict=True) if stay]
    return kept, [node for node, stay in zip(nodes, stays, strict=True) if not stay]


def _has_no_choice(work: Workspace, node: NewNode) -> bool:
    """Whether some of its pods can only be in a reservation."""
    if not node.reservation:
        return False
    tier = [pool for pool in work.pools if pool.weight == node.pool.weight]
    asked = [(batch.demand, batch.domains) for batch in node.placed]
    return any(
        not any(is_sold_unreserved(pool, demand.fit(pool, domains)[1], demand.requests) for pool in tier)
        for demand, domains in asked
    )
