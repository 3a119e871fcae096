"""Moments of ours are over when they are read: what others wrote ahead is not believed."""

from datetime import datetime, timedelta

import pytest

from joinery.decisions.lifecycle.pools.registration_health import REGISTRATION_HEALTHY, with_registration_health
from joinery.objects.annotations.drain_start import deadline
from joinery.objects.annotations.marks import MOST_AHEAD, believable
from joinery.objects.karpenter.conditions import Observation, true
from joinery.objects.karpenter.labels import (
    EMPTY_SINCE,
    INTERRUPTED_AT,
    REBALANCE_RECOMMENDED_AT,
    REBOOTED_AT,
    REGISTRATIONS,
    REPLACEMENT_LAUNCHED,
    TERMINATION_TIMESTAMP,
)
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import INITIALIZED
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START
from simulator.kubernetes.resources import with_metadata

KEYS = (EMPTY_SINCE, INTERRUPTED_AT, REBALANCE_RECOMMENDED_AT, REBOOTED_AT, REPLACEMENT_LAUNCHED)
FAR = START.replace(year=2900)


def _claim(at: datetime) -> NodeClaim:
    """All of its moments are that one; it was made a day before."""
    claim = builders.node_claim("a", created=START - timedelta(days=1), annotations=dict.fromkeys(KEYS, at.isoformat()))
    conditions = [true(INITIALIZED, Observation(now=at, generation=1))]
    status = claim.status.model_copy(update={"conditions": conditions, "last_pod_event_time": at})
    return claim.model_copy(update={"status": status})


def test_marks_of_the_time_to_come_are_none() -> None:
    """A condition of that time holds since its object was made."""
    node = builders.node("n", annotations={EMPTY_SINCE: FAR.isoformat(), "mine": FAR.isoformat()})
    read = believable(Snapshot(now=START, node_claims=(_claim(FAR),), nodes=(node,)))
    (claim,) = read.node_claims
    assert not claim.metadata.annotations.keys() & set(KEYS)
    assert [one.last_transition_time for one in claim.status.conditions] == [START - timedelta(days=1)]
    assert claim.status.last_pod_event_time is None
    assert read.nodes[0].metadata.annotations == {"mine": FAR.isoformat()}


@pytest.mark.parametrize("at", [START - timedelta(days=900), START, START + MOST_AHEAD])
def test_marks_that_may_be_true_are_believed(at: datetime) -> None:
    """Clocks differ, and a run reads what was written since it began. The objects are the same ones."""
    snapshot = Snapshot(now=START, node_claims=(_claim(at),), nodes=(builders.node("n"),))
    read = believable(snapshot)
    assert read.node_claims[0] is snapshot.node_claims[0]
    assert read.nodes[0] is snapshot.nodes[0]


def test_a_deadline_is_never_later_than_the_grace_period_says() -> None:
    """Whoever may annotate a claim does not keep its node for ever."""
    for stamped, ends in ((FAR, START + timedelta(hours=1)), (START, START)):
        marks = {TERMINATION_TIMESTAMP: stamped.isoformat()}
        claim = builders.node_claim("a", deleted=START, annotations=marks, termination_grace_period="1h")
        assert deadline(claim) == ends


def test_outcomes_of_the_time_to_come_keep_no_pool_unhealthy() -> None:
    """They would be among its last four for ever."""
    failed = f'{{"claim": "x-%d", "at": "{FAR.isoformat()}", "reason": "RegistrationFailed"}}'
    pool = with_metadata(builders.node_pool(), annotations={REGISTRATIONS: f"[{failed % 1}, {failed % 2}]"})
    for _ in range(2):
        pool = with_registration_health(pool, (), None, START)
    (health,) = [one for one in pool.status.conditions if one.type == REGISTRATION_HEALTHY]
    assert health.status == "Unknown"
    assert REGISTRATIONS not in pool.metadata.annotations
