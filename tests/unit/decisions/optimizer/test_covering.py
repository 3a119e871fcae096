"""A few candidates with enough different values for every quota: found if there are any, as trying everything says."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.optimizer.covering import Quotas, cover, greedy


@st.composite
def _quotas(draw: st.DrawFn) -> Quotas:
    """Up to eight candidates, each with one value for each of three quotas."""
    things = draw(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=8))
    brings = np.zeros((len(things), 12), dtype=np.bool_)
    for row, values in enumerate(things):
        brings[row, [4 * sort + value for sort, value in enumerate(values)]] = True
    least = draw(st.tuples(*[st.integers(1, 4)] * 3))
    return Quotas(brings, np.repeat(np.arange(3), 4), np.array(least, dtype=np.int64))


def _is_possible(asked: Quotas, most: int) -> bool:
    others = range(1, len(asked.has_value))
    return any(
        not asked.missing(np.array([0, *rest])).any()
        for number in range(min(most, len(asked.has_value)))
        for rest in combinations(others, number)
    )


@given(_quotas(), st.integers(1, 5))
def test_a_choice_is_found_exactly_if_there_is_one(asked: Quotas, most: int) -> None:
    """It fills every quota, is no larger than allowed, and holds the first candidate."""
    chosen = cover(asked, most)
    assert (chosen is not None) == _is_possible(asked, most)
    if chosen is not None:
        assert len(set(chosen)) == len(chosen) <= most
        assert 0 in chosen
        assert not asked.missing(chosen).any()


@given(_quotas(), st.integers(1, 5))
def test_the_greedy_choice_keeps_within_what_is_allowed(asked: Quotas, most: int) -> None:
    """Also where it fills no quota: it is what is done at best effort."""
    chosen = greedy(asked, most)
    assert len(set(chosen)) == len(chosen) <= most
    assert (asked.missing(chosen) <= asked.missing(np.array([0]))).all()
