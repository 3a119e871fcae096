"""What an API server takes of NodePools and EC2NodeClasses, and nobody can have meant."""

import json

import pytest

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document

OPTIONS = ("--now", NOW, "--catalog", str(SAMPLE), "-f")
ARN = "arn:aws:iam::111122223333"


@pytest.mark.parametrize("command", ["plan", "disrupt"])
@pytest.mark.parametrize(
    ("identity", "words"),
    [
        (f"role: {ARN}:role/team/nodes", "spec.role: must be the role's name, is its ARN; is it nodes?"),
        (
            f"instanceProfile: {ARN}:instance-profile/nodes",
            "spec.instanceProfile: must be the instance profile's name, is its ARN; is it nodes?",
        ),
    ],
)
def test_an_arn_in_place_of_a_name_is_asked_about(
    run: Run, write: Write, command: str, identity: str, words: str
) -> None:
    """The class would never be Ready, and everywhere else in AWS it is the ARN."""
    path = write("cluster.yaml", CLUSTER.replace("role: nodes", identity))
    assert f"warning: EC2NodeClass default: {words}\n" in run(command, *OPTIONS, path).err


NODE_CONFIG = "kind: NodeConfig\nspec: {kubelet: {config: {maxPods: 110, systemReserved: {cpu: 500m}}}}"
SETTINGS = "[settings.kubernetes.kube-reserved]\ncpu = '500m'"
FLAGS = "/etc/eks/bootstrap.sh blue --kubelet-extra-args '--eviction-hard=memory.available<5%'"


@pytest.mark.parametrize("command", ["plan", "disrupt"])
@pytest.mark.parametrize(
    ("user_data", "kubelet", "words"),
    [
        (NODE_CONFIG, "", "maxPods, systemReserved"),
        (NODE_CONFIG, "kubelet: {maxPods: 110}", "systemReserved"),
        (SETTINGS, "", "kube-reserved"),
        (FLAGS, "", "eviction-hard"),
        ("# maxPods: 110\nkind: NodeConfig", "", ""),
        ("--kube-reserved-cgroup=/runtime --eviction-soft-grace-period=memory.available=2m", "", ""),
    ],
)
def test_room_that_the_user_data_take_is_told(
    run: Run, write: Write, command: str, user_data: str, kubelet: str, words: str
) -> None:
    """Nodes would have less room than a plan counts on, and nothing else tells of it."""
    spec = f"role: nodes\n  userData: {json.dumps(user_data)}\n  {kubelet}"
    err = run(command, *OPTIONS, write("cluster.yaml", CLUSTER.replace("role: nodes", spec))).err
    said = f"warning: EC2NodeClass default: spec.userData sets {words}: the room of nodes is counted by spec.kubelet"
    assert said in err if words else "userData" not in err


@pytest.mark.parametrize("command", ["plan", "disrupt"])
def test_user_data_with_which_no_node_boots_are_told(run: Run, write: Write, command: str) -> None:
    """The class would not be Ready in a cluster, and the plan would be for nothing."""
    bottlerocket = CLUSTER.replace("al2023@latest", "bottlerocket@latest")
    path = write("cluster.yaml", bottlerocket.replace("role: nodes", 'role: nodes\n  userData: "echo hi"'))
    assert "warning: EC2NodeClass default: not usable: spec.userData is not TOML" in run(command, *OPTIONS, path).err


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ('userData: "echo hi"', "spec.userData is not TOML"),
        ("tenancy: dedicated", "spec.tenancy: Joinery does not know it"),
    ],
)
def test_nothing_is_launched_of_a_class_that_a_cluster_finds_not_ready(
    run: Run, write: Write, written: str, words: str
) -> None:
    """Its pods wait there, and the plan says why."""
    bottlerocket = CLUSTER.replace("al2023@latest", "bottlerocket@latest")
    path = write("cluster.yaml", bottlerocket.replace("role: nodes", f"role: nodes\n  {written}"))
    document = run("plan", *OPTIONS, path, write("pod.json", pod_document()), "-o", "json").document
    assert document["launch"] == []
    assert f"EC2NodeClass default is not ready: {words}" in document["unschedulable"][0]["reasons"][0]


def test_a_choice_that_may_be_empty_is_not_offered_as_nothing(run: Run, write: Write) -> None:
    """A volume's type may be left out; what is written must be one of EC2's."""
    disk = "role: nodes\n  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 20Gi, volumeType: gp4}}]"
    err = run("plan", *OPTIONS, write("cluster.yaml", CLUSTER.replace("role: nodes", disk))).err
    assert "volumeType: must be one of standard, io1, io2, gp2, sc1, st1, gp3, is 'gp4'" in err


def test_types_for_which_an_expression_has_no_value_are_told(run: Run, write: Write) -> None:
    """Nothing else would say why a plan has none of them."""
    spec = 'role: nodes\n  kubelet: {maxPods: "max_pods - 10"}'
    err = run("plan", *OPTIONS, write("cluster.yaml", CLUSTER.replace("role: nodes", spec))).err
    assert "types are left out: spec.kubelet.maxPods: 'max_pods - 10' for " in err
    assert ": it yields -" in err


def test_types_have_a_value_with_the_stacks_settings(run: Run, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they have in the plan: where the VPC CNI assigns prefixes, an a1.medium has addresses for more than 8 pods."""
    spec = 'role: nodes\n  kubelet: {maxPods: "max_pods - 10"}'
    path = write("cluster.yaml", CLUSTER.replace("role: nodes", spec))
    monkeypatch.setenv("JOINERY_SETTINGS", "PrefixDelegation=true")
    assert "a1.medium" not in run("plan", *OPTIONS, path).err


def test_an_empty_label_is_shown_in_a_reason(run: Run, write: Write) -> None:
    """As the empty text that it is, not as no value at all."""
    path = write("cluster.yaml", CLUSTER.replace("{team: web}", '{worker: ""}'))
    pod = write("pod.json", pod_document(nodeSelector={"worker": "yes"}))
    reasons = run("plan", *OPTIONS, path, pod, "-o", "json").document["unschedulable"][0]["reasons"]
    assert reasons == ['NodePool default: the pod wants worker In [yes], the NodePool has worker In [""]']


@pytest.mark.parametrize("command", ["plan", "catalog"])
def test_prices_of_windows_lack_its_licence(command: str, run: Run, write: Write) -> None:
    """The catalogue has those of Linux, and a plan that calls them the cheapest must not hide it."""
    windows = write("windows.yaml", CLUSTER.replace("al2023@latest", "windows2022@latest"))
    said = "EC2NodeClass default: its prices are Linux's; AWS adds the licence of Windows"
    assert said in run(command, "-f", windows).err
    assert said not in run(command, "-f", write("linux.yaml", CLUSTER)).err
