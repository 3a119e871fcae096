"""Whatever happens to a cluster, in whatever order, it comes to rest with every pod placed and nothing left behind."""

from collections import Counter

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import RETIRED_FOR
from tests.fire.life import Life
from tests.fire.soak import Tally

#: How many lives there are at the same time in `make soak`, for several workers; steps of one life.
_PARTS, _LONGEST = 4, 50
#: Steps of each part in `make test`.
_FEW = 100


@pytest.mark.soak
@pytest.mark.parametrize("part", range(_PARTS))
def test_a_life_under_fire_comes_to_rest(part: int, pytestconfig: pytest.Config, tally: Tally) -> None:
    """Users, EC2, kubelets and queues do what they like, and calls go wrong."""
    steps = (pytestconfig.getoption("soak") or _FEW * _PARTS) // _PARTS
    counted: Counter[str] = Counter()

    @seed(pytestconfig.getoption("soak_seed") * _PARTS + part)
    class Machine(Life):
        struck = counted

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=max(1, steps // _LONGEST),
            stateful_step_count=_LONGEST,
            derandomize=False,
            phases=[Phase.generate],
        ),
    )
    for what, number in counted.items():
        tally(what, number)


def test_replacements_that_a_lost_one_leaves_without_use_may_go() -> None:
    """Two spot nodes were to replace an on-demand node. EC2 takes one of them back, so the command is rolled back."""
    life = Life()
    try:
        life.a_claim_is_deleted(0, 3)
        life.ec2_warns(0, 10)
        life.ec2_warns(3, 30)
        assert DisruptionReason.ABANDONED in [claim.metadata.annotations.get(RETIRED_FOR) for claim in life.claims]
        life.nothing_is_asked_for_without_a_cause()
    finally:
        life.teardown()
