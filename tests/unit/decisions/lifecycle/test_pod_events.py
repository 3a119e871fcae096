"""What the owner of a pod reads about a node that goes."""

import pytest

from joinery.decisions.lifecycle.draining.pod_events import pod_events
from joinery.decisions.lifecycle.state.cluster import state_of
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import RETIRED_FOR
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START


@pytest.mark.parametrize("reason", DisruptionReason)
def test_a_pod_is_given_a_sentence_for_every_reason(reason: DisruptionReason) -> None:
    """No owner reads the bare code of one that somebody forgot."""
    claim = builders.node_claim("going", node="n", annotations={RETIRED_FOR: str(reason)}, deleted=START)
    node, pod = builders.node("n"), builders.pod("web", node="n")
    state = state_of(Snapshot(now=START, node_claims=(claim,), nodes=(node,), pods=(pod,)), [])
    (event,) = pod_events(state, claim, node)
    assert "its NodeClaim is deleted" not in event.message
    assert f": {reason};" not in event.message
