"""What a valid NodePool may ask for and Joinery does not do yet: told wherever it is met, never ignored.

It is about nodes that are no longer needed, so the pool is used, and says so. What a node class asks for in vain is in
``NodeClass.unsupported``.
"""

from joinery.apis.nodepool import NodePool

#: What becomes of nodes meanwhile.
UNTIL_THEN = (
    "Joinery does not consolidate, remove empty nodes or replace drifted ones yet; "
    "nodes go when they expire (expireAfter) or are interrupted"
)


def disruption_in_vain(pool: NodePool) -> str:
    """What of its ``spec.disruption`` does not act; empty for a pool that says nothing of it, or ``consolidateAfter:
    Never``. A static one is never consolidated, and its drifted nodes are replaced.
    """
    disruption = pool.spec.disruption
    if pool.is_static or not disruption.model_fields_set or disruption.consolidate_after == "Never":
        return ""
    return f"spec.disruption: consolidationPolicy {disruption.consolidation_policy}"
