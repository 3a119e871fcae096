"""``joinery plan`` of a cluster that still runs an older Karpenter."""

from pathlib import Path
from typing import Any

import pytest

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, NOW, Outcome, Run, Write, pod_document

CLUSTER_OF_V31 = Path(__file__).parents[2] / "data" / "legacy-cluster.yaml"
PROVISIONER: dict[str, Any] = {
    "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "default"},
    "spec": {"providerRef": {"name": "default"}},
}  # fmt: skip
TEMPLATE: dict[str, Any] = {
    "apiVersion": "karpenter.k8s.aws/v1alpha1", "kind": "AWSNodeTemplate", "metadata": {"name": "default"},
    "spec": {"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}, "instanceProfile": "nodes"},
}  # fmt: skip


PLAN = ("plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE))


@pytest.fixture
def old(run: Run) -> Outcome:
    """The plan of a cluster of v0.31."""
    return run(*PLAN, "-f", str(CLUSTER_OF_V31))


def _launches(outcome: Outcome) -> dict[str, Any]:
    return {launch["nodePool"]: launch for launch in outcome.document["launch"]}


def _values(launch: Any, key: str) -> list[str]:
    return [value for r in launch["requirements"] if r["key"] == key for value in r["values"]]


def test_pods_of_an_old_cluster_are_planned_onto_what_its_provisioners_become(old: Outcome) -> None:
    """A selector of the Provisioner's name selects its pool, and the webhook's defaults hold: on-demand, amd64."""
    assert old.status == 0, old.err
    launch = _launches(old)["default"]
    assert launch["pods"] == ["default/web"]
    assert launch["offering"]["instanceType"] == "m5.large"
    assert _values(launch, "karpenter.sh/capacity-type") == ["on-demand"]
    assert _values(launch, "kubernetes.io/arch") == ["amd64"]


def test_nodes_of_a_provisioner_take_pods_and_use_up_its_limits(old: Outcome) -> None:
    """Four of the six CPUs run already, and half of one is free there."""
    assert [(one["node"], one["pods"]) for one in old.document["existing"]] == [("ip-10-0-1-7", ["default/small"])]
    (left,) = old.document["unschedulable"]
    assert left["pod"] == "default/too-much"
    assert "NodePool default: its limits (cpu 6, of which 0 are left)" in " ".join(left["reasons"])


def test_a_provider_block_and_the_older_instance_types_are_honoured(old: Outcome) -> None:
    """The batch Provisioner brings its own class, one instance type, labels and taints."""
    launch = _launches(old)["batch"]
    assert (launch["pods"], launch["instanceTypes"]) == (["default/job"], ["c5.xlarge"])
    assert launch["labels"]["team"] == "batch"
    assert launch["labels"]["karpenter.k8s.aws/ec2nodeclass"] == "batch"
    assert launch["taints"] == [{"key": "batch", "value": "true", "effect": "NoSchedule"}]


def test_what_is_lost_on_the_way_is_said(old: Outcome) -> None:
    """A dropped setting. A selector by the old name loses nothing: new nodes have that label too."""
    assert old.err.splitlines() == [
        (
            f"warning: {CLUSTER_OF_V31}: Provisioner batch: kubelet setting containerRuntime has no equivalent and is "
            "dropped"
        ),
    ]


def test_without_legacy_objects_the_old_label_selects_nothing(run: Run, cluster: str, write: Write) -> None:
    """Nodes of a NodePool do not carry it, and the scheduler would not bind the pod there."""
    pod = write("pod.json", pod_document(nodeSelector={"karpenter.sh/provisioner-name": "default"}))
    outcome = run(*PLAN, "-f", cluster, "-f", pod)
    assert [one["pod"] for one in outcome.document["unschedulable"]] == ["default/web"]


def test_an_object_of_v1_counts_instead_of_a_legacy_one(run: Run, cluster: str, write: Write) -> None:
    """Halfway through a move both are there, and the newer one is meant."""
    path = write("old.json", {"apiVersion": "v1", "kind": "List", "items": [PROVISIONER, TEMPLATE]})
    outcome = run(*PLAN, "-f", path, "-f", cluster, "-f", write("p.json", pod_document()))
    assert outcome.document["launch"][0]["labels"]["team"] == "web"
    assert outcome.err.splitlines() == [
        f"warning: {path}: AWSNodeTemplate default: not used, the EC2NodeClass default of v1 counts",
        f"warning: {path}: Provisioner default: not used, the NodePool default of v1 counts",
    ]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"launchTemplate": "t"}, "spec.launchTemplate: has no equivalent"),
        (
            {"subnetSelector": {"": "x"}},
            "as EC2NodeClass: spec.subnetSelectorTerms[0].tags: a tag needs a key and a value",
        ),
    ],
)
def test_a_legacy_object_without_equivalent_is_bad_input(run: Run, write: Write, spec: Any, problem: str) -> None:
    """One line with file, object and field, exit status 2."""
    path = write("old.json", {**TEMPLATE, "spec": {**TEMPLATE["spec"], **spec}})
    outcome = run("plan", "--now", NOW, "-f", path)
    assert outcome.status == 2
    assert outcome.err.startswith(f"joinery: {path}:1: AWSNodeTemplate default: {problem}")


