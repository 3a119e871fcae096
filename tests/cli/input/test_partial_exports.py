"""Exports that have a part of a cluster: what is decided without the rest may be wrong, and that is said."""

from typing import Any

import msgspec
import pytest

from joinery.objects.snapshot.gangs import KUEUE_GROUP, KUEUE_TOTAL
from joinery_cli.sources import SAMPLE
from simulator.builders import node, node_claim, node_class, node_pool, pod
from simulator.kubernetes.resources import encode
from tests.cli.conftest import NOW, Run, Write

PLAN = ("plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE))
DISRUPT = ("disrupt", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE))
POOL = (node_class(), node_pool())


def listed(*objects: Any) -> dict[str, Any]:
    """The objects as ``kubectl get -o json`` prints them."""
    return {"apiVersion": "v1", "kind": "List", "items": [msgspec.json.decode(encode(one)) for one in objects]}


def test_pods_without_their_pod_group_are_warned_of(run: Run, write: Write) -> None:
    """They wait, as they would in a cluster that has none; most often the file lacks what the cluster has."""
    pods = [pod(f"train-{number}", annotations={"scheduling.k8s.io/group-name": "train"}) for number in range(2)]
    path = write("pods.json", listed(*POOL, *pods))
    said = (
        "warning: 1 PodGroup that pods name is not in the files (default/train): its pods wait. "
        "kubectl get podgroups.scheduling.volcano.sh -A -o json > podgroups.json"
    )
    outcome = run(*PLAN, "-f", path)
    assert said in outcome.err
    assert "PodGroup default/train is not there" in outcome.out
    assert said in run(*DISRUPT, "-f", path).err
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"minMember": 2},
    }
    assert "PodGroup" not in run(*PLAN, "-f", path, "-f", write("group.json", group)).err


@pytest.mark.parametrize(
    ("api", "namespace", "said"),
    [
        ("scheduling.volcano.sh/v1beta1", "ml", "default/train; there is ml/train)"),
        ("scheduling.x-k8s.io/v1alpha1", "default", "default/train; there is default/train of scheduling.x-k8s.io)"),
    ],
)
def test_a_pod_group_that_is_elsewhere_is_no_pods_group(
    run: Run, write: Write, api: str, namespace: str, said: str
) -> None:
    """A pod's is of its namespace, and of the API by which the pod names it."""
    pods = [pod(f"train-{number}", annotations={"scheduling.k8s.io/group-name": "train"}) for number in range(2)]
    metadata = {"name": "train", "namespace": namespace}
    group = {"apiVersion": api, "kind": "PodGroup", "metadata": metadata, "spec": {"minMember": 2}}
    err = run(*PLAN, "-f", write("pods.json", listed(*POOL, *pods)), "-f", write("group.json", group)).err
    assert f"1 PodGroup that pods name is not in the files ({said}: its pods wait" in err


def test_pods_of_kueues_group_without_a_total_are_warned_of(run: Run, write: Write) -> None:
    """They are planned, as they would be where Kueue is not at work."""
    named = pod("a", labels={KUEUE_GROUP: "a"})
    outcome = run(*PLAN, "-f", write("pods.json", listed(*POOL, named)))
    said = f"warning: 1 pod has {KUEUE_GROUP} without the annotation {KUEUE_TOTAL} (default/a): Kueue refuses them"
    assert said in outcome.err
    assert '"default/a"' in outcome.out


def test_pods_without_their_nodes_are_told_what_is_lacking(run: Run, write: Write) -> None:
    """``kubectl get pods,nodepools,ec2nodeclasses -A``: the room that the nodes have is bought a second time."""
    running = [pod(f"web-{number}", node=f"ip-10-0-1-{number % 2}", owner="web") for number in range(4)]
    path = write("pods.json", listed(*POOL, *running, pod("waits")))
    told = (
        "4 pods are on 2 nodes that are not in the files (ip-10-0-1-0, ip-10-0-1-1): their room is unknown, and "
        "may be bought anew. All that is needed: kubectl get nodes,"
    )
    assert f"warning: {told}" in run(*PLAN, "-f", path).err
    assert "warning: 4 pods are on 2 nodes that are not in the files" in run(*DISRUPT, "-f", path).err


def test_pods_whose_nodes_are_there_or_that_have_ended_lack_nothing(run: Run, write: Write) -> None:
    """A Job's pod stays for weeks after the node that it ran on."""
    ended = pod("import", node="ip-gone", phase="Succeeded")
    path = write("pods.json", listed(*POOL, node("ip-there"), pod("web", node="ip-there"), ended))
    assert "not in the files" not in run(*PLAN, "-f", path).err


