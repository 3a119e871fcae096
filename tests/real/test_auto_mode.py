"""EKS Auto Mode beside Joinery in one cluster: pods that it may serve are its own business, and no news of ours."""

import json
from typing import Any

import msgspec
import pytest

from joinery.decisions.scheduling.explain.elsewhere import also_served, foreign
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.sources import SAMPLE
from simulator import builders
from simulator.clock import START
from tests.cli.conftest import Run, Write, pod_document
from tests.functional.stand import Stand
from tests.real.files import FOLDER, objects

POOLS = [
    NodePool.model_validate(document) for document in objects(FOLDER / "karpenter" / "nodepools-eks-auto-mode.yaml")
]
ADDONS = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]


def required(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    """A node affinity that must hold."""
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("pod", "pool"),
    [
        ({}, "general-purpose"),
        ({"node_selector": {"eks.amazonaws.com/compute-type": "auto"}}, "general-purpose"),
        ({"node_selector": {"eks.amazonaws.com/instance-family": "m7i"}}, "general-purpose"),
        ({"node_selector": {"topology.kubernetes.io/zone": "us-east-1a"}}, "general-purpose"),
        ({"node_selector": {"beta.kubernetes.io/arch": "amd64"}}, "general-purpose"),
        ({"affinity": required("team", "red", operator="NotIn")}, "general-purpose"),
        ({"node_selector": {"kubernetes.io/arch": "arm64"}, "tolerations": ADDONS}, "system"),
        ({"node_selector": {"kubernetes.io/arch": "arm64"}}, ""),
        ({"node_selector": {"karpenter.sh/nodepool": "default"}}, ""),
        ({"node_selector": {"karpenter.sh/capacity-type": "spot"}}, ""),
        ({"node_selector": {"karpenter.k8s.aws/instance-family": "m7i"}}, ""),
        ({"node_selector": {"eks.amazonaws.com/nodegroup": "workers"}}, ""),
        ({"node_selector": {"eks.amazonaws.com/compute-type": "hybrid"}}, ""),
        ({"node_selector": {"team": "red"}}, ""),
        ({"affinity": required("team", "Platform & Data!")}, ""),
        ({"affinity": required("eks.amazonaws.com/instance-generation", "5", operator="Lt")}, ""),
    ],
)  # fmt: skip
def test_a_pool_of_auto_mode_may_serve_what_its_template_does_not_exclude(pod: dict[str, Any], pool: str) -> None:
    """By taints, labels and requirements; what types it has is not ours to know."""
    others = sorted(foreign(Snapshot(now=START, node_pools=tuple(POOLS))), key=lambda pool: pool.metadata.name)
    waiting = builders.pod(**pod)
    assert also_served([waiting.key], {waiting.key: waiting}, others).get(waiting.key, "") == pool


@pytest.fixture
def beside(stand: Stand) -> Stand:
    """A NodePool of ours that is for one team alone, beside Auto Mode's two."""
    pool = builders.node_pool(taints=[{"key": "team", "value": "red", "effect": "NoSchedule"}])
    stand.world.cluster.api.delete(stand.world.cluster.node_pools["default"])
    stand.world.cluster.add(pool, *POOLS)
    stand.live()
    return stand


def test_pods_that_auto_mode_may_serve_are_one_line_and_no_event(
    beside: Stand, capsys: pytest.CaptureFixture[str]
) -> None:
    """However many they are, and its NodePools that take no part with us are none."""
    beside.pods(30)
    capsys.readouterr()
    outcome = beside.provision()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["level"], line["message"]) for line in lines] == [("INFO", "30 pods are left to others")]
    assert "general-purpose" in lines[0]["reason"]
    assert beside.event_reasons("Pod") == set()
    assert outcome["unplaced"] == 30


def test_a_pod_that_nobody_may_serve_is_told_why(beside: Stand) -> None:
    """Auto Mode beside us hides no reason of ours."""
    beside.pods(1, node_selector={"karpenter.sh/nodepool": "default"})
    beside.provision()
    (event,) = [event for event in beside.world.cluster.events if event.kind == "Pod"]
    assert event.reason == "FailedScheduling"
    assert "NodePool default: the pod does not tolerate its taint team=red:NoSchedule" in event.message


