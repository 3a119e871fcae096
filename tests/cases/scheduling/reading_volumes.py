"""Volumes, their claims and storage classes, and what nodes attach, of golden cases."""

from datetime import timedelta

from joinery.apis import core
from simulator import builders
from tests.cases.scheduling import notation
from tests.cases.scheduling.notation import Document, struct


def volume_claim(given: Document) -> core.PersistentVolumeClaim:
    """``{name, class, volume, phase, deleting}``; a bound one carries the annotation that says so,
    unless ``binding: true``.
    """
    notation.only(given, "name namespace class volume phase deleting binding modes")
    volume = given.get("volume", "")
    bound = {} if given.get("binding") or not volume else {"pv.kubernetes.io/bind-completed": "yes"}
    return struct(core.PersistentVolumeClaim, {
        "metadata": _volume_meta(given) | {"namespace": given.get("namespace", "default"), "annotations": bound},
        "spec": {"storageClassName": given.get("class"), "volumeName": volume, "accessModes": given.get("modes", [])},
        "status": {"phase": given.get("phase", "Bound" if volume else "Pending")},
    })  # fmt: skip


def _volume_meta(given: Document) -> Document:
    return {
        "name": given["name"],
        **({"deletionTimestamp": builders.EPOCH.isoformat()} if given.get("deleting") else {}),
    }


def volume(given: Document) -> core.PersistentVolume:
    """``{name, zones: [z1], terms: [[...]], driver, local: true, labels}``: each of ``terms`` is one alternative."""
    notation.only(given, "name zones terms driver local source labels deleting")
    terms = given.get("terms", [[f"zone In {','.join(given['zones'])}"]] if "zones" in given else [])
    spec: Document = {"csi": {"driver": given.get("driver", "ebs.csi.aws.com")}}
    if given.get("local"):
        spec = {"local": {"path": "/data"}}
    if "source" in given:
        spec = {given["source"]: {}}
    if terms:
        spec["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": notation.expressions(term)} for term in terms]}
        }
    meta = _volume_meta(given) | {"labels": notation.label_map(given.get("labels", {}))}
    return struct(core.PersistentVolume, {"metadata": meta, "spec": spec})


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


def csi_node(given: Document) -> core.CSINode:
    """``{name, drivers: {ebs.csi.aws.com: 2}}``."""
    notation.only(given, "name drivers")
    drivers = [{"name": name, "allocatable": {"count": count}} for name, count in given["drivers"].items()]
    return struct(core.CSINode, {"metadata": {"name": given["name"]}, "spec": {"drivers": drivers}})
