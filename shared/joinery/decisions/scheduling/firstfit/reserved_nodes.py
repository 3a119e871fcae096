"""Fresh nodes in capacity reservations: which there could be for a class, and which of them is the cheapest for its
pods.

A reserved node counts at the price that the catalogue gives for it, usually nothing, but its reservation takes so many
nodes and no more. So large ones are not spent on few pods.
"""

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from joinery.decisions.scheduling.firstfit.demand import Demand, Domains
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.new_nodes import NewNodes
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.pools.market import OFFERING_KEYS, Amounts
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.topology.topology import Topology


class ReservedNodes:
    """The nodes that may be launched in reservations.

    ``kept_back``: reservations that other pods need, which have nothing else.
    """

    def __init__(self, work: Workspace, nodes: NewNodes) -> None:
        self.kept_back: frozenset[str] = frozenset()
        self._nodes = nodes
        self._topology: Topology = work.topology

    def best(
        self, pools: Sequence[Pool], demand: Demand, domains: Domains, wanted: int, *, relaxing: bool
    ) -> tuple[NewNode, int, Amounts] | None:
        """A node in the reservation that is cheapest for the pods it would hold.

        With how many of the wanted pods it takes, and the types (rows) that hold them. ``relaxing``: minValues that
        cannot be met are lowered.
        """
        best, lowest = None, np.inf
        starts = (node for pool in pools for node in self._promising(pool, demand, domains, wanted))
        for start in (node for node in starts if self._nodes.keep_even_types(node, demand, domains)):
            node, most, rows, counts = self._nodes.holding(start, demand, relaxing=relaxing)
            most = min(most, self._nodes.allowed_on_host(demand, node.name), wanted)
            if most <= 0 or not demand.may_start(self._topology, most, wanted):
                continue
            holding = rows[counts >= most]
            price = float(node.least_prices[holding].min()) / most
            if best is None or price < lowest * (1 - 1e-9):
                best, lowest = (node, most, holding), price
        return best

    def starts(self, pool: Pool, demand: Demand, domains: Domains, keys: Sequence[str] = ()) -> list[NewNode]:
        """A fresh node in each reservation of the pool that suits the pods and has some left; of those that are alike
        in one.

        ``keys``: labels of offerings. Then in the cheapest that holds a pod, for each combination of their values.
        """
        columns = self._open_columns(pool, demand, domains)
        if columns and keys and set(keys) <= set(OFFERING_KEYS):
            rows, market = pool.market.reserved_row[columns], pool.market
            holds = (pool.room[rows] >= demand.requests).all(axis=1) & demand.fit(pool, domains)[1].types[rows]
            first: dict[tuple[str | None, ...], int] = {}
            for index in np.argsort(market.prices[rows, columns], kind="stable"):
                if holds[index]:
                    offering = market.columns[columns[index]]
                    first.setdefault(tuple(offering.value(key) for key in keys), columns[index])
            columns = list(first.values())
        return self._started(pool, demand, domains, columns)

    def open_to(self, demand: Demand) -> Iterator[NewNode]:
        """The nodes that are launched in a reservation so far, as far as they are open to the class."""
        for node in self._nodes.opened.nodes:
            if node.reservation and not demand.is_repelled(node.pool.taints):
                narrowed = node.narrowed(demand, {})
                if narrowed is not None:
                    yield narrowed

    def _promising(self, pool: Pool, demand: Demand, domains: Domains, wanted: int) -> list[NewNode]:
        """A fresh node in the reservation of the pool that is cheapest for the pods it would hold.

        Where minValues decide, one in each reservation: whether they can be met is known only of a whole node.
        """
        if pool.min_values:
            return self.starts(pool, demand, domains)
        columns = np.array(self._open_columns(pool, demand, domains), dtype=np.int64)
        rows, asked = pool.market.reserved_row[columns], demand.asked
        counts = (pool.room[rows][:, asked] // demand.requests[asked]).min(
            axis=1, initial=1 if demand.pod_class.ports else wanted
        )
        most = np.minimum(counts, self._nodes.allowed_on_host(demand, self._nodes.next_name(pool)))
        usable = (most >= (wanted if demand.must_gather(self._topology) else 1)) & (pool.room[rows] >= 0).all(axis=1)
        allowed = self._nodes.limits[pool.name].mask(None)
        usable &= (demand.fit(pool, domains)[1].types & pool.types & allowed)[rows]
        per_pod = np.where(usable, pool.market.prices[rows, columns] / np.maximum(most, 1), np.inf)
        if not np.isfinite(per_pod).any():
            return []
        first = int(columns[(per_pod <= per_pod.min() * (1 + 1e-9)).argmax()])
        return self._started(pool, demand, domains, [first])

    def _open_columns(self, pool: Pool, demand: Demand, domains: Domains) -> list[int]:
        """The columns of the reservations that suit the pods and have some left; of those that are alike one."""
        _, fit = demand.fit(pool, domains)
        if fit.conflict or not self._nodes.limits[pool.name].more_nodes():
            return []
        chosen: dict[Hashable, int] = {}
        for column in np.flatnonzero(fit.columns & pool.columns & pool.market.reserved):
            reservation = pool.market.columns[column].reservation
            name = reservation.id if reservation else ""
            if name not in self.kept_back and self._nodes.reservations.left(name) > 0:
                chosen.setdefault(pool.market.likeness[column], int(column))
        return list(chosen.values())

    def _started(self, pool: Pool, demand: Demand, domains: Domains, columns: Sequence[int]) -> list[NewNode]:
        """A fresh node in each of these reservations (columns), as far as that suits the pods."""
        masks = (np.arange(len(pool.columns)) == column for column in columns)
        blanks = (self._nodes.empty(pool, reserved=alone) for alone in masks)
        return [node for blank in blanks if (node := blank.narrowed(demand, domains)) is not None]
