"""One input gives one plan: the order of objects in a file, or in a list of the API server, decides nothing."""

from dataclasses import fields, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import solve
from tests.cases.scheduling.reading import Case, cases
from tests.properties import examples

# The golden cases are solved once for these files.
pytestmark = pytest.mark.xdist_group("golden")

CASES = cases()


def _reordered(problem: Problem, random: Random) -> Problem:
    """The same problem with every list of objects shuffled, and the instance types of every class.

    A tuple with names (the kind of node class) is a value and no list.
    """
    snapshot: dict[str, Any] = {}
    for field in fields(problem.snapshot):
        listed = getattr(problem.snapshot, field.name)
        if type(listed) is tuple:
            snapshot[field.name] = _shuffled(listed, random)
    types = {
        name: _shuffled(listed, random) for name, listed in _shuffled(tuple(problem.instance_types.items()), random)
    }
    return replace(problem, snapshot=replace(problem.snapshot, **snapshot), instance_types=types)


def _shuffled(listed: tuple[Any, ...], random: Random) -> tuple[Any, ...]:
    return tuple(random.sample(listed, len(listed)))


@examples(150)
@given(st.sampled_from(CASES), st.integers(0, 2**32))
def test_a_plan_does_not_depend_on_the_order_of_objects(case: Case, seed: int) -> None:
    """Any golden case, shuffled in any way, is answered with the very same plan."""
    assert solve(_reordered(case.problem, Random(seed))) == case.packing


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_golden_case_is_answered_the_same_backwards(case: Case) -> None:
    """In one order that is not its own."""
    assert solve(_reordered(case.problem, Random(1))) == case.packing
