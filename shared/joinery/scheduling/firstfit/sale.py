"""What domains of offerings cost that a node may be pinned to: zones and capacity types, all combinations at once."""

from collections.abc import Sequence

import numpy as np

from joinery.scheduling.constraints.requirements import one_of
from joinery.scheduling.firstfit.demand import Demand, Domains
from joinery.scheduling.firstfit.targets import NewNode
from joinery.scheduling.pools.market import OFFERING_KEYS


class Sale:
    """A fresh node for a class, pinned to domains that only its offerings decide.

    To pin it takes columns away and leaves its types as they are, so each column is asked once, and hundreds of
    combinations of columns need no nodes of their own.
    """

    def __init__(self, node: NewNode, demand: Demand) -> None:
        prices = np.where(node.columns, node.pool.market.prices[node.types], np.inf)
        self._market = node.pool.market
        self._least = prices.min(axis=0, initial=np.inf)
        _, rows, counts = node.holds(demand, np.ones_like(node.types))
        sold = np.isfinite(self._market.prices[rows[counts > 0]])
        self._has_room = node.columns & sold.any(axis=0)

    def price(self, domains: Domains) -> float | None:
        """$/h of the cheapest offering there; None where nothing that is sold there holds a pod."""
        columns = np.ones_like(self._has_room)
        for key, value in domains.items():
            columns &= self._market.column_mask(key, one_of((value,)))
        return float(self._least[columns].min()) if (columns & self._has_room).any() else None


def decides(node: NewNode, domains: Domains, keys: Sequence[str]) -> bool:
    """Whether offerings alone decide about these domains; minValues ask for more than the cheapest of them."""
    return (
        not node.min_values and set(keys) <= set(OFFERING_KEYS) and len(domains) == len(keys) and all(domains.values())
    )
