"""AWSNodeTemplate (karpenter.k8s.aws/v1alpha1), and a Provisioner's ``provider`` block, as EC2NodeClass."""

from typing import Any

from joinery.objects.karpenter.labels import AWS_GROUP
from joinery.objects.karpenter.legacy.names import NotConvertibleError, metadata
from joinery.objects.karpenter.legacy.selectors import SELECTORS, image_terms, terms

Document = dict[str, Any]

#: What stands for the instance profile that Karpenter's settings held where a template names none.
DEFAULT_PROFILE = "aws.defaultInstanceProfile"
_SAME = ("tags", "userData", "blockDeviceMappings", "detailedMonitoring", "context")
#: Of a template's spec, and of a Provisioner's ``provider``.
TEMPLATE_FIELDS = frozenset((*_SAME, *SELECTORS)) | {
    "apiVersion", "kind", "amiFamily", "amiSelector", "instanceProfile", "launchTemplate", "metadataOptions",
}  # fmt: skip
#: Ubuntu is read as AL2 on Ubuntu's root device, as the conversion of v1beta1 read it.
_UBUNTU_ROOT = {
    "deviceName": "/dev/sda1",
    "rootVolume": True,
    "ebs": {"encrypted": True, "volumeType": "gp3", "volumeSize": "20Gi"},
}


def node_class(given: Document) -> tuple[Document, list[str]]:
    """The EC2NodeClass of an AWSNodeTemplate, and what was lost or assumed. Raises ``NotConvertibleError``."""
    spec, notes = class_spec(given.get("spec") or {}, "spec")
    status = given.get("status") or {}
    resolved = {name: status[name] for name in ("subnets", "securityGroups", "amis") if status.get(name)}
    document = {"apiVersion": f"{AWS_GROUP}/v1", "kind": "EC2NodeClass", "metadata": metadata(given), "spec": spec}
    return document | ({"status": resolved} if resolved else {}), notes


def class_spec(given: Document, where: str) -> tuple[Document, list[str]]:
    """The spec of the class; ``where`` is the path of what is converted, for messages."""
    if given.get("launchTemplate"):
        raise NotConvertibleError(
            f"{where}.launchTemplate: has no equivalent; say what the template holds in the class itself"
        )
    notes = [f"{where}.{name} has no equivalent and is dropped" for name in sorted(set(given) - TEMPLATE_FIELDS)]
    spec = {name: given[name] for name in _SAME if given.get(name) is not None}
    for name in SELECTORS:
        spec[f"{name}Terms"] = terms(given.get(name), f"{where}.{name}", notes)
    if not given.get("instanceProfile"):
        notes.append(f"{where}.instanceProfile is missing: the one of Karpenter's settings is taken for granted")
    spec["instanceProfile"] = given.get("instanceProfile") or DEFAULT_PROFILE
    spec["metadataOptions"] = {"httpPutResponseHopLimit": 2, **(given.get("metadataOptions") or {})}
    return {**spec, **images(given, where, notes)}, notes


def images(given: Document, where: str, notes: list[str]) -> Document:
    """Family and images: those selected, or the newest of the family."""
    family = given.get("amiFamily") or "AL2"
    selected = image_terms(given.get("amiSelector"), f"{where}.amiSelector", notes)
    if family == "Ubuntu":
        return ubuntu(given, where, selected)
    if selected:
        return {"amiFamily": family, "amiSelectorTerms": selected}
    if family == "Custom":
        raise NotConvertibleError(f"{where}.amiSelector: is needed with amiFamily Custom")
    return {"amiFamily": family, "amiSelectorTerms": [{"alias": f"{family.lower()}@latest"}]}


def ubuntu(given: Document, where: str, selected: list[Document]) -> Document:
    """Ubuntu is no family of v1: AL2's user data on Ubuntu's images and root device."""
    if not selected:
        raise NotConvertibleError(f"{where}.amiFamily: Ubuntu has no images of its own any more; select them")
    mappings = given.get("blockDeviceMappings") or [_UBUNTU_ROOT]
    return {"amiFamily": "AL2", "amiSelectorTerms": selected, "blockDeviceMappings": mappings}
