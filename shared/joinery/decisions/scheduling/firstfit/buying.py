"""Which new node takes which pods: first-fit's choice.

A node may grow into a larger instance type while that does not make it poorer value than it was (``value.grown``).
Growing until nothing fits, as is common, ends on the one type that holds everything, and pays for it.

Whatever places pods here takes the names of those that wait, and returns how many of them it placed, from the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.firstfit.demand import Demand, Domains
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.new_nodes import NewNodes, is_open_to
from joinery.decisions.scheduling.firstfit.opened import bearable_ratio, best_start, grown
from joinery.decisions.scheduling.firstfit.reserved_nodes import ReservedNodes
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.pools.market import Amounts, Mask, Prices
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.topology.topology import Topology


@dataclass(frozen=True, eq=False)
class _Asking:
    """Which pods open nodes are asked about, and what they have answered, by their shape.

    most     how many of the pods rules of their own let onto one node
    refused  how many pods nodes of a shape have refused
    grown    by shape and how many pods were offered, the node (index) that grew last, and by how many of them
    """

    demand: Demand
    domains: Domains
    most: int
    refused: dict[int, int]
    grown: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def note(self, shape: int, wanted: int, index: int, count: int) -> None:
        """What a node of a pool without limits has answered."""
        if not count:
            self.refused[shape] = wanted
        elif not self.demand.gathers:
            self.grown[shape, wanted] = index, count


class Buyer:
    """Puts pods on new nodes, and opens more of them.

    nodes      the new nodes, with their books
    reserved   the nodes that it may launch in capacity reservations

    ``effort``: once it is late, no more pods are placed.
    """

    def __init__(self, work: Workspace, nodes: NewNodes, effort: Effort) -> None:
        self.nodes = nodes
        self._effort = effort
        self.reserved = ReservedNodes(work, nodes)
        self._topology: Topology = work.topology
        self._has_reservations = bool(work.reservations)
        self._relaxes = work.problem.options.best_effort_min_values
        self._refused: dict[tuple[Demand, tuple[tuple[str, str], ...]], dict[int, int]] = {}

    def buy(self, tier: Sequence[Pool], demand: Demand, domains: Domains, names: Sequence[str]) -> int:
        """Into pools of one weight: nodes that are being bought first, then more of them."""
        pools = [pool for pool in tier if is_open_to(pool, demand, self._topology)]
        if not pools or not names:
            return 0
        placed = 0
        if self._has_reservations:
            # A reserved node is paid for already, so no bought node grows while it has room.
            placed += self._into_opened(pools, demand, domains, names, reserved=True)
            placed += self._start_reserved(pools, demand, domains, names[placed:])
        placed += self._into_opened(pools, demand, domains, names[placed:])
        while placed < len(names) and (more := self._open(pools, demand, domains, names[placed:])):
            placed += more
            self._effort.bought = self.nodes.size
            if self._effort.is_late():
                break
        if self._relaxes and self._has_reservations:
            placed += self._start_reserved(pools, demand, domains, names[placed:], relaxing=True)
        if demand.needs_neighbours or self.nodes.counts_daemons:
            placed += self._grow(pools, demand, domains, names[placed:])
        return placed

    def grow(self, tier: Sequence[Pool], demand: Demand, domains: Domains, names: Sequence[str]) -> int:
        """Into pools of one weight, but only into nodes that are being bought."""
        return self._grow([p for p in tier if is_open_to(p, demand, self._topology)], demand, domains, names)

    # --- nodes that are open ---

    def _into_opened(
        self, pools: Sequence[Pool], demand: Demand, domains: Domains, names: Sequence[str], *, reserved: bool = False
    ) -> int:
        """Into open nodes in order, as long as they stay good value.

        ``reserved``: only those in capacity reservations.
        """
        if not names:
            return 0
        self.nodes.appraise()
        opened, placed, waiting = self.nodes.opened, 0, names
        refused = self._refused.setdefault((demand, tuple(domains.items())), {})
        asking = _Asking(demand, domains, self.nodes.most_on_host(demand), refused)
        for index in self._promising(pools, asking, len(names)):
            if self._effort.is_late():
                break
            if reserved and not opened.nodes[index].reservation:
                continue
            if more := self._into_open(index, asking, waiting):
                placed += more
                waiting = names[placed:]  # not before: most nodes refuse, and thousands of names take time to copy
                if not waiting:
                    break
        return placed

    def _promising(self, pools: Sequence[Pool], asking: _Asking, count: int) -> list[int]:
        """The open nodes (indices) that might take some of so many pods, in order."""
        opened, demand, most = self.nodes.opened, asking.demand, min(count, asking.most)
        nodes = opened.promising(
            pools, demand, asking.domains, most, lambda pool: self.nodes.fair_price_in(pool, demand)
        ).tolist()
        if refused := asking.refused:
            # Most have refused as many before, or another node like them.
            nodes = [index for index in nodes if refused.get(opened.shape(index), 0) < most]
        hosts = [opened.nodes[index].name for index in nodes]
        return [nodes[at] for at in self._topology.unfilled(demand.pod_class, demand.variant.rules, hosts)]

    def _into_open(self, index: int, asking: _Asking, names: Sequence[str]) -> int:
        """As many pods as leave the node good value; where one refuses all, others of its shape are not asked again."""
        opened, shape = self.nodes.opened.nodes[index], self.nodes.opened.shape(index)
        demand, domains, refused = asking.demand, asking.domains, asking.refused.get(shape, 0)
        wanted = min(asking.most, len(names))
        if wanted > refused:
            wanted = min(self.nodes.allowed_on_host(demand, opened.name), wanted)
        if wanted <= refused:
            return 0
        if (shape, wanted) in asking.grown:
            like, count = asking.grown[shape, wanted]
            self.nodes.put_alike(index, like, demand, domains, names[:count])
            return count
        node, count = opened.narrowed(demand, domains), 0
        if node is not None:
            within = self.nodes.limits[node.pool.name].mask(node)
            affordable = within if node.min_values else within & self._affordable(index, node, demand, wanted)
            most, rows, counts = node.holds(demand, affordable)
            if most > 0 and not demand.may_start(self._topology, most, len(names)):
                return 0
            count = self._growth(index, demand, node.least_prices[rows], counts, min(most, wanted))
            if count > 0:
                _, rows, counts = node.holds(demand, within)
                self.nodes.put(index, node, demand, domains, names[:count], rows[counts >= count])
        if not opened.pool.limits:
            asking.note(shape, wanted, index, count)
        return count

    def _affordable(self, index: int, node: NewNode, demand: Demand, wanted: int) -> Mask:
        """The types that so many pods could justify: a few of all that the node may be,
        so that most refusals are cheap.
        """
        price, fair_price = self.nodes.opened.price[index], self.nodes.opened.fair_price[index]
        of_pods = fair_price + wanted * self.nodes.fair_price_in(node.pool, demand)
        affordable: Mask = node.least_prices <= max(bearable_ratio(price, fair_price) * of_pods, price) + 1e-9
        return affordable

    def _growth(self, index: int, demand: Demand, prices: Prices, counts: Amounts, most: int) -> int:
        if most <= 0:
            return 0
        opened = self.nodes.opened
        unit = self.nodes.fair_price_in(opened.nodes[index].pool, demand)
        return grown(prices, counts, most, price=opened.price[index], fair_price=opened.fair_price[index], unit=unit)

    def _grow(self, pools: Sequence[Pool], demand: Demand, domains: Domains, names: Sequence[str]) -> int:
        """For pods that have no other place nodes grow, whatever that costs:
        above all those of the pods whose host they must share.
        """
        placed = 0
        while placed < len(names) and not self._effort.is_late():
            cheapest = self._cheapest_growth(pools, demand, domains, len(names) - placed)
            if cheapest is None:
                break
            index, node, count, rows = cheapest
            self.nodes.put(index, node, demand, domains, names[placed : placed + count], rows)
            placed += count
        return placed

    def _cheapest_growth(
        self, pools: Sequence[Pool], demand: Demand, domains: Domains, wanted: int
    ) -> tuple[int, NewNode, int, Amounts] | None:
        """The node that grows for the least price a pod: its index, what it may be then,
        for how many pods, and as which types (rows).
        """
        best, least = None, np.inf
        for index, opened in enumerate(self.nodes.opened.nodes):
            allowed = min(self.nodes.allowed_on_host(demand, opened.name), wanted) if opened.pool in pools else 0
            node = opened.narrowed(demand, domains) if allowed > 0 else None
            if node is None:
                continue
            most, rows, counts = node.holds(demand, self.nodes.limits[node.pool.name].mask(node))
            fitting = np.minimum(counts, min(most, allowed))
            if not fitting.any() or not demand.may_start(self._topology, int(fitting.max()), wanted):
                continue
            growth = node.least_prices[rows] - self.nodes.opened.price[index]
            per_pod = np.where(fitting > 0, growth / np.maximum(fitting, 1), np.inf)
            count = int(fitting[per_pod.argmin()])
            if per_pod.min() < least - 1e-12:
                best, least = (index, node, count, rows[counts >= count]), float(per_pod.min())
        return best

    # --- more nodes ---

    def _start_reserved(
        self,
        pools: Sequence[Pool],
        demand: Demand,
        domains: Domains,
        names: Sequence[str],
        *,
        relaxing: bool = False,
    ) -> int:
        """Onto fresh nodes in capacity reservations. ``relaxing``: minValues that cannot be met are lowered."""
        placed = 0
        while placed < len(names) and not self._effort.is_late():
            best = self.reserved.best(pools, demand, domains, len(names) - placed, relaxing=relaxing)
            if best is None:
                break
            node, count, rows = best
            index = self.nodes.opened.append(node)
            self.nodes.put(index, node, demand, domains, names[placed : placed + count], rows)
            placed += count
        return placed

    def _open(self, pools: Sequence[Pool], demand: Demand, domains: Domains, names: Sequence[str]) -> int:
        """Buy one more node for the first pods, in the first pool that can;
        and more like it while those would begin alike.
        """
        for pool in pools:
            more_nodes = self.nodes.limits[pool.name].more_nodes()
            node = self.nodes.start(pool, demand, domains) if more_nodes else None
            if node is None or not self.nodes.keep_even_types(node, demand, domains):
                continue
            node, most, rows, counts = self.nodes.holding(node, demand, relaxing=self._relaxes)
            most = min(most, self.nodes.allowed_on_host(demand, node.name), len(names))
            if most > 0:
                host_bound = demand.must_gather(self._topology)
                count = most if host_bound else best_start(node.least_prices[rows], counts, most)
                index = self.nodes.opened.append(node)
                self.nodes.put(index, node, demand, domains, names[:count], rows[counts >= count])
                return count + self._repeat(pool, demand, domains, names[count:], count, most)
        return 0

    def _repeat(self, pool: Pool, demand: Demand, domains: Domains, names: Sequence[str], count: int, most: int) -> int:
        """Onto nodes just like the one that was opened last, with so many pods each,
        for as long as it would have held more.
        """
        placed = 0
        if not pool.limits and not demand.gathers:
            while len(names) - placed >= most:
                self.nodes.repeat([(demand, domains, names[placed : placed + count])])
                placed += count
        return placed
