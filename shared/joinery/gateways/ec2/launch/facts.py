"""The cluster that new nodes join, as EKS describes it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from joinery.gateways.answers import at
from joinery.gateways.aws import Clients, cluster_of, translated
from joinery.gateways.ec2.nodeclass.lookups import Look

#: How long a description is used: a cluster is upgraded while functions are warm (Karpenter for AWS asks as often).
DESCRIBED_FOR = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """What a new node must know of its cluster.

    ``endpoint``: the API server's URL. ``ca``: its certificate authority, base64. ``service_cidr``: of the cluster's
    own IP family. ``version``: Kubernetes' minor version, such as 1.33. Texts are empty where EKS does not say them.
    """

    name: str
    endpoint: str
    ca: str
    service_cidr: str
    version: str
    arn: str = ""
    ipv6: bool = False

    @property
    def dns(self) -> str:
        """The address of the cluster's DNS server: EKS gives it the tenth of the services' addresses."""
        from ipaddress import ip_network

        return str(ip_network(self.service_cidr, strict=False)[10]) if self.service_cidr else ""


def cluster_facts(cluster: dict[str, Any]) -> ClusterFacts:
    """The facts of a cluster in an answer of EKS's DescribeCluster."""
    network = at(cluster, "kubernetesNetworkConfig")
    is_ipv6 = at(network, "ipFamily") == "ipv6"
    families = ("serviceIpv6Cidr", "serviceIpv4Cidr") if is_ipv6 else ("serviceIpv4Cidr", "serviceIpv6Cidr")
    return ClusterFacts(
        name=cluster["name"],
        endpoint=at(cluster, "endpoint") or "",
        ca=at(cluster, "certificateAuthority.data") or "",
        service_cidr=at(network, families[0]) or at(network, families[1]) or "",
        version=at(cluster, "version") or "",
        arn=at(cluster, "arn") or "",
        ipv6=is_ipv6,
    )


class KnownCluster:
    """One cluster as EKS described it last. Safe to use from several threads."""

    def __init__(self, clients: Clients, cluster: str) -> None:
        self._clients, self._cluster = clients, cluster

    def facts(self, look: Look) -> ClusterFacts:
        """What EKS says now, or has said in the last five minutes.

        Raises what the call raises, ``NotFoundError`` if EKS does not know the cluster, ``UnavailableError`` while it
        is made; not where there is an older answer, which is good for launches, unless the look is anew.
        """
        return look.ask_or_last("cluster", self._describe, good_for=DESCRIBED_FOR)

    def _describe(self) -> ClusterFacts:
        with translated(f"describing EKS cluster {self._cluster}"):
            answer: Any = self._clients.eks.describe_cluster(name=self._cluster)
        return cluster_facts(cluster_of(answer, self._cluster))
