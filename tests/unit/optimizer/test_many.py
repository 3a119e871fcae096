"""Lots of more items than the program takes: a coarse program guides, and the bound is proven all the same."""

import numpy as np
import pytest

from joinery.optimizer.arrays import UNLIMITED
from joinery.optimizer.bounds.lower_bound import bound
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.aggregation import MOST_ITEMS
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import price_of
from joinery.optimizer.relaxation.assignment import AssignmentProgram
from joinery.optimizer.search import pack
from tests.unit.optimizer.lots import seeded, wrong


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_three_hundred_different_pods_are_packed_close_to_their_bound(seed: int) -> None:
    """The plan holds every pod, and costs less than a tenth more than anyone could pay."""
    lot = seeded(300, seed=seed)
    assert len(lot.counts) > MOST_ITEMS
    shapes = pack(lot, np.zeros(len(lot.price), dtype=np.int64), Effort())
    proven = bound(lot)
    assert wrong(lot, shapes) == []
    assert 0 < proven <= price_of(lot, shapes) < 1.1 * proven


def test_the_bound_of_many_items_is_below_that_of_the_whole_program() -> None:
    """Prices for promising kinds only, and a grid for the others: a little weaker than all kinds at once, and never stronger."""
    lot = seeded(MOST_ITEMS + 50)
    program = AssignmentProgram(lot)
    answer = program.solve(lot.counts)
    assert answer is not None
    assert 0.97 * answer.price < bound(lot) <= answer.price + 1e-6


def test_the_program_charges_what_its_optimum_costs() -> None:
    """With the solver's own prices nothing is lost: the proof reaches the optimum of the program."""
    lot = seeded(60)
    program = AssignmentProgram(lot)
    answer = program.solve(lot.counts)
    assert answer is not None
    least, excess = program.charges()
    assert float(lot.counts @ least) - excess == pytest.approx(answer.price, rel=1e-6)


def _with_standing(lot: Lot, nodes: int) -> Lot:
    """The same with a few nodes that exist, as large as the largest kinds."""
    room = np.repeat(lot.room[[lot.room[:, 0].argmax()]], nodes, axis=0)
    return Lot(
        requests=lot.requests,
        counts=lot.counts,
        price=np.concatenate([lot.price, np.zeros(nodes)]),
        room=np.concatenate([lot.room, room]),
        admits=np.concatenate([lot.admits, (room[None] >= lot.requests[:, None]).all(axis=2)], axis=1),
        groups=(),
        clashes=lot.clashes,
        stock=np.concatenate([lot.stock, np.ones(nodes, dtype=np.int64)]),
    )


def test_standing_nodes_lower_the_bound_of_many_items_by_what_they_save() -> None:
    """Free nodes take pods off the bill, more of them more, down to nothing where all fit; the bound is never negative."""
    lot = seeded(MOST_ITEMS + 50)
    assert (lot.stock == UNLIMITED).all()
    bounds = [bound(_with_standing(lot, nodes)) for nodes in (0, 1, 3, 30)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[1] < bounds[0]
    assert bounds[-1] == 0
