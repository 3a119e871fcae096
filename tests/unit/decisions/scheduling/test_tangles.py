"""Where DaemonSets, limits, minValues, older names of labels and odd spreads meet,
plans are right and reasons are causes.
"""

from dataclasses import replace

from hypothesis import given

from joinery.decisions.planning import plan
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import solve
from tests.properties import examples
from tests.unit.decisions.scheduling.tangles import tangles


@examples(60)
@given(tangles())
def test_no_plan_is_refused(asked: Problem) -> None:
    """Neither the packing nor its bound, and nobody is left out for a mistake of ours."""
    made = plan(asked)
    assert (made.violations, made.warnings) == ((), ())


@examples(60)
@given(tangles())
def test_a_pod_that_only_limits_keep_out_is_placed_without_them(asked: Problem) -> None:
    """Limits are a cause: as long as they are named and nothing else is, lifting them helps some of those pods."""
    left = _kept_out(solve(asked))
    if left:
        assert left - _unplaced(solve(_unlimited(asked)))


def _kept_out(packing: Packing) -> set[str]:
    return {one.pod for one in packing.unplaced if {reason.code for reason in one.reasons} == {"Limits"}}


def _unplaced(packing: Packing) -> set[str]:
    return {one.pod for one in packing.unplaced}


def _unlimited(asked: Problem) -> Problem:
    pools = tuple(
        pool.model_copy(update={"spec": pool.spec.model_copy(update={"limits": {}})})
        for pool in asked.snapshot.node_pools
    )
    return replace(asked, snapshot=replace(asked.snapshot, node_pools=pools))
