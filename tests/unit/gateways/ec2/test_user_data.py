"""What a new machine is told, family by family."""

import base64
import gzip
import hashlib
import json
import tomllib
from dataclasses import replace
from email import message_from_string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.gateways.ec2.launch.bootstrap import Bootstrap, bootstrap
from joinery.gateways.ec2.launch.facts import ClusterFacts, cluster_facts
from joinery.gateways.ec2.launch.userdata import user_data, user_data_problem
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec
from joinery.objects.karpenter.meta import Taint

FACTS = ClusterFacts(name="demo", endpoint="https://demo.eks", ca="Q0E=", service_cidr="172.20.0.0/16", version="1.33")
LABELS = {
    "team": "a",
    "karpenter.sh/nodepool": "general",
    "kubernetes.io/os": "linux",
    "node-restriction.kubernetes.io/x": "y",
    "topology.k8s.aws/zone-id": "use1-az1",
}
TAINT = Taint(key="gpu", value="true", effect="NoSchedule")

ARCHIVE = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\n"
SCRIPT = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash -xe
exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
/etc/eks/bootstrap.sh 'demo' --apiserver-endpoint 'https://demo.eks' --b64-cluster-ca 'Q0E=' \\
--dns-cluster-ip '10.100.0.10' \\
--use-max-pods false \\
--kubelet-extra-args '--node-labels="karpenter.sh/capacity-type=spot,karpenter.sh/do-not-sync-taints=true,\
karpenter.sh/nodepool=general,team=a,topology.k8s.aws/zone-id=use1-az1" \
--register-with-taints="gpu=true:NoSchedule,karpenter.sh/unregistered=:NoExecute" --max-pods=29 \
--kube-reserved="cpu=100m,memory=1Gi" --eviction-hard="memory.available<5%" --cpu-cfs-quota=false' \\
--local-disks raid0
--//--
"""


WINDOWS = """\
<powershell>
mkdir C:\\temp
[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1"
& $EKSBootstrapScriptFile -EKSClusterName 'demo' -APIServerEndpoint 'https://demo.eks' -Base64ClusterCA 'Q0E=' \
-KubeletExtraArgs '--node-labels="karpenter.sh/capacity-type=spot,karpenter.sh/do-not-sync-taints=true,\
karpenter.sh/nodepool=general,team=a,topology.k8s.aws/zone-id=use1-az1" \
--register-with-taints="gpu=true:NoSchedule,karpenter.sh/unregistered=:NoExecute" --max-pods=29 \
--kube-reserved="memory=1Gi"' -DNSClusterIP '10.9.9.9' -ServiceCIDR '172.20.0.0/16'
</powershell>"""


def spec(family: str = "AL2023", **given: Any) -> EC2NodeClassSpec:
    """A class's spec, fields in their wire names."""
    wire = {
        "subnetSelectorTerms": [{"id": "subnet-1"}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
        "amiSelectorTerms": [{"id": "ami-1"}],
        "amiFamily": family,
        "role": "nodes",
    }
    return EC2NodeClass.model_validate({"metadata": {"name": "default"}, "spec": wire | given}).spec


def of_spot_node(taints: tuple[Taint, ...] = (TAINT,), facts: ClusterFacts = FACTS) -> Bootstrap:
    """The settings that a spot node of 29 pods starts with."""
    return bootstrap(facts, labelled=LABELS, taints=taints, capacity_type="spot", max_pods=29)


def text(of: EC2NodeClassSpec, what: Bootstrap | None = None) -> str:
    """The user data in the clear."""
    return base64.b64decode(user_data(of, what or of_spot_node())).decode()


def parts(of: EC2NodeClassSpec) -> list[tuple[str, str]]:
    """The parts of an archive: content type and body."""
    archive = message_from_string(text(of))
    return [(part.get_content_type(), str(part.get_payload())) for part in archive.walk() if not part.is_multipart()]


def node_config(of: EC2NodeClassSpec) -> dict[str, Any]:
    """The NodeConfig that Joinery adds, which is the last part."""
    kind, body = parts(of)[-1]
    assert kind == "application/node.eks.aws"
    return dict(json.loads(body.partition("\n")[2]))


def test_an_al2023_node_is_told_its_cluster_pods_labels_and_taints() -> None:
    """The whole NodeConfig that nodeadm reads. Of two flags kubelet takes the last, which is ours."""
    names = "karpenter.sh/capacity-type=spot,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=general"
    assert node_config(spec()) == {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": "demo",
                "apiServerEndpoint": "https://demo.eks",
                "certificateAuthority": "Q0E=",
                "cidr": "172.20.0.0/16",
            },
            "kubelet": {
                "config": {
                    "maxPods": 29,
                    "registerWithTaints": [
                        {"key": "gpu", "effect": "NoSchedule", "value": "true"},
                        {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
                    ],
                },
                "flags": [
                    "--max-pods=29",
                    '--register-with-taints="gpu=true:NoSchedule,karpenter.sh/unregistered=:NoExecute"',
                    f'--node-labels="{names},team=a,topology.k8s.aws/zone-id=use1-az1"',
                ],
            },
        },
    }


def test_al2023_is_told_every_setting_of_the_kubelet() -> None:
    """Those that Joinery does not understand are passed on as they are."""
    kubelet = {"registryPullQPS": 20, "cpuManagerPolicy": "static", "featureGates": {"NodeSwap": True}}
    config = node_config(spec(kubelet=kubelet))["spec"]["kubelet"]["config"]
    assert {key: config[key] for key in kubelet} == kubelet


def test_kubelet_settings_are_passed_only_if_the_user_made_them() -> None:
    """What Joinery assumes for its own arithmetic is not written: the image's own defaults apply on the node."""
    kubelet = {"clusterDNS": ["10.0.0.10"], "kubeReserved": {"cpu": "100m"}, "maxPods": 10, "cpuCFSQuota": False}
    config = node_config(spec(kubelet=kubelet))["spec"]["kubelet"]["config"]
    assert config["clusterDNS"] == ["10.0.0.10"]
    assert config["kubeReserved"] == {"cpu": "100m"}
    assert config["cpuCFSQuota"] is False
    assert config["maxPods"] == 29
    assert "systemReserved" not in config


def test_local_disks_become_one() -> None:
    """RAID0 is nodeadm's to make."""
    assert node_config(spec(instanceStorePolicy="RAID0"))["spec"]["instance"] == {"localStorage": {"strategy": "RAID0"}}


@pytest.mark.parametrize(
    ("own", "kind"),
    [
        ("#!/bin/bash\necho: hello", "text/x-shellscript"),
        ("echo hello", "text/x-shellscript"),
        ("# mine\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig", "application/node.eks.aws"),
        ("\n  # mine\n  apiVersion: node.eks.aws/v1alpha1\n  kind: NodeConfig", "application/node.eks.aws"),
        ('{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig"}', "application/node.eks.aws"),
        ('"apiVersion": node.eks.aws/v1alpha1\nkind: NodeConfig', "application/node.eks.aws"),
        ("'apiVersion': node.eks.aws/v1alpha1\nkind: NodeConfig", "application/node.eks.aws"),
        ("{apiVersion: node.eks.aws/v1alpha1, kind: NodeConfig}", "application/node.eks.aws"),
        ("# mine\n{\n  'apiVersion': node.eks.aws/v1alpha1}", "application/node.eks.aws"),
        ("{ echo hello; }", "text/x-shellscript"),
        ('"/opt/say hello" now', "text/x-shellscript"),
        ("#cloud-config\nruncmd: [ls]", "text/cloud-config"),
        ("#include\nhttps://example.com/x", "text/x-include-url"),
    ],
)
def test_the_users_own_data_comes_first(own: str, kind: str) -> None:
    """As a script or as a NodeConfig, by what it looks like; ours comes last, and wins."""
    found = parts(spec(userData=own))
    assert (found[0][0], found[0][1].strip()) == (kind, own.strip())
    assert len(found) == 2


def test_the_users_archive_is_taken_apart_and_put_together_again() -> None:
    """Its parts stay in order, with their types."""
    own = (
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n--B\nContent-Type: '
        "text/x-shellscript\n\n#!/bin/sh\n--B\nContent-Type: text/cloud-config\n\na: b\n--B--\n"
    )
    assert [kind for kind, _ in parts(spec(userData=own))] == [
        "text/x-shellscript",
        "text/cloud-config",
        "application/node.eks.aws",
    ]


@pytest.mark.parametrize("before", ["", "\n", "  \n\n"])
def test_an_archive_may_begin_with_empty_lines(before: str) -> None:
    """As a template language leaves them. Taken for a script, its NodeConfig would be lost."""
    own = f"{before}Content-Type: multipart/mixed; boundary=B\nMIME-Version: 1.0\n\n--B\n\n#!/bin/sh\n--B--\n"
    assert [kind for kind, _ in parts(spec(userData=own))] == ["text/x-shellscript", "application/node.eks.aws"]


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable", "7bit"])
def test_what_the_users_archive_encodes_is_written_in_the_clear(encoding: str) -> None:
    """Python's email package and cloud-init's make-mime write base64. How cloud-init merges a part stays."""
    said = "#!/bin/sh\necho hello w\u00f6rld"
    bodies = {"base64": base64.b64encode(said.encode()).decode(), "quoted-printable": said.replace("\u00f6", "=C3=B6")}
    own = (
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n--B\nContent-Type: text/x-shellscript\n'
        f"MIME-Version: 1.0\nContent-Transfer-Encoding: {encoding}\nMerge-Type: list(append)\n\n"
        f"{bodies.get(encoding, said)}\n--B--\n"
    )
    written = text(spec(userData=own))
    assert said in written
    assert "Merge-Type: list(append)" in written
    assert "Content-Transfer-Encoding" not in written


def test_an_archive_that_cannot_be_written_in_the_clear_is_refused() -> None:
    """A compressed part is none that EC2 or nodeadm could read here."""
    own = (
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/x-shellscript\n"
        "Content-Transfer-Encoding: base64\n\nH4sIAAAAAAAA/w==\n--B--\n"
    )
    with pytest.raises(ConfigurationError, match="spec.userData: a part of the MIME document is not text"):
        user_data(spec(userData=own), of_spot_node())


@pytest.mark.parametrize("family", ["AL2023", "AL2", "Bottlerocket"])
def test_user_data_that_is_too_long_for_ec2_is_compressed(family: str) -> None:
    """EC2 takes 16 KiB. cloud-init, nodeadm and Bottlerocket all read gzip; the same text gives the same template."""
    long = spec(family, userData=f"[settings]\nmotd = '{'hello ' * 4000}'")
    compressed = user_data(long, of_spot_node())
    assert b"hello hello" in gzip.decompress(base64.b64decode(compressed))
    assert compressed == user_data(long, of_spot_node())


def test_user_data_that_is_too_long_even_then_is_refused() -> None:
    """The message names the field and the limit."""
    noise = "\n".join(hashlib.sha256(str(number).encode()).hexdigest() for number in range(1000))
    with pytest.raises(
        ConfigurationError, match="spec.userData: 64 KiB with what Joinery adds, 37 KiB compressed; EC2 takes 16"
    ):
        user_data(spec(userData=f"#!/bin/sh\n: {noise}"), of_spot_node())


@pytest.mark.parametrize(
    ("family", "own", "reason"),
    [
        ("AL2023", "#!/bin/sh\necho hello\n", None),
        ("AL2023", "Content-Type: text/plain\n\nhello", "InvalidUserData"),
        ("Bottlerocket", "[", "InvalidUserData"),
        ("Bottlerocket", "settings = 1", "InvalidUserData"),
        ("Bottlerocket", '[settings]\nkubernetes = "x"', "InvalidUserData"),
        ("Bottlerocket", '[settings.kubernetes]\nnode-labels = "x"', "InvalidUserData"),
        ("Bottlerocket", "[settings.kubernetes.node-labels]\nx = 1", "InvalidUserData"),
        ("Bottlerocket", "[settings]\nautoscaling = 3", "InvalidUserData"),
        ("Bottlerocket", f"a = {'[' * 9999}", "InvalidUserData"),
        ("Bottlerocket", f"a = {'9' * 5000}", "InvalidUserData"),
        ("AL2023", "MIME-Version: 1.0\nContent-Type: multipart/mixed", "InvalidUserData"),
        ("AL2023", f"{ARCHIVE}Content-Type: multipart/mixed; boundary=//\n\nx\n--B--", "InvalidUserData"),
        ("Bottlerocket", "", None),
        ("Custom", "x" * 16384, None),
        ("Custom", "x" * 16385, "UserDataSizeLimitExceeded"),
        ("AL2", "".join(hashlib.sha256(str(n).encode()).hexdigest() for n in range(1000)), "UserDataSizeLimitExceeded"),
        ("Windows2022", "", None),
        ("Windows2025", "New-Item -Path 'C:\\temp' -ItemType Directory", None),
        ("Windows2019", "<powershell>ls</powershell>", "InvalidUserData"),
        ("Windows2019", "ls\n</PowerShell>", "InvalidUserData"),
        ("Windows2022", "#" * 16384, "UserDataSizeLimitExceeded"),
    ],
)
def test_what_no_node_could_boot_is_known_before_one_is_launched(family: str, own: str, reason: str | None) -> None:
    """The class says it in a condition."""
    problem = user_data_problem(spec(family, userData=own))
    assert (problem.reason if problem else None) == reason


@pytest.mark.parametrize("end", ["--//", "--//\n", "--//--", "--//--\n", ""])
def test_an_archive_has_the_parts_that_say_something(end: str) -> None:
    """Many end with one more boundary, which opens nothing: cloud-init would run an empty script, and fail."""
    own = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n--//\n\n#!/bin/sh\n{end}'
    assert [kind for kind, _ in parts(spec(userData=own))] == ["text/x-shellscript", "application/node.eks.aws"]


def test_an_archive_of_one_part_is_refused() -> None:
    """The message names the field."""
    with pytest.raises(ConfigurationError, match="spec.userData: a MIME document must be multipart"):
        user_data(spec(userData="Content-Type: text/plain\n\nhello"), of_spot_node())


def test_an_al2_node_runs_the_bootstrap_script() -> None:
    """The whole archive, byte for byte."""
    kubelet = {
        "clusterDNS": ["10.100.0.10"],
        "kubeReserved": {"memory": "1Gi", "cpu": "100m"},
        "evictionHard": {"memory.available": "5%"},
        "cpuCFSQuota": False,
    }
    assert text(spec("AL2", kubelet=kubelet, instanceStorePolicy="RAID0")) == SCRIPT


def test_a_bottlerocket_node_gets_settings_over_the_users_own() -> None:
    """Ours win where both say something; the rest of the user's stays."""
    own = (
        "[settings.kubernetes]\nmax-pods = 5\nlog-level = 3\n[settings.kubernetes.node-labels]\nmine = "
        '"1"\n[settings.host-containers.admin]\nenabled = true\n'
    )
    found = tomllib.loads(text(spec("Bottlerocket", userData=own, kubelet={"imageGCHighThresholdPercent": 80})))
    kubernetes = found["settings"]["kubernetes"]
    assert found["settings"]["host-containers"] == {"admin": {"enabled": True}}
    assert (kubernetes["max-pods"], kubernetes["log-level"]) == (29, 3)
    assert kubernetes["image-gc-high-threshold-percent"] == "80"
    assert kubernetes["node-labels"]["mine"] == "1"
    assert kubernetes["node-labels"]["team"] == "a"
    assert kubernetes["node-taints"] == {"gpu": ["true:NoSchedule"], "karpenter.sh/unregistered": [":NoExecute"]}
    assert kubernetes["cluster-certificate"] == "Q0E="


def test_bottlerocket_does_not_wait_for_an_auto_scaling_group() -> None:
    """Joinery's nodes are in none, and kubelet would never start. Nothing is said where the user says nothing."""
    own = "[settings.autoscaling]\nshould-wait = true\n"
    settings = tomllib.loads(text(spec("Bottlerocket", userData=own)))["settings"]
    assert settings["autoscaling"] == {"should-wait": False}
    assert "autoscaling" not in tomllib.loads(text(spec("Bottlerocket")))["settings"]


@pytest.mark.parametrize(("cidr", "address"), [("192.168.0.0/20", "192.168.0.10"), ("fd00:1::/108", "fd00:1::a")])
def test_nodes_are_told_the_clusters_dns_server(cidr: str, address: str) -> None:
    """AL2 would guess it by the VPC, wrong where the services have addresses of the user's choice, and cannot for IPv6.
    Bottlerocket would have to ask EKS.
    """
    facts = replace(FACTS, service_cidr=cidr, ipv6=":" in cidr)
    assert f"--dns-cluster-ip '{address}'" in text(spec("AL2"), of_spot_node(facts=facts))
    found = tomllib.loads(text(spec("Bottlerocket"), of_spot_node(facts=facts)))
    assert found["settings"]["kubernetes"]["cluster-dns-ip"] == address


def test_a_dns_server_that_the_user_names_stays() -> None:
    """In the class, or in Bottlerocket's own settings."""
    assert "--dns-cluster-ip '10.9.9.9'" in text(spec("AL2", kubelet={"clusterDNS": ["10.9.9.9"]}))
    own = '[settings.kubernetes]\ncluster-dns-ip = "10.9.9.9"\n'
    found = tomllib.loads(text(spec("Bottlerocket", userData=own)))
    assert found["settings"]["kubernetes"]["cluster-dns-ip"] == "10.9.9.9"


def test_without_service_addresses_nodes_find_their_dns_server_themselves() -> None:
    """As EKS does not always say them, and not every cluster is one of EKS."""
    facts = replace(FACTS, service_cidr="")
    assert "--dns-cluster-ip" not in text(spec("AL2"), of_spot_node(facts=facts))
    assert (
        "cluster-dns-ip"
        not in tomllib.loads(text(spec("Bottlerocket"), of_spot_node(facts=facts)))["settings"]["kubernetes"]
    )


@pytest.mark.parametrize(("given", "written"), [(["10.0.0.10"], "10.0.0.10"), (["10.0.0.10", "fd00::a"],) * 2])
def test_bottlerocket_is_told_every_dns_server(given: list[str], written: object) -> None:
    """One as a string, which all versions understand."""
    found = tomllib.loads(text(spec("Bottlerocket", kubelet={"clusterDNS": given})))
    assert found["settings"]["kubernetes"]["cluster-dns-ip"] == written


@pytest.mark.parametrize(
    ("image", "are_named"),
    [
        ("bottlerocket-aws-k8s-1.33-x86_64-v1.45.2-431fe75a", True),
        ("bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-431fe75a", False),
        ("bottlerocket-aws-k8s-1.33-nvidia-aarch64-v2.0.0-431fe75a", False),
        ("mine", True),
        ("", True),
    ],
)
def test_bottlerocket_mounts_local_disks_by_a_bootstrap_command(image: str, are_named: bool) -> None:
    """With the directories named where the image may not know them. From 1.46 on it knows more than are named."""
    boot = replace(of_spot_node(), image_name=image)
    found = tomllib.loads(text(spec("Bottlerocket", instanceStorePolicy="RAID0"), boot))
    command = found["settings"]["bootstrap-commands"]["000-mount-instance-storage"]
    named = ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"] if are_named else []
    assert command["commands"] == [
        ["apiclient", "ephemeral-storage", "init"],
        ["apiclient", "ephemeral-storage", "bind", *named],
    ]
    assert command["mode"] == "always"


@pytest.mark.parametrize(
    ("commands", "ours"),
    [
        ('[["apiclient", "ephemeral-storage", "init"]]', False),
        ('[["apiclient", "ephemeral-storage", "init", "--filesystem", "ext4"]]', False),
        ('[["apiclient", "set", "motd=hello"]]', True),
        ("5", True),
    ],
)
def test_bottlerocket_mounts_local_disks_once(commands: str, ours: bool) -> None:
    """The user's own command does it already, perhaps with another file system: a second one fails, and so the boot.

    https://github.com/kubernetes-sigs/karpenter/issues/2282
    """
    own = f'[settings.bootstrap-commands.mine]\ncommands = {commands}\nmode = "always"\nessential = true'
    found = tomllib.loads(text(spec("Bottlerocket", instanceStorePolicy="RAID0", userData=own)))
    assert ("000-mount-instance-storage" in found["settings"]["bootstrap-commands"]) is ours


def test_settings_that_are_not_toml_are_refused() -> None:
    """The message names the field."""
    with pytest.raises(ConfigurationError, match="spec.userData is not TOML"):
        user_data(spec("Bottlerocket", userData="["), of_spot_node())


def test_a_custom_image_gets_the_users_data_as_it_is() -> None:
    """Nothing is added: the user registers the node."""
    assert text(spec("Custom", userData="#!/bin/sh\n")) == "#!/bin/sh\n"


@pytest.mark.parametrize("family", ["Windows2019", "Windows2022", "Windows2025"])
def test_a_windows_node_runs_the_users_script_and_then_the_bootstrap_script(family: str) -> None:
    """In one block of PowerShell, which is all that is run."""
    kubelet = {"kubeReserved": {"memory": "1Gi"}, "clusterDNS": ["10.9.9.9"]}
    assert text(spec(family, kubelet=kubelet, userData="mkdir C:\\temp")) == WINDOWS


def test_a_cluster_of_ipv6_has_no_windows_nodes() -> None:
    """EKS User Guide, "Deploy Windows nodes on EKS clusters"."""
    with pytest.raises(ConfigurationError, match="EKS has no Windows nodes in clusters of IPv6"):
        user_data(spec("Windows2022"), of_spot_node(facts=replace(FACTS, service_cidr="fd00::/108", ipv6=True)))


def test_the_unregistered_taint_is_there_once() -> None:
    """A caller that adds it itself changes nothing."""
    unregistered = Taint(key="karpenter.sh/unregistered", effect="NoExecute")
    assert of_spot_node(taints=(unregistered,)).taints == of_spot_node(taints=()).taints == (unregistered,)


@pytest.mark.parametrize(
    ("labelled", "taint", "said"),
    [
        ({"team": "a,admin=true"}, ("gpu", "true"), r"metadata.labels\[team\]: 'a,admin=true' is no label of a node"),
        ({"a b": "c"}, ("gpu", "true"), r"metadata.labels\[a b\]"),
        ({}, ("gpu", "true:NoSchedule,x=y"), r"spec.taints\[gpu\]: 'true:NoSchedule,x=y' is no taint of a node"),
    ],
)
def test_what_a_kubelet_would_take_for_several_labels_or_taints_is_refused(
    labelled: dict[str, str], taint: tuple[str, str], said: str
) -> None:
    """An API server refuses most of it; a user's own hands or another controller may still write it into a claim."""
    given = Taint.model_construct(key=taint[0], value=taint[1], effect="NoSchedule")
    with pytest.raises(ConfigurationError, match=said):
        bootstrap(FACTS, labelled=labelled, taints=(given,), capacity_type="spot", max_pods=29)


def test_an_ipv6_cluster_is_recognised() -> None:
    """By EKS's answer; its service addresses are then of that family."""
    network = {"ipFamily": "ipv6", "serviceIpv4Cidr": "10.100.0.0/16", "serviceIpv6Cidr": "fd00::/108"}
    facts = cluster_facts({"name": "demo", "kubernetesNetworkConfig": network})
    assert (facts.ipv6, facts.service_cidr) == (True, "fd00::/108")


_TEXT = st.text(max_size=20)
_TOML = st.recursive(
    st.one_of(st.booleans(), st.integers(-(2**60), 2**60), _TEXT, st.lists(_TEXT, max_size=3)),
    lambda children: st.dictionaries(_TEXT, children, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["motd", "ntp", "kernel", "a b", "ü"]), _TOML, max_size=4))
def test_any_settings_survive_being_written_again(own: dict[str, Any]) -> None:
    """What TOML we write, a TOML parser reads back as what it was."""
    from joinery.gateways.ec2.launch.bottlerocket import _table

    document = {"settings": own}
    assert tomllib.loads("\n".join(_table((), document)) + "\n") == document
