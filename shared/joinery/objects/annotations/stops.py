"""Whether voluntary disruption is stopped: one annotation on any NodePool stops it in the whole cluster."""

from joinery.objects.karpenter.disruption import stop_of
from joinery.objects.karpenter.labels import DISRUPTION
from joinery.objects.snapshot.snapshot import Snapshot


def stop_in_force(snapshot: Snapshot) -> str:
    """What stops it now, as a sentence about a NodePool; empty if nothing does.

    An annotation that cannot be read stops it too: someone meant to.
    """
    for pool in sorted(snapshot.node_pools, key=lambda pool: pool.metadata.name):
        text = pool.metadata.annotations.get(DISRUPTION)
        if text is None:
            continue
        try:
            if stop_of(text).is_in_force(snapshot.now):
                return f"NodePool {pool.metadata.name} stops disruption in the whole cluster ({DISRUPTION}: {text})"
        except ValueError as error:
            return f"NodePool {pool.metadata.name} has the annotation {DISRUPTION}, which stops disruption: {error}"
    return ""
