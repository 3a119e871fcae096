"""Nodes as the scheduler will meet them."""

from joinery.objects.karpenter.labels import NO_EXECUTE, UNREGISTERED_TAINT
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START


def test_a_node_that_does_not_say_yet_which_instance_it_is_has_no_room_of_its_own() -> None:
    """A cloud controller manager may tell it moments after it has joined. Until then its claim stands for both, or its
    room would count twice (Karpenter state `UpdateNode`).
    """
    claim = builders.node_claim("claim", conditions=["Launched"])
    booting = [{"key": UNREGISTERED_TAINT, "effect": NO_EXECUTE}]
    joined = builders.node("node-1", provider_id="", initialized=False, taints=booting)
    own = builders.node("own", node_pool="", provider_id="")
    snapshot = Snapshot(now=START, node_claims=(claim,), nodes=(joined, own))
    assert sorted(view.name for view in snapshot.views) == ["claim", "own"]
