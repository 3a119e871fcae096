"""What is explained of a plan agrees with the plan."""

import pytest

from joinery.decisions.scheduling.explain.explain import explain
from joinery_cli.explained import lines
from tests.cases.scheduling.reading import Case, cases

# The golden cases are solved once for these files.
pytestmark = pytest.mark.xdist_group("golden")

#: One in so many golden cases, and all that leave pods; all of them take most of a minute.
_STEP = 9
_CHOSEN = [case for number, case in enumerate(cases()) if number % _STEP == 0 or "unplaced" in case.expect]


@pytest.mark.parametrize("case", _CHOSEN, ids=str)
def test_the_pods_of_a_golden_case_can_be_explained(case: Case) -> None:
    """No rule leaves more than the one before, and no place is offered to a pod that stays pending."""
    packing = case.packing
    placed = [launch.pods[0] for launch in packing.launches]
    placed += [placement.pods[0] for placement in packing.existing]
    left = {unplaced.pod for unplaced in packing.unplaced}
    for pod in (*placed, *sorted(left)[:2]):
        explanation = explain(case.problem, packing, pod)
        for rules in (
            *(pool.rules for pool in explanation.pools),
            explanation.standing.rules,
            explanation.planned.rules,
        ):
            counts = [rule.left for rule in rules]
            assert counts == sorted(counts, reverse=True), (pod, rules)
        if pod in left:
            assert explanation.reasons
            assert not any(pool.offering for pool in explanation.pools)
            assert explanation.standing.fitting == explanation.planned.fitting == ()
        assert all(len(line) <= 80 or " " not in line.strip() for line in lines(explanation)), pod
