"""Volumes: an instance is terminated only once the volumes of its drained pods are detached.

Otherwise the pods that use them next would wait six minutes, until Kubernetes detaches by force. Joinery only waits for
it: the attach-detach controller does the work (Karpenter node termination, VolumesDetached).
"""

from collections.abc import Iterable

from joinery.decisions.termination.drain import is_drainable
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.pods import is_terminal
from joinery.objects.snapshot.snapshot import Snapshot


def blocking_volumes(snapshot: Snapshot, node_name: str, pods: Iterable[Pod]) -> tuple[str, ...]:
    """The names of the volumes that are still attached to the node and have to go. ``pods``: those bound to it.

    A volume of a pod that stays until the node's end may stay as well. A pod that is finished holds none.
    """
    staying = [pod for pod in pods if not (is_terminal(pod) or is_drainable(pod, snapshot.now))]
    kept = _volumes_of(snapshot, staying)
    attached = {
        attachment.spec.source.persistent_volume_name
        for attachment in snapshot.volume_attachments
        if attachment.spec.node_name == node_name
    }
    return tuple(sorted(attached - kept - {""}))


def _volumes_of(snapshot: Snapshot, pods: Iterable[Pod]) -> set[str]:
    claims = {(pod.metadata.namespace, name) for pod in pods for name in _claims_of(pod)}
    return {
        claim.spec.volume_name
        for claim in snapshot.volume_claims
        if (claim.metadata.namespace, claim.metadata.name) in claims
    }


def _claims_of(pod: Pod) -> Iterable[str]:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.metadata.name}-{volume.name}"