def test_v1beta1_objects_are_read_too(run: Run, write: Write) -> None:
    """The version between."""
    text = CLUSTER.replace("karpenter.sh/v1\n", "karpenter.sh/v1beta1\n").replace("s.aws/v1\n", "s.aws/v1beta1\n")
    path = write("beta.yaml", text.replace("group: karpenter.k8s.aws, ", "apiVersion: karpenter.k8s.aws/v1beta1, "))
    outcome = run(*PLAN, "-f", path, "-f", write("pod.json", pod_document()))
    assert (outcome.status, outcome.err) == (0, "")
    assert [launch["nodePool"] for launch in outcome.document["launch"]] == ["default"]


@pytest.mark.parametrize(("now", "retired"), [("2026-01-01T11:59:20Z", []), ("2026-01-01T11:59:40Z", ["default-x"])])
def test_an_empty_machine_goes_after_its_time(run: Run, now: str, retired: list[str]) -> None:
    """``ttlSecondsAfterEmpty`` runs from the annotation on the Node: as in the doors."""
    path = str(CLUSTER_OF_V31.with_name("legacy-empty.yaml"))
    outcome = run("disrupt", "--now", now, "-o", "json", "--catalog", str(SAMPLE), "-f", path)
    assert outcome.status == 0, outcome.err
    assert [name for command in outcome.document["commands"] for name in command["retire"]] == retired


SLIPS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (PROVISIONER, {"requirments": []}, "spec.requirments: no such field; is it requirements?"),
    (PROVISIONER, {"ttlSecondsAfterEmptey": 30}, "spec.ttlSecondsAfterEmptey: no such field; is it ttlSecondsAfterE"),
    (PROVISIONER, {"limits": {"cpu": 9}}, "spec.limits.cpu: no such field; is it resources.cpu?"),
    (
        PROVISIONER,
        {"requirements": [{"key": "a", "operator": "In", "value": ["b"], "values": ["b"]}]},
        "as NodePool: spec.template.spec.requirements[0].value: no such field; is it values?",
    ),
    (PROVISIONER, {"kubeletConfiguration": {"maxpods": 9}}, "Configuration.maxpods: no such field; is it maxPods?"),
    (PROVISIONER, {"consolidation": {"enable": True}}, "spec.consolidation.enable: no such field; is it enabled?"),
    (PROVISIONER, {"consolidation": {"policy": "x"}}, "consolidation.policy: no such field; there is only enabled"),
    (PROVISIONER, {"providerRef": {"name": "a", "kinds": "X"}}, "spec.providerRef.kinds: no such field; is it kind?"),
    (PROVISIONER, {"labels": None, "team": "web"}, "spec.team: no such field; is it labels.team? Then indent it"),
    (TEMPLATE, {"subnetSelectors": {"a": "b"}}, "spec.subnetSelectors: no such field; is it subnetSelector?"),
    (TEMPLATE, {"blockDeviceMappings": [{"ebs": {"volumesize": "1Gi"}}]}, "ebs.volumesize: no such field; is it volum"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "spec", "problem"), SLIPS)
def test_a_slip_of_an_older_api_is_an_error(
    run: Run, write: Write, document: dict[str, Any], spec: dict[str, Any], problem: str
) -> None:
    """As it is in v1: without it the plan would be for another pool."""
    outcome = run("plan", "--now", NOW, "-f", write("old.json", {**document, "spec": {**document["spec"], **spec}}))
    assert outcome.status == 2
    assert problem in outcome.err


BETA = CLUSTER.replace("karpenter.sh/v1\n", "karpenter.sh/v1beta1\n").replace("s.aws/v1\n", "s.aws/v1beta1\n")


