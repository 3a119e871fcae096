"""What a launch says of its NodePool once it is given up."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from joinery.decisions.lifecycle.pools.registration_health import (
    REGISTRATION_HEALTHY,
    drift_objection,
    with_registration_health,
)
from joinery.objects.karpenter.conditions import find
from joinery.objects.karpenter.labels import RETIRED_FOR
from joinery.objects.karpenter.meta import OwnerReference, with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.claims import with_status
from simulator import builders
from simulator.clock import START

_MINUTE = timedelta(minutes=1)


def _after(minutes: int, *conditions: str, reason: str = "Abandoned") -> NodePool:
    """The pool after a launch that was retired at that age, for a reason. ``conditions``: those that it had reached."""
    owned = with_metadata(builders.node_pool(), uid="uid-pool")
    unknown = with_registration_health(owned, (), None, START - 60 * _MINUTE)
    given: dict[str, Any] = {"created": START - minutes * _MINUTE, "deleted": START}
    claim = _claim("claim-1", conditions, annotations={RETIRED_FOR: reason}, **given)
    return with_registration_health(unknown, [claim], None, START)


def _claim(name: str, conditions: Sequence[str], *, since: datetime = START, **given: Any) -> NodeClaim:
    claim = builders.node_claim(name, conditions=conditions, **given)
    reached = [one.model_copy(update={"last_transition_time": since}) for one in claim.status.conditions]
    claim = with_status(claim, conditions=reached)
    owner = OwnerReference(api_version="karpenter.sh/v1", kind="NodePool", name="default", uid="uid-pool")
    return with_metadata(claim, owner_references=[owner])


def test_a_replacement_that_its_command_gave_up_waiting_for_has_failed() -> None:
    """A command gives up after ten minutes, before the node's own quarter of an hour is over."""
    assert drift_objection(_after(10, "Launched"), START) is not None


def test_a_launch_from_before_a_change_says_nothing_of_what_was_changed() -> None:
    """It is given up five minutes after its NodePool was mended, and was launched as it was before."""
    owned = with_metadata(builders.node_pool(), uid="uid-pool")
    mended = with_registration_health(owned, (), None, START - 5 * _MINUTE)
    early: dict[str, Any] = {
        "created": START - 10 * _MINUTE,
        "deleted": START,
        "annotations": {RETIRED_FOR: "Abandoned"},
    }
    claim = _claim("claim-1", ["Launched"], **early)
    assert drift_objection(with_registration_health(mended, [claim], None, START), START) is None


def test_one_that_joined_and_did_not_become_ready_has_failed_for_drift_alone() -> None:
    """Whether nodes join is what the condition says, as with Karpenter."""
    pool = _after(10, "Launched", "Registered")
    objection = drift_objection(pool, START)
    assert objection is not None
    assert "its last launch did not become ready" in str(objection)
    health = find(pool.status.conditions, REGISTRATION_HEALTHY)
    assert health is not None
    assert health.status == "True"


def test_a_node_that_has_just_joined_does_not_end_the_wait() -> None:
    """The next replacement joins as well, and nobody knows yet whether it becomes ready."""
    failed = _after(10, "Launched", "Registered")
    now = START + _MINUTE
    joined = _claim("next", ["Launched", "Registered"], since=now)
    booting = with_registration_health(failed, [joined], None, now)
    assert drift_objection(booting, now) is not None
    ready = _claim("next", ["Launched", "Registered", "Initialized"], since=now)
    assert drift_objection(with_registration_health(booting, [ready], None, now), now) is None


@pytest.mark.parametrize(
    ("minutes", "conditions", "reason"),
    [
        (3, ["Launched"], "Abandoned"),
        (3, ["Launched", "Registered"], "Abandoned"),
        (10, ["Launched", "Registered", "Initialized"], "Abandoned"),
        (10, ["Launched"], "Underutilized"),
    ],
)
def test_one_that_goes_for_another_reason_has_not(minutes: int, conditions: list[str], reason: str) -> None:
    """The command was rolled back early, the node was ready, or somebody else retired it."""
    assert drift_objection(_after(minutes, *conditions, reason=reason), START) is None
