"""Lots made smaller: by place, by cells of nearly equal items, by promising kinds. Nothing is lost on the way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.optimizer.instance.aggregation import MOST_ITEMS, cells
from joinery.optimizer.instance.decomposition import by_place
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.relaxation.aggregated import CoarseProgram
from joinery.optimizer.relaxation.assignment import AssignmentProgram
from joinery.optimizer.relaxation.core import Survey
from joinery.optimizer.relaxation.residual import ShrinkingProgram
from tests.properties import examples
from tests.unit.optimizer.lots import lots, places, seeded


@examples(100)
@given(lots(most_pods=12), st.data())
def test_places_share_out_every_pod_and_never_mix(lot: Lot, data: st.DataObject) -> None:
    """Each part has kinds of one place only, its pods may all run there, and together the parts have every pod once."""
    place = data.draw(places(lot))
    total = np.zeros_like(lot.counts)
    for part in by_place(lot, place, lot.counts):
        assert len(set(place[part.kinds].tolist())) == 1 or len(set(place.tolist())) == 1
        assert part.lot.admits[part.lot.counts > 0].any(axis=1).all()
        assert (part.lot.requests == lot.requests[part.items]).all()
        assert (part.lot.price == lot.price[part.kinds]).all()
        total[part.items] += part.lot.counts
    assert total.tolist() == lot.counts.tolist()


@examples(100)
@given(lots(most_pods=12), st.data())
def test_a_part_of_a_lot_keeps_its_rules(lot: Lot, data: st.DataObject) -> None:
    """Groups and clashes of the items that stay are those of the whole lot, by their new numbers."""
    items = np.array(sorted(data.draw(st.sets(st.integers(0, len(lot.counts) - 1), min_size=1))))
    part = lot.part(items, np.arange(len(lot.price)), lot.counts[items])
    kept = [(sorted(items[g.members].tolist()), g.cap) for g in part.groups]
    listed = [([m for m in g.members.tolist() if m in items], g.cap) for g in lot.groups]
    assert kept == [(members, cap) for members, cap in listed if members]
    assert (part.clashes == lot.clashes[np.ix_(items, items)]).all()


@examples(100)
@given(lots(most_pods=12))
def test_cells_hold_every_pod_and_only_items_of_one_look(lot: Lot) -> None:
    """No pod is lost in a cell, and items in different groups never share one."""
    found = cells(lot)
    together = np.bincount(found.of, weights=lot.counts)
    assert together.tolist() == found.lot.counts.tolist()
    for cell in range(len(found.lot.counts)):
        inside = np.flatnonzero(found.of == cell)
        assert len({lot.members[item].tobytes() for item in inside}) == 1
        sizes = lot.requests[inside]
        assert (sizes.min(axis=0) <= found.lot.requests[cell]).all()
        assert (found.lot.requests[cell] <= sizes.max(axis=0)).all()


def test_cells_are_fewer_than_items_and_of_nearly_one_size() -> None:
    """Four hundred sizes become a number that the program solves quickly, each cell a small part of the whole range."""
    lot = seeded(400)
    found = cells(lot)
    assert len(found.lot.counts) < MOST_ITEMS
    assert found.lot.counts.sum() == lot.counts.sum()
    apart = np.abs(lot.requests - found.lot.requests[found.of])[:, :2].mean(axis=0)
    assert (apart < 0.1 * np.ptp(lot.requests[:, :2], axis=0)).all()


@examples(100)
@given(lots(most_pods=12))
def test_the_coarse_program_shares_out_every_pod(lot: Lot) -> None:
    """Read as the lot's own, the answer of the cells' program puts each pod somewhere that admits it, and nothing elsewhere."""
    answer = CoarseProgram(lot).solve(lot.counts)
    assert answer is not None
    assert (answer.shares[~lot.admits] == 0).all()
    assert (answer.shares.sum(axis=1) <= lot.counts + 1e-6).all()
    assert (answer.worth >= 0).all()


def test_the_shares_of_many_pods_add_up() -> None:
    """Four hundred sizes, none of which any kind is too small for: each item's shares are its pods."""
    lot = seeded(400)
    answer = CoarseProgram(lot).solve(lot.counts)
    assert answer is not None
    np.testing.assert_allclose(answer.shares[lot.admits.all(axis=1)].sum(axis=1), lot.counts[lot.admits.all(axis=1)])


@examples(100)
@given(lots(most_pods=12), st.integers(1, 4))
def test_promising_kinds_leave_every_item_one(lot: Lot, sorts: int) -> None:
    """However few sorts are asked for, no item is left without a kind that admits it."""
    kinds = Survey(lot).promising(sorts)
    assert lot.admits[:, kinds].any(axis=1).all()
    assert kinds.tolist() == sorted(set(kinds.tolist()))


def test_kinds_of_one_room_and_price_are_promising_together() -> None:
    """The same type in another zone is as good, and is there for pods that are tied to that zone."""
    lot = seeded(20, kinds=12)
    twice = lot.part(np.arange(20), np.tile(np.arange(12), 2), lot.counts)
    kinds = set(Survey(twice).promising(3).tolist())
    assert {(kind + 12) % 24 for kind in kinds} == kinds


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_leaving_out_what_has_run_out_hardly_changes_a_price(seed: int) -> None:
    """With few items left, others than before, or all again, the smaller program wants what the whole one wants: it may only have
    fewer of the rows that are added in the course.
    """
    lot = seeded(40, seed=seed)
    items = np.arange(len(lot.counts))
    shrinking = ShrinkingProgram(lot)
    for chosen in (items < 40, items < 15, items < 12, items >= 30, items < 40):
        counts = np.where(chosen, lot.counts, 0)
        small, whole = shrinking.solve(counts), AssignmentProgram(lot).solve(counts)
        assert small is not None
        assert whole is not None
        assert small.price == pytest.approx(whole.price, rel=0.03)
        assert float(counts @ small.worth) == pytest.approx(small.price, rel=1e-6)
        assert np.allclose(small.shares.sum(axis=1), counts)


@pytest.mark.parametrize("items", [5, 20, 60])
def test_a_plain_packing_is_as_good_a_beginning_as_nothing(items: int) -> None:
    """Wherever the solver begins, its optimum costs the same but for rows that are added in the course."""
    lot = seeded(items)
    swift, slow = AssignmentProgram(lot, swift=True).solve(lot.counts), AssignmentProgram(lot).solve(lot.counts)
    assert swift is not None
    assert slow is not None
    assert swift.price == pytest.approx(slow.price, rel=0.01)
