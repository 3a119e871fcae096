"""The kubelet settings that Joinery understands: they decide pod density and what pods may use of a node.

All others are kept as the user wrote them, and passed on to nodes whose image takes them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from joinery.objects.karpenter.meta import QUANTITY, DurationText, Model, Quantity, TrueOrFalse, WholeNumber
from joinery.objects.karpenter.nodeclass import Unsupported
from joinery.objects.karpenter.rules import Rule
from joinery.objects.kubernetes import kubelet_settings
from joinery.objects.spelling import meant_by

SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
)
RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")

_PERCENTAGE = r"([0-9]{1,2}(\.[0-9]{1,2})?|100(\.0{1,2})?)%"
THRESHOLD = rf"^({_PERCENTAGE}|{QUANTITY[1:-1]})$"


def _keys(allowed: tuple[str, ...]) -> Rule:
    listed = ", ".join(f"'{key}'" for key in allowed)
    return Rule(
        f"self.all(k, k in [{listed}])",
        f"valid keys are {', '.join(allowed)}",
        lambda given: set(given) <= set(allowed),
    )


Reserved = Annotated[
    dict[str, Quantity],
    Field(max_length=len(RESERVABLE)),
    _keys(RESERVABLE),
    Rule(
        "self.all(k, !string(self[k]).startsWith('-'))",
        "a reservation cannot be negative",
        lambda given: not any(value.startswith("-") for value in given.values()),
    ),
]
Thresholds = Annotated[
    dict[str, Annotated[str, Field(pattern=THRESHOLD)]], Field(max_length=len(SIGNALS)), _keys(SIGNALS)
]
GracePeriods = Annotated[dict[str, DurationText], Field(max_length=len(SIGNALS)), _keys(SIGNALS)]
Percentage = Annotated[WholeNumber, Field(ge=0, le=100)]
NotNegative = Annotated[WholeNumber, Field(ge=0)]


class KubeletConfiguration(Model):
    """Settings of the kubelet, with the kubelet's own names."""

    model_config = ConfigDict(extra="allow")
    passed_on: ClassVar[frozenset[str]] = kubelet_settings.NAMES

    cluster_dns: list[str] = Field(default=[], alias="clusterDNS")
    """Addresses of the cluster's DNS server. By default those that the cluster's services have."""
    max_pods: NotNegative | None = None
    """Instead of what the network interfaces allow."""
    pods_per_core: NotNegative | None = None
    """No more pods than so many for each vCPU."""
    system_reserved: Reserved = {}
    """What is kept for the operating system, by resource."""
    kube_reserved: Reserved = {}
    """What is kept for the kubelet and the container runtime, by resource. By default by the instance type."""
    eviction_hard: Thresholds = {}
    """What must be free, by signal; below that pods are evicted at once."""
    eviction_soft: Thresholds = {}
    """What should be free, by signal; below that pods are evicted after a while."""
    eviction_soft_grace_period: GracePeriods = {}
    """How long that while is, by signal."""
    eviction_max_pod_grace_period: NotNegative | None = None
    """Seconds."""
    image_gc_high_threshold_percent: Percentage | None = Field(default=None, alias="imageGCHighThresholdPercent")
    """Images are removed from that use of the disk on."""
    image_gc_low_threshold_percent: Percentage | None = Field(default=None, alias="imageGCLowThresholdPercent")
    """Images are removed down to that use of the disk."""
    cpu_cfs_quota: TrueOrFalse | None = Field(default=None, alias="cpuCFSQuota")
    """Whether CPU limits of containers are enforced."""

    def unusable(self, family: str) -> Iterator[Unsupported]:
        """Settings that the kubelet would ignore or refuse, or that user data of the AMI family cannot pass on."""
        given = self.model_dump(by_alias=True, exclude_unset=True)
        for name, problem in (*_invalid(given), *_invalid_signals(given)):
            yield _unusable(name, problem, "InvalidKubeletConfiguration")
        for name, problem in _dropped(given, family):
            yield _unusable(name, problem, "UnsupportedKubeletConfiguration")


