"""Which instance types a launch carries: the cheapest that hold its pods,
as many as a request takes, so chosen that minValues hold.
"""

from collections.abc import Mapping

import numpy as np

from joinery.optimizer.covering import Quotas, cover, greedy
from joinery.scheduling.pools.pool import Amounts, Mask, Pool

MinValues = Mapping[str, int]
"""How many values of a label the types of a launch have between them, by label."""


def choose(pool: Pool, types: Mask, columns: Mask, min_values: MinValues) -> tuple[int, ...]:
    """The rows of the types, cheapest first, that a launch of these types and offerings carries;
    none where minValues cannot hold.
    """
    rows = _by_price(pool, types, columns)
    most = pool.launch_types
    if not len(rows) or not min_values:
        return tuple(int(row) for row in rows[:most])
    known = (types.tobytes(), columns.tobytes(), tuple(sorted(min_values.items())))
    if known not in pool.choices:
        needed = _needed(pool, rows, columns, min_values)
        pool.choices[known] = () if needed is None else _filled(rows, needed, most)
    return pool.choices[known]


def is_possible(pool: Pool, types: Mask, columns: Mask, min_values: MinValues) -> bool:
    """Whether a launch can carry types that meet minValues. Cheap wherever each label may be looked at by itself."""
    if not all(pool.distinct(key, types, columns) >= least for key, least in min_values.items()):
        return False
    if int(types.sum()) <= pool.launch_types or sum(min_values.values()) < pool.launch_types:
        return True
    return bool(choose(pool, types, columns, min_values))


def lowered(pool: Pool, types: Mask, columns: Mask, min_values: MinValues) -> MinValues:
    """MinValues as far as a launch of these types can meet them (BestEffort, 3.19)."""
    if is_possible(pool, types, columns, min_values):
        return min_values
    rows = _by_price(pool, types, columns)
    chosen = np.zeros_like(types)
    if len(rows):
        chosen[rows[greedy(_quotas(pool, rows, columns, min_values), pool.launch_types)]] = True
    counts = {key: min(least, pool.distinct(key, chosen, columns)) for key, least in min_values.items()}
    return {key: least for key, least in counts.items() if least}


def _by_price(pool: Pool, types: Mask, columns: Mask) -> Amounts:
    least = pool.market.prices[:, columns].min(axis=1, initial=np.inf)
    rows: Amounts = np.flatnonzero(types & np.isfinite(least))
    return rows[np.argsort(least[rows], kind="stable")]


def _needed(pool: Pool, rows: Amounts, columns: Mask, min_values: MinValues) -> Amounts | None:
    asked = _quotas(pool, rows, columns, min_values)
    if len(rows) > pool.launch_types:
        return cover(asked, pool.launch_types)
    every: Amounts = np.arange(len(rows))
    return None if asked.missing(every).any() else every


def _filled(rows: Amounts, needed: Amounts, most: int) -> tuple[int, ...]:
    """The needed rows, and the cheapest of the others for as long as there is room."""
    others = np.setdiff1d(np.arange(len(rows)), needed)[: most - len(needed)]
    return tuple(int(row) for row in rows[np.sort(np.concatenate([needed, others]))])


def _quotas(pool: Pool, rows: Amounts, columns: Mask, min_values: MinValues) -> Quotas:
    listed = sorted(min_values)
    pairs = [(place, i, value) for i, key in enumerate(listed) for place, row in enumerate(rows)
             for value in pool.values(key, int(row), columns)]  # fmt: skip
    values = sorted({(i, value) for _, i, value in pairs})
    number = {value: index for index, value in enumerate(values)}
    brings = np.zeros((len(rows), len(values)), dtype=np.bool_)
    for place, i, value in pairs:
        brings[place, number[i, value]] = True
    sort = np.array([i for i, _ in values], dtype=np.int64)
    return Quotas(brings, sort, np.array([min_values[key] for key in listed], dtype=np.int64))
