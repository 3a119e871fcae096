"""What a launch says of its NodePool once it is given up."""

from datetime import timedelta
from typing import Any

import pytest

from joinery.decisions.lifecycle.pools.registration_health import drift_objection, with_registration_health
from joinery.objects.karpenter.labels import RETIRED_FOR
from joinery.objects.karpenter.meta import OwnerReference
from joinery.objects.karpenter.nodepool import NodePool
from simulator import builders
from simulator.clock import START

_MINUTE = timedelta(minutes=1)


def _after(minutes: int, *conditions: str, reason: str = "Abandoned") -> NodePool:
    """The pool after a launch that was retired at that age, for a reason. ``conditions``: those that it had reached."""
    pool = builders.node_pool()
    owned = pool.model_copy(update={"metadata": pool.metadata.model_copy(update={"uid": "uid-pool"})})
    known = with_registration_health(owned, (), None, START - 60 * _MINUTE)
    given: dict[str, Any] = {"created": START - minutes * _MINUTE, "deleted": START}
    claim = builders.node_claim(conditions=conditions, annotations={RETIRED_FOR: reason}, **given)
    owner = OwnerReference(api_version="karpenter.sh/v1", kind="NodePool", name="default", uid="uid-pool")
    metadata = claim.metadata.model_copy(update={"owner_references": [owner]})
    return with_registration_health(known, [claim.model_copy(update={"metadata": metadata})], None, START)


def test_a_replacement_that_its_command_gave_up_waiting_for_has_failed() -> None:
    """A command gives up after ten minutes, before the node's own quarter of an hour is over."""
    assert drift_objection(_after(10, "Launched"), START) is not None


@pytest.mark.parametrize(
    ("minutes", "conditions", "reason"),
    [
        (3, ["Launched"], "Abandoned"),
        (10, ["Launched", "Registered"], "Abandoned"),
        (10, ["Launched"], "Underutilized"),
    ],
)
def test_one_that_goes_for_another_reason_has_not(minutes: int, conditions: list[str], reason: str) -> None:
    """The command was rolled back early, the node had joined, or somebody else retired it."""
    assert drift_objection(_after(minutes, *conditions, reason=reason), START) is None
