"""What pods are made from is read where some may come back different, and else nobody is asked for it."""

from msgspec.structs import replace

from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from tests.gateways import clusters


def _pod(generation: int) -> Pod:
    pod = builders.pod("web", node="n", owner="web-1", cpu="3")
    return replace(pod, metadata=replace(pod.metadata, generation=generation))


def _read(pod: Pod) -> Snapshot:
    with clusters.served() as form:
        form.put(pod, builders.node("n"), builders.replica_set("web-1", cpu="1"))
        return form.cluster.snapshot()


def test_a_pod_whose_spec_has_changed_has_its_owner_read() -> None:
    """Its successor is made from that one's template."""
    snapshot = _read(_pod(generation=2))
    (pod,) = snapshot.pods
    assert (requests_of(pod)["cpu"], requests_of(snapshot.successor(pod))["cpu"]) == (3000, 1000)
    assert not snapshot.invalid


def test_pods_that_are_as_they_were_made_have_not() -> None:
    """A cluster has thousands of ReplicaSets."""
    assert _read(_pod(generation=1)).replica_sets == ()
