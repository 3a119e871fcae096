"""User data: what a new machine runs to become a node (Karpenter for AWS, amifamily/bootstrap).

It tells the node where its cluster is, which labels and taints it has and how many pods it takes. The unregistered
taint is always among the taints: no pod may land on the node before Joinery has registered it.
"""

import base64
import gzip
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email import message_from_string
from email.message import Message
from typing import Any

from joinery.gateways.ec2.launch import bottlerocket
from joinery.gateways.ec2.launch.facts import ClusterFacts
from joinery.gateways.ec2.nodeclass.readiness import Unmet
from joinery.objects.errors import ConfigurationError, UnavailableError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import LAUNCHABLE, EC2NodeClassSpec, KubeletConfiguration
from joinery.objects.karpenter.meta import Taint

#: What EC2 takes as user data, before base64.
MOST_BYTES = 16 * 1024
NODE_CONFIG, SHELL = "application/node.eks.aws", 'text/x-shellscript; charset="us-ascii"'
_UNREGISTERED = Taint(key=labels.UNREGISTERED_TAINT, effect=labels.NO_EXECUTE)
# The API server's node admission refuses labels of these domains when a kubelet sets them.
_NOT_KUBELETS = ("kubernetes.io", "k8s.io", "node-restriction.kubernetes.io")
_OWN_HEADERS = ("content-type", "content-transfer-encoding", "mime-version")
_YAML_KEY = re.compile(r"[\w.-]+:(\s|$)")


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """What a node's user data say in addition to its class's spec. ``labels``: those that a kubelet may set."""

    facts: ClusterFacts
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    max_pods: int


def bootstrap(
    facts: ClusterFacts, *, labelled: Mapping[str, str], taints: Iterable[Taint], capacity_type: str, max_pods: int
) -> Bootstrap:
    """What user data say: these labels and taints and ours, without labels that a kubelet may not set."""
    ours = {labels.CAPACITY_TYPE: capacity_type, labels.DO_NOT_SYNC_TAINTS: "true"}
    allowed = {key: value for key, value in sorted({**labelled, **ours}.items()) if _may_set(key)}
    given = tuple(taints)
    if not any((t.key, t.effect) == (_UNREGISTERED.key, _UNREGISTERED.effect) for t in given):
        given = (*given, _UNREGISTERED)
    return Bootstrap(facts=facts, labels=allowed, taints=given, max_pods=max_pods)


def _may_set(key: str) -> bool:
    """Whether a kubelet may set the label on its own Node. The others are set at registration."""
    domain = key.rpartition("/")[0]
    return not any(domain == theirs or domain.endswith(f".{theirs}") for theirs in _NOT_KUBELETS)


class UserDataSizeError(ConfigurationError):
    """User data that EC2 does not take, because they are too long."""


def user_data(spec: EC2NodeClassSpec, boot: Bootstrap) -> str:
    """The user data of a class's nodes, base64.

    Raises ``ConfigurationError`` for an unsupported family, and for what cannot be read or is too long.
    """
    written = _text(spec, boot).encode()
    if len(written) > MOST_BYTES:
        written = _compressed(spec, written)
    return base64.b64encode(written).decode()


def _compressed(spec: EC2NodeClassSpec, written: bytes) -> bytes:
    """cloud-init, nodeadm and Bottlerocket all read gzip. Without a time the same text is the same template.

    What a user's own image reads is not known.
    """
    if spec.family == "Custom":
        raise UserDataSizeError(f"spec.userData: {len(written)} bytes; EC2 takes {MOST_BYTES}")
    compressed = gzip.compress(written, mtime=0)
    if len(compressed) > MOST_BYTES:
        sizes = f"{len(written) >> 10} KiB with what Joinery adds, {len(compressed) >> 10} KiB compressed"
        raise UserDataSizeError(f"spec.userData: {sizes}; EC2 takes {MOST_BYTES >> 10}")
    return compressed


#: A cluster about which the least is said: what no node of it could boot, none of any cluster could.
_ANY_CLUSTER = ClusterFacts(name="-", endpoint="", ca="", service_cidr="10.100.0.0/16", version="")


