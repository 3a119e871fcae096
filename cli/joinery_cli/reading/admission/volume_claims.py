"""Volume claims of files, as a cluster's controllers would take them: with the default class, with one that the files
lack, and with volumes that are yet to be made.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec.structs import replace

from joinery.decisions.scheduling.constraints.mounted_claims import DEFAULT_CLASS, default_class, made_with
from joinery.decisions.scheduling.constraints.persistent_volumes import NO_PROVISIONER, WITH_POD, PersistentVolumes
from joinery.decisions.scheduling.constraints.volumes import IN_ALL_ZONES
from joinery.objects.karpenter.labels import BIND_COMPLETED
from joinery.objects.kubernetes.core import (
    ObjectMeta,
    OwnerReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)

_STAND_IN = "default-class-of-the-cluster"
_AT_ONCE = "Immediate"
_EBS, _EFS = "ebs.csi.aws.com", "efs.csi.aws.com"
#: The modes of claims that pods on several nodes use, as they cannot use a disk.
_SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})


def classified(
    claims: dict[str, PersistentVolumeClaim],
    classes: dict[str, StorageClass],
    volumes: Iterable[PersistentVolume],
    pods: Iterable[Pod],
) -> Iterator[str]:
    """A claim that names no class gets the default one, a volume that waits for it is its own, and a class that the
    files lack is taken for one of EBS's.
    """
    default = _default_class(classes)
    for key, claim in claims.items():
        if _is_new(claim) and claim.spec.storage_class_name is None and default:
            claims[key] = replace(claim, spec=replace(claim.spec, storage_class_name=default))
    _bind(claims, PersistentVolumes(volumes, claims, classes).bound)
    yield from _stand_ins(classes, claims, _ephemeral_classes(pods, default))


def owned(claims: dict[str, PersistentVolumeClaim], pods: Iterable[Pod]) -> Iterator[str]:
    """A claim that has the name of a pod's ephemeral volume and says of no owner is taken for the pod's: tools that
    tidy exports take owners out. A cluster would refuse the pod (``ephemeral.VolumeIsForPod``).
    """
    ownerless = {key for key, claim in claims.items() if not claim.metadata.owner_references}
    for pod in pods if ownerless else ():
        for key in sorted(made_with(pod) & ownerless):
            ownerless.remove(key)
            claim = claims[key]
            owner = OwnerReference(
                api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True
            )
            claims[key] = replace(claim, metadata=replace(claim.metadata, owner_references=[owner]))
            yield f"PersistentVolumeClaim {key} names no owner, and is taken for that of its pod's ephemeral volume"


def _bind(claims: dict[str, PersistentVolumeClaim], bound: Mapping[str, PersistentVolume]) -> None:
    """As the PV controller does with new claims before it looks at their classes' provisioners."""
    for key, volume in bound.items():
        claim = claims[key]
        if _is_new(claim):
            annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
            claims[key] = replace(
                claim,
                metadata=replace(claim.metadata, annotations=annotations),
                spec=replace(claim.spec, volume_name=volume.metadata.name),
            )


def made_at_once(
    classes: dict[str, StorageClass], claims: Mapping[str, PersistentVolumeClaim], pods: Iterable[Pod]
) -> Iterator[str]:
    """With the binding mode Immediate a cluster has a volume made as soon as its claim is there, before it looks at the
    pod (Kubernetes, "Storage Classes": Volume Binding Mode). Claims of files get theirs in the zone of their pod's node
    instead, which is one of those where it might be made. A claim that waits in a cluster already goes on waiting.
    """
    named = Counter(claim.spec.storage_class_name for claim in claims.values() if _is_new(claim))
    named.update(_ephemeral_classes(pods, _default_class(classes)))
    waiting = {c.spec.storage_class_name for c in claims.values() if not _is_new(c) and not c.spec.volume_name}
    for name, number in sorted((name, number) for name, number in named.items() if name in classes.keys() - waiting):
        entry = classes[name]
        if entry.volume_binding_mode != _AT_ONCE or entry.provisioner == NO_PROVISIONER:
            continue
        classes[name] = replace(entry, volume_binding_mode=WITH_POD)
        if entry.provisioner not in IN_ALL_ZONES:
            yield (
                f"StorageClass {name} has volumes made at once, in whatever zone: {_claims(number)} "
                f"planned as if in the zone of the pod's node; volumeBindingMode: {WITH_POD} does that"
            )


def _is_new(claim: PersistentVolumeClaim) -> bool:
    """Whether no cluster has had the claim: a volume is yet to be made for it."""
    return not claim.metadata.uid and not claim.spec.volume_name and claim.status.phase in ("", "Pending")


def _ephemeral_classes(pods: Iterable[Pod], default: str) -> list[str]:
    """The classes of claims that pods of files bring along (generic ephemeral volumes), one for each."""
    volumes = (volume.ephemeral for pod in pods if not pod.metadata.uid for volume in pod.spec.volumes)
    templates = (one.volume_claim_template for one in volumes if one is not None)
    named = (one.spec.storage_class_name for one in templates if one is not None)
    return [default or _STAND_IN if name is None else name for name in named]


def _default_class(classes: Mapping[str, StorageClass]) -> str:
    newest = default_class(classes.values())
    return newest.metadata.name if newest else ""


def _stand_ins(
    classes: dict[str, StorageClass], claims: dict[str, PersistentVolumeClaim], ephemeral: Collection[str]
) -> Iterator[str]:
    missing, zonal = Counter(name for name in ephemeral if name and name not in classes), set(ephemeral)
    for key, claim in claims.items():
        name = claim.spec.storage_class_name
        if not _is_new(claim) or name == "" or name in classes:
            continue
        missing[name or _STAND_IN] += 1
        zonal |= set() if _SHARED & {*claim.spec.access_modes} else {name or _STAND_IN}
        if name is None:
            claims[key] = replace(claim, spec=replace(claim.spec, storage_class_name=_STAND_IN))
    for name, number in sorted(missing.items()):
        classes[name] = _stand_in(name, _EBS if name in zonal else _EFS)
        which = "a default StorageClass is" if name == _STAND_IN else f"StorageClass {name} is"
        taken = _taken_as_disks(number) if name in zonal else "EFS, a file system for nodes of all zones"
        yield f"{which} not in the files: {_claims(number)} taken as {taken}"


def _taken_as_disks(number: int) -> str:
    one = number == 1
    return f"EBS {'volume' if one else 'volumes'}, made in the zone of {'its' if one else 'their'} pod's node"


def _stand_in(name: str, provisioner: str) -> StorageClass:
    # Claims of ephemeral volumes that name no class look for the default one by its annotation.
    annotations = {DEFAULT_CLASS: "true"} if name == _STAND_IN else {}
    return StorageClass(
        metadata=ObjectMeta(name=name, annotations=annotations),
        provisioner=provisioner,
        volume_binding_mode=WITH_POD,
    )


def _claims(number: int) -> str:
    return f"{number:,} volume claim{'' if number == 1 else 's'}"
