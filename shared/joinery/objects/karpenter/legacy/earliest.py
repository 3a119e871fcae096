"""Provisioners of v1alpha3 and v1alpha4 (Karpenter v0.3 and v0.4), as those of v1alpha5.

They list instance types, zones, architectures and operating systems in fields of their own, and what the cloud knows in
labels (v1alpha3) or in the ``provider`` block (v1alpha4, whose last builds had ``requirements`` as v1alpha5 has). What
they list are defaults, and what a pod selects overrides them (``v1alpha3.Constraints.WithOverrides``), which the
annotation ``joinery.dev/overrides`` says of the NodePool. Of instance types they had no other default.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from joinery.objects.karpenter.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, OVERRIDES, ZONE
from joinery.objects.karpenter.legacy import provisioner
from joinery.objects.karpenter.legacy.names import NotConvertibleError
from joinery.objects.karpenter.legacy.selectors import SELECTORS

Document = dict[str, Any]

#: Labels below it were settings: nodes had them, and pods could select them.
SETTINGS_DOMAIN = "node.k8s.aws/"
#: The fields that list values of a label. v1alpha3 has one architecture and operating system, v1alpha4 several.
_LISTED: Mapping[str, str] = {
    "instanceTypes": INSTANCE_TYPE,
    "zones": ZONE,
    "architecture": ARCH,
    "architectures": ARCH,
    "operatingSystem": OS,
    "operatingSystems": OS,
}
CAPACITY_TYPE_LABEL = f"{SETTINGS_DOMAIN}capacity-type"
#: What labels were called in requirements.
_RENAMED: Mapping[str, str] = {CAPACITY_TYPE_LABEL: CAPACITY_TYPE, "kubernetes.io/instance-type": INSTANCE_TYPE}
#: Labels that select subnets and security groups, by the selector, and the tag by which each selects; none where the
#: value is the tag.
SELECTING_LABELS: Mapping[str, tuple[str, str]] = {
    f"{SETTINGS_DOMAIN}subnet-name": ("subnetSelector", "Name"),
    f"{SETTINGS_DOMAIN}subnet-tag-key": ("subnetSelector", ""),
    f"{SETTINGS_DOMAIN}security-group-name": ("securityGroupSelector", "Name"),
    f"{SETTINGS_DOMAIN}security-group-tag-key": ("securityGroupSelector", ""),
}
#: The cluster's name follows: a tag of its subnets and security groups, and the profile of its nodes.
CLUSTER_TAG, NODE_PROFILE = "kubernetes.io/cluster/", "KarpenterNodeInstanceProfile-"
#: Whose newest image Karpenter chose, by version.
EARLIEST_FAMILIES: Mapping[str, str] = {"v1alpha3": "Bottlerocket", "v1alpha4": "AL2"}
_EXCEPT: Mapping[str, str] = {"Bottlerocket": " (v0.3.3: AL2)"}
_SAME = ("taints", "ttlSecondsAfterEmpty", "ttlSecondsUntilExpired")
#: What a Provisioner of either version may say.
EARLIEST_FIELDS = frozenset(_LISTED) | frozenset(_SAME) | {"cluster", "labels", "requirements", "provider"}
#: What v1alpha4's ``provider`` had that a template of v1alpha1 has not.
PROVIDER_FIELDS = frozenset({"cluster", "capacityType", "capacityTypes"})


def pool(given: Document) -> provisioner.ConvertedPool:
    """The NodePool of such a Provisioner. Raises ``NotConvertibleError``."""
    made = provisioner.pool(as_alpha5(given), of_ordinary_kinds=False)
    family = made.node_class["spec"]["amiFamily"] if made.node_class else ""
    notes = (
        "pods that select node.k8s.aws/capacity-type have to select karpenter.sh/capacity-type: nodes have that label",
        "what a pod tolerates or selects besides adds no taint or label to its node",
    )
    changed = (
        f"its nodes boot the newest image of {family}, which Karpenter chose then{_EXCEPT.get(family, '')}",
        "its instances answer IMDSv2 alone; they answered IMDSv1 too",
    )
    return replace(made, notes=(*made.notes, *notes), class_notes=(*made.class_notes, *changed))


def as_alpha5(given: Document) -> Document:
    """The same in v1alpha5's words. Raises ``NotConvertibleError``."""
    spec, metadata = given.get("spec") or {}, given.get("metadata") or {}
    version = str(given["apiVersion"]).rpartition("/")[2]
    labels, provider = dict(spec.get("labels") or {}), dict(spec.get("provider") or {})
    template = next((key for key in sorted(labels) if key.startswith(f"{SETTINGS_DOMAIN}launch-template")), None)
    if template:
        raise NotConvertibleError(
            f"spec.labels[{template}]: has no equivalent; say what the template holds in the class itself"
        )
    listed = {key: _texts(spec[field], field) for field, key in _LISTED.items() if spec.get(field)}
    if CAPACITY_TYPE_LABEL in labels:
        listed[CAPACITY_TYPE] = [labels.pop(CAPACITY_TYPE_LABEL)]
    for field in ("capacityType", "capacityTypes"):
        if values := provider.pop(field, None):
            listed[CAPACITY_TYPE] = _texts(values, f"provider.{field}")
    asked = [{**one, "key": _RENAMED.get(one.get("key"), one.get("key"))} for one in spec.get("requirements") or ()]
    asked += [{"key": key, "operator": "In", "values": values} for key, values in listed.items()]
    block = _block(version, spec, provider, labels)
    annotations = {OVERRIDES: "true", **(metadata.get("annotations") or {})}
    same = {name: spec[name] for name in _SAME if spec.get(name) is not None}
    return {
        **given,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**same, "labels": labels, "requirements": asked, "provider": block},
    }


def _block(version: str, spec: Document, provider: Document, labels: Document) -> Document:
    """The ``provider`` block, with what Karpenter chose where nobody said anything.

    The tag of the cluster was asked for beside the labels of v1alpha3, and in place of a selector of v1alpha4.
    """
    cluster = provider.pop("cluster", None) or spec.get("cluster") or {}
    selectors = {name: dict(provider.get(name) or {}) for name in SELECTORS}
    for label, (selector, tag) in SELECTING_LABELS.items():
        if label in labels:
            value = labels.pop(label)
            selectors[selector] |= {tag: value} if tag else {value: "*"}
    name = cluster.get("name")
    is_whole = version == "v1alpha4" and all(selectors.values()) and provider.get("instanceProfile")
    if not name and not is_whole:
        raise NotConvertibleError(f"spec.{'provider.' if version == 'v1alpha4' else ''}cluster.name: is missing")
    of_cluster = {f"{CLUSTER_TAG}{name}": "*"}
    for selector, tags in selectors.items():
        whole = of_cluster | tags if version == "v1alpha3" else tags or of_cluster
        provider[selector] = {key: value or "*" for key, value in whole.items()}
    return {
        "amiFamily": EARLIEST_FAMILIES[version],
        "instanceProfile": f"{NODE_PROFILE}{name}",
        **provider,
    }


def _texts(given: object, field: str) -> list[str]:
    """One text, or a list of texts."""
    listed = given if isinstance(given, list) else [given]
    texts = [one for one in listed if isinstance(one, str)]
    if len(texts) < len(listed):
        raise NotConvertibleError(f"spec.{field}: must be texts")
    return texts
