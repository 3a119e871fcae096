"""NodePool, NodeClaim and EC2NodeClass of v1beta1: the names of v1, with some fields in other places."""

from typing import Any

from joinery.objects.karpenter.labels import AWS_GROUP
from joinery.objects.karpenter.legacy.names import NotConvertibleError, metadata
from joinery.objects.karpenter.legacy.nodetemplate import ubuntu
from joinery.objects.karpenter.legacy.provisioner import ConvertedPool, claim_spec, kept_kubelet, reference

Document = dict[str, Any]

_EXPIRES = "720h"  # v1beta1's default, of disruption.expireAfter


def pool(given: Document) -> ConvertedPool:
    """The NodePool of v1: expiry moves into the template, the kubelet into the class."""
    spec = given.get("spec") or {}
    template = spec.get("template") or {}
    node = dict(template.get("spec") or {})
    notes: list[str] = []
    kubelet = kept_kubelet(node.pop("kubelet", None), notes)
    disruption = dict(spec.get("disruption") or {})
    node["expireAfter"] = disruption.pop("expireAfter", None) or _EXPIRES
    node["nodeClassRef"] = reference(node.get("nodeClassRef") or {})
    node.pop("resources", None)
    document = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": metadata(given),
        "spec": {**spec, "template": {**template, "spec": node}, "disruption": _disruption(disruption)},
        **({"status": given["status"]} if given.get("status") else {}),
    }
    return ConvertedPool(document, kubelet, notes=tuple(notes))


def _disruption(given: Document) -> Document:
    """``WhenUnderutilized`` is renamed. It consolidated at once; ``WhenEmpty`` only if ``consolidateAfter`` was set."""
    policy = given.get("consolidationPolicy") or "WhenUnderutilized"
    if policy == "WhenUnderutilized":
        return {"consolidateAfter": "0s", **given, "consolidationPolicy": "WhenEmptyOrUnderutilized"}
    return {"consolidateAfter": "Never", **given}


def node_class(given: Document) -> tuple[Document, list[str]]:
    """The EC2NodeClass of v1: images have to be selected. Raises ``NotConvertibleError``."""
    spec = dict(given.get("spec") or {})
    family, selected = spec.get("amiFamily") or "AL2", spec.get("amiSelectorTerms") or []
    if family == "Ubuntu":
        spec |= ubuntu(spec, "spec", selected)
    elif not selected:
        if family == "Custom":
            raise NotConvertibleError("spec.amiSelectorTerms: is needed with amiFamily Custom")
        spec |= {"amiFamily": family, "amiSelectorTerms": [{"alias": f"{family.lower()}@latest"}]}
    spec["metadataOptions"] = {"httpPutResponseHopLimit": 2, **(spec.get("metadataOptions") or {})}
    document = {"apiVersion": f"{AWS_GROUP}/v1", "kind": "EC2NodeClass", "metadata": metadata(given), "spec": spec}
    return document | ({"status": given["status"]} if given.get("status") else {}), []


def claim(given: Document) -> Document:
    """The NodeClaim of v1. Its age is not limited: the older claim left that to its pool."""
    spec = given.get("spec") or {}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": metadata(given, is_claim=True),
        "spec": claim_spec(spec, spec.get("nodeClassRef") or {}),
        **({"status": given["status"]} if given.get("status") else {}),
    }


def written_claim(document: Document) -> Document:
    """A NodeClaim of v1 as v1beta1 stores it. That claim has no age of its own; its pool's holds for it."""
    spec = {
        key: value for key, value in document["spec"].items() if key not in ("expireAfter", "terminationGracePeriod")
    }
    spec["nodeClassRef"] = reference_of_beta(spec["nodeClassRef"])
    return {**document, "apiVersion": "karpenter.sh/v1beta1", "kind": "NodeClaim", "spec": spec}


def reference_of_beta(given: Document) -> Document:
    """``nodeClassRef`` of v1 as v1beta1 has it, which names an API version."""
    return {"apiVersion": f"{given['group']}/v1beta1", "kind": given["kind"], "name": given["name"]}
