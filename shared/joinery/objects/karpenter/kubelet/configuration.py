"""The kubelet settings that Joinery understands: they decide pod density and what pods may use of a node.

All others are kept as the user wrote them, and passed on to nodes whose image takes them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from joinery.objects.karpenter.kubelet.settings import SHAPES, is_duration, is_quantity

_PERCENTAGE = re.compile(r"([0-9]{1,2}(\.[0-9]+)?|100(\.0+)?)%")


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletConfiguration:
    """The settings of a class that are literal values and not expressions.

    ``system_reserved``, ``kube_reserved``: quantities, by resource. ``eviction_hard``, ``eviction_soft``: a quantity or
    a percentage of what must be or should be free, by signal. ``eviction_max_pod_grace_period``: seconds.
    """

    cluster_dns: tuple[str, ...] = ()
    max_pods: int | None = None
    pods_per_core: int | None = None
    system_reserved: Mapping[str, str] = field(default_factory=dict)
    kube_reserved: Mapping[str, str] = field(default_factory=dict)
    eviction_hard: Mapping[str, str] = field(default_factory=dict)
    eviction_soft: Mapping[str, str] = field(default_factory=dict)
    eviction_soft_grace_period: Mapping[str, str] = field(default_factory=dict)
    eviction_max_pod_grace_period: int | None = None
    image_gc_high_threshold_percent: int | None = None
    image_gc_low_threshold_percent: int | None = None
    cpu_cfs_quota: bool | None = None


#: The kubelet's names of these settings, by ours.
KUBELET_NAMES = {
    "cluster_dns": "clusterDNS",
    "max_pods": "maxPods",
    "pods_per_core": "podsPerCore",
    "system_reserved": "systemReserved",
    "kube_reserved": "kubeReserved",
    "eviction_hard": "evictionHard",
    "eviction_soft": "evictionSoft",
    "eviction_soft_grace_period": "evictionSoftGracePeriod",
    "eviction_max_pod_grace_period": "evictionMaxPodGracePeriod",
    "image_gc_high_threshold_percent": "imageGCHighThresholdPercent",
    "image_gc_low_threshold_percent": "imageGCLowThresholdPercent",
    "cpu_cfs_quota": "cpuCFSQuota",
}


def understood(given: Mapping[str, Any]) -> KubeletConfiguration:
    """The literal values among the settings that Joinery understands. What is left out is an expression, or makes the
    class unusable, and ``checks`` says why.
    """
    found = {name: _literal(theirs, given.get(theirs)) for name, theirs in KUBELET_NAMES.items()}
    return KubeletConfiguration(**{name: value for name, value in found.items() if value is not None})


def _literal(name: str, value: object) -> Any:
    match SHAPES[name]:
        case "bool":
            return value if isinstance(value, bool) else None
        case "pods" | "int32":
            return value if isinstance(value, int) and not isinstance(value, bool) else None
        case "[text]":
            return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else None
    texts = {key: str(item) for key, item in value.items()} if isinstance(value, Mapping) else {}
    return {key: text for key, text in texts.items() if _IS_LITERAL[name](text)}


def is_threshold(text: str) -> bool:
    """Whether it is a percentage or an amount."""
    return bool(_PERCENTAGE.fullmatch(text)) or is_quantity(text)


_IS_LITERAL: Mapping[str, Callable[[str], bool]] = {
    "systemReserved": is_quantity,
    "kubeReserved": is_quantity,
    "evictionHard": is_threshold,
    "evictionSoft": is_threshold,
    "evictionSoftGracePeriod": is_duration,
}
