"""Small lots, solved exactly: the proven bound is never above the cheapest nodes, and a packing never below."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joinery.optimizer.bounds.lower_bound import bound
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import price_of
from joinery.optimizer.relaxation.assignment import AssignmentProgram
from joinery.optimizer.search import pack
from tests.properties import examples
from tests.unit.optimizer.lots import cheapest, lots, places, wrong

PENNY = 1e-7


@examples(80)
@given(lots(), st.data())
def test_bound_optimum_and_packing_come_in_that_order(lot: Lot, data: st.DataObject) -> None:
    """No proof claims more than the best possible costs, and no packing costs less; whatever is packed is allowed."""
    shapes = pack(lot, data.draw(places(lot)), Effort(rounds=4, tries=4))
    assert wrong(lot, shapes) == []
    assert bound(lot) <= cheapest(lot) + PENNY
    assert cheapest(lot) <= price_of(lot, shapes) + PENNY


@examples(80)
@given(lots(stocked=True))
def test_free_nodes_of_a_limited_stock_only_lower_the_bound(lot: Lot) -> None:
    """Nodes that exist may take pods for nothing, as many as there are: the bound allows for the best use of them."""
    assert bound(lot) <= cheapest(lot) + PENNY
    assert bound(lot) >= 0


@examples(80)
@given(lots(stocked=True), st.integers(0, 99))
def test_no_packing_uses_more_nodes_than_there_are(lot: Lot, seed: int) -> None:
    """Of what is scarce no more is taken than there is, whichever kinds share it, and every pod has its place."""
    shapes = pack(lot, np.zeros(len(lot.price), dtype=np.int64), Effort(rounds=3, tries=6, seed=seed))
    assert wrong(lot, shapes) == []
    assert cheapest(lot) <= price_of(lot, shapes) + PENNY


@examples(80)
@given(lots(stocked=True), st.data())
def test_the_proof_does_not_trust_the_solver(lot: Lot, data: st.DataObject) -> None:
    """Any prices at all, in place of the solver's own, prove a bound that holds."""
    program = AssignmentProgram(lot)
    program.solve(lot.counts)
    rows = len(program._duals)
    program._duals = np.array(data.draw(st.lists(st.floats(-3, 1), min_size=rows, max_size=rows)))
    least, excess = program.charges()
    assert float(lot.counts @ least) - excess <= cheapest(lot) + PENNY
