"""The nodes that a packing buys: what each may still become, and what they take of limits, reservations and domains.

``NewNodes`` keeps these books and does not choose: ``buying.Buyer`` (first-fit) and the optimizer say which node takes
which pods. Both go through here, so that requirements, host rules, limits and minValues are checked in one place,
whoever chose.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from joinery.decisions.scheduling.firstfit.demand import Demand, Domains, present
from joinery.decisions.scheduling.firstfit.limits import Limits, Reservations
from joinery.decisions.scheduling.firstfit.new_node import NewNode, PlacedPods, empty_node
from joinery.decisions.scheduling.firstfit.opened import OpenedNodes, fair_price_of_one
from joinery.decisions.scheduling.firstfit.options import USUAL, FirstFitOptions
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.pools.market import Amounts, Mask
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.topology.daemons import Newcomer
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import HOSTNAME

#: The fair price of one pod ($/h) by its dual in a relaxation; None for a demand that the relaxation did not know.
FairPrice = Callable[[Demand], float | None]

#: Pods of one class (their names) that a node is to take, as what, and in which domains.
Wanted = tuple[Demand, Domains, Sequence[str]]


class NewNodes:
    """The nodes of one packing.

    opened        the nodes, in the order in which they were opened
    reservations  what is left of capacity reservations
    fair_price    may be set once a relaxation has priced the classes
    counts_daemons  whether spreads count DaemonSets' pods that new nodes bring, and the packing allows for it
    prefix        keeps the names of these nodes apart from those of another packing, and of nodes that exist
    """

    def __init__(self, work: Workspace, options: FirstFitOptions = USUAL, *, prefix: str = "new/") -> None:
        self._work = work
        self._cautious = options.cautious
        self._prefix = prefix
        self._topology: Topology = work.topology
        self._fair_prices = work.fair_prices
        self._unappraised: list[int] = []
        self.counts_daemons = bool(work.topology.daemons.spreads) and not options.ignores_daemons
        self.limits = {pool.name: Limits(pool) for pool in work.pools}
        self.reservations = Reservations(work.reservations)
        self.opened = OpenedNodes(
            len(work.axis.names),
            max((len(pool.market.types) for pool in work.pools), default=0),
            max((len(pool.market.columns) for pool in work.pools), default=0),
        )
        self.fair_price: FairPrice = lambda demand: None
        self._pods = 0

    @property
    def size(self) -> tuple[int, int, int]:
        """How many pods they hold, how many they are, and how many of them are not just like the one before."""
        return self._pods, len(self.opened.nodes), self.opened.different

    def fair_price_in(self, pool: Pool, demand: Demand) -> float:
        """The fair price of one pod of the class in the pool, in $/h."""
        dual = self.fair_price(demand)
        if dual is not None:
            return dual
        key = (demand.pod_class, pool.name)
        if key not in self._fair_prices:
            is_open = is_open_to(pool, demand, self._topology)
            self._fair_prices[key] = fair_price_of_one(pool, demand) if is_open else 0.0
        return self._fair_prices[key]

    def start(self, pool: Pool, demand: Demand, domains: Domains) -> NewNode | None:
        """A fresh node of the pool that these pods could be on; None if there is none."""
        is_possible = is_open_to(pool, demand, self._topology) and not demand.fit(pool, domains)[1].conflict
        return self.empty(pool).narrowed(demand, domains) if is_possible else None

    def empty(self, pool: Pool, *, reserved: Mask | None = None) -> NewNode:
        """A fresh node of the pool; ``reserved``:
        the column of the reservation in which it is launched instead of being bought.
        """
        node = empty_node(pool, self.next_name(pool), self._work.axis, reserved=reserved)
        self._topology.daemons.count_on(node.name, pool.name)
        return node

    def next_name(self, pool: Pool) -> str:
        """What the next node of the pool is called."""
        return f"{self._prefix}{pool.name}-{len(self.opened.nodes) + 1}"

    def keep_even_types(self, node: NewNode, demand: Demand, domains: Domains) -> bool:
        """Keep a fresh node to the types whose DaemonSets' pods are borne by spreads that count them.

        Whether there are any.
        """
        if self.counts_daemons:
            node.types = node.types & self._topology.daemons.bearable(
                demand.pod_class, demand.variant.rules, domains, node.pool
            )
        return bool(node.types.any())

    def holding(self, node: NewNode, demand: Demand, *, relaxing: bool) -> tuple[NewNode, int, Amounts, Amounts]:
        """A fresh node, its minValues lowered if that must and may be,
        and what it holds within the limits (``NewNode.holds``).
        """
        allowed = self.limits[node.pool.name].mask(None)
        most, rows, counts = node.holds(demand, allowed)
        if most <= 0 and node.min_values and relaxing:
            node = node.with_relaxed_min_values(rows, counts)
            most, rows, counts = node.holds(demand, allowed)
        return node, most, rows, counts

    def could_open(self, pool: Pool, demand: Demand, domains: Domains) -> bool:
        """Whether one more node of the pool, within its limits, could hold one of the pods."""
        limits = self.limits[pool.name]
        node = self.start(pool, demand, domains) if limits.more_nodes() else None
        return node is not None and node.holds(demand, limits.mask(None))[0] > 0

    def allowed_on_host(self, demand: Demand, host: str) -> int:
        """How many more pods of the class rules over hosts let onto the node of that name."""
        if not demand.may_be_on(host):
            return 0
        return self._topology.allowance(demand.pod_class, demand.variant.rules, HOSTNAME, host, cautious=self._cautious)

    def most_on_host(self, demand: Demand) -> int:
        """At most so many more pods of the class rules of its own let onto any one node."""
        return self._topology.most_in_domain(demand.pod_class, demand.variant.rules, HOSTNAME)

    def put(
        self, index: int, node: NewNode, demand: Demand, domains: Domains, batch: Sequence[str], rows: Amounts
    ) -> None:
        """Put the pods on the node with that index, which may be of these types (rows) then."""
        self._take(node, demand, len(batch), rows)
        self.opened.replace(index, node, self.fair_price_in(node.pool, demand) * len(batch))
        self._charge(node)
        self._note(node, demand, domains, tuple(batch))

    def put_alike(self, index: int, grown: int, demand: Demand, domains: Domains, batch: Sequence[str]) -> None:
        """Put the pods on the node with that index, which is as the ``grown`` one was before it took as many."""
        before, like = self.opened.nodes[index], self.opened.nodes[grown]
        node = replace(like, name=before.name, placed=before.placed, ports=set(like.ports))
        self.opened.replace_alike(index, grown, node)
        self._charge(node)
        self._note(node, demand, domains, tuple(batch))

    def adopt(self, node: NewNode) -> None:
        """Take over a node of another packing as it is.

        What it is given from now on, the other packing does not have.
        """
        node = replace(node, placed=list(node.placed))
        self.opened.replace(self.opened.append(node), node, self._fair_price_of_pods(node))
        self._pods += sum(len(batch.pods) for batch in node.placed)
        self._charge(node)

    def build(
        self, pool: Pool, row: int, wanted: Sequence[Wanted], *, reserved: Mask | None = None
    ) -> tuple[NewNode, list[int]]:
        """Buy a node of that instance type (its row), or a cheaper one that does, and put pods on it in the order in
        which they are wanted.

        ``reserved``: the column of the reservation in which it is launched instead. Returns the node, and how many of
        the pods of each entry it took, from the first; nothing is bought if it takes none. Most nodes that are bought
        like this never grow, so what their pods should cost is worked out by ``appraise``.
        """
        limits, index = self.limits[pool.name], -1
        taken = [0] * len(wanted)
        node = self.empty(pool, reserved=reserved)
        if node.reservation and self.reservations.left(node.reservation) <= 0:
            return node, taken
        for entry, (demand, domains, names) in enumerate(wanted):
            narrowed = node.narrowed(demand, domains) if index >= 0 or limits.more_nodes() else None
            if narrowed is None:
                continue
            most, rows, counts = narrowed.holds(demand, limits.mask(narrowed))
            room = int(counts[rows == row].max(initial=0))
            count = min(most, room, len(names), self.allowed_on_host(demand, node.name))
            if count > 0:
                index = self.opened.append(narrowed) if index < 0 else index
                node, taken[entry] = narrowed, count
                self._take(node, demand, count, rows[counts >= count])
                self._charge(node)
                self._note(node, demand, domains, tuple(names[:count]))
        if index >= 0:
            self.opened.replace(index, node, 0.0)
            self._unappraised.append(index)
        return node, taken

    def appraise(self) -> None:
        """Value the nodes that were built as a whole at the present fair prices of their pods.

        To be called before it is asked whether nodes may grow.
        """
        for index in self._unappraised:
            self.opened.appraise(index, self._fair_price_of_pods(self.opened.nodes[index]))
        self._unappraised.clear()

    def _fair_price_of_pods(self, node: NewNode) -> float:
        return sum(self.fair_price_in(node.pool, batch.demand) * len(batch.pods) for batch in node.placed)

    def repeat(self, wanted: Sequence[Wanted]) -> None:
        """Buy one more node like the last one, for as many other pods, in a pool without limits."""
        last = self.opened.nodes[-1]
        node = replace(last, name=self.next_name(last.pool), placed=[])
        self._topology.daemons.count_on(node.name, last.pool.name)
        self._unappraised.append(self.opened.repeat(node))
        self._charge(node)
        for demand, domains, names in wanted:
            self._note(node, demand, domains, tuple(names))

    def _take(self, node: NewNode, demand: Demand, count: int, rows: Amounts) -> None:
        """Narrow the node to these types (rows), and give it the pods' requests and host ports."""
        types = np.zeros_like(node.types)
        types[rows] = True
        node.types = types
        # Spreads count the pods by the node's labels: while those are open, the count would change as the node takes
        # shape.
        for nodes in self._topology.binding(demand.pod_class).watching:
            node.fix_labels(nodes)
        for group in self._topology.daemons.spreads:
            node.fix_daemons(group.brought.get(node.pool.name))
        node.used = node.used + demand.requests * count
        node.ports = node.ports | demand.pod_class.ports

    def _charge(self, node: NewNode) -> None:
        """Count it against its pool's limits, and against the reservation that it takes a place of."""
        self.limits[node.pool.name].charge(node)
        self.reservations.charge(node)

    def _note(self, node: NewNode, demand: Demand, domains: Domains, pods: tuple[str, ...]) -> None:
        """Note the pods on the node and in the counts per domain."""
        where = {**present(domains), HOSTNAME: node.name}
        newcomer = None
        if self._topology.daemons.spreads:
            pinned = frozenset(key for earlier in node.placed for key, domain in earlier.domains.items() if domain)
            newcomer = Newcomer(node.pool.name, node.cheapest(), pinned)
        record = self._topology.record(
            demand.pod_class, demand.variant.rules, where, len(pods), node.counts, newcomer=newcomer
        )
        node.placed.append(PlacedPods(demand, domains, pods, record))
        self._work.hosts_of_claims.update(dict.fromkeys(demand.pod_class.shared_claims, node.name))
        self._pods += len(pods)


def is_open_to(pool: Pool, demand: Demand, topology: Topology) -> bool:
    """Whether neither taints of the pool nor the DaemonSets' pods on its nodes keep the class away."""
    if demand.is_repelled(pool.taints):
        return False
    return not topology.daemons.barring(demand.pod_class, demand.variant.rules, pool.name)