@pytest.mark.parametrize(
    ("right", "slip", "problem"),
    [
        ("requirements:", "requirments:", "spec.template.spec.requirments: no such field; is it requirements?"),
        ("subnetSelectorTerms: [{tags", "subnetSelectorTerms: [{tag", "spec.subnetSelectorTerms[0].tag: no such field"),
        ("role: nodes", "rol: nodes", "spec.rol: no such field; is it role?"),
        (
            "requirements:", "kubelet: {maxPod: 3}\n      requirements:",
            "spec.template.spec.kubelet.maxPod: no such field; is it maxPods?",
        ),
        ("  template:", "  limits:\n  cpu: 9\n  template:", "spec.cpu: no such field; is it limits.cpu? Then indent"),
    ],
)  # fmt: skip
def test_a_slip_in_v1beta1_is_an_error(run: Run, write: Write, right: str, slip: str, problem: str) -> None:
    """At any depth, with whatever is wrong besides."""
    outcome = run("plan", "--now", NOW, "-f", write("beta.yaml", BETA.replace(right, slip)))
    assert outcome.status == 2
    assert problem in outcome.err


def test_what_no_older_api_has_is_left_out_with_a_word(run: Run, write: Write) -> None:
    """A taint has no operator, though many write one; of what a cluster served, a slip is as old as the cluster."""
    tainted = BETA.replace(
        "requirements:", "taints: [{key: a, effect: NoSchedule, operator: Exists}]\n      requirements:"
    )
    beta = write("beta.yaml", tainted)
    err = run(*PLAN, "-f", beta).err
    assert (
        f"warning: {beta}: NodePool default: spec.template.spec.taints[0].operator: no such field; it is ignored" in err
    )
    served = {
        **PROVISIONER,
        "metadata": {"name": "default", "uid": "u"},
        "spec": {**PROVISIONER["spec"], "requirments": []},
    }
    outcome = run(*PLAN, "-f", write("served.json", served))
    assert outcome.status == 0
    assert "Provisioner default: spec.requirments: no such field; is it requirements?" in outcome.err


def test_a_slip_is_one_line_though_its_right_field_is_missing(run: Run, write: Write) -> None:
    """It was told a second time, of values that nobody has written."""
    requirement = {"key": "kubernetes.io/arch", "operator": "In", "value": "amd64"}
    provisioner = {**PROVISIONER, "spec": {**PROVISIONER["spec"], "requirements": [requirement]}}
    path = write("old.json", {"apiVersion": "v1", "kind": "List", "items": [provisioner, TEMPLATE]})
    assert run(*PLAN, "-f", path).err == (
        f"joinery: {path}:1: Provisioner default: as NodePool: spec.template.spec.requirements[0].value: no such "
        "field; is it values?\n"
    )


def test_what_a_pod_selects_overrides_the_defaults_of_the_first_provisioners(run: Run, write: Write) -> None:
    """Of v1alpha3 and v1alpha4 as they stand; of v1alpha5, which layers constraints, where an annotation says so."""
    block = {**TEMPLATE["spec"], "cluster": {"name": "shop"}}
    spec = {"instanceTypes": ["m6a.large"], "provider": block}
    first = {
        "apiVersion": "karpenter.sh/v1alpha4",
        "kind": "Provisioner",
        "metadata": {"name": "default"},
        "spec": spec,
    }
    layered = {**first, "apiVersion": "karpenter.sh/v1alpha5", "spec": {**spec, "provider": TEMPLATE["spec"]}}
    annotated = {**layered, "metadata": {"name": "default", "annotations": {"joinery.dev/overrides": "true"}}}
    selector = {"node.kubernetes.io/instance-type": "m5.2xlarge"}
    pod = write("pod.json", pod_document(nodeSelector=selector))
    for document, bought in ((first, ["m5.2xlarge"]), (layered, []), (annotated, ["m5.2xlarge"])):
        outcome = run(*PLAN, "-f", write("old.json", document), "-f", pod)
        assert [launch["offering"]["instanceType"] for launch in outcome.document["launch"]] == bought


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"instanceType": ["a"]}, "spec.instanceType: no such field; is it instanceTypes?"),
        ({"cluster": {"names": "a", "name": "shop"}}, "spec.cluster.names: no such field; is it name?"),
    ],
)
def test_a_slip_of_the_first_provisioners_is_an_error(run: Run, write: Write, spec: Any, problem: str) -> None:
    """Their own fields are known, also those that v1alpha5 lacks."""
    document = {"apiVersion": "karpenter.sh/v1alpha3", "kind": "Provisioner", "metadata": {"name": "default"}}
    path = write("old.json", {**document, "spec": {"cluster": {"name": "shop"}, **spec}})
    outcome = run("plan", "--now", NOW, "-f", path)
    assert outcome.status == 2
    assert problem in outcome.err
