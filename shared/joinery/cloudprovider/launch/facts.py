"""The cluster that new nodes join, as EKS describes it."""

from dataclasses import dataclass
from typing import Any

from joinery.answers import at


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """What a new node must be told of its cluster.

    ``endpoint``: the API server's URL. ``ca``: its certificate authority, base64. ``service_cidr``: of IPv4, or of IPv6
    where there is no other. ``version``: Kubernetes' minor version, such as 1.33. Texts are empty where EKS does not
    say them.
    """

    name: str
    endpoint: str
    ca: str
    service_cidr: str
    version: str
    arn: str = ""
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
        arn=at(cluster, "arn") or "",
        ipv6=at(network, "ipFamily") == "ipv6",
    )
