"""Fields that the older APIs do not have (Karpenter v0.31, v1alpha5 and v1alpha1; v0.37, v1beta1).

What an object carries over into v1 is looked at there, where its equivalent has the same parts. What stays behind, the
outermost level of a Provisioner or an AWSNodeTemplate, is looked up in tables.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from joinery.gateways.ec2.offline import NODE_CLASS
from joinery.objects.karpenter.legacy import KUBELET_FIELDS, TEMPLATE_FIELDS, Equivalent
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.slips import meant_by
from joinery_cli.reading.fields import Unknown, is_served, slip
from joinery_cli.reading.model_fields import unknown_in_model

_MODELS: Mapping[str, type[BaseModel]] = {
    NodePool.kind: NodePool,
    NodeClaim.kind: NodeClaim,
    NODE_CLASS.kind: NODE_CLASS,
}
_KUBELET = frozenset(KUBELET_FIELDS)
_PROVISIONER = frozenset(
    {
        "annotations", "consolidation", "instanceTypes", "kubeletConfiguration", "labels", "limits", "provider",
        "providerRef", "requirements", "startupTaints", "taints", "ttlSecondsAfterEmpty", "ttlSecondsUntilExpired",
        "weight",
    }
)  # fmt: skip
#: By kind: the parts that have no counterpart of the same shape in v1, and the fields of each.
_PARTS: Mapping[str, Mapping[tuple[str, ...], frozenset[str]]] = {
    "AWSNodeTemplate": {("spec",): TEMPLATE_FIELDS},
    "NodePool": {("spec", "template", "spec", "kubelet"): _KUBELET},
    "Provisioner": {
        ("spec",): _PROVISIONER,
        ("spec", "consolidation"): frozenset({"enabled"}),
        ("spec", "kubeletConfiguration"): _KUBELET,
        ("spec", "limits"): frozenset({"resources"}),
        ("spec", "provider"): TEMPLATE_FIELDS,
        ("spec", "providerRef"): frozenset({"apiVersion", "kind", "name"}),
    },
}
#: What has no equivalent in these is told where they are converted.
_TOLD = (TEMPLATE_FIELDS, _KUBELET)


def unknown_in_legacy(stored: Mapping[str, Any], equivalent: Equivalent) -> Iterator[Unknown]:
    """Of a legacy object as it is written, and of what it is in v1: of an object that a cluster served all are mere
    surprises.
    """
    became = equivalent.document.get("kind", "")
    where = "" if became == equivalent.origin.kind else f"as {became}: "
    listed = [*_outermost(stored, equivalent.origin.kind)]
    if became:
        listed += [one._replace(path=f"{where}{one.path}") for one in _in_v1(became, equivalent.document)]
    for unknown in listed:
        yield Unknown(unknown.path, "", unknown.problem or unknown.advice) if is_served(stored) else unknown


def _in_v1(kind: str, document: Mapping[str, Any]) -> Iterator[Unknown]:
    return unknown_in_model(_MODELS[kind], document)


def _outermost(stored: Mapping[str, Any], kind: str) -> Iterator[Unknown]:
    for path, fields in _PARTS.get(kind, {}).items():
        part: Any = stored
        for step in path:
            part = part.get(step) if isinstance(part, dict) else None
        for key in part if isinstance(part, dict) else ():
            if key not in fields:
                yield from _unknown(".".join(path), key, fields)


def _unknown(at: str, key: str, fields: frozenset[str]) -> Iterator[Unknown]:
    if meant := meant_by(key, fields):
        yield slip(f"{at}.{key}", meant)
    elif fields not in _TOLD:
        belongs = "no such field here; it belongs to spec.limits.resources" if at == "spec.limits" else ""
        yield Unknown(f"{at}.{key}", belongs)
