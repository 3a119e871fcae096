"""A first NodePool and EC2NodeClass, for whoever asks for them: a node within minutes, at a bounded price.

They are made once and belong to the user from then on: no later release writes to them, none makes them again after
they were deleted, and uninstalling leaves them where they are.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from joinery.decisions.installation.requests import RequestKind, StackRequest
from joinery.objects.kubernetes.references import Document

NAME = "default"
#: How many vCPUs the NodePool may have: a mistake stays affordable.
CPU_LIMIT = 100
_DISCOVERY = "karpenter.sh/discovery"


def documents(request: StackRequest) -> Sequence[Document]:
    """The two objects, if this request is the one that asks for them."""
    given = request.properties
    if given.get("StarterNodePool") != "true":
        return ()
    if request.kind == RequestKind.UPDATE and request.older.get("StarterNodePool") == "true":
        return ()
    return (_node_class(request.cluster, given), _node_pool())


def _node_class(cluster: str, given: Mapping[str, str]) -> Document:
    profile, role = given.get("NodeInstanceProfile", ""), given.get("NodeRole", "")
    # With a profile Joinery needs no IAM: a private subnet may have no way to it, and no profile is left behind.
    identity = {"instanceProfile": profile} if profile else {"role": role}
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": NAME},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            **identity,
            "subnetSelectorTerms": _terms(cluster, given.get("StarterSubnetIds", "")),
            "securityGroupSelectorTerms": _terms(cluster, given.get("StarterSecurityGroupIds", "")),
        },
    }


def _terms(cluster: str, ids: str) -> list[dict[str, Any]]:
    chosen = [one.strip() for one in ids.split(",") if one.strip()]
    return [{"id": one} for one in chosen] or [{"tags": {_DISCOVERY: cluster}}]


def _node_pool() -> Document:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": NAME},
        "spec": {
            "limits": {"cpu": str(CPU_LIMIT)},
            "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m"},
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": NAME},
                    "expireAfter": "720h",
                    "requirements": [
                        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
                        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["4"]},
                    ],
                }
            },
        },
    }
