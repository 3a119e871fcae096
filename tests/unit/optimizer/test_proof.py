"""Bounds on programs with whole numbers: whatever prices the solver suggests, what they prove holds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.optimizer.bounds.branch_and_bound import Prover, Question
from joinery.optimizer.bounds.compact import Placement
from joinery.optimizer.bounds.duality import proven
from joinery.optimizer.bounds.exact import least
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import price_of
from joinery.optimizer.instance.side_constraints import Row, Task, plain
from joinery.optimizer.linear.highs import Program
from tests.properties import examples
from tests.unit.optimizer.lots import cheapest, lots, wrong

PENNY = 1e-7


@examples(80)
@given(lots() | lots(stocked=True), st.floats(0, 1))
def test_a_small_task_is_answered_exactly(lot: Lot, dearer: float) -> None:
    """However dear the plan that was known: the bound is what the cheapest nodes cost, and such nodes are found."""
    best = cheapest(lot)
    answer = least(plain(lot), best * (1 + dearer) + 1e-3)
    assert answer.is_exact
    assert best - 1e-6 <= answer.bound <= best + PENNY
    assert answer.shapes is not None
    assert wrong(lot, answer.shapes) == []
    assert price_of(lot, answer.shapes) == pytest.approx(best)


@examples(80)
@given(lots() | lots(stocked=True))
def test_a_plan_that_is_cheapest_is_known_to_be(lot: Lot) -> None:
    """Its own price is the bound, but for what is taken off for the rounding of floats."""
    best = cheapest(lot)
    assert least(plain(lot), best).bound == pytest.approx(best, rel=1e-6, abs=PENNY)


@examples(80)
@given(lots(stocked=True), st.data())
def test_any_prices_prove_a_bound_that_holds(lot: Lot, data: st.DataObject) -> None:
    """The solver may err: its prices are only a suggestion."""
    best = cheapest(lot)
    program = Placement(plain(lot), best + 1.0).question.program
    rows = len(program.lower)
    prices = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=rows, max_size=rows)))
    assert proven(program, prices, np.zeros(len(program.cost)), program.most) <= best + PENNY


def _program(**given: object) -> Program:
    """Buy x at 1 and y at 1.5; 2x + 3y >= 7."""
    known = Program(
        cost=np.array([1.0, 1.5]),
        most=np.array([9.0, 9.0]),
        lower=np.array([7.0]),
        upper=np.array([np.inf]),
        rows=np.array([0, 0], dtype=np.int32),
        columns=np.array([0, 1], dtype=np.int32),
        values=np.array([2.0, 3.0]),
    )
    return replace(known, **given)  # type: ignore[arg-type]


def _question(program: Program) -> Question:
    return Question(program, np.array([True, True]), np.zeros(2, dtype=np.int64))


def test_whole_numbers_cost_more_than_fractions() -> None:
    """Seven out of twos and threes: 3.5 in fractions, and in whole numbers too (2 + 2 + 3)."""
    proof = Prover(_question(_program()), 10.0, 50).prove()
    assert proof.bound == pytest.approx(3.5)
    dearer = Prover(_question(_program(cost=np.array([1.0, 1.6]))), 10.0, 50)
    assert dearer.prove().bound == pytest.approx(3.6)


def test_what_nothing_answers_costs_as_much_as_anyone_would_pay() -> None:
    """Where the rows cannot be kept the bound is the cutoff: nothing below it exists."""
    proof = Prover(_question(_program(lower=np.array([70.0]))), 10.0, 50).prove()
    assert (proof.bound, proof.values) == (10.0, None)


def test_work_that_is_used_up_leaves_the_bound_so_far() -> None:
    """One program solved is the bound of fractions."""
    program = _program(cost=np.array([1.0, 1.6]))
    assert Prover(_question(program), 10.0, 1).prove().bound == pytest.approx(3.5)


def test_rows_over_all_nodes_count() -> None:
    """Two pods that may be in either of two zones, one in each at most, need a node in each, though one would hold both."""
    lot = Lot(
        requests=np.array([[1], [1]]),
        counts=np.array([2, 2]),
        price=np.array([1.0, 1.25]),
        room=np.array([[4], [4]]),
        admits=np.eye(2, dtype=np.bool_),
        groups=(),
        clashes=np.zeros((2, 2), dtype=np.bool_),
    )
    rows = tuple(Row(np.eye(2)[zone], np.zeros(2), 1.0) for zone in range(2))
    task = Task(lot=lot, of=np.array([0, 0]), wanted=np.array([2]), rows=rows)
    answer = least(task, 3.0)
    assert answer.bound == pytest.approx(2.25)
    assert answer.shapes is not None
    assert sorted((shape.kind, *shape.pods) for shape in answer.shapes) == [(0, 1, 0), (1, 0, 1)]
