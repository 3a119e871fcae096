"""Static hashes: what drifts a node, and what does not."""

from typing import Any

import pytest

from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.hashing import HASH_VERSION, node_pool_hash
from joinery.objects.karpenter.nodepool import NodePool
from tests.unit.objects.karpenter.objects import changed, good

#: Of the smallest pool and class. They change only together with ``HASH_VERSION``.
GOLDEN_POOL, GOLDEN_CLASS = "544452657149194917", "12684005005537336766"
TAINTS = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "value": "c", "effect": "NoExecute"}]
DISKS = [
    {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi"}},
    {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "9Gi"}},
]


def pool(**fields: Any) -> str:
    """The hash of a NodePool with these fields, dots written as double underscores."""
    document = good("NodePool")
    for at, value in fields.items():
        document = changed(document, at.replace("__", "."), value)
    return node_pool_hash(NodePool.model_validate(document))


def node_class(**spec: Any) -> str:
    """The hash of an EC2NodeClass with these fields of its spec."""
    document = good("EC2NodeClass")
    document["spec"] |= spec
    document["spec"] = {key: value for key, value in document["spec"].items() if value is not None}
    return EC2NodeClass.model_validate(document).static_hash


def test_a_hash_is_a_decimal_number_with_a_version_of_our_own() -> None:
    """Karpenter's annotations, never Karpenter's version: its claims are re-stamped, not drifted."""
    assert pool().isdecimal()
    assert int(pool()) < 2**64
    assert HASH_VERSION == "joinery-v3"


def test_a_hash_stays_the_same_from_release_to_release() -> None:
    """Another number under the same version would replace every node of every user."""
    assert pool() == GOLDEN_POOL
    assert node_class() == GOLDEN_CLASS


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("spec__template__metadata__labels", {"a": "b"}),
        ("spec__template__metadata__labels", {"node-role.kubernetes.io/worker": ""}),
        ("spec__template__metadata__annotations", {"a": "b"}),
        ("spec__template__metadata__annotations", {"a": ""}),
        ("spec__template__spec__taints", TAINTS),
        ("spec__template__spec__startupTaints", TAINTS),
        ("spec__template__spec__nodeClassRef__name", "other"),
        ("spec__template__spec__terminationGracePeriod", "1h"),
        ("spec__template__spec__expireAfter", "1h"),
        ("spec__template__spec__expireAfter", "Never"),
    ],
)
def test_a_changed_template_changes_the_pools_hash(field: str, value: Any) -> None:
    """A running node cannot follow it."""
    assert pool(**{field: value}) != pool()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("spec__template__spec__requirements", [{"key": "a", "operator": "Exists"}]),
        ("spec__disruption__consolidateAfter", "1h"),
        ("spec__limits", {"cpu": 1}),
        ("spec__weight", 10),
        ("spec__replicas", 1),
        ("spec__template__spec__expireAfter", "30h690h"),
        ("spec__template__spec__expireAfter", "43200m"),
        ("spec__template__spec__taints", []),
    ],
)
def test_what_is_not_of_the_template_leaves_the_pools_hash(field: str, value: Any) -> None:
    """Requirements drift by themselves; another spelling of a default is no change."""
    assert pool(**{field: value}) == pool()


def test_lists_are_sets() -> None:
    """The order of taints, disks and tags means nothing."""
    taints = "spec__template__spec__taints"
    assert pool(**{taints: TAINTS}) == pool(**{taints: TAINTS[::-1]})
    assert node_class(blockDeviceMappings=DISKS) == node_class(blockDeviceMappings=DISKS[::-1])
    assert node_class(tags={"a": "1", "b": "2"}) == node_class(tags={"b": "2", "a": "1"})


def test_a_taint_and_a_startup_taint_are_not_the_same() -> None:
    """The place of a value counts."""
    assert pool(spec__template__spec__taints=TAINTS) != pool(spec__template__spec__startupTaints=TAINTS)


STATIC: list[dict[str, Any]] = [
    {"role": "other"},
    {"role": None, "instanceProfile": "p"},
    {"tags": {"a": "b"}},
    {"tags": {"a": ""}},
    {"context": "c"},
    {"userData": "u"},
    {"detailedMonitoring": True},
    {"associatePublicIPAddress": True},
    {"associatePublicIPAddress": False},
    {"placementGroupSelector": {"name": "x"}},
    {"instanceStorePolicy": "RAID0"},
    {"networkInterfaces": [{"networkCardIndex": 0, "deviceIndex": 0}]},
    {"metadataOptions": {"httpEndpoint": "disabled"}},
    {"metadataOptions": {"httpProtocolIPv6": "enabled"}},
    {"metadataOptions": {"httpPutResponseHopLimit": 2}},
    {"metadataOptions": {"httpTokens": "optional"}},
    {"connectionTracking": {"udpTimeout": 60}},
    {"cpuOptions": {"nestedVirtualization": "enabled"}},
    {"enclaveOptions": {"enabled": True}},
    {"kubelet": {"maxPods": 10}},
    {"kubelet": {"clusterDNS": ["10.0.0.10"]}},
    {"kubelet": {"clusterDNS": ["10.0.0.10", "10.0.0.11"]}},
    {"kubelet": {"clusterDNS": ["10.0.0.11", "10.0.0.10"]}},
    {"kubelet": {"cpuCFSQuota": False}},
    {"kubelet": {"serializeImagePulls": False}},
    {"kubelet": {"registryPullQPS": 0}},
    {"amiFamily": "Custom"},
    {"blockDeviceMappings": DISKS},
    {"blockDeviceMappings": DISKS[:1]},
    {"blockDeviceMappings": [{**DISKS[0], "ebs": {"volumeSize": "21Gi"}}]},
    {"blockDeviceMappings": [{**DISKS[0], "ebs": {"volumeSize": "20Gi", "encrypted": True}}]},
    {"blockDeviceMappings": [{**DISKS[0], "ebs": {"volumeSize": "20Gi", "deleteOnTermination": False}}]},
    {"blockDeviceMappings": [{**DISKS[0], "rootVolume": True}]},
]


def test_every_static_field_changes_the_classs_hash_in_its_own_way() -> None:
    """No two of these classes make the same node."""
    hashes = [node_class(), *(node_class(**spec) for spec in STATIC)]
    assert len(set(hashes)) == len(hashes)


@pytest.mark.parametrize(
    "spec",
    [
        {"subnetSelectorTerms": [{"id": "subnet-1"}]},
        {"securityGroupSelectorTerms": [{"id": "sg-1"}]},
        {"amiSelectorTerms": [{"alias": "al2023@v20260101"}]},
        {"amiSelectorTerms": [{"id": "ami-1"}], "amiFamily": "AL2023"},
        {"capacityReservationSelectorTerms": [{"id": "cr-1"}]},
        {"amiFamily": "AL2023"},
        {"ipPrefixCount": 3},
        {"detailedMonitoring": False, "tags": {}, "kubelet": {}},
        {"enclaveOptions": {"enabled": False}},
        {"metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1}},
    ],
)
def test_selectors_and_what_says_nothing_leave_the_classs_hash(spec: dict[str, Any]) -> None:
    """What selectors select is compared with each instance; the family counts as it is in effect."""
    assert node_class(**spec) == node_class()
