"""What domains of offerings cost that a node may be pinned to: zones and capacity types, all combinations at once."""

from collections.abc import Sequence

import numpy as np

from joinery.decisions.scheduling.constraints.requirements import one_of
from joinery.decisions.scheduling.firstfit.demand import Demand, Domains
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.pools.market import OFFERING_KEYS, Amounts


class Sale:
    """A fresh node for a class, pinned to domains that only its offerings decide.

    To pin it takes columns away and leaves its types as they are, so each column is asked once, and hundreds of
    combinations of columns need no nodes of their own.
    """

    def __init__(self, node: NewNode, demand: Demand, *, fitting: bool) -> None:
        self._market = node.pool.market
        fit = np.where(node.columns, self._market.prices[holding(node, demand)], np.inf)
        prices = fit if fitting else np.where(node.columns, self._market.prices[node.types], np.inf)
        self._least = prices.min(axis=0, initial=np.inf)
        self._has_room = np.isfinite(fit).any(axis=0)

    def price(self, domains: Domains) -> float | None:
        """$/h of the cheapest offering there (``fitting``: that holds a pod); None where nothing there holds one."""
        columns = np.ones_like(self._has_room)
        for key, value in domains.items():
            columns &= self._market.column_mask(key, one_of((value,)))
        return float(self._least[columns].min()) if (columns & self._has_room).any() else None


def holding(node: NewNode, demand: Demand) -> Amounts:
    """The types that the node may be and that hold a pod (rows)."""
    _, rows, counts = node.holds(demand, np.ones_like(node.types))
    fit: Amounts = rows[counts > 0]
    return fit


def decides(node: NewNode, domains: Domains, keys: Sequence[str]) -> bool:
    """Whether offerings alone decide about these domains; minValues ask for more than the cheapest of them."""
    return (
        not node.min_values and set(keys) <= set(OFFERING_KEYS) and len(domains) == len(keys) and all(domains.values())
    )
