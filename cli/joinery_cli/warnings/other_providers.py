"""What a plan says of pods that another provider's NodePools may serve, EKS Auto Mode's for one."""

from collections.abc import Iterator

from joinery.decisions.scheduling.constraints.volumes import Volumes
from joinery.decisions.scheduling.explain.elsewhere import also_served, bought_twice, foreign
from joinery.decisions.scheduling.packing import Packing
from joinery.objects.karpenter.labels import AUTO_MODE_DRIVER
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.notices import UserNotice, note, some_of, warning
from joinery_cli.view.workloads import owner_of


def others(packing: Packing, snapshot: Snapshot) -> Iterator[UserNotice]:
    """A warning where both may buy for a pod, and a note of those that have no place here and may have one there."""
    yield from _with_volumes_of_auto_mode(packing, snapshot)
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


def _with_volumes_of_auto_mode(packing: Packing, snapshot: Snapshot) -> Iterator[UserNotice]:
    """Why pods wait for Auto Mode's nodes that do not ask for them: the StorageClass does."""
    pods, volumes = {pod.key: pod for pod in snapshot.pods}, Volumes(snapshot)
    left = [pods[one.pod] for one in packing.unplaced if one.pod in pods]
    bound = [pod for pod in left if pod.spec.volumes and AUTO_MODE_DRIVER in volumes.by_driver(pod)]
    if bound:
        number = f"{len(bound):,} pods get" if len(bound) > 1 else "1 pod gets"
        owners = some_of(list(dict.fromkeys(map(owner_of, bound))))
        yield warning(
            f"{number} no node here ({owners}): volumes of {AUTO_MODE_DRIVER} can be attached to nodes of EKS Auto "
            f"Mode alone; those of a StorageClass with the provisioner ebs.csi.aws.com to all others"
        )