def _unusable(name: str, problem: str, reason: str) -> Unsupported:
    return Unsupported(f"spec.kubelet.{name}", problem, "ValidationSucceeded", reason, verdict="not usable")


def _invalid(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in sorted(given.keys() - kubelet_settings.NAMES):
        meant = meant_by(name, kubelet_settings.NAMES)
        yield name, "the kubelet has no such setting" + (f"; is it {meant}?" if meant else "")
    for name, wanted in kubelet_settings.misshapen(given):
        yield name, f"{given[name]!r} is not {wanted}"
    for address in given.get("clusterDNS", ()):
        if not is_address(address):
            yield "clusterDNS", f"{address!r} is no IP address"
    if "registerWithTaints" in given:
        yield "registerWithTaints", "Joinery sets it, from the taints of the NodeClaim"


def is_address(text: str) -> bool:
    """Whether it is an IP address, of either family, and no name."""
    from ipaddress import ip_address

    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def _invalid_signals(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Negative eviction settings, with which a kubelet does not start; and malformed ``evictionMinimumReclaim``, which
    the model does not have, so that nothing has checked it.
    """
    for name in ("evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"):
        signals = given.get(name)
        for value in signals.values() if isinstance(signals, dict) else ():
            if str(value).startswith("-"):
                yield name, f"{value!r} is negative"
    reclaimed = given.get("evictionMinimumReclaim")
    for signal, value in reclaimed.items() if isinstance(reclaimed, dict) else ():
        if signal not in SIGNALS:
            yield "evictionMinimumReclaim", f"{signal} is no signal; valid keys are {', '.join(SIGNALS)}"
        elif not re.match(THRESHOLD, str(value)):
            yield "evictionMinimumReclaim", f"{value!r} is neither a percentage nor a quantity"


def _dropped(given: Mapping[str, Any], family: str) -> Iterator[tuple[str, str]]:
    """Settings that the family's user data cannot pass on. AL2023's passes on all; that of Custom is the user's."""
    if family in ("AL2023", "Custom"):
        return
    ours = {field.alias or name for name, field in KubeletConfiguration.model_fields.items()}
    passed_on = ours - {"podsPerCore"} if family == "Bottlerocket" else ours
    for name in sorted((given.keys() & kubelet_settings.NAMES) - passed_on):
        yield name, f"nodes of the family {family} do not get it"
    if family == "AL2" and len(given.get("clusterDNS", ())) > 1:
        yield "clusterDNS", f"the family AL2 takes one address, not {len(given['clusterDNS'])}"


def _image_thresholds_in_order(it: Any) -> bool:
    high, low = it.image_gc_high_threshold_percent, it.image_gc_low_threshold_percent
    return high is None or low is None or high > low


CheckedKubeletConfiguration = Annotated[
    KubeletConfiguration,
    Rule(
        "!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent)"
        " || self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent",
        "imageGCHighThresholdPercent must be above imageGCLowThresholdPercent",
        _image_thresholds_in_order,
        field="imageGCHighThresholdPercent",
    ),
    Rule(
        "!has(self.evictionSoft) || self.evictionSoft.all(k, has(self.evictionSoftGracePeriod)"
        " && k in self.evictionSoftGracePeriod)",
        "every key of evictionSoft needs one in evictionSoftGracePeriod",
        lambda it: set(it.eviction_soft) <= set(it.eviction_soft_grace_period),
        field="evictionSoft",
    ),
    Rule(
        "!has(self.evictionSoftGracePeriod) || self.evictionSoftGracePeriod.all(k, has(self.evictionSoft)"
        " && k in self.evictionSoft)",
        "every key of evictionSoftGracePeriod needs one in evictionSoft",
        lambda it: set(it.eviction_soft_grace_period) <= set(it.eviction_soft),
        field="evictionSoftGracePeriod",
    ),
]
