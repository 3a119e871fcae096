"""New bins for copies that standing ones have no room for: filled right, and as cheap as if every type were looked at
each time.
"""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.consolidation.instance import ConsolidationInstance
from joinery.decisions.optimizer.consolidation.new_bins import covering
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern, cost_of
from joinery.decisions.optimizer.rounding.filling import fill, greedy_orders
from tests.properties import examples
from tests.unit.decisions.optimizer.instances import instances, wrong


def _only_new(bins: PackingInstance) -> ConsolidationInstance:
    """Without standing bins."""
    return ConsolidationInstance(
        bins=bins,
        residents=np.zeros((len(bins.demands), 0), dtype=np.int64),
        moves=np.zeros(0),
        may_retire=np.zeros(0, dtype=np.bool_),
        kinds=np.zeros(0, dtype=np.int64),
    )


def _priced(bins: PackingInstance) -> Floats:
    """$/h of a copy, at the cheapest price of its size."""
    each = np.where(bins.max_per_bin > 0, bins.costs / np.maximum(bins.max_per_bin, 1), np.inf)
    prices: Floats = np.where(np.isfinite(each.min(axis=1)), each.min(axis=1), bins.costs.max())
    return prices


def _covering(bins: PackingInstance, left: Ints, below: float = np.inf) -> list[Pattern] | None:
    return covering(_only_new(bins), _priced(bins), left, below, lambda: False)


@given(bins=instances(), data=st.data())
@examples(60)
def test_all_copies_get_a_bin_that_holds_them(bins: PackingInstance, data: st.DataObject) -> None:
    """Whatever the rules; there is no answer only where some copy fits no bin."""
    left = np.array([data.draw(st.integers(0, int(demand))) for demand in bins.demands])
    new = _covering(bins, left)
    if new is None:
        assert (bins.max_per_bin.max(axis=1)[left > 0] == 0).any()
    else:
        assert not wrong(replace(bins, demands=left, available=np.zeros(0, dtype=np.int64)), new)


@given(bins=instances())
@examples(30)
def test_there_is_no_answer_that_costs_too_much_for_sure(bins: PackingInstance) -> None:
    """What copies cost at least is known."""
    assert _covering(bins, bins.demands, below=float(_priced(bins) @ bins.demands) * (1 - 1e-6)) is None


@given(bins=instances())
@examples(10)
def test_there_is_none_where_nothing_can_be_bought(bins: PackingInstance) -> None:
    """But for no copies, which need nothing."""
    items = np.arange(len(bins.demands))
    none = bins.restrict(items, np.zeros(0, dtype=np.int64), bins.demands)
    assert covering(_only_new(none), _priced(bins), bins.demands, np.inf, lambda: False) is None
    assert covering(_only_new(none), _priced(bins), bins.demands * 0, np.inf, lambda: False) == []


def _looking_at_all(bins: PackingInstance, duals: Floats) -> float:
    """$/h of bins bought one kind after another, each time the one that holds most for its price."""
    left, bought = bins.demands, 0.0
    while left.any():
        types, orders = greedy_orders(bins, duals + 1e-9, np.arange(len(bins.costs)), np.flatnonzero(left))
        counts = fill(bins, types, orders, left)
        best = int((counts @ (duals + 1e-9) / bins.costs[types]).argmax())
        copies = int((left[counts[best] > 0] // counts[best][counts[best] > 0]).min())
        left = left - copies * counts[best]
        bought += copies * float(bins.costs[types[best]])
    return bought


def test_types_that_are_not_looked_at_again_would_not_have_been_cheaper() -> None:
    """Bins are filled greedily, so now and then one would; not by more than a thousandth in the mean."""
    chance, lazy, thorough = np.random.default_rng(3), list[float](), list[float]()
    for _ in range(20):
        sizes, types = chance.integers(1, 12, size=(25, 2)), chance.integers(1, 16, size=(60, 1))
        capacities = 4 * types * chance.permuted(np.tile([1, 2], (60, 1)), axis=1)
        bins = PackingInstance(
            sizes=sizes,
            demands=chance.integers(1, 9, 25),
            costs=capacities.sum(axis=1) * chance.uniform(0.9, 1.2, 60) / 10,
            capacities=capacities,
            compatible=np.asarray((sizes[:, None] <= capacities[None]).all(axis=2)),
            cardinality_limits=(),
            conflicts=np.zeros((25, 25), dtype=np.bool_),
        )
        new = _covering(bins, bins.demands)
        assert new is not None
        lazy.append(cost_of(bins, new))
        thorough.append(_looking_at_all(bins, _priced(bins)))
    assert sum(lazy) <= sum(thorough) * 1.001
