"""User data: what a new machine runs to become a node (Karpenter for AWS, amifamily/bootstrap).

It tells the node where its cluster is, which labels and taints it has and how many pods it takes. Whatever a class or a
NodePool says stays what it is: a text, and neither a command nor another part of the document.
"""

import base64
import gzip
import json
import re
from collections.abc import Mapping
from typing import Any

from joinery.gateways.ec2.launch import bottlerocket, scripts
from joinery.gateways.ec2.launch.bootstrap import Bootstrap, bootstrap
from joinery.gateways.ec2.launch.facts import ClusterFacts
from joinery.gateways.ec2.launch.mime import NODE_CONFIG, SHELL, archive, parts_of
from joinery.gateways.ec2.nodeclass.readiness import Unmet
from joinery.objects.errors import ConfigurationError, UnavailableError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClassSpec
from joinery.objects.karpenter.kubelet.configuration import understood
from joinery.objects.karpenter.kubelet.settings import SHAPES

#: What EC2 takes as user data, before base64.
MOST_BYTES = 16 * 1024
_UNPRINTED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class UserDataSizeError(ConfigurationError):
    """User data that EC2 does not take, because they are too long."""


def user_data(spec: EC2NodeClassSpec, boot: Bootstrap) -> str:
    """The user data of a class's nodes, base64.

    Raises ``ConfigurationError`` for what cannot be read, is too long or that nodes of the family cannot be told.
    """
    try:
        written = _text(spec, boot).encode()
    except (RecursionError, ValueError) as error:
        raise ConfigurationError(f"spec.userData cannot be read: {error}") from error
    if len(written) > MOST_BYTES:
        written = _compressed(spec, written)
    return base64.b64encode(written).decode()


def _compressed(spec: EC2NodeClassSpec, written: bytes) -> bytes:
    """cloud-init, nodeadm and Bottlerocket all read gzip. Without a time the same text is the same template.

    What a user's own image reads is not known, and not all that start Windows do (EC2 User Guide, "Configure the
    launch agent").
    """
    if spec.family == "Custom" or spec.is_windows:
        raise UserDataSizeError(f"spec.userData: {len(written)} bytes; EC2 takes {MOST_BYTES}")
    compressed = gzip.compress(written, mtime=0)
    if len(compressed) > MOST_BYTES:
        sizes = f"{len(written) >> 10} KiB with what Joinery adds, {len(compressed) >> 10} KiB compressed"
        raise UserDataSizeError(f"spec.userData: {sizes}; EC2 takes {MOST_BYTES >> 10}")
    return compressed


#: A cluster about which the least is said: what no node of it could boot, none of any cluster could.
_ANY_CLUSTER = ClusterFacts(name="-", endpoint="", ca="", service_cidr="10.100.0.0/16", version="")


def user_data_problem(spec: EC2NodeClassSpec) -> Unmet | None:
    """Why no node could boot with the class's user data, as far as the class alone tells."""
    try:
        user_data(spec, bootstrap(_ANY_CLUSTER, labelled={}, taints=(), capacity_type="", max_pods=0))
    except UserDataSizeError as error:
        return Unmet("UserDataSizeLimitExceeded", str(error))
    except ConfigurationError as error:
        return Unmet("InvalidUserData", str(error))
    return None


def _text(spec: EC2NodeClassSpec, boot: Bootstrap) -> str:
    own, kubelet = spec.user_data or "", {**spec.kubelet, **boot.reserved}
    match spec.family:
        case "AL2023":
            return archive([*parts_of(own), (NODE_CONFIG, _node_config(spec, kubelet, boot))])
        case "AL2":
            return archive([*parts_of(own), (SHELL, scripts.of_al2(spec, understood(kubelet), boot))])
        case "Bottlerocket":
            return bottlerocket.settings(own, spec, understood(kubelet), boot)
        case "Custom":
            return own
    return scripts.of_windows(own, understood(kubelet), boot)


def _node_config(spec: EC2NodeClassSpec, settings: Mapping[str, Any], boot: Bootstrap) -> str:
    facts, node_labels = boot.facts, boot.node_labels
    if not facts.service_cidr:
        # nodeadm does not start a kubelet without it.
        lacks = "the answer has no cluster.kubernetesNetworkConfig.serviceIpv4Cidr"
        raise UnavailableError(f"EKS DescribeCluster {facts.name}: {lacks}")
    # A flag wins over the configuration, and of two the last. nodeadm has those of the user's own NodeConfig and then
    # ours: without them a flag of the user's, for a taint of a CNI say, takes the place of the NodePool's taints.
    flags = [f"--max-pods={boot.max_pods}", f'--register-with-taints="{boot.node_taints}"']
    if node_labels:
        flags.append(f'--node-labels="{node_labels}"')
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
            "kubelet": {"config": _kubelet_config(settings, boot), "flags": flags},
        },
    }
    if spec.instance_store_policy == "RAID0":
        document["spec"]["instance"] = {"localStorage": {"strategy": "RAID0"}}
    return f"# Generated by Joinery\n{_yaml(document)}"


def _yaml(document: dict[str, Any]) -> str:
    """JSON, which is YAML too but for what is not printed: the Lambda layer has no library that writes YAML.

    YAML has no pairs of surrogates, so that only JSON without them is (YAML 1.2.2, 5.1 and 5.7).
    """
    return _UNPRINTED.sub(lambda it: f"\\u{ord(it[0]):04x}", json.dumps(document, indent=2, ensure_ascii=False))


def _kubelet_config(given: Mapping[str, Any], boot: Bootstrap) -> dict[str, Any]:
    taints = [{"key": t.key, "effect": t.effect} | ({"value": t.value} if t.value else {}) for t in boot.taints]
    config = {key: _as_kubelet_reads(key, value) for key, value in given.items() if value not in (None, {}, [])}
    return config | {"maxPods": boot.max_pods, "registerWithTaints": taints}


def _as_kubelet_reads(name: str, value: Any) -> Any:
    """Amounts are texts to it, and may be numbers in a class."""
    if SHAPES.get(name) == "{amount}" and isinstance(value, Mapping):
        return {key: str(item) for key, item in value.items()}
    return value
