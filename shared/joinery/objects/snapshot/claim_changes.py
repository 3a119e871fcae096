"""Which claims have changed since a plan or a decision was made, as far as it relied on them.

Plans are made while others write, and checked against the claims as they are then, under the Lease. That list alone is
enough, because what the Lease keeps apart are writers of claims. Whatever else a plan relied on may change between the
snapshot and the launch with or without a Lease, and is harmless: a pod that was bound meanwhile leaves room on its new
node, a node that went leaves its pods pending, and a NodePool or class that changed is met by the next run.
"""

from collections.abc import Iterable, Mapping

from joinery.objects.karpenter.labels import NODE_POOL, PLANNED_PODS
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.nodes import is_leaving
from joinery.objects.snapshot.snapshot import ClaimsSnapshot


def changed_claims(before: ClaimsSnapshot, now: ClaimsSnapshot) -> tuple[str, ...]:
    """The names of claims that are new, that stay no longer, or that are there for other pods than when they were read.

    A claim that has come further, as by its launch, is no change: its room was counted. Nor is the end of one that was
    leaving: its room was not.
    """
    then, today = _staying(before.managed_claims), _staying(now.managed_claims)
    return tuple(sorted({name for (_, name), _ in then.items() ^ today.items()}))


def newly_leaving(before: ClaimsSnapshot, now: ClaimsSnapshot) -> Mapping[str, str]:
    """By NodePool, a claim that leaves now and did not when it was read. The pool's budgets have less room for it."""
    left_already = {claim.metadata.uid for claim in before.managed_claims if is_leaving(None, claim)}
    return {
        claim.metadata.labels.get(NODE_POOL, ""): claim.metadata.name
        for claim in now.managed_claims
        if is_leaving(None, claim) and claim.metadata.uid not in left_already
    }


def _staying(claims: Iterable[NodeClaim]) -> Mapping[tuple[str, str], str]:
    """By UID and name of each claim that stays, the pods that it is there for."""
    return {
        (claim.metadata.uid, claim.metadata.name): claim.metadata.annotations.get(PLANNED_PODS, "")
        for claim in claims
        if not is_leaving(None, claim)
    }
