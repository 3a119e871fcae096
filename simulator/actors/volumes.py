"""Volumes, as the EBS CSI driver and the attach/detach controller handle them."""

from datetime import timedelta

from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes.core import (
    ClaimReference,
    CSIPersistentVolumeSource,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    Pod,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
)
from simulator.actors.base import Stage
from simulator.builders import BOUND
from simulator.engine import Turn
from simulator.kubernetes.apiserver import Change
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.resources import with_fields, with_metadata

DETACHES_IN = timedelta(seconds=4)


def provision(cluster: InMemoryCluster, claim: PersistentVolumeClaim, node: Node) -> None:
    """Create a volume in the node's zone and bind the claim to it (WaitForFirstConsumer)."""
    zone = node.metadata.labels.get(keys.ZONE, "")
    name = f"pvc-{claim.metadata.uid}"
    here = NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key=keys.ZONE, operator="In", values=[zone])])
    cluster.api.create(
        PersistentVolume(
            metadata=ObjectMeta(name=name),
            spec=PersistentVolumeSpec(
                storage_class_name=claim.spec.storage_class_name or "",
                claim_ref=ClaimReference(
                    namespace=claim.metadata.namespace, name=claim.metadata.name, uid=claim.metadata.uid
                ),
                csi=CSIPersistentVolumeSource(driver="ebs.csi.aws.com", volume_handle=f"vol-{name[4:12]}"),
                node_affinity=VolumeNodeAffinity(required=NodeSelector(node_selector_terms=[here])),
            ),
            status=PersistentVolumeStatus(phase="Bound"),
        )
    )
    bound = with_fields(
        with_metadata(claim, annotations={**claim.metadata.annotations, BOUND: "yes"}),
        spec=with_fields(claim.spec, volume_name=name),
        status=PersistentVolumeClaimStatus(phase="Bound"),
    )
    cluster.api.update(bound)


class AttachDetach:
    """Attaches the volumes of a pod that was bound, and detaches them a while after no pod on that node uses them."""

    def __init__(self, stage: Stage) -> None:
        self._engine = stage.engine
        self._cluster = stage.cluster
        self._cluster.api.watch(self._notice)

    def _notice(self, change: Change) -> None:
        if change.kind != "Pod":
            return
        pod: Pod = change.after or change.before
        if not pod.spec.node_name or not any(volume.persistent_volume_claim for volume in pod.spec.volumes):
            return
        delay = DETACHES_IN if change.after is None else timedelta(0)
        self._engine.after(delay, Turn.KUBELET, lambda: self._settle(pod.spec.node_name))

    def _settle(self, node: str) -> None:
        """Make the attachments of a node those that its pods use."""
        wanted = {
            volume for pod in self._cluster.pods.values() if pod.spec.node_name == node for volume in self._volumes(pod)
        }
        attached = {
            attachment.spec.source.persistent_volume_name: attachment
            for attachment in list(self._cluster.api.objects("VolumeAttachment").values())
            if attachment.spec.node_name == node
        }
        for volume in sorted(wanted - attached.keys()):
            self._cluster.api.create(_attachment(volume, node))
        for volume in sorted(attached.keys() - wanted):
            self._cluster.remove(attached[volume])

    def _volumes(self, pod: Pod) -> list[str]:
        claims = self._cluster.api.objects("PersistentVolumeClaim")
        names = [
            volume.persistent_volume_claim.claim_name for volume in pod.spec.volumes if volume.persistent_volume_claim
        ]
        existing = [claims.get(f"{pod.metadata.namespace or 'default'}/{name}") for name in names]
        return [claim.spec.volume_name for claim in existing if claim is not None and claim.spec.volume_name]


def _attachment(volume: str, node: str) -> VolumeAttachment:
    source = VolumeAttachmentSource(persistent_volume_name=volume)
    return VolumeAttachment(
        metadata=ObjectMeta(name=f"csi-{volume}-{node}"), spec=VolumeAttachmentSpec(node_name=node, source=source)
    )
