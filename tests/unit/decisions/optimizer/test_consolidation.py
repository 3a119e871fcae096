"""Which standing bins to keep: never dearer than as it is, never below the bound, and near the best."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.optimizer.arrays import UNLIMITED, Mask
from joinery.decisions.optimizer.consolidation.choice import consolidate
from joinery.decisions.optimizer.consolidation.instance import Consolidation, ConsolidationInstance
from joinery.decisions.optimizer.consolidation.relaxation import KeepRelaxation
from joinery.decisions.optimizer.consolidation.room import SumsOfRoom
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.linear.highs import Patience
from joinery.objects.answers import Answers
from tests.properties import examples
from tests.unit.decisions.optimizer.instances import cheapest

_ROOM = 8
"""Of every standing bin, before its residents."""


def _instance(
    residents: list[list[int]], sizes: list[int], prices: list[float], *, new: list[tuple[int, float]], move: float
) -> ConsolidationInstance:
    """``residents``: by standing bin, copies of each item. ``new``: capacity and cost of each type."""
    here = np.array(residents, dtype=np.int64).T.reshape(len(sizes), len(prices))
    size = np.array(sizes, dtype=np.int64)[:, None]
    free = _ROOM - here.T @ size
    capacities = np.concatenate([free, np.array([[capacity] for capacity, _ in new], dtype=np.int64)])
    bins = PackingInstance(
        sizes=size,
        demands=here.sum(axis=1),
        costs=np.array([*prices, *(cost for _, cost in new)]),
        capacities=capacities,
        compatible=size <= capacities.T,
        cardinality_limits=(),
        conflicts=np.zeros((len(sizes), len(sizes)), dtype=np.bool_),
        available=np.array([*([1] * len(prices)), *([UNLIMITED] * len(new))]),
    )
    return ConsolidationInstance(
        bins=bins,
        residents=here,
        moves=move * here.sum(axis=0),
        may_retire=np.ones(len(prices), dtype=np.bool_),
        kinds=np.zeros(len(prices), dtype=np.int64),
    )


@st.composite
def _small(draw: st.DrawFn) -> ConsolidationInstance:
    standing, items = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    sizes = draw(st.lists(st.integers(1, 5), min_size=items, max_size=items))
    residents = []
    for _ in range(standing):
        left, row = _ROOM, []
        for size in sizes:
            count = draw(st.integers(0, min(2, left // size)))
            row.append(count)
            left -= count * size
        residents.append(row)
    prices = draw(st.lists(st.sampled_from([0.1, 0.3, 0.5, 0.8]), min_size=standing, max_size=standing))
    new = [(_ROOM, draw(st.sampled_from([0.2, 0.4, 0.7]))), (5, 0.25)]
    return _instance(residents, sizes, prices, new=new, move=draw(st.sampled_from([0.0, 0.01, 0.1])))


def _best(instance: ConsolidationInstance, most: int = UNLIMITED) -> float:
    """$/h of the best choice of which so many bins go at ``most``, found by trying all."""
    return min(
        instance.cost(np.array(keep), _packed(instance, np.array(keep)))
        for keep in product([True, False], repeat=instance.standing)
        if keep.count(False) <= most
    )


def _packed(instance: ConsolidationInstance, keep: Mask) -> float:
    """$/h of the new bins that are needed beside these."""
    bins = instance.bins
    used = np.concatenate([keep, np.ones(len(bins.costs) - len(keep), dtype=np.bool_)])
    rest = bins.restrict(np.arange(len(bins.demands)), np.flatnonzero(used), instance.displaced(keep))
    rest.costs[: int(keep.sum())] = 0.0
    return cheapest(rest)


def _overfull(instance: ConsolidationInstance, choice: Consolidation) -> bool:
    taken = choice.inflow.T @ instance.bins.sizes
    free = np.where(choice.keep[:, None], instance.bins.capacities[: instance.standing], 0)
    return bool((taken > free).any())


@given(instance=_small())
@examples(60)
def test_the_bound_is_one_and_the_choice_is_between_it_and_what_stands(instance: ConsolidationInstance) -> None:
    """Whatever the cluster; and what is put beside residents fits there."""
    choice, best = consolidate(instance, Effort()), _best(instance)
    assert choice.bound <= best + 1e-6
    if len(instance.bins.demands):
        assert KeepRelaxation(instance).bound_of_whole_bins() <= best + 1e-6
    assert best - 1e-6 <= choice.cost <= instance.cost_as_it_is + 1e-6
    assert not _overfull(instance, choice)


@given(instance=_small())
@examples(60)
def test_sums_of_room_say_no_less_than_can_be_gained(instance: ConsolidationInstance) -> None:
    """And no less than the relaxation says, which knows more."""
    bins, standing = instance.bins, instance.standing
    sums = SumsOfRoom(
        keeping=instance.keeping,
        residents=instance.residents.T @ bins.sizes,
        free=bins.capacities[:standing],
        costs=bins.costs[standing:],
        capacities=bins.capacities[standing:],
    )
    relaxed = KeepRelaxation(instance).solve()
    assert sums.most_gain() >= instance.cost_as_it_is - _best(instance) - 1e-6
    assert relaxed is not None
    assert sums.most_gain() >= instance.cost_as_it_is - relaxed.cost - 1e-6


@given(instance=_small(), most=st.integers(0, 2))
@examples(30)
def test_no_choice_within_a_quota_costs_less_than_its_bound(instance: ConsolidationInstance, most: int) -> None:
    """A budget lets so many bins go; the fewer, the more it costs."""
    quotas = [(np.arange(instance.standing), most)]
    relaxed, free = KeepRelaxation(instance, quotas=quotas).solve(), KeepRelaxation(instance).solve()
    assert relaxed is not None
    assert free is not None
    assert free.cost - 1e-6 <= relaxed.cost <= _best(instance, most) + 1e-6


@given(instance=_small(), margin=st.sampled_from([0.01, 0.1]))
@examples(20)
def test_room_to_waste_never_makes_it_cheaper(instance: ConsolidationInstance, margin: float) -> None:
    """So the margins can be tried in turn until everything has a place."""
    relaxation = KeepRelaxation(instance)
    plain, wasteful = relaxation.solve(), relaxation.solve(margin)
    assert plain is not None
    assert wasteful is not None
    assert wasteful.cost >= plain.cost - 1e-9


def test_where_nothing_can_be_gained_the_bound_says_so() -> None:
    """Full bins at the price of new ones: nothing is tried, and nothing moves."""
    full = _instance([[4]] * 5, [2], [0.4] * 5, new=[(_ROOM, 0.4)], move=0.01)
    choice = consolidate(full, Effort())
    assert choice.method == "bound"
    assert choice.keep.all()
    assert choice.bound == pytest.approx(2.0)


def test_two_half_empty_bins_become_one() -> None:
    """One stays with its residents, and those of the other join them."""
    choice = consolidate(_instance([[2], [2]], [2], [0.4, 0.4], new=[(_ROOM, 0.4)], move=0.01), Effort())
    assert choice.keep.sum() == 1
    assert choice.cost == pytest.approx(0.4 + 0.02)


def test_a_part_of_a_bin_is_no_solution() -> None:
    """The one that is left is nearly empty, and nothing cheaper is to be had. The bound says that this is the best."""
    instance = _instance([[1], [1]], [1], [0.4, 0.4], new=[(_ROOM, 0.4)], move=0.01)
    assert consolidate(instance, Effort()).cost == pytest.approx(0.41)
    assert KeepRelaxation(instance).bound_of_whole_bins() == pytest.approx(0.41, rel=1e-4)


def test_the_bound_of_whole_bins_ends_when_time_is_up() -> None:
    """For many bins it takes a second; what it knows by then is a bound as well."""
    residents = [[1 + number % 3, number % 2] for number in range(30)]
    prices = [0.3 + number % 7 / 50 for number in range(30)]
    instance = _instance(residents, [3, 2], prices, new=[(5, 0.23), (7, 0.31)], move=0.01)
    cut_short = KeepRelaxation(instance, Patience(is_time_up=lambda: True)).bound_of_whole_bins()
    assert cut_short < KeepRelaxation(instance).bound_of_whole_bins()


def test_a_dear_bin_becomes_cheaper_ones() -> None:
    """One bin for two, where that is what costs least."""
    choice = consolidate(_instance([[4]], [2], [2.0], new=[(4, 0.3)], move=0.01), Effort())
    assert not choice.keep.any()
    assert choice.cost == pytest.approx(0.6 + 0.04)


def test_what_moves_cost_more_than_they_save_stays() -> None:
    """The same bins, and dear moves."""
    choice = consolidate(_instance([[4]], [2], [2.0], new=[(4, 0.3)], move=0.5), Effort())
    assert choice.keep.all()


def test_one_instance_gives_one_choice() -> None:
    """Whatever is random comes from the seed."""
    rng = np.random.default_rng(3)
    residents = [[int(count) for count in rng.integers(0, 3, 2)] for _ in range(12)]
    instance = _instance(residents, [1, 2], [0.4] * 12, new=[(_ROOM, 0.35)], move=0.01)
    one, other = consolidate(instance, Effort(seed=5)), consolidate(instance, Effort(seed=5))
    assert one.cost == other.cost
    assert (one.keep == other.keep).all()
    assert (one.inflow == other.inflow).all()


@given(instance=_small())
@examples(30)
def test_a_choice_is_sought_once_and_another_for_other_moves(instance: ConsolidationInstance) -> None:
    """By all efforts that share their answers; what is found is what one without answers finds."""
    answers = Answers()
    first, again = (consolidate(instance, Effort(answers=answers)) for _ in range(2))
    assert again is first
    assert repr(first) == repr(consolidate(replace(instance), Effort()))
    dear = replace(instance, moves=instance.moves + 9.0)
    assert consolidate(dear, Effort(answers=answers)).keep.all()


def test_a_choice_with_another_seed_is_sought_anew() -> None:
    """Whoever asks for another one wants another search."""
    answers = Answers()
    instance = _instance([[2], [2]], [2], [0.4, 0.4], new=[(_ROOM, 0.35)], move=0.01)
    one, other = (consolidate(instance, Effort(seed=seed, answers=answers)) for seed in (1, 2))
    assert one is not other
