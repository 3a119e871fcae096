"""What the NodePools of a class would launch, as far as anybody knows before pods ask."""

from collections.abc import Iterable

import pytest

from joinery.decisions.lifecycle.launching.likely import likely
from joinery.objects.karpenter.labels import INSTANCE_TYPE, TENANCY
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.offerings import InstanceType
from simulator import builders

TYPES = tuple(
    builders.instance_type(name, price=price, arch=arch, labels={TENANCY: ("default", "dedicated")})
    for name, price, arch in (
        ("t4g.medium", 0.01, "arm64"), ("m7a.large", 0.1, "amd64"), ("m7a.xlarge", 0.2, "amd64"),
        ("m5.large", 0.3, "amd64"),
    )
)  # fmt: skip


def named(pools: Iterable[NodePool], types: tuple[InstanceType, ...] = TYPES) -> tuple[str, str] | None:
    """Type and tenancy."""
    found = likely(pools, types)
    return (found.instance_type.name, found.tenancy) if found else None


@pytest.mark.parametrize(
    ("requirements", "labels", "expected"),
    [
        ([], {}, ("m7a.large", "default")),
        (["kubernetes.io/arch=arm64"], {}, ("t4g.medium", "default")),
        (["karpenter.k8s.aws/instance-size=xlarge", "team=a"], {}, ("m7a.xlarge", "default")),
        ([f"{TENANCY}=dedicated"], {INSTANCE_TYPE: "m7a.xlarge"}, ("m7a.xlarge", "dedicated")),
        ([f"{INSTANCE_TYPE}=x9.huge"], {"team": "a"}, ("m5.large", "default")),
    ],
)
def test_a_dry_run_names_what_a_nodepool_would_launch(
    requirements: list[str], labels: dict[str, str], expected: tuple[str, str]
) -> None:
    """The cheapest ordinary type that it allows. Where no NodePool allows anything, a common type."""
    assert named([builders.node_pool(requirements=requirements, labels=labels)]) == expected


def test_the_heaviest_nodepool_is_asked_first() -> None:
    """As pods would be. A class without NodePools has a common type; without types it has none."""
    light, heavy = (
        builders.node_pool(name, weight=weight, requirements=[f"{INSTANCE_TYPE}={kind}"])
        for name, weight, kind in (("a", 1, "m7a.large"), ("b", 10, "m7a.xlarge"))
    )
    assert named([light, heavy]) == ("m7a.xlarge", "default")
    assert named([]) == ("m5.large", "default")
    assert named([], TYPES[:2]) == ("m7a.large", "default")
    assert named([heavy], ()) is None
