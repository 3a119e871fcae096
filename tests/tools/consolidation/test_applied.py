"""What a cluster looks like after some commands of a DisruptionPlan."""

from tests.tools.consolidation.clusters import NOW, catalogue, cluster, launch, plan
from tools.consolidation.applied import applied, kept, plan_of, prefix_of
from tools.consolidation.documents import Document, is_true, key_of, name_of, node_name, of_kind


def _names(objects: list[Document], kind: str) -> list[str]:
    return [name_of(item) for item in of_kind(objects, kind)]


def _homes(objects: list[Document]) -> dict[str, str]:
    return {name_of(pod): node_name(pod) for pod in of_kind(objects, "Pod")}


def test_a_command_that_was_not_carried_out_changes_nothing() -> None:
    """A prefix is a state on the way: what is not yet done leaves its nodes and pods alone."""
    after = applied(cluster(), plan(), catalogue(), 1)
    assert _names(after, "NodeClaim") == ["c1", "c2"]
    assert _homes(after) == {"a": "n1", "b": "n1", "daemon": "n1", "c": "n2"}


def test_retired_nodes_take_their_daemons_along_and_moved_pods_run_where_the_plan_says() -> None:
    """A DaemonSet makes a pod of its own for each new node, so that of the old one is not moved."""
    after = applied(cluster(), plan(), catalogue())
    assert _names(after, "Node") == ["n2", "default-1"]
    assert _names(after, "NodeClaim") == ["c2", "default-1"]
    assert _homes(after) == {"a": "n2", "b": "default-1", "c": "n2"}


def test_a_launch_becomes_a_node_at_work_of_its_offering() -> None:
    """The second decision must see what a live cluster would show it."""
    after = applied(cluster(), plan(), catalogue())
    node, claim = (
        next(o for o in after if o["kind"] == kind and name_of(o) == "default-1") for kind in ("Node", "NodeClaim")
    )
    assert (
        node["metadata"]["labels"]
        | {
            "team": "a",
            "node.kubernetes.io/instance-type": "c8a.xlarge",
            "topology.kubernetes.io/zone": "us-east-1b",
            "topology.k8s.aws/zone-id": "use1-az1",
            "karpenter.sh/capacity-type": "on-demand",
            "karpenter.k8s.aws/instance-tenancy": "default",
            "karpenter.sh/nodepool": "default",
        }
        == node["metadata"]["labels"]
    )
    assert node["spec"]["providerID"] == claim["status"]["providerID"]
    assert node["status"]["allocatable"]["cpu"] == "3920m"
    assert all(is_true(claim, kind) for kind in ("Initialized", "Ready", "Consolidatable"))
    assert claim["metadata"]["creationTimestamp"] == NOW


def test_launches_of_one_name_become_nodes_of_two() -> None:
    """Commands are right by themselves, so two of them may number their launches alike."""
    document = plan()
    document["commands"][0]["launch"] = [launch("default-1")]
    assert _names(applied(cluster(), document, catalogue()), "Node") == ["n2", "default-1", "default-1-1"]


def test_the_judge_is_asked_about_the_moved_pods_alone() -> None:
    """It checks plans for pending pods, so the pods that move are made pending."""
    prefix = prefix_of(cluster(), plan())
    assert _homes(kept(cluster(), prefix)) == {"a": "", "b": "", "c": "n2"}
    question = plan_of(cluster(), plan(), prefix)
    assert question["existing"] == [{"node": "n2", "nodeClaim": "c2", "pods": ["default/a"]}]
    assert [one["pods"] for one in question["launch"]] == [["default/b"]]
    assert question["cost"]["hourly"] == 0.1


def test_a_pod_that_the_plan_forgets_is_pending_and_in_no_plan() -> None:
    """So the judge reports it as missing."""
    document = plan()
    document["commands"][1]["existing"] = []
    prefix = prefix_of(cluster(), document)
    left = kept(cluster(), prefix)
    assert [key_of(pod) for pod in of_kind(left, "Pod") if not node_name(pod)] == ["default/a", "default/b"]
    assert plan_of(cluster(), document, prefix)["unschedulable"] == []
