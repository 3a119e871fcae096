"""What hostile pods are made of: documents, as a tenant would send them to an API server."""

from collections.abc import Iterable, Mapping
from typing import Any

Document = dict[str, Any]
TENANT = "tenant"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def pod(
    name: str,
    *,
    namespace: str = TENANT,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    container: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Document:
    """A small pod that waits for a node. ``container``, ``spec``: further fields, in camel case."""
    asked = {"cpu": "10m", "memory": "16Mi", **(requests or {})}
    main = {"name": "main", "image": "x", "resources": {"requests": asked}, **(container or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}, "annotations": annotations or {}},
        "spec": {"containers": [main], **spec},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }


def expression(key: str, operator: str, values: Iterable[str] = ()) -> Document:
    return {"key": key, "operator": operator, "values": list(values)}


def node_affinity(*terms: Iterable[Document]) -> Document:
    """Required node affinity: any of the terms, each of which is expressions."""
    alternatives = [{"matchExpressions": list(term)} for term in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": alternatives}}}


def preferred_nodes(*expressions: Document) -> Document:
    """A preference of nodes for each of the expressions."""
    terms = [
        {"weight": number % 100 + 1, "preference": {"matchExpressions": [e]}} for number, e in enumerate(expressions)
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def pod_terms(side: str, terms: Iterable[Document]) -> Document:
    """``side``: podAffinity or podAntiAffinity, required."""
    return {side: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def preferred_pods(side: str, terms: Iterable[Document]) -> Document:
    """``side``: podAffinity or podAntiAffinity, preferred."""
    weighted = [{"weight": number % 100 + 1, "podAffinityTerm": term} for number, term in enumerate(terms)]
    return {side: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def selecting(*expressions: Document, key: str = HOST, **more: Any) -> Document:
    """A term about pods that the expressions select."""
    return {"topologyKey": key, "labelSelector": {"matchExpressions": list(expressions)}, **more}


def spread(*, key: str = ZONE, hard: bool, labels: Mapping[str, str] | None = None, **more: Any) -> Document:
    when = "DoNotSchedule" if hard else "ScheduleAnyway"
    selector = {"matchLabels": dict(labels or {})}
    return {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": when, "labelSelector": selector, **more}


def words(count: int, stem: str = "value") -> list[str]:
    """So many different label values."""
    return [f"{stem}-{number:05}" for number in range(count)]
