"""What a node is told of itself and of its cluster, whatever its AMI family (Karpenter for AWS, amifamily/bootstrap).

The unregistered taint is always among the taints: no pod may land on the node before Joinery has registered it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from joinery.gateways.ec2.launch.facts import ClusterFacts
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.meta import TAINT_VALUE, Taint, is_label_key, is_label_value

_UNREGISTERED = Taint(key=labels.UNREGISTERED_TAINT, effect=labels.NO_EXECUTE)
# The API server's node admission refuses labels of these domains when a kubelet sets them.
_NOT_KUBELETS = ("kubernetes.io", "k8s.io", "node-restriction.kubernetes.io")
_TAINT_VALUE = re.compile(TAINT_VALUE)


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """What a node's user data say in addition to its class's spec.

    ``labels``: those that a kubelet may set. ``reserved``: ``kubeReserved`` and ``systemReserved`` of nodes of this
    type, where the class has expressions. ``image_name``: empty where nobody knows.
    """

    facts: ClusterFacts
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    max_pods: int
    reserved: Mapping[str, Mapping[str, str]]
    image_name: str = ""

    @property
    def node_labels(self) -> str:
        """The labels as kubelet's flag of that name has them."""
        return ",".join(f"{key}={value}" for key, value in self.labels.items())

    @property
    def node_taints(self) -> str:
        """The taints as kubelet's flag of that name has them."""
        return ",".join(f"{taint.key}={taint.value}:{taint.effect}" for taint in self.taints)


def bootstrap(
    facts: ClusterFacts,
    *,
    labelled: Mapping[str, str],
    taints: Iterable[Taint],
    capacity_type: str,
    max_pods: int,
    reserved: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    image_name: str = "",
) -> Bootstrap:
    """What user data say: these labels and taints and ours, without labels that a kubelet may not set.

    Raises ``ConfigurationError`` for what is no label or taint: in a kubelet's flag it might be several.
    """
    ours = {labels.CAPACITY_TYPE: capacity_type, labels.DO_NOT_SYNC_TAINTS: "true"}
    allowed = {key: value for key, value in sorted({**labelled, **ours}.items()) if _may_set(key)}
    given = tuple(taints)
    if not any((t.key, t.effect) == (_UNREGISTERED.key, _UNREGISTERED.effect) for t in given):
        given = (*given, _UNREGISTERED)
    for key, value in allowed.items():
        if not (is_label_key(key) and is_label_value(value)):
            raise ConfigurationError(f"metadata.labels[{key}]: {value!r} is no label of a node")
    for taint in given:
        if not (is_label_key(taint.key) and (not taint.value or _TAINT_VALUE.fullmatch(taint.value))):
            raise ConfigurationError(f"spec.taints[{taint.key}]: {taint.value!r} is no taint of a node")
    return Bootstrap(
        facts=facts, labels=allowed, taints=given, max_pods=max_pods, reserved=reserved, image_name=image_name
    )


def _may_set(key: str) -> bool:
    """Whether a kubelet may set the label on its own Node. The others are set at registration."""
    domain = key.rpartition("/")[0]
    return not any(domain == theirs or domain.endswith(f".{theirs}") for theirs in _NOT_KUBELETS)