def test_nodes_without_their_claims_are_told_what_is_lacking(run: Run, write: Write) -> None:
    """``kubectl get nodes,pods,nodepools``: a NodePool's node is nobody's to end while its claim is not there."""
    path = write("nodes.json", listed(*POOL, node("ip-10-0-1-7"), pod("web", node="ip-10-0-1-7", owner="web")))
    told = "warning: 1 node of a NodePool has no NodeClaim in the files (ip-10-0-1-7): nothing is decided about it. All"
    outcome = run(*DISRUPT, "-f", path)
    assert told in outcome.err
    assert "NodeClaim in the files" not in run(*PLAN, "-f", path).err


def test_nodes_without_claims_are_no_cluster_that_costs_nothing(run: Run, write: Write) -> None:
    """``kubectl get nodes,pods``: it was said that every node stays, and that all of them cost $0.0000/h."""
    path = write("nodes.json", listed(*POOL, node("ip-10-0-1-7"), pod("web", node="ip-10-0-1-7", owner="web")))
    out = run("disrupt", "--now", NOW, "--catalog", str(SAMPLE), "-f", path).out
    assert out.startswith(
        "Nothing to do: there is no node with a NodeClaim of an EC2NodeClass\n$0/h: no node is counted\n"
    )


def test_a_node_groups_node_is_told_to_be_in_no_price(run: Run, write: Write) -> None:
    """Every cluster of EKS has one; it is among the nodes that become fewer, and not in what they cost."""
    claimed = [node("ip-10-0-1-7"), node_claim("claim", node="ip-10-0-1-7")]
    of_group = node("ip-10-0-1-8", labels={"eks.amazonaws.com/nodegroup": "a", "karpenter.sh/nodepool": ""})
    path = write("nodes.json", listed(*POOL, *claimed, of_group))
    for form in ("table", "html"):
        out = run("disrupt", "--now", NOW, "--catalog", str(SAMPLE), "-f", path, "-o", form).out
        assert "1 node without a NodeClaim of an EC2NodeClass stays, and is not in it" in out


def test_node_pools_without_their_class_are_told_why_nodes_stay(run: Run, write: Write) -> None:
    """``kubectl get nodes,nodeclaims,nodepools,pods``, as for a plan."""
    claimed = [node("ip-10-0-1-7"), node_claim("claim", node="ip-10-0-1-7")]
    told = "warning: there is no EC2NodeClass default, so nothing can be bought, and the nodes of its NodePools stay."
    assert told in run(*DISRUPT, "-f", write("nodes.json", listed(node_pool(), *claimed))).err
    assert "there is no EC2NodeClass" not in run(*DISRUPT, "-f", write("all.json", listed(*POOL, *claimed))).err


@pytest.mark.parametrize(
    ("spec", "is_told"),
    [({"maxUnavailable": 1}, True), ({"minAvailable": "50%"}, True), ({"maxUnavailable": 0}, False)],
)
def test_a_budget_without_status_is_told_to_allow_nothing(
    run: Run, write: Write, spec: dict[str, Any], is_told: bool
) -> None:
    """A manifest says what is to be kept, and only a cluster how many pods there are beside; 0 allows none for good.
    A file that says 0 has said it, whether or not a cluster wrote it.
    """
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }
    told = "warning: 1 PodDisruptionBudget allows no eviction (default/web), because the files say of none: "
    assert (told in run(*DISRUPT, "-f", write("budget.json", budget)).err) is is_told
    for metadata in ({"name": "web", "uid": "a"}, {"name": "web"}):
        said = {**budget, "metadata": metadata, "status": {"disruptionsAllowed": 0}}
        assert "allows no eviction" not in run(*DISRUPT, "-f", write("budget.json", said)).err


def test_nodes_that_eks_runs_itself_need_no_claims(run: Run, write: Write) -> None:
    """Auto Mode's nodes have a NodePool's label, and are never Joinery's to end."""
    auto = node("i-0123456789abcdef0", labels={"eks.amazonaws.com/compute-type": "auto"})
    path = write("nodes.json", listed(*POOL, auto, pod("web", node="i-0123456789abcdef0", owner="web")))
    assert "NodeClaim in the files" not in run(*DISRUPT, "-f", path).err


def test_nodes_without_any_pods_are_doubted(run: Run, write: Write) -> None:
    """``kubectl get nodes,nodeclaims,nodepools``: each would go because it is empty, and a real node never is."""
    claimed = [node("ip-10-0-1-7"), node_claim("claim", node="ip-10-0-1-7")]
    path = write("nodes.json", listed(*POOL, *claimed))
    told = "warning: no pod in the files is on any of their nodes, so that each counts as empty. All that is needed: "
    assert told in run(*DISRUPT, "-f", path).err
    path = write("all.json", listed(*POOL, *claimed, pod("web", node="ip-10-0-1-7", owner="web")))
    assert "counts as empty" not in run(*DISRUPT, "-f", path).err
