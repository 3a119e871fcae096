"""PersistentVolumes, their claims and StorageClasses, as the EBS CSI driver has them."""

from collections.abc import Sequence

from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes import core
from simulator.builders.defaults import ZONES, as_struct, as_structs

#: The annotation that kube-controller-manager's volume binder puts on a claim once claim and volume name each other.
BOUND = "pv.kubernetes.io/bind-completed"


def volume_claim(
    name: str = "data", *, volume: str = "", storage_class: str | None = "gp3", namespace: str = "default"
) -> core.PersistentVolumeClaim:
    """A PersistentVolumeClaim. It is bound if it names a ``volume``."""
    return core.PersistentVolumeClaim(
        metadata=core.ObjectMeta(name=name, namespace=namespace, annotations={BOUND: "yes"} if volume else {}),
        spec=core.PersistentVolumeClaimSpec(
            storage_class_name=storage_class,
            volume_name=volume,
            access_modes=["ReadWriteOnce"],
            resources=core.ResourceRequirements(requests={"storage": "8Gi"}),
        ),
        status=core.PersistentVolumeClaimStatus(phase="Bound" if volume else "Pending"),
    )


def volume(name: str = "pv-data", *, zone: str = ZONES[0], storage_class: str = "gp3") -> core.PersistentVolume:
    """An EBS volume. Its node affinity lets only nodes of its zone use it."""
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
    name: str = "gp3",
    *,
    binding: str = "WaitForFirstConsumer",
    zones: Sequence[str] = (),
    provisioner: str = "ebs.csi.aws.com",
) -> core.StorageClass:
    """A StorageClass of the EBS CSI driver, restricted to ``zones`` if any are given."""
    topologies = (
        [{"matchLabelExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "values": list(zones)}]}] if zones else []
    )
    return core.StorageClass(
        metadata=core.ObjectMeta(name=name),
        provisioner=provisioner,
        volume_binding_mode=binding,
        allowed_topologies=as_structs(topologies, core.TopologySelectorTerm),
    )
