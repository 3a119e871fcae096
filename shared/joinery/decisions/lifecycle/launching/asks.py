"""What is asked for a NodePool's nodes outside of chains: that a claim is written, and that it is launched.

Both are known again by the NodePool and what it says, not by the claim: the next plan's claims have other names. A
change of the NodePool or its node class is another question, and is asked at once.
"""

import hashlib
import json

from joinery.objects.actions import Ask
from joinery.objects.karpenter.labels import INSTANCE_TYPE, NODE_POOL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.snapshot import Snapshot

_DIGITS = 8
#: What stands before the digest of pods' needs.
FOR_PODS = " for pods like "


def writing(pool: NodePool, needs: str = "") -> Ask:
    """The creation of a NodeClaim of the pool. ``needs``: the digest of what its pods need
    (``objects.annotations.plans``), if the API server refuses it for that.
    """
    of_pods = f"{FOR_PODS}{needs}" if needs else ""
    return Ask(pool, f"a NodeClaim of its generation {pool.metadata.generation}{of_pods}")


def launching(claim: NodeClaim, snapshot: Snapshot) -> tuple[Ask, Ask]:
    """The launch of a claim: as any of its NodePool and node class, and as any that allows the same.

    EC2 refuses a call as a whole (a missing right, a launch template), or all that it names (a policy of the
    organization about instance types).
    """
    pool = snapshot.pools_by_name.get(claim.metadata.labels.get(NODE_POOL, ""))
    node_class = snapshot.classes_by_name.get(claim.spec.node_class_ref.name)
    generation = node_class.metadata.generation if node_class else 0
    launch = f"a launch with generation {generation} of node class {claim.spec.node_class_ref.name}"
    owner = pool or claim
    return Ask(owner, launch), Ask(owner, f"{launch} for claims like {_allowed(claim)}")


def _allowed(claim: NodeClaim) -> str:
    """A digest of what the claim asks for, without instance types: those depend on the prices of the moment."""
    rules = sorted((r.key, r.operator, sorted(r.values)) for r in claim.spec.requirements if r.key != INSTANCE_TYPE)
    asked = json.dumps([rules, sorted(claim.spec.resources.requests.items())], default=str)
    return hashlib.sha256(asked.encode()).hexdigest()[:_DIGITS]
