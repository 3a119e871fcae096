"""Small instances, solved by trying everything: no proven bound is above the cheapest bins, and no packing below."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joinery.optimizer.bounds.assignment_bound import item_charges
from joinery.optimizer.bounds.lower_bound import lower_bound
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.instance.patterns import cost_of
from joinery.optimizer.relaxation.assignment import AssignmentRelaxation
from joinery.optimizer.search import pack
from tests.properties import examples
from tests.unit.optimizer.instances import blocks, cheapest, instances, wrong

PENNY = 1e-7


@examples(80)
@given(instances(), st.data())
def test_bound_optimum_and_packing_come_in_that_order(instance: PackingInstance, data: st.DataObject) -> None:
    """No proof claims more than the best possible costs, and no packing costs less; whatever is packed is allowed."""
    patterns = pack(instance, data.draw(blocks(instance)), Effort(pricing_rounds=4, repairs=4))
    assert wrong(instance, patterns) == []
    assert lower_bound(instance) <= cheapest(instance) + PENNY
    assert cheapest(instance) <= cost_of(instance, patterns) + PENNY


@examples(80)
@given(instances(limited=True))
def test_free_bins_of_a_limited_supply_only_lower_the_bound(instance: PackingInstance) -> None:
    """Bins that cost nothing may take items, as many as there are: the bound allows for the best use of them."""
    assert lower_bound(instance) <= cheapest(instance) + PENNY
    assert lower_bound(instance) >= 0


@examples(80)
@given(instances(limited=True), st.integers(0, 99))
def test_no_packing_uses_more_bins_than_there_are(instance: PackingInstance, seed: int) -> None:
    """No more is taken of a supply than there is, whichever bin types share it, and every copy is packed."""
    patterns = pack(
        instance, np.zeros(len(instance.costs), dtype=np.int64), Effort(pricing_rounds=3, repairs=6, seed=seed)
    )
    assert wrong(instance, patterns) == []
    assert cheapest(instance) <= cost_of(instance, patterns) + PENNY


@examples(80)
@given(instances(limited=True), st.data())
def test_the_proof_does_not_trust_the_solver(instance: PackingInstance, data: st.DataObject) -> None:
    """Any duals at all, in place of the solver's own, prove a bound that holds."""
    solution = AssignmentRelaxation(instance).solve(instance.demands)
    assert solution is not None
    prices = st.floats(-1, 3)
    capacity = [data.draw(prices) for _ in range(solution.duals.capacity.size)]
    wrong_duals = replace(
        solution.duals,
        capacity=np.array(capacity).reshape(solution.duals.capacity.shape),
        cardinality=np.array([data.draw(prices) for _ in solution.duals.rows]),
    )
    charges, excess = item_charges(instance, wrong_duals)
    assert float(instance.demands @ charges) - excess <= cheapest(instance) + PENNY