def test_a_pod_of_ours_is_served_as_ever(beside: Stand) -> None:
    """Both may buy for a pod that both may serve; ours is for the team that tolerates it."""
    beside.pods(1, tolerations=[{"key": "team", "operator": "Exists"}])
    assert beside.provision()["launched"] == 1
    assert beside.event_reasons("Pod") == {"Nominated"}


def test_a_pod_that_both_may_serve_is_bought_for_and_that_is_said(
    stand: Stand, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other might not serve it; whoever runs both hears once a run what to do about the second node."""
    stand.world.cluster.add(*POOLS)
    stand.pods(4)
    capsys.readouterr()
    assert stand.provision()["launched"] > 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (said,) = [line["reason"] for line in lines if line["message"] == "pods may get two nodes"]
    assert "and 3 more pods may get two nodes: NodePool general-purpose of another provider may serve them too" in said
    capsys.readouterr()
    stand.provision()
    assert "two nodes" not in capsys.readouterr().out


def test_pods_with_volumes_of_auto_mode_get_no_node_of_ours(stand: Stand) -> None:
    """No other node can attach them: kube-scheduler would bind the pod, and it would wait there for ever."""
    stand.world.cluster.add(
        builders.storage_class("auto-ebs", provisioner="ebs.csi.eks.amazonaws.com"),
        builders.volume_claim("theirs", storage_class="auto-ebs"),
        builders.storage_class("gp3"),
        builders.volume_claim("ours"),
        builders.pod("theirs", volumes=["theirs"], unschedulable=True),
        builders.pod("ours", volumes=["ours"], unschedulable=True),
    )
    assert stand.provision()["launched"] == 1
    (event,) = [one for one in stand.world.cluster.events if one.kind == "Pod" and one.name == "theirs"]
    assert "its volume demands eks.amazonaws.com/compute-type In [auto]" in event.message


def test_a_plan_says_why_volumes_of_auto_mode_keep_pods_pending(run: Run, write: Write) -> None:
    """The pods do not ask for its nodes: their StorageClass does."""
    pod = pod_document("db", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    documents = [
        builders.node_class().to_wire(),
        builders.node_pool().to_wire(),
        *(json.loads(msgspec.json.encode(one)) | {"apiVersion": version, "kind": kind} for version, kind, one in (
            ("storage.k8s.io/v1", "StorageClass", builders.storage_class(provisioner="ebs.csi.eks.amazonaws.com")),
            ("v1", "PersistentVolumeClaim", builders.volume_claim()),
        )),
        pod,
    ]  # fmt: skip
    files = write("files.json", {"apiVersion": "v1", "kind": "List", "items": documents})
    assert (
        "warning: 1 pod gets no node here (default/db): volumes of ebs.csi.eks.amazonaws.com can be attached to nodes "
        "of EKS Auto Mode alone; those of a StorageClass with the provisioner ebs.csi.aws.com to all others\n"
    ) in run("plan", "--catalog", str(SAMPLE), "-f", files).err


def test_a_plan_says_which_pods_another_provider_may_serve(run: Run, write: Write) -> None:
    """A warning where both may buy, a note where only the other may."""
    ours = [
        builders.node_class().to_wire(),
        builders.node_pool(requirements=["kubernetes.io/arch=arm64"]).to_wire(),
    ]
    pods = [
        pod_document("both"),
        pod_document("theirs", nodeSelector={"kubernetes.io/arch": "amd64"}),
        pod_document("ours", nodeSelector={"kubernetes.io/arch": "arm64"}),
    ]
    documents = [*ours, *objects(FOLDER / "karpenter" / "nodepools-eks-auto-mode.yaml"), *pods]
    files = write("files.json", {"apiVersion": "v1", "kind": "List", "items": documents})
    notices = run("plan", "--catalog", str(SAMPLE), "-f", files, "-o", "json").document["notices"]
    told = [
        f"{one['severity']}: {one['message'].partition('. ')[0]}"
        for one in notices
        if "another provider" in one["message"]
    ]
    assert told == [
        "warning: pod default/both may get two nodes: NodePool general-purpose of another provider may serve them too",
        (
            "note: 1 pod that is left out here may be served by NodePool general-purpose of another provider: "
            "default/theirs"
        ),
    ]
