"""Provisioner and Machine (karpenter.sh/v1alpha5) as NodePool and NodeClaim."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from joinery.objects.karpenter.labels import (
    ARCH,
    AWS_GROUP,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ON_DEMAND,
    OS,
    PROVISIONER_NAME,
    canonical,
)
from joinery.objects.karpenter.legacy.names import INSTANCE_PODS, NotConvertibleError, metadata, renamed
from joinery.objects.karpenter.legacy.nodetemplate import class_spec
from joinery.objects.own_keys import FOR_PEOPLE, NODE_CLASS

Document = dict[str, Any]

CATEGORY, _GENERATION, _FAMILY = (f"{AWS_GROUP}/instance-{name}" for name in ("category", "generation", "family"))
#: Our annotations that nothing reads of a class: those of a Provisioner are about its pool.
_OF_OTHERS = frozenset(name for name, own in FOR_PEOPLE.items() if NODE_CLASS not in own.about)
#: Who names one of these has no default kinds of instance types.
SIZED_BY = frozenset({INSTANCE_TYPE, _FAMILY, CATEGORY, _GENERATION})
#: Settings of the kubelet that v1 has too.
KUBELET_FIELDS = (
    "clusterDNS", "systemReserved", "kubeReserved", "evictionHard", "evictionSoft", "evictionSoftGracePeriod",
    "evictionMaxPodGracePeriod", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "cpuCFSQuota", "maxPods",
    "podsPerCore",
)  # fmt: skip


@dataclass(frozen=True)
class ConvertedPool:
    """A NodePool document, the kubelet settings that belong in its class, and the class it brought inline, if any."""

    document: Document
    kubelet: Document = field(default_factory=dict)
    node_class: Document | None = None
    notes: tuple[str, ...] = ()
    class_notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        name: str = self.document["metadata"]["name"]
        return name

    @property
    def class_name(self) -> str:
        name: str = self.document["spec"]["template"]["spec"]["nodeClassRef"].get("name", "")
        return name

    def referring_to(self, class_name: str) -> "ConvertedPool":
        """The same pool with nodes of another class."""
        spec, template = self.document["spec"], self.document["spec"]["template"]
        reference = {**template["spec"]["nodeClassRef"], "name": class_name}
        template = {**template, "spec": {**template["spec"], "nodeClassRef": reference}}
        return replace(self, document={**self.document, "spec": {**spec, "template": template}})


def pool(given: Document, *, of_ordinary_kinds: bool = True) -> ConvertedPool:
    """The NodePool of a Provisioner. Raises ``NotConvertibleError``.

    ``of_ordinary_kinds``: whether one that names no kinds of instance types had some by default.
    """
    spec = given.get("spec") or {}
    node_class, class_notes = _inline_class(given, spec)
    requirements, notes = _requirements(spec, of_ordinary_kinds=of_ordinary_kinds)
    template: Document = {
        "metadata": {
            # Pods of such a cluster select nodes by it.
            "labels": {**(spec.get("labels") or {}), PROVISIONER_NAME: (given.get("metadata") or {}).get("name", "")},
            **_present(annotations=renamed(spec.get("annotations") or {})),
        },
        "spec": {
            "nodeClassRef": reference(spec.get("providerRef") or {"name": (given.get("metadata") or {}).get("name")}),
            "requirements": requirements,
            "expireAfter": _seconds(spec.get("ttlSecondsUntilExpired"), "ttlSecondsUntilExpired"),
            **_taints(spec),
        },
    }
    kubelet = kept_kubelet(spec.get("kubeletConfiguration"), notes)
    limits = (spec.get("limits") or {}).get("resources")
    document = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": metadata(given),
        "spec": {
            "template": template,
            "disruption": _disruption(spec),
            **_present(limits=limits, weight=spec.get("weight")),
        },
    }
    return ConvertedPool(document, kubelet, node_class, tuple(notes), tuple(class_notes))


def reference(given: Document) -> Document:
    """``nodeClassRef`` of a ``providerRef``, or of v1beta1's ``nodeClassRef``, which named an API version."""
    group = str(given.get("apiVersion") or given.get("group") or AWS_GROUP).partition("/")[0]
    kind = given.get("kind") or "EC2NodeClass"
    return {"group": group, "kind": "EC2NodeClass" if kind == "AWSNodeTemplate" else kind, "name": given.get("name")}


def kept_kubelet(given: Document | None, notes: list[str]) -> Document:
    """The settings that v1 has too."""
    listed = given or {}
    lost = sorted(set(listed) - set(KUBELET_FIELDS))
    if lost:
        notes.append(f"kubelet setting {', '.join(lost)} has no equivalent and is dropped")
    return {name: value for name, value in listed.items() if name in KUBELET_FIELDS and value is not None}


