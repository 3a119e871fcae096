"""Which instance types a launch carries: the cheapest that hold its pods, chosen so that minValues hold.

EC2 takes one of them. More types make it likelier that one is available, but a request takes only so many
(``Pool.launch_types``). A NodePool's minValues may ask for dearer types among them.
"""

from collections.abc import Mapping

import numpy as np

from joinery.decisions.optimizer.covering import Quotas, cover, greedy
from joinery.decisions.scheduling.pools.market import Amounts, Mask
from joinery.decisions.scheduling.pools.pool import Pool

#: How many different values of a label the types of a launch must have between them, by label.
MinValues = Mapping[str, int]


def choose_types(pool: Pool, types: Mask, columns: Mask, min_values: MinValues) -> tuple[int, ...]:
    """The rows of the types that a launch carries, cheapest first; empty where minValues cannot be met.

    ``types``: bool[types], and ``columns``: bool[columns], what the launch may use.
    """
    rows = _by_price(pool, types, columns)
    if not len(rows) or not min_values:
        return tuple(int(row) for row in rows[: pool.launch_types])
    key = (types.tobytes(), columns.tobytes(), tuple(sorted(min_values.items())))
    if key not in pool.type_choices:
        needed = _needed(pool, rows, columns, min_values)
        pool.type_choices[key] = () if needed is None else _filled(rows, needed, pool.launch_types)
    return pool.type_choices[key]


def can_meet(pool: Pool, types: Mask, columns: Mask, min_values: MinValues) -> bool:
    """Whether a launch can carry types that meet minValues."""
    if not all(pool.distinct(key, types, columns) >= least for key, least in min_values.items()):
        return False
    # With room for one type per value, or for all types, each label can be met by itself. This is cheap and nearly
    # always so.
    if int(types.sum()) <= pool.launch_types or sum(min_values.values()) < pool.launch_types:
        return True
    return bool(choose_types(pool, types, columns, min_values))


def lowered(pool: Pool, types: Mask, columns: Mask, min_values: MinValues) -> MinValues:
    """minValues, lowered to what a launch of these types can meet (Karpenter, minValuesPolicy BestEffort)."""
    if can_meet(pool, types, columns, min_values):
        return min_values
    rows = _by_price(pool, types, columns)
    chosen = np.zeros_like(types)
    if len(rows):
        chosen[rows[greedy(_quotas(pool, rows, columns, min_values), pool.launch_types)]] = True
    counts = {key: min(least, pool.distinct(key, chosen, columns)) for key, least in min_values.items()}
    return {key: least for key, least in counts.items() if least}


def _by_price(pool: Pool, types: Mask, columns: Mask) -> Amounts:
    """int64[n]: the rows of the types that are sold in some column, cheapest first, equal prices by row."""
    least = pool.market.prices[:, columns].min(axis=1, initial=np.inf)
    rows: Amounts = np.flatnonzero(types & np.isfinite(least))
    return rows[np.argsort(least[rows], kind="stable")]


def _needed(pool: Pool, rows: Amounts, columns: Mask, min_values: MinValues) -> Amounts | None:
    """Places in ``rows`` of types that meet minValues together, as few as it takes; None where none do."""
    quotas = _quotas(pool, rows, columns, min_values)
    if len(rows) > pool.launch_types:
        return cover(quotas, pool.launch_types)
    every: Amounts = np.arange(len(rows))
    return None if quotas.missing(every).any() else every


def _filled(rows: Amounts, needed: Amounts, most: int) -> tuple[int, ...]:
    """The needed rows, and the cheapest of the others for as long as there is room."""
    others = np.setdiff1d(np.arange(len(rows)), needed)[: most - len(needed)]
    return tuple(int(row) for row in rows[np.sort(np.concatenate([needed, others]))])


def _quotas(pool: Pool, rows: Amounts, columns: Mask, min_values: MinValues) -> Quotas:
    """minValues as a covering problem: types are candidates, labels are quotas, their values are what is covered."""
    keys = sorted(min_values)
    offers = [
        (candidate, quota, value)
        for quota, key in enumerate(keys)
        for candidate, row in enumerate(rows)
        for value in pool.values(key, int(row), columns)
    ]
    values = sorted({(quota, value) for _, quota, value in offers})
    number = {value: index for index, value in enumerate(values)}
    has_value = np.zeros((len(rows), len(values)), dtype=np.bool_)
    for candidate, quota, value in offers:
        has_value[candidate, number[quota, value]] = True
    quota_of = np.array([quota for quota, _ in values], dtype=np.int64)
    return Quotas(has_value, quota_of, np.array([min_values[key] for key in keys], dtype=np.int64))
