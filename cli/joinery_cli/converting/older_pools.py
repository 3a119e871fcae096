"""NodePools of v1 as those of v1beta1, and as Provisioners of v1alpha5; what they cannot say is said in a note."""

from collections.abc import Iterable, Mapping

from joinery.objects.karpenter import duration, labels
from joinery.objects.karpenter.legacy import CATEGORY, SIZED_BY, kept_kubelet, provisioner_budgets, reference_of_beta
from joinery_cli.converting.older_classes import NoEquivalentError
from joinery_cli.converting.written import Document, Written, without_empty

_OS_AND_ARCH = (labels.OS, labels.ARCH, labels.CAPACITY_TYPE)
_SHIFTED: Mapping[str, tuple[str, int]] = {"Gte": ("Gt", -1), "Lte": ("Lt", 1)}


def beta_pool(written: Written, kubelet: Document) -> Written:
    """The NodePool of v1beta1. Raises ``NoEquivalentError``."""
    spec, template, notes = parts(written)
    node = dict(template["spec"])
    disruption = dict(spec.get("disruption") or {})
    node["nodeClassRef"] = reference_of_beta(node["nodeClassRef"])
    node["requirements"] = _requirements(node.get("requirements") or (), notes, min_values=True)
    drop(node, "terminationGracePeriod", "spec.template.spec.terminationGracePeriod", notes)
    if kubelet:
        node["kubelet"] = kept_kubelet(kubelet, notes)
    disruption["expireAfter"] = node.pop("expireAfter", "720h")
    after = disruption.pop("consolidateAfter", "0s")
    is_when_empty = _policy(disruption, notes) == "WhenEmpty"
    disruption["consolidationPolicy"] = "WhenEmpty" if is_when_empty else "WhenUnderutilized"
    if is_when_empty:
        disruption["consolidateAfter"] = after
    elif duration.parse(after) != duration.parse("0s"):
        notes.append(f"consolidateAfter {after}: WhenUnderutilized waits for nothing")
    if any([budget.pop("reasons", None) for budget in disruption.get("budgets") or ()]):
        notes.append("budgets have no reasons: each limits all disruptions")
    spec = {**spec, "template": {**template, "spec": node}, "disruption": disruption}
    document = {**written.document, "apiVersion": "karpenter.sh/v1beta1", "metadata": metadata(written), "spec": spec}
    return Written(document, (*written.notes, *notes))


def provisioner(written: Written, kubelet: Document) -> Written:
    """The Provisioner of v1alpha5. Raises ``NoEquivalentError``."""
    given, template, notes = parts(written)
    node, of_nodes, disruption = template["spec"], template.get("metadata") or {}, given.get("disruption") or {}
    drop(node, "terminationGracePeriod", "spec.template.spec.terminationGracePeriod", notes)
    limits = dict(given.get("limits") or {})
    drop(limits, "nodes", "spec.limits.nodes", notes)
    if has_budgets_of_its_own(disruption):
        notes.append("budgets are dropped: empty nodes go at once, and of the others a tenth at a time")
    spec = {
        "labels": of_nodes.get("labels"),
        "annotations": of_nodes.get("annotations"),
        "taints": node.get("taints"),
        "startupTaints": node.get("startupTaints"),
        "requirements": _saying_all(_requirements(node.get("requirements") or (), notes, min_values=False), of_nodes),
        "providerRef": {"name": node["nodeClassRef"]["name"]},
        "kubeletConfiguration": kept_kubelet(kubelet, notes),
        "ttlSecondsUntilExpired": seconds(node.get("expireAfter", "720h")),
        "limits": {"resources": limits} if limits else None,
        "weight": given.get("weight"),
        **_ends(disruption, notes),
    }
    document = {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": metadata(written),
        "spec": without_empty(spec),
    }
    return Written(document, (*written.notes, *notes))


def parts(written: Written) -> tuple[Document, Document, list[str]]:
    """Copies of the spec and its template, and room for notes. Raises ``NoEquivalentError`` for a static NodePool."""
    spec = dict(written.document["spec"])
    if spec.get("replicas") is not None:
        raise NoEquivalentError("spec.replicas: has no equivalent")
    disruption = dict(spec.get("disruption") or {})
    if "budgets" in disruption:
        disruption["budgets"] = [dict(budget) for budget in disruption["budgets"] or ()]
    template = {**spec["template"], "spec": dict(spec["template"]["spec"])}
    obeys = written.annotations.get(labels.EXPIRATION_OBEYS_BUDGETS)
    notes = ["expired nodes wait for budgets, as they did up to v0.37"] if written.expires and obeys != "true" else []
    return {**spec, "disruption": disruption}, template, notes


def has_budgets_of_its_own(disruption: Document) -> bool:
    """Whether its budgets are others than a Provisioner's. Where none are written, Karpenter has one."""
    return bool(disruption.get("budgets", [{"nodes": "10%"}]) != provisioner_budgets())


def metadata(written: Written) -> Document:
    """Without the annotation that says what the older APIs mean anyway."""
    given: Document = written.document["metadata"]
    if not written.expires:
        return given
    annotations = {key: value for key, value in written.annotations.items() if key != labels.EXPIRATION_OBEYS_BUDGETS}
    return without_empty({**given, "annotations": annotations})


def drop(given: Document, name: str, where: str, notes: list[str]) -> None:
    """Take the field out, and say so where it said anything."""
    if given.pop(name, None) is not None:
        notes.append(f"{where} has no equivalent and is dropped")


def _requirements(given: Iterable[Document], notes: list[str], *, min_values: bool) -> list[Document]:
    """Gte and Lte are of v1 alone; ``min_values``: whether the API has them."""
    made = []
    for one in given:
        requirement = dict(one)
        if not min_values:
            drop(requirement, "minValues", f"minValues of {one['key']}", notes)
        if one["operator"] in _SHIFTED:
            operator, by = _SHIFTED[one["operator"]]
            requirement |= {"operator": operator, "values": [str(int(one["values"][0]) + by)]}
        made.append(requirement)
    return made


def _saying_all(requirements: list[Document], of_nodes: Document) -> list[Document]:
    """With what v1 leaves open and v1alpha5's webhook would fill in: linux, amd64, on-demand, ordinary categories."""
    said = {labels.canonical(one["key"]) for one in requirements} | {*(of_nodes.get("labels") or {})}
    open_keys = [key for key in _OS_AND_ARCH if key not in said]
    if not said & SIZED_BY:
        open_keys.append(CATEGORY)
    return [*requirements, *({"key": key, "operator": "Exists"} for key in open_keys)]


def _policy(disruption: Document, notes: list[str]) -> str:
    given: str = disruption.get("consolidationPolicy") or "WhenEmptyOrUnderutilized"
    if given == "Balanced":
        notes.append("the policy Balanced has no equivalent: it consolidates like WhenEmptyOrUnderutilized")
    return given


def _ends(disruption: Document, notes: list[str]) -> Document:
    """``consolidation`` or ``ttlSecondsAfterEmpty``."""
    after = disruption.get("consolidateAfter") or "0s"
    if _policy(disruption, notes) == "WhenEmpty":
        return without_empty({"ttlSecondsAfterEmpty": seconds(after)})
    if after == duration.NEVER:
        return {}
    if seconds(after):
        notes.append(f"consolidateAfter {after}: a Provisioner consolidates at once")
    return {"consolidation": {"enabled": True}}


def seconds(text: str) -> int | None:
    """A duration in seconds; None for ``Never``."""
    length = duration.parse(text)
    return None if length is None else int(length.total_seconds())
