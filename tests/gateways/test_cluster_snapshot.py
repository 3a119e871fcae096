"""What a snapshot of the cluster holds, in every form of the ``Cluster`` gateway."""

from datetime import timedelta
from typing import Any

import pytest

from joinery.objects.errors import NotFoundError
from simulator import builders
from tests.gateways.clusters import START, Form

APP = {"app": "web"}


def names(items: Any) -> set[str]:
    """The names of objects."""
    return {item.metadata.name for item in items}


def test_a_light_read_holds_the_claims_and_what_is_wrong_with_others(form: Form) -> None:
    """They are the same as in a snapshot, read at the same moment."""
    form.put(builders.node("n1"), builders.node_claim("c1"), builders.node_claim("c2"))
    whole, light = form.cluster.snapshot(), form.cluster.claims_snapshot()
    assert names(light.node_claims) == {"c1", "c2"}
    assert (light.now, light.node_claims) == (whole.now, whole.node_claims)
    assert (light.managed_claims, light.node_class_kind) == (whole.managed_claims, whole.node_class_kind)
    assert light.invalid == ()


def test_one_node_is_read_by_name(form: Form) -> None:
    """As a snapshot has it; one that is gone is not found."""
    form.put(builders.node("n1"), builders.node("n2"))
    assert form.cluster.node("n2") in form.cluster.snapshot().nodes
    assert form.cluster.node("n2").metadata.name == "n2"
    with pytest.raises(NotFoundError):
        form.cluster.node("n3")


def test_a_snapshot_holds_everything_a_decision_looks_at(form: Form) -> None:
    """Nodes, pods, custom resources, workloads, storage and budgets are all read."""
    form.put(
        builders.node("n1"),
        builders.pod("p1"),
        builders.node_claim("c1"),
        builders.node_pool("pool"),
        builders.node_class("class"),
        builders.daemon_set("agent"),
        builders.storage_class("gp3"),
        builders.volume("pv"),
        builders.volume_claim("data"),
        builders.pdb("budget", labels=APP),
    )

    read = form.cluster.snapshot()

    assert names(read.nodes) == {"n1"}
    assert [pod.key for pod in read.pods] == ["default/p1"]
    assert names(read.node_claims) == {"c1"}
    assert names(read.node_pools) == {"pool"}
    assert names(read.node_classes) == {"class"}
    assert names(read.daemon_sets) == {"agent"}
    assert {"default", "kube-system"} <= names(read.namespaces)
    assert (names(read.storage_classes), names(read.volumes), names(read.volume_claims)) == ({"gp3"}, {"pv"}, {"data"})
    assert names(read.disruption_budgets) == {"budget"}


def test_a_snapshot_knows_its_moment(form: Form) -> None:
    """Time comes from the injected clock: a decision never asks another."""
    form.clock.advance(timedelta(minutes=5))
    assert form.cluster.snapshot().now == START + timedelta(minutes=5)


def test_a_pod_keeps_what_its_scheduling_depends_on(form: Form) -> None:
    """Requests, selectors and the Unschedulable mark survive the way through the API."""
    form.put(builders.pod("p1", cpu="750m", node_selector={"disk": "ssd"}, labels=APP))

    (read,) = form.cluster.snapshot().pods

    assert read.spec.containers[0].resources.requests["cpu"] == "750m"
    assert (read.spec.node_selector, read.metadata.labels) == ({"disk": "ssd"}, APP)
    assert [(c.type, c.reason) for c in read.status.conditions] == [("PodScheduled", "Unschedulable")]


def test_a_node_about_which_nothing_has_changed_keeps_its_view(form: Form) -> None:
    """So a warm function need not work out anew what is the same."""
    form.put(builders.node("n1"), builders.node("n2"), builders.pod("p1", node="n1"))
    first, second = form.cluster.snapshot().views
    form.put(builders.pod("p2", node="n2"))
    assert form.cluster.snapshot().views[0] is first
    assert form.cluster.snapshot().views[1] != second


def test_a_pod_group_is_read_where_a_pod_names_one(form: Form) -> None:
    """How many pods are placed together, and where."""
    group = builders.pod_group("train", minimum=2, topology="topology.kubernetes.io/zone")
    form.put(builders.pod("p1", scheduling_group={"podGroupName": "train"}), group)
    (gang,) = form.cluster.snapshot().gangs.values()
    assert (str(gang), gang.minimum, gang.topology) == ("PodGroup default/train", 2, "topology.kubernetes.io/zone")
    assert list(gang.members) == ["default/p1"]


def test_a_pod_group_that_is_not_there_is_awaited_where_its_api_is_served(form: Form) -> None:
    """Of an API that the cluster does not serve, nobody waits for any."""
    of_plugin = {"scheduling.x-k8s.io/pod-group": "train"}
    form.put(builders.pod("p1", scheduling_group={"podGroupName": "train"}), builders.pod("p2", labels=of_plugin))
    (gang,) = form.cluster.snapshot().gangs.values()
    assert (str(gang), gang.minimum) == ("PodGroup default/train", None)
    assert gang.problem.startswith("is not there (podgroups.scheduling.k8s.io)")