def _inline_class(given: Document, spec: Document) -> tuple[Document | None, Sequence[str]]:
    """The class of the ``provider`` block: once the only way to say what an instance is made of."""
    inline = spec.get("provider")
    if inline and spec.get("providerRef"):
        raise NotConvertibleError("spec.provider: must not be set together with providerRef")
    if not inline:
        if not (spec.get("providerRef") or {}).get("name"):
            raise NotConvertibleError("spec.providerRef: needs the name of an AWSNodeTemplate")
        return None, ()
    if not isinstance(inline, dict):
        raise NotConvertibleError("spec.provider: must be an object")
    converted, notes = class_spec(inline, "spec.provider")
    own = metadata(given)
    annotations = {key: text for key, text in own.pop("annotations", {}).items() if key not in _OF_OTHERS}
    own |= _present(annotations=annotations)
    return {"apiVersion": f"{AWS_GROUP}/v1", "kind": "EC2NodeClass", "metadata": own, "spec": converted}, notes


# --- requirements ---


def _requirements(spec: Document, *, of_ordinary_kinds: bool) -> tuple[list[Document], list[str]]:
    """What it asks for, ``instanceTypes`` among it, and what the webhook would have added."""
    notes: list[str] = []
    found = [dict(requirement) for requirement in spec.get("requirements") or ()]
    if any(requirement.get("key") == INSTANCE_PODS for requirement in found):
        notes.append(f"requirements on {INSTANCE_PODS} are dropped: instances no longer carry that label")
        found = [requirement for requirement in found if requirement.get("key") != INSTANCE_PODS]
    if spec.get("instanceTypes"):
        found.append(_in(INSTANCE_TYPE, *spec["instanceTypes"]))
    keys = {canonical(str(requirement.get("key"))) for requirement in found}
    said = keys | {canonical(key) for key in spec.get("labels") or ()}
    return [*found, *_defaults(said, of_ordinary_kinds=of_ordinary_kinds)], notes


def _defaults(found: set[str], *, of_ordinary_kinds: bool) -> Iterable[Document]:
    """The webhook's defaults, for keys of which neither a requirement nor a label says anything."""
    if OS not in found:
        yield _in(OS, "linux")
    if ARCH not in found:
        yield _in(ARCH, "amd64")
    if CAPACITY_TYPE not in found:
        yield _in(CAPACITY_TYPE, ON_DEMAND)
    if of_ordinary_kinds and not found & SIZED_BY:
        yield _in(CATEGORY, "c", "m", "r")
        yield {"key": _GENERATION, "operator": "Gt", "values": ["2"]}


def _in(key: str, *values: str) -> Document:
    return {"key": key, "operator": "In", "values": list(values)}


# --- disruption ---


def _disruption(spec: Document) -> Document:
    """``consolidation.enabled`` or ``ttlSecondsAfterEmpty``; with neither, nodes stay until they expire."""
    consolidates = bool((spec.get("consolidation") or {}).get("enabled"))
    after_empty = spec.get("ttlSecondsAfterEmpty")
    if consolidates and after_empty is not None:
        raise NotConvertibleError("spec.ttlSecondsAfterEmpty: must not be set together with consolidation.enabled")
    budgets = provisioner_budgets()
    if consolidates:
        return {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s", "budgets": budgets}
    after = _seconds(after_empty, "ttlSecondsAfterEmpty")
    return {"consolidationPolicy": "WhenEmpty", "consolidateAfter": after, "budgets": budgets}


def provisioner_budgets() -> list[Document]:
    """There were none: all nodes that were empty went at once. What moves pods keeps the budget that Karpenter gives
    where none is found.
    """
    return [{"nodes": "100%", "reasons": ["Empty"]}, {"nodes": "10%", "reasons": ["Underutilized", "Drifted"]}]


def _seconds(given: object, name: str) -> str:
    if given is None:
        return "Never"
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise NotConvertibleError(f"spec.{name}: {given!r} is not a number of seconds")
    return f"{given}s"


def _present(**fields: object) -> Document:
    return {name: value for name, value in fields.items() if value}


def _taints(spec: Document) -> Document:
    """Both kinds of taints, without the empty values that v1 does not take."""
    given = {name: spec.get(name) or [] for name in ("taints", "startupTaints")}
    return _present(**{name: [_present(**taint) for taint in taints] for name, taints in given.items()})


# --- machines ---


def claim(given: Document) -> Document:
    """The NodeClaim of a Machine: conditions lose their prefix, labels their old names."""
    spec, status = given.get("spec") or {}, given.get("status") or {}
    generation = (given.get("metadata") or {}).get("generation")
    # Its conditions say of no generation that it was observed: a Machine's spec never changes.
    observed = {} if generation is None else {"observedGeneration": generation}
    conditions = [
        {**observed, **condition, "type": str(condition.get("type")).removeprefix("Machine")}
        for condition in status.get("conditions") or ()
    ]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": metadata(given, is_claim=True),
        "spec": claim_spec(spec, spec.get("machineTemplateRef") or {}),
        "status": {**status, "conditions": conditions},
    }


def claim_spec(spec: Document, class_reference: Document) -> Document:
    """What a claim of either version says; ages were the pool's business, not the claim's."""
    requirements = [r for r in spec.get("requirements") or () if r.get("key") != INSTANCE_PODS]
    return {
        "nodeClassRef": reference(class_reference),
        "requirements": requirements,
        "expireAfter": "Never",
        **_present(resources=spec.get("resources")),
        **_taints(spec),
    }
