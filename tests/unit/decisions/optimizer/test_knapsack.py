"""What the copies in a bin are worth at most: never less than the best, and the best where bins hold few."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.consolidation.knapsack import BestContent, Together, best_content, proven_content
from tests.properties import examples

_Bin = tuple[Floats, Ints, Ints, Ints]
_Content = Callable[[Floats, Ints, Ints, Ints, float, Together], BestContent]


@st.composite
def _bins(draw: st.DrawFn) -> _Bin:
    """Prices of copies, their sizes, the room of a bin, and how many copies there are."""
    items = draw(st.integers(1, 4))

    def row(least: int, most: int, length: int) -> list[int]:
        return draw(st.lists(st.integers(least, most), min_size=length, max_size=length))

    sizes = [[1 + first, second] for first, second in zip(row(0, 5, items), row(0, 6, items), strict=True)]
    prices = np.array(row(0, 9, items)) / 7
    return prices, np.array(sizes), np.array(row(0, 12, 2)), np.array(row(0, 3, items))


def _without_rules(items: int) -> Together:
    return Together(
        np.zeros((items, items), dtype=np.bool_), np.zeros((items, 0), dtype=np.bool_), np.zeros(0, np.int64)
    )


@st.composite
def _rules(draw: st.DrawFn) -> Together:
    """What the first four items may share a bin with."""
    conflicts = np.array(draw(st.lists(st.booleans(), min_size=16, max_size=16))).reshape(4, 4)
    members = np.array(draw(st.lists(st.booleans(), min_size=8, max_size=8))).reshape(4, 2)
    return Together(
        (conflicts | conflicts.T) & ~np.eye(4, dtype=np.bool_), members, np.array([draw(st.integers(1, 3)), 2])
    )


def _best(prices: Floats, sizes: Ints, room: Ints, most: Ints, together: Together) -> float:
    """Found by trying all."""
    tried = (np.array(counts) for counts in product(*(range(count + 1) for count in most)))
    return max(float(counts @ prices) for counts in tried if (counts @ sizes <= room).all() and together.allows(counts))


@pytest.mark.parametrize("content", [best_content, proven_content])
@given(bin_=_bins(), above=st.sampled_from([0.0, 1.0, 2.5]))
@examples(60)
def test_nothing_in_a_bin_is_worth_more_and_what_is_found_fits(content: _Content, bin_: _Bin, above: float) -> None:
    """And what is found is worth nearly that, where it is worth more than was asked for."""
    prices, sizes, room, most = bin_
    together = _without_rules(len(prices))
    best, found = _best(*bin_, together), content(*bin_, above, together)
    assert found.value >= max(best, above) - 1e-9
    assert found.value <= max(best, above) * 1.001 + 1e-6
    if found.counts is None:
        assert best <= above * 1.001 + 1e-6
    else:
        assert (found.counts @ sizes <= room).all()
        assert (found.counts <= most).all()
        assert found.counts @ prices > above


@pytest.mark.parametrize("content", [best_content, proven_content])
@given(bin_=_bins(), rules=_rules(), above=st.sampled_from([0.0, 1.0]))
@examples(60)
def test_what_may_not_share_a_bin_does_not(content: _Content, bin_: _Bin, rules: Together, above: float) -> None:
    """And what may is worth no more than is said."""
    prices, sizes, room, most = bin_
    together = rules.among(np.arange(len(prices)))
    found = content(*bin_, above, together)
    assert found.value >= max(_best(*bin_, together), above) - 1e-9
    if found.counts is not None:
        assert (found.counts @ sizes <= room).all()
        assert together.allows(found.counts)
        assert found.counts @ prices > above


def test_a_bin_of_many_small_copies_is_bounded_though_it_is_not_searched_to_the_end() -> None:
    """And integer programming says nearly the same."""
    chance = np.random.default_rng(7)
    sizes = chance.integers(30, 90, size=(25, 2))
    bin_ = sizes.sum(axis=1) * chance.uniform(0.9, 1.1, 25) / 100, sizes, np.array([1000, 1000]), np.full(25, 20)
    bounded, proven = (content(*bin_, 0.0, _without_rules(25)) for content in (best_content, proven_content))
    assert not bounded.is_near
    assert bounded.counts is not None
    assert bounded.value >= proven.value * 0.999 >= float(bounded.counts @ bin_[0]) * 0.998
    assert bounded.value == pytest.approx(proven.value, rel=0.05)
