"""Volumes, the claims that ask for them, and their StorageClass."""

from collections.abc import Sequence

from joinery.apis import core
from joinery.apis import labels as keys
from simulator.builders.defaults import ZONES
from simulator.builders.structs import as_struct, as_structs

#: What the volume controller writes on a claim once it and its volume know each other.
BOUND = "pv.kubernetes.io/bind-completed"


def volume_claim(
    name: str = "data", *, volume: str = "", storage_class: str | None = "gp3", namespace: str = "default"
) -> core.PersistentVolumeClaim:
    """A PersistentVolumeClaim, bound if it names a ``volume``."""
    return core.PersistentVolumeClaim(
        metadata=core.ObjectMeta(name=name, namespace=namespace, annotations={BOUND: "yes"} if volume else {}),
        spec=core.PersistentVolumeClaimSpec(
            storage_class_name=storage_class, volume_name=volume, access_modes=["ReadWriteOnce"]
        ),
        status=core.PersistentVolumeClaimStatus(phase="Bound" if volume else "Pending"),
    )


def volume(name: str = "pv-data", *, zone: str = ZONES[0], storage_class: str = "gp3") -> core.PersistentVolume:
    """An EBS volume: reachable from one zone only."""
    terms = [{"matchExpressions": [{"key": keys.ZONE, "operator": "In", "values": [zone]}]}]
    return core.PersistentVolume(
        metadata=core.ObjectMeta(name=name),
        spec=core.PersistentVolumeSpec(
            storage_class_name=storage_class,
            csi=core.CSIPersistentVolumeSource(driver="ebs.csi.aws.com", volume_handle=f"vol-{name}"),
            node_affinity=as_struct({"required": {"nodeSelectorTerms": terms}}, core.VolumeNodeAffinity),
        ),
    )


def storage_class(
    name: str = "gp3", *, binding: str = "WaitForFirstConsumer", zones: Sequence[str] = ()
) -> core.StorageClass:
    """The EBS CSI driver's StorageClass, restricted to ``zones`` if any are given."""
    topologies = (
        [{"matchLabelExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "values": list(zones)}]}] if zones else []
    )
    return core.StorageClass(
        metadata=core.ObjectMeta(name=name),
        provisioner="ebs.csi.aws.com",
        volume_binding_mode=binding,
        allowed_topologies=as_structs(topologies, core.TopologySelectorTerm),
    )
