"""What a new node must know to find its cluster."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """``ca`` is base64, as EKS gives it; ``version`` the minor version (``1.33``)."""

    name: str
    endpoint: str
    ca: str
    service_cidr: str
    version: str
    ipv6: bool = False


def cluster_facts(cluster: dict[str, Any]) -> ClusterFacts:
    """The facts in an answer of EKS's DescribeCluster."""
    network = cluster.get("kubernetesNetworkConfig", {})
    return ClusterFacts(
        name=cluster["name"],
        endpoint=cluster.get("endpoint", ""),
        ca=cluster.get("certificateAuthority", {}).get("data", ""),
        service_cidr=network.get("serviceIpv4Cidr") or network.get("serviceIpv6Cidr", ""),
        version=cluster.get("version", ""),
        ipv6=network.get("ipFamily") == "ipv6",
    )
