"""Which pods of a leaving claim are replaced by a rollout of their Deployment, as the claim remembers them.

The rollout makes their successors, which are pods with names of their own and wait for a node like any other. So plans
find no other node for the pods that are replaced; otherwise two would be bought for one.
"""

import json
from collections.abc import Iterable

from joinery.apis.labels import SURGED_PODS
from joinery.apis.nodeclaim import NodeClaim
from joinery.state.claims import leaving_since


def surged_pods(claim: NodeClaim) -> frozenset[str]:
    """The pods (namespace/name) of one claim; none where the annotation cannot be read."""
    try:
        names = json.loads(claim.metadata.annotations.get(SURGED_PODS, "[]"))
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(map(str, names)) if isinstance(names, list) else frozenset()


def all_surged_pods(claims: Iterable[NodeClaim]) -> frozenset[str]:
    """The pods of all claims that are leaving."""
    return frozenset().union(*(surged_pods(claim) for claim in claims if leaving_since(claim) is not None))


def remembered(pods: Iterable[str]) -> dict[str, str]:
    """The annotation that remembers these pods."""
    return {SURGED_PODS: json.dumps(sorted(pods))}
