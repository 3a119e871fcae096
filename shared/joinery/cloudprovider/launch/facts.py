"""What a new node must know to find its cluster."""

from dataclasses import dataclass
from typing import Any

from joinery.answers import at


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
    """The facts of a cluster in an answer of EKS's DescribeCluster."""
    network = at(cluster, "kubernetesNetworkConfig")
    return ClusterFacts(
        name=cluster["name"],
        endpoint=at(cluster, "endpoint") or "",
        ca=at(cluster, "certificateAuthority.data") or "",
        service_cidr=at(network, "serviceIpv4Cidr") or at(network, "serviceIpv6Cidr") or "",
        version=at(cluster, "version") or "",
        ipv6=at(network, "ipFamily") == "ipv6",
    )
