"""What a plan says of pods that another provider's NodePools may serve, EKS Auto Mode's for one."""

from collections.abc import Iterator

from joinery.cli.notices import Notice, note, some_of, warning
from joinery.scheduling.explain.elsewhere import also_served, bought_twice, foreign
from joinery.scheduling.packing import Packing
from joinery.state.snapshot import Snapshot


def others(packing: Packing, snapshot: Snapshot) -> Iterator[Notice]:
    """A warning where both may buy for a pod, and a note of those that have no place here and may have one there."""
    pools = foreign(snapshot)
    if not pools:
        return
    pods = {pod.key: pod for pod in snapshot.pods}
    if twice := bought_twice(packing, pods, pools):
        yield warning(twice)
    left = also_served((unplaced.pod for unplaced in packing.unplaced), pods, pools)
    if left:
        number = f"{len(left):,} pods that are" if len(left) > 1 else "1 pod that is"
        pool = ", ".join(sorted(set(left.values())))
        yield note(
            f"{number} left out here may be served by NodePool {pool} of another provider: {some_of(sorted(left))}"
        )
