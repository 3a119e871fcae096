"""Small instances, solved by trying everything: no proven bound is above the cheapest bins, and no packing below."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.optimizer.bounds.assignment_bound import item_charges
from joinery.decisions.optimizer.bounds.lower_bound import lower_bound
from joinery.decisions.optimizer.bounds.market_bound import market_bound, market_bound_of_parts
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import cost_of
from joinery.decisions.optimizer.linear.highs import Patience
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation
from joinery.decisions.optimizer.search import pack
from tests.properties import examples
from tests.unit.decisions.optimizer.instances import blocks, cheapest, instances, seeded, wrong

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


@examples(80)
@given(instances(limited=True))
def test_the_bound_for_when_there_is_no_time_holds_too(instance: PackingInstance) -> None:
    """One price for each resource on all bin types proves less, and nothing wrong."""
    assert market_bound(instance) <= market_bound_of_parts(instance) + PENNY <= cheapest(instance) + 2 * PENNY


def test_a_linear_program_ends_when_it_has_taken_its_work() -> None:
    """What is proven then is the bound of uniform prices, near the better one."""
    instance, patience = seeded(40), Patience(work=1)
    assert lower_bound(instance, patience) == market_bound(instance)
    assert patience.ran_out
    assert 0.8 * lower_bound(instance) < market_bound(instance) <= lower_bound(instance) + PENNY


def test_a_linear_program_ends_when_time_is_up() -> None:
    """The stopwatch is asked at every iteration, so one long program does not outlast the time limit."""
    asked = iter(range(1000))
    patience = Patience(is_time_up=lambda: next(asked) >= 3)
    instance = seeded(40)
    assert AssignmentRelaxation(instance, patience=patience).solve(instance.demands) is None
    assert patience.ran_out
    assert next(asked) < 10


def test_a_stopwatch_that_never_strikes_changes_no_optimum() -> None:
    """Whoever sets a time limit gets what others get, if it is long enough."""
    patience, instance = Patience(is_time_up=lambda: False), seeded(40)
    one, other = (AssignmentRelaxation(instance, patience=p).solve(instance.demands) for p in (patience, None))
    assert one is not None
    assert other is not None
    assert (one.bins == other.bins).all()
    assert not patience.ran_out