def user_data_problem(spec: EC2NodeClassSpec) -> Unmet | None:
    """Why no node could boot with the class's user data, as far as the class alone tells; None for unsupported
    families, of which that is said elsewhere.
    """
    if spec.family not in LAUNCHABLE:
        return None
    try:
        user_data(spec, bootstrap(_ANY_CLUSTER, labelled={}, taints=(), capacity_type="", max_pods=0))
    except UserDataSizeError as error:
        return Unmet("UserDataSizeLimitExceeded", str(error))
    except ConfigurationError as error:
        return Unmet("InvalidUserData", str(error))
    return None


def _text(spec: EC2NodeClassSpec, boot: Bootstrap) -> str:
    own = spec.user_data or ""
    match spec.family:
        case "AL2023":
            return _archive([*_parts(own), (NODE_CONFIG, _node_config(spec, boot))])
        case "AL2":
            return _archive([*_parts(own), (SHELL, _bootstrap_script(spec, boot))])
        case "Bottlerocket":
            return bottlerocket.settings(
                own, spec, facts=boot.facts, labels=boot.labels, taints=boot.taints, max_pods=boot.max_pods
            )
        case "Custom":
            return own
    raise ConfigurationError(f"amiFamily {spec.family} is not supported yet")


# --- MIME ---


def _archive(parts: Iterable[tuple[str, str]]) -> str:
    """A MIME document of these parts, each a content type (with the lines of other headers below it) and a body.

    The caller puts ours last, because later ones win in nodeadm.
    """
    lines = ["MIME-Version: 1.0", 'Content-Type: multipart/mixed; boundary="//"', ""]
    for kind, body in parts:
        lines += ["--//", f"Content-Type: {kind}", "", body]
    return "\n".join([*lines, "--//--", ""])


def _parts(own: str) -> list[tuple[str, str]]:
    """The user's own user data as parts: those of a MIME document, or else one part whose type is guessed from its
    text.
    """
    if not own.strip():
        return []
    if own.lstrip().startswith(("MIME-Version:", "Content-Type:")):
        archive = message_from_string(own.lstrip())
        if not archive.is_multipart():
            raise ConfigurationError("spec.userData: a MIME document must be multipart")
        parts = (part for part in archive.walk() if not part.is_multipart())
        # After the last boundary there is nothing, whether or not it says that it is the last.
        return [(_headers(part), body) for part in parts if (body := _body(part)).strip()]
    return [(NODE_CONFIG if _is_mapping(own) else SHELL, own)]


def _headers(part: Message) -> str:
    """Its content type, and below it what else cloud-init may look at. How its body was encoded no longer holds."""
    others = (f"{name}: {value}" for name, value in part.items() if name.lower() not in _OWN_HEADERS)
    return "\n".join((str(part["Content-Type"] or SHELL), *others))


def _body(part: Message) -> str:
    body = str(part.get_payload())
    if str(part["Content-Transfer-Encoding"]).strip().lower() not in ("base64", "quoted-printable"):
        return body
    try:
        return bytes(part.get_payload(decode=True)).decode()
    except UnicodeDecodeError:
        raise ConfigurationError("spec.userData: a part of the MIME document is not text") from None


def _is_mapping(own: str) -> bool:
    """Whether it is a YAML mapping, as a NodeConfig is, and no script: its first line that is no comment is a key."""
    if own.lstrip().startswith("{"):
        try:
            return isinstance(json.loads(own), dict)
        except ValueError:
            return False
    lines = (line.strip() for line in own.splitlines())
    said = (line for line in lines if line and not line.startswith(("#", "---")))
    return not own.startswith("#!") and bool(_YAML_KEY.match(next(said, "")))


# --- AL2023 ---


