"""The example of docs/packing.md: two items, two bin types, and every figure that the page gives."""

import numpy as np
import pytest

from joinery.decisions.optimizer.bounds.assignment_bound import item_charges
from joinery.decisions.optimizer.bounds.exact import solve_exactly
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import cost_of
from joinery.decisions.optimizer.instance.side_constraints import unconstrained
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation
from joinery.decisions.optimizer.search import pack

_SIZES = np.array([[3, 2], [1, 12]])
_CAPACITIES = np.array([[8, 16], [8, 64]])
EXAMPLE = PackingInstance(
    sizes=_SIZES,
    demands=np.array([6, 4]),
    costs=np.array([0.34, 0.50]),
    capacities=_CAPACITIES,
    compatible=np.ones((2, 2), dtype=np.bool_),
    cardinality_limits=(),
    conflicts=np.zeros((2, 2), dtype=np.bool_),
)


def test_the_relaxation_prices_what_both_types_hold_at_what_they_cost() -> None:
    """2.42 C and 0.33 R for $0.988; at the duals every pod is priced, and together they are that optimum again."""
    solution = AssignmentRelaxation(EXAMPLE, cuts=False).solve(EXAMPLE.demands)
    assert solution is not None
    assert solution.bins == pytest.approx([2.4167, 0.3333], abs=1e-4)
    assert solution.cost == pytest.approx(0.988, abs=1e-3)
    assert solution.capacity_duals[0] == pytest.approx([0.0358, 0.0033], abs=1e-4)
    assert (solution.capacity_duals * _CAPACITIES).sum(axis=1) == pytest.approx(EXAMPLE.costs)
    assert solution.item_duals == pytest.approx([0.114, 0.076], abs=1e-3)
    assert EXAMPLE.demands @ solution.item_duals == pytest.approx(solution.cost)


def test_rows_for_items_of_which_few_fit_raise_the_bound() -> None:
    """Two batch pods fit on a node and one cache pod on a C: then it is $1.102, and the proof says so too."""
    solution = AssignmentRelaxation(EXAMPLE).solve(EXAMPLE.demands)
    assert solution is not None
    charges, excess = item_charges(EXAMPLE, solution.duals)
    assert solution.item_duals == pytest.approx([0.129, 0.082])
    assert EXAMPLE.demands @ charges - excess == pytest.approx(1.102)


def test_the_packing_is_proven_to_be_the_cheapest() -> None:
    """Two C with two batch pods and a cache pod each, an R with the rest: $1.18, and nothing is cheaper."""
    patterns = pack(EXAMPLE, np.zeros(2, dtype=np.int64), Effort())
    assert sorted((one.bin_type, *one.counts) for one in patterns for _ in range(one.copies)) == [
        (0, 2, 1),
        (0, 2, 1),
        (1, 2, 2),
    ]
    result = solve_exactly(unconstrained(EXAMPLE), cost_of(EXAMPLE, patterns))
    assert result.is_tight
    assert result.bound == pytest.approx(1.18)
