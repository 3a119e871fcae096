"""Volumes, their claims and storage classes, and what nodes attach, of golden cases."""

from datetime import timedelta

from joinery.objects.kubernetes import core
from simulator import builders
from tests.cases.scheduling import notation
from tests.cases.scheduling.notation import Document, struct


def volume_claim(given: Document) -> core.PersistentVolumeClaim:
    """``{name, class, volume, phase, deleting, size, select: {label: value}, for: node, uid}``; a bound one carries the
    annotation that says so, unless ``binding: true``. ``for``: the node that its volume is being made for.
    """
    notation.only(given, "name namespace class volume phase deleting binding modes mode size select for uid owner")
    volume = given.get("volume", "")
    annotations = {} if given.get("binding") or not volume else {"pv.kubernetes.io/bind-completed": "yes"}
    if "for" in given:
        annotations["volume.kubernetes.io/selected-node"] = given["for"]
    owner = {"kind": "Pod", "name": "a", "uid": given.get("owner"), "controller": True}
    return struct(core.PersistentVolumeClaim, {
        "metadata": _volume_meta(given) | {
            "namespace": given.get("namespace", "default"), "annotations": annotations, "uid": given.get("uid", ""),
            "ownerReferences": [owner] if "owner" in given else [],
        },
        "spec": {
            "storageClassName": given.get("class"), "volumeName": volume, "accessModes": given.get("modes", []),
            "volumeMode": given.get("mode", ""),
            "resources": {"requests": {"storage": given["size"]} if "size" in given else {}},
            **({"selector": {"matchLabels": given["select"]}} if "select" in given else {}),
        },
        "status": {"phase": given.get("phase", "Bound" if volume else "Pending")},
    })  # fmt: skip


def _volume_meta(given: Document) -> Document:
    return {
        "name": given["name"],
        **({"deletionTimestamp": builders.EPOCH.isoformat()} if given.get("deleting") else {}),
    }


def volume(given: Document) -> core.PersistentVolume:
    """``{name, zones: [z1], terms: [[...]], host, driver, local: true, labels, class, size, modes, claim, phase}``.

    Each of ``terms`` is one alternative. ``claim``: name and, after a slash, UID of the claim that it is for.
    """
    notation.only(
        given, "name zones terms host driver local source labels deleting class size modes mode claim phase attributes"
    )
    terms = given.get("terms", [[f"zone In {','.join(given['zones'])}"]] if "zones" in given else [])
    spec: Document = {"csi": {"driver": given.get("driver", "ebs.csi.aws.com")}}
    if given.get("local") or "host" in given:
        spec = {"local": {"path": "/data"}}
        terms = [[f"host In {given['host']}"]] if "host" in given else terms
    if "source" in given:
        spec = {given["source"]: {}}
    if terms:
        spec["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": notation.expressions(term)} for term in terms]}
        }
    spec |= {
        "storageClassName": given.get("class", ""), "accessModes": given.get("modes", []),
        "volumeMode": given.get("mode", ""), "volumeAttributesClassName": given.get("attributes", ""),
        "capacity": {"storage": given["size"]} if "size" in given else {},
    }  # fmt: skip
    if "claim" in given:
        name, _, uid = given["claim"].partition("/")
        spec["claimRef"] = {"namespace": "default", "name": name, "uid": uid}
    meta = _volume_meta(given) | {"labels": notation.label_map(given.get("labels", {}))}
    return struct(core.PersistentVolume, {"metadata": meta, "spec": spec, "status": {"phase": given.get("phase", "")}})


def storage_class(given: Document) -> core.StorageClass:
    """``{name, provisioner, binding, zones: [z1], default: true, created: seconds}``."""
    notation.only(given, "name provisioner binding key zones default created")
    expression = {"key": given.get("key", "topology.ebs.csi.aws.com/zone"), "values": given.get("zones", [])}
    meta: Document = {"name": given["name"]}
    if given.get("default"):
        meta["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    if "created" in given:
        meta["creationTimestamp"] = (builders.EPOCH + timedelta(seconds=given["created"])).isoformat()
    return struct(core.StorageClass, {
        "metadata": meta,
        "provisioner": given.get("provisioner", "ebs.csi.aws.com"),
        "volumeBindingMode": given.get("binding", "WaitForFirstConsumer"),
        "allowedTopologies": [{"matchLabelExpressions": [expression]}] if given.get("zones") else [],
    })  # fmt: skip


def storage_capacity(given: Document) -> core.CSIStorageCapacity:
    """``{class, in: {label: value}, capacity, largest}``."""
    notation.only(given, "class in capacity largest")
    sizes = {"capacity": given.get("capacity"), "maximumVolumeSize": given.get("largest")}
    return struct(core.CSIStorageCapacity, {
        "metadata": {"name": "published"},
        "storageClassName": given["class"],
        **({"nodeTopology": {"matchLabels": notation.label_map(given["in"])}} if "in" in given else {}),
        **{name: size for name, size in sizes.items() if size is not None},
    })  # fmt: skip


def csi_driver(name: str) -> core.CSIDriver:
    """One that publishes what room it has."""
    return struct(core.CSIDriver, {"metadata": {"name": name}, "spec": {"storageCapacity": True}})


def csi_node(given: Document) -> core.CSINode:
    """``{name, drivers: {ebs.csi.aws.com: 2}}``."""
    notation.only(given, "name drivers")
    drivers = [{"name": name, "allocatable": {"count": count}} for name, count in given["drivers"].items()]
    return struct(core.CSINode, {"metadata": {"name": given["name"]}, "spec": {"drivers": drivers}})
