"""Nodes at work, with their claims, as documents."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tools.consolidation.catalogue import Catalogue
from tools.consolidation.documents import Document, name_of

_DONE = ("Launched", "Registered", "Initialized", "Ready")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """An instance of an offering that has joined its cluster.

    node, claim    the names of its Node and NodeClaim
    offering       ``instanceType``, ``zone`` and ``capacityType``
    labels         those that the offering does not decide
    conditions     of the claim that are True, beyond those of a node at work
    created        an RFC3339 time
    """

    node: str
    claim: str
    offering: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Document] = ()
    requirements: Sequence[Document] = ()
    conditions: Sequence[str] = ()
    created: str

    def documents(self, pool: Document, catalogue: Catalogue) -> list[Document]:
        """The Node and the NodeClaim, of that NodePool."""
        template = pool["spec"]["template"]["spec"]
        entry = catalogue.types[self.offering["instanceType"]]
        ours = {
            "karpenter.sh/nodepool": name_of(pool),
            "karpenter.k8s.aws/ec2nodeclass": template["nodeClassRef"]["name"],
        }
        labels = catalogue.labels(self.offering) | {**self.labels} | ours
        sizes = {"capacity": entry["capacity"], "allocatable": entry["allocatable"]}
        provider = f"aws:///{self.offering['zone']}/i-{uuid.uuid5(uuid.NAMESPACE_DNS, self.node).hex[:17]}"
        node = {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": self.node, "uid": f"node-{self.node}", "creationTimestamp": self.created,
                "labels": labels | {
                    "kubernetes.io/hostname": self.node,
                    "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
                },
            },
            "spec": {"providerID": provider, **({"taints": [*self.taints]} if self.taints else {})},
            "status": {**sizes, "conditions": [self._condition("Ready", "KubeletReady")]},
        }  # fmt: skip
        claim = {
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {
                "name": self.claim, "uid": f"claim-{self.node}", "creationTimestamp": self.created,
                "labels": labels, "ownerReferences": [_owner(pool)],
            },
            "spec": {
                "requirements": [*self.requirements], "nodeClassRef": template["nodeClassRef"],
                "taints": [*self.taints],
                **{key: template[key] for key in ("expireAfter", "terminationGracePeriod") if key in template},
            },
            "status": {
                **sizes, "nodeName": self.node, "providerID": provider,
                "conditions": [self._condition(kind, kind) for kind in (*_DONE, *self.conditions)],
            },
        }  # fmt: skip
        return [node, claim]

    def _condition(self, kind: str, reason: str) -> Document:
        return {"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": self.created}


def _owner(pool: Document) -> Document:
    uid = pool["metadata"].get("uid", name_of(pool))
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": name_of(pool), "uid": uid}
    return {**owner, "blockOwnerDeletion": True}
