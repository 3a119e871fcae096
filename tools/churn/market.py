"""What the simulated cluster may buy: its NodePool, node class, and the instance types of the stored catalogue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joinery.gateways.ec2.offline import default_class, instance_types
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ZONE
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.offerings import InstanceType
from simulator import builders
from simulator.cloud.market import sample

_PREFIX = "karpenter.k8s.aws/instance"
#: Enough to choose from; each further one costs time and changes little.
_FAMILIES = ("c6a", "c7a", "c7i", "m6a", "m7a", "m7i", "r6a", "r7a", "r7i")
_ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


@dataclass(frozen=True)
class Market:
    """``types``: by name, those that the NodePool's nodes may be of."""

    pool: NodePool
    node_class: EC2NodeClass
    types: Mapping[str, InstanceType]

    def priced(self, instance_type: str, zone: str, capacity_type: str) -> float:
        """$/h of an offering."""
        price = self.types[instance_type].price(zone, capacity_type)
        assert price is not None, "launches are of what is sold"
        return price


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What the NodePool says.

    consolidate_after   its ``consolidateAfter``
    budget              its only disruption budget: nodes or a percentage
    capacity_types      what it may buy
    cpus                of the smallest and of the largest instance type
    annotations         such as ``joinery.dev/payback``
    """

    consolidate_after: str = "1m"
    budget: str = "10%"
    capacity_types: Sequence[str] = ("on-demand",)
    cpus: tuple[int, int] = (2, 16)
    annotations: Mapping[str, str] | None = None


def market(terms: Terms) -> Market:
    """A NodePool of nine families for amd64, and what is sold of them."""
    low, high = terms.cpus
    requirements: list[Any] = [
        "kubernetes.io/arch=amd64",
        f"{_PREFIX}-family={','.join(_FAMILIES)}",
        f"{CAPACITY_TYPE}={','.join(terms.capacity_types)}",
        f"{ZONE}={','.join(_ZONES)}",
        {"key": f"{_PREFIX}-cpu", "operator": "Gt", "values": [str(low - 1)]},
        {"key": f"{_PREFIX}-cpu", "operator": "Lt", "values": [str(high + 1)]},
    ]
    pool = builders.node_pool(
        requirements=requirements,
        annotations=terms.annotations,
        budgets=[{"nodes": terms.budget}],
        consolidationPolicy="WhenEmptyOrUnderutilized",
        consolidateAfter=terms.consolidate_after,
    )
    node_class = default_class()
    assert isinstance(node_class, EC2NodeClass)
    types = instance_types([node_class], sample())["default"]
    return Market(pool, node_class, {sold.name: sold for sold in types if _is_allowed(sold, low, high)})


def _is_allowed(sold: InstanceType, low: int, high: int) -> bool:
    """Whether the NodePool's requirements on types allow it. What they do not would only cost time."""
    labels = {key: values[0] for key, values in sold.labels.items() if len(values) == 1}
    return (
        labels.get("kubernetes.io/arch") == "amd64"
        and labels.get(f"{_PREFIX}-family") in _FAMILIES
        and low <= int(labels.get(f"{_PREFIX}-cpu", "0")) <= high
    )