def _node_config(spec: EC2NodeClassSpec, boot: Bootstrap) -> str:
    facts, node_labels = boot.facts, _labels(boot)
    if not facts.service_cidr:
        # nodeadm does not start a kubelet without it.
        lacks = "the answer has no cluster.kubernetesNetworkConfig.serviceIpv4Cidr"
        raise UnavailableError(f"EKS DescribeCluster {facts.name}: {lacks}")
    kubelet: dict[str, Any] = {"config": _kubelet_config(spec.kubelet, boot)}
    if node_labels:
        kubelet["flags"] = [f'--node-labels="{node_labels}"']
    document: dict[str, Any] = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": facts.name,
                "apiServerEndpoint": facts.endpoint,
                "certificateAuthority": facts.ca,
                "cidr": facts.service_cidr,
            },
            "kubelet": kubelet,
        },
    }
    if spec.instance_store_policy == "RAID0":
        document["spec"]["instance"] = {"localStorage": {"strategy": "RAID0"}}
    # JSON is YAML too, and the Lambda layer has no library that writes YAML.
    return "# Generated by Joinery\n" + json.dumps(document, indent=2)


def _kubelet_config(kubelet: KubeletConfiguration | None, boot: Bootstrap) -> dict[str, Any]:
    given = kubelet.model_dump(by_alias=True, exclude_none=True) if kubelet else {}
    taints = [{"key": t.key, "effect": t.effect} | ({"value": t.value} if t.value else {}) for t in boot.taints]
    config = {key: value for key, value in given.items() if value not in ({}, [])}
    return config | {"maxPods": boot.max_pods, "registerWithTaints": taints}


def _labels(boot: Bootstrap) -> str:
    return ",".join(f"{key}={value}" for key, value in boot.labels.items())


# --- AL2 ---


def _bootstrap_script(spec: EC2NodeClassSpec, boot: Bootstrap) -> str:
    facts, kubelet = boot.facts, spec.kubelet or KubeletConfiguration()
    dns = kubelet.cluster_dns[0] if kubelet.cluster_dns else facts.dns
    command = [
        f"/etc/eks/bootstrap.sh '{facts.name}' --apiserver-endpoint '{facts.endpoint}' --b64-cluster-ca '{facts.ca}'",
        *(["--ip-family ipv6"] if facts.ipv6 else []),
        *([f"--dns-cluster-ip '{dns}'"] if dns else []),
        "--use-max-pods false",
        f"--kubelet-extra-args '{' '.join(_kubelet_arguments(kubelet, boot))}'",
        *(["--local-disks raid0"] if spec.instance_store_policy == "RAID0" else []),
    ]
    log = "exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1"
    return f"#!/bin/bash -xe\n{log}\n" + " \\\n".join(command)


def _kubelet_arguments(kubelet: KubeletConfiguration, boot: Bootstrap) -> Iterable[str]:
    if boot.labels:
        yield f'--node-labels="{_labels(boot)}"'
    yield f'--register-with-taints="{",".join(f"{t.key}={t.value}:{t.effect}" for t in boot.taints)}"'
    yield f"--max-pods={boot.max_pods}"
    for flag, value in (
        ("pods-per-core", kubelet.pods_per_core),
        ("system-reserved", _pairs(kubelet.system_reserved, "=")),
        ("kube-reserved", _pairs(kubelet.kube_reserved, "=")),
        ("eviction-hard", _pairs(kubelet.eviction_hard, "<")),
        ("eviction-soft", _pairs(kubelet.eviction_soft, "<")),
        ("eviction-soft-grace-period", _pairs(kubelet.eviction_soft_grace_period, "=")),
        ("eviction-max-pod-grace-period", kubelet.eviction_max_pod_grace_period),
        ("image-gc-high-threshold", kubelet.image_gc_high_threshold_percent),
        ("image-gc-low-threshold", kubelet.image_gc_low_threshold_percent),
        ("cpu-cfs-quota", None if kubelet.cpu_cfs_quota is None else str(kubelet.cpu_cfs_quota).lower()),
    ):
        if value not in (None, ""):
            yield f"--{flag}={value}"


def _pairs(values: Mapping[str, str], sign: str) -> str:
    return f'"{",".join(f"{key}{sign}{values[key]}" for key in sorted(values))}"' if values else ""
