"""The cluster's objects, ordered by what the rules of disruption ask about."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta

from tools.consolidation.documents import (
    Document,
    condition,
    is_reschedulable,
    is_true,
    moment,
    name_of,
    node_name,
    of_kind,
)

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(h|ms|us|ns|m|s)")


def go_duration(text: str) -> timedelta | None:
    """A Go duration such as ``1h30m``; None for any other text."""
    if not text or _PART.sub("", text):
        return None
    return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))


class Cluster:
    """Claims with their nodes and pods. A claim and a node belong together if they have one provider ID."""

    def __init__(self, objects: Sequence[Document], now: str) -> None:
        self.now = moment(now)
        self.claims = {name_of(claim): claim for claim in of_kind(objects, "NodeClaim")}
        self.nodes = {name_of(node): node for node in of_kind(objects, "Node")}
        self.pools = {name_of(pool): pool for pool in of_kind(objects, "NodePool")}
        self.disruption_budgets = of_kind(objects, "PodDisruptionBudget")
        by_provider = {node.get("spec", {}).get("providerID"): node for node in self.nodes.values()}
        self._node_of = {
            name: by_provider.get(claim.get("status", {}).get("providerID") or None)
            for name, claim in self.claims.items()
        }
        self._claim_of = {name_of(node): name for name, node in self._node_of.items() if node is not None}
        self._pods: dict[str, list[Document]] = defaultdict(list)
        for pod in of_kind(objects, "Pod"):
            self._pods[node_name(pod)].append(pod)

    def node_of(self, claim: str) -> Document | None:
        return self._node_of.get(claim)

    def claim_of(self, node: str) -> Document | None:
        """The claim of the node of that name."""
        return self.claims.get(self._claim_of.get(node, ""))

    def pods_of(self, claim: str) -> list[Document]:
        """All pods on the claim's node."""
        node = self.node_of(claim)
        return self._pods[name_of(node)] if node else []

    def movable(self, claims: Iterable[str]) -> list[Document]:
        """The pods that need another place if the claims go."""
        return [pod for claim in claims for pod in self.pods_of(claim) if is_reschedulable(pod)]

    def pool_of(self, claim: str) -> Document | None:
        return self.pools.get(pool_name(self.claims[claim]))

    def is_settled(self, claim: str) -> bool:
        """Whether the claim's ``consolidateAfter`` has passed since pods last came or went (specification 3.7)."""
        pool = self.pool_of(claim)
        after = consolidate_after(pool) if pool else None
        document = self.claims[claim]
        if after is None or not is_true(document, "Initialized"):
            return False
        entry = condition(document, "Initialized") or {}
        began = document.get("status", {}).get("lastPodEventTime") or entry.get("lastTransitionTime")
        return began is None or self.now - moment(began) >= after


def pool_name(claim: Document) -> str:
    return str(claim["metadata"].get("labels", {}).get("karpenter.sh/nodepool", ""))


def consolidate_after(pool: Document) -> timedelta | None:
    """None for ``Never``."""
    return go_duration(str(pool["spec"].get("disruption", {}).get("consolidateAfter", "0s")))


def is_leaving(claim: Document) -> bool:
    return bool(claim["metadata"].get("deletionTimestamp"))
