"""The simulator writes what real systems write, so that whoever reads it can read them."""

import json

from joinery.objects.kubernetes.core import CSINode, ObjectMeta, Pod
from joinery.objects.kubernetes.decoding import convert
from joinery.objects.kubernetes.quantity import amounts
from simulator import builders
from simulator.clock import Clock
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.kubeapi import KubernetesApi
from simulator.kubernetes.shapes import allocatable, capacity, spelt


def test_a_kubelet_writes_memory_in_ki_and_keeps_some_of_it() -> None:
    """Whole cores before it reserves any, room in bytes, huge pages although there are none."""
    room = {"cpu": "3920m", "memory": "14Gi", "ephemeral-storage": "17Gi", "pods": "58"}
    left, whole = allocatable(room), capacity(room)
    assert (left["memory"], left["ephemeral-storage"], left["hugepages-2Mi"]) == ("14680064Ki", "18253611008", "0")
    assert (whole["cpu"], whole["pods"]) == ("4", "58")
    assert str(whole["memory"]).endswith("Ki")
    assert amounts(whole)["memory"] > amounts(left)["memory"]
    assert spelt(room)["ephemeral-storage"] == "17825792Ki"


def test_what_is_served_has_the_fields_and_nulls_of_a_real_api_server() -> None:
    """And is, read again, what was put there."""
    bare, pod = CSINode(metadata=ObjectMeta(name="fargate")), builders.pod(node="n")
    api = KubernetesApi(InMemoryCluster(Clock(), bare, pod, builders.node("n"), builders.daemon_set()))
    lists = {
        path.rpartition("/")[2]: api.answer("GET", path, {})[1]["items"][0]
        for path in ("/api/v1/nodes", "/api/v1/pods", "/apis/storage.k8s.io/v1/csinodes", "/apis/apps/v1/daemonsets")
    }
    assert json.loads(json.dumps(lists)) == lists
    assert lists["csinodes"]["spec"] == {"drivers": None}
    assert lists["daemonsets"]["spec"]["template"]["metadata"]["creationTimestamp"] is None
    assert lists["pods"]["status"]["conditions"][0]["lastProbeTime"] is None
    assert (
        lists["pods"]["status"]["containerStatuses"][0]["resources"]
        == lists["pods"]["spec"]["containers"][0]["resources"]
    )
    assert lists["nodes"]["status"]["images"]
    assert all(item["metadata"]["managedFields"] for item in lists.values())
    assert convert(lists["pods"], Pod).spec == pod.spec
