"""Volumes that an instance must not take with it."""

from joinery.decisions.termination.drain import blocking_volumes
from joinery.objects.kubernetes.core import VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START


def _attached(volume: str, node: str = "node-1") -> VolumeAttachment:
    source = VolumeAttachmentSource(persistent_volume_name=volume)
    return VolumeAttachment(spec=VolumeAttachmentSpec(node_name=node, source=source))


def test_a_volume_of_a_drained_pod_keeps_the_instance() -> None:
    """Its next pod could not mount it for six minutes otherwise."""
    snapshot = Snapshot(now=START, volume_attachments=(_attached("pv-a"), _attached("pv-b", "node-2"), _attached("")))
    assert blocking_volumes(snapshot, "node-1", []) == ("pv-a",)


def test_a_volume_of_a_pod_that_stays_is_not_waited_for() -> None:
    """A pod that tolerates the disruption keeps its volume until the node is gone."""
    claim = builders.volume_claim("data", volume="pv-a")
    snapshot = Snapshot(now=START, volume_attachments=(_attached("pv-a"),), volume_claims=(claim,))
    staying = builders.pod("a", node="node-1", volumes=["data"], tolerations=[{"operator": "Exists"}])
    assert blocking_volumes(snapshot, "node-1", [staying]) == ()
    assert blocking_volumes(snapshot, "node-1", [builders.pod("b", node="node-1", volumes=["data"])]) == ("pv-a",)


def test_a_volume_of_a_finished_pod_is_waited_for() -> None:
    """Jobs leave pods behind, and their next run uses the same volume: it came to this node with an evicted pod."""
    claim = builders.volume_claim("data", volume="pv-a")
    snapshot = Snapshot(now=START, volume_attachments=(_attached("pv-a"),), volume_claims=(claim,))
    finished = builders.pod("a", node="node-1", volumes=["data"], phase="Succeeded")
    assert blocking_volumes(snapshot, "node-1", [finished]) == ("pv-a",)
