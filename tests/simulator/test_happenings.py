"""What people do in scenarios: delete things, change NodePools, hear from EC2 and AWS Health, use older kinds."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter import labels as keys
from simulator.story.leaks import leaks
from simulator.story.scenario import find, load
from simulator.story.show import run
from simulator.story.simulation import Simulation
from simulator.story.timeline import Narrator

BASE: Any = yaml.safe_load((find(Path("surge")) or Path()).read_text())
NODE_CLASS, POOL = BASE["spec"]["objects"][:2]
WEB: dict[str, Any] = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "700m", "memory": "1Gi"}}}]}}},
}  # fmt: skip


def played(path: Path, *happenings: dict[str, Any], objects: Sequence[Any] = (), **spec: Any) -> tuple[Simulation, str]:
    """The simulation at its end, and its timeline as one text a line each."""
    given = {"title": "t", "seed": 7, "length": "10m", "running": BASE["spec"]["running"], **spec}
    given |= {"objects": [NODE_CLASS, POOL, *objects], "happenings": list(happenings)}
    file = path / "mine.yaml"
    file.write_text(yaml.safe_dump({"kind": "Scenario", "metadata": {"name": "mine"}, "spec": given}))
    simulation = Simulation(load(file))
    narrator = Narrator(simulation)
    run(simulation)
    return simulation, "\n".join(f"{one.who} {one.word} {one.why}" for one in narrator.entries)


@pytest.mark.parametrize(
    ("happening", "said"),
    [
        ({"retire": {"startsIn": "2h"}}, "health warns"),
        ({"stop": {}}, "ec2 stopped stopped"),
        ({"deleteNode": {"nodePool": "default"}}, "lifecycle taints"),
    ],
)
def test_a_node_is_left_and_its_pods_run_elsewhere(tmp_path: Path, happening: dict[str, Any], said: str) -> None:
    """Whoever says that the node goes: AWS Health about many instances, EC2 about one, a person by kubectl."""
    running = [{**BASE["spec"]["running"][0], "age": "1h"}]
    simulation, timeline = played(
        tmp_path, {"at": "1m", "apply": [WEB]}, {"at": "3m", **happening}, running=running, length="20m"
    )
    assert said in timeline
    first, *others = simulation.instances
    assert others
    assert leaks(simulation) == ()
    ending = simulation.world.cloud.look(first)[0]
    assert ending.is_going or "retire" in happening


def test_what_an_object_owns_goes_with_it(tmp_path: Path) -> None:
    """A Deployment's pods through its ReplicaSet, a NodePool's nodes through their NodeClaims."""
    deleted = [{"kind": "Deployment", "name": "web"}, {"kind": "NodePool", "name": "default"}]
    simulation, _ = played(tmp_path, {"at": "5s", "apply": [WEB]}, {"at": "4m", "delete": deleted}, length="15m")
    assert not simulation.world.cluster.pods
    assert not simulation.world.cluster.node_claims
    assert not simulation.world.cluster.nodes
    assert leaks(simulation) == ()


def test_a_node_pool_may_come_later(tmp_path: Path) -> None:
    """Until then the pods wait."""
    simulation, _ = played(
        tmp_path,
        {"at": "5s", "apply": [{**WEB, "spec": {**WEB["spec"], "replicas": 9}}]},
        {"at": "2m", "apply": [{**POOL, "metadata": {"name": "second"}, "spec": {**POOL["spec"], "weight": 9}}]},
        running=[],
    )
    pools = {claim.metadata.labels[keys.NODE_POOL] for claim in simulation.world.cluster.node_claims.values()}
    assert pools <= {"default", "second"}
    assert leaks(simulation) == ()


def test_running_nodes_are_as_a_controller_leaves_them(tmp_path: Path) -> None:
    """With hashes, which drift is seen by, the pool's grace period, and their owner's real UID."""
    template = POOL["spec"]["template"]
    timed = {**POOL, "spec": {**POOL["spec"], "template": {**template, "spec": {
        **template["spec"], "terminationGracePeriod": "5m"}}}}  # fmt: skip
    path = tmp_path / "timed.yaml"
    spec = {"title": "t", "length": "1s", "objects": [NODE_CLASS, timed], "running": BASE["spec"]["running"]}
    path.write_text(yaml.safe_dump({"metadata": {"name": "timed"}, "spec": spec}))
    simulation = Simulation(load(path))
    (claim,) = simulation.world.cluster.node_claims.values()
    assert claim.spec.termination_grace_period == "5m"
    assert {keys.NODE_POOL_HASH, keys.NODE_CLASS_HASH} <= claim.metadata.annotations.keys()
    assert claim.metadata.owner_references[0].uid == simulation.world.cluster.node_pools["default"].metadata.uid


def test_a_pod_has_the_grace_that_an_api_server_writes(tmp_path: Path) -> None:
    """Thirty seconds, for those of workloads as for others."""
    pod = {"kind": "Pod", "metadata": {"name": "single"}, "spec": WEB["spec"]["template"]["spec"]}
    simulation, _ = played(tmp_path, {"at": "5s", "apply": [WEB, pod]}, length="1m")
    pods = simulation.world.cluster.pods.values()
    assert {pod.spec.termination_grace_period_seconds for pod in pods} == {30}


def test_settings_are_those_of_the_stack(tmp_path: Path) -> None:
    """As its parameter says them; a slip is a line."""
    simulation, timeline = played(
        tmp_path, {"at": "5s", "apply": [WEB]}, settings="SwitchedOff=provisioning", running=[], length="3m"
    )
    assert not simulation.world.cluster.node_claims
    assert "launches" not in timeline
    with pytest.raises(ConfigurationError, match=r"mine.yaml: .*NodeRepar.*NodeRepair"):
        played(tmp_path, settings="NodeRepar=reboot")


def test_older_kinds_are_taken_as_a_cluster_has_them(tmp_path: Path) -> None:
    """A Provisioner with its template buys nodes."""
    template = {
        "apiVersion": "karpenter.k8s.aws/v1alpha1", "kind": "AWSNodeTemplate", "metadata": {"name": "old"},
        "spec": {"amiFamily": "AL2023", "instanceProfile": "nodes",
                 "subnetSelector": {"karpenter.sh/discovery": "simulated"},
                 "securityGroupSelector": {"karpenter.sh/discovery": "simulated"}},
    }  # fmt: skip
    provisioner = {
        "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "old"},
        "spec": {"providerRef": {"name": "old"}, "weight": 10},
    }  # fmt: skip
    simulation, _ = played(
        tmp_path, {"at": "5s", "apply": [WEB]}, objects=[template, provisioner], running=[], length="8m"
    )
    claims = simulation.world.cluster.snapshot().node_claims
    assert {claim.metadata.labels[keys.NODE_POOL] for claim in claims} == {"old"}
    assert json.dumps(leaks(simulation)) == "[]"


def test_a_pod_of_higher_priority_displaces_others(tmp_path: Path) -> None:
    """The least important ones, and no more than it takes; those wait for a node of their own then."""
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("urgent", 1000), ("spare", -5))
    ]

    def of_class(name: str, kind: str) -> dict[str, Any]:
        template = WEB["spec"]["template"]
        spec = {**template["spec"], "priorityClassName": kind}
        labelled = {"metadata": {"labels": {"app": name}}, "spec": spec}
        selector = {"matchLabels": {"app": name}}
        return {**WEB, "metadata": {"name": name}, "spec": {"replicas": 1, "selector": selector, "template": labelled}}

    simulation, _ = played(
        tmp_path,
        {"at": "5s", "apply": [of_class("batch", "spare"), of_class("api", "")]},
        {"at": "2m", "apply": [of_class("front", "urgent")]},
        objects=classes, running=[{**BASE["spec"]["running"][0], "age": "1h"}],
    )  # fmt: skip
    preempted = [one.event.name for one in simulation.world.cluster.events if one.reason == "Preempted"]
    assert [name.partition("-")[0] for name in preempted] == ["batch"]
    first = min(simulation.world.cluster.nodes.values(), key=lambda node: str(node.metadata.creation_timestamp))
    here = {pod.metadata.name.partition("-")[0] for pod in simulation.world.cluster.pods.values()
            if pod.spec.node_name == first.metadata.name}  # fmt: skip
    assert here == {"front", "api"}
    assert leaks(simulation) == ()


def test_a_kind_that_is_not_there_cannot_be_deleted(tmp_path: Path) -> None:
    """A slip is a line, as everywhere."""
    with pytest.raises(ConfigurationError, match="Job: the simulation knows no such kind"):
        played(tmp_path, {"at": "5s", "delete": [{"kind": "Job", "name": "a"}]})
