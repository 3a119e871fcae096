"""Which nodes may be disrupted, and why others must be left alone (Karpenter, disruption candidates)."""

from collections.abc import Iterator

from tools.consolidation.contract.cluster import Cluster, consolidate_after, go_duration, is_leaving
from tools.consolidation.documents import (
    Document,
    is_active,
    is_owned_by,
    is_reschedulable,
    is_true,
    key_of,
    moment,
)

_PROTECTED = "karpenter.sh/do-not-disrupt"
_CONSOLIDATION = ("Empty", "Underutilized")


def violations(cluster: Cluster, plan: Document) -> Iterator[str]:
    """Of each retired claim of each command."""
    for number, command in enumerate(plan["commands"]):
        for claim in command["retire"]:
            if claim in cluster.claims:
                what = f"command {number} ({command['reason']}): claim {claim}"
                yield from (f"{what}: {why}" for why in _objections(cluster, claim, command["reason"]))


def _objections(cluster: Cluster, claim: str, reason: str) -> Iterator[str]:
    document, node, pool = cluster.claims[claim], cluster.node_of(claim), cluster.pool_of(claim)
    if node is None:
        yield "has no node"
        return
    if not is_true(document, "Initialized"):
        yield "is not initialised"
    if is_leaving(document) or node["metadata"].get("deletionTimestamp"):
        yield "is being deleted already"
    if node["metadata"].get("annotations", {}).get(_PROTECTED) == "true":
        yield f"its node has {_PROTECTED}"
    if pool is None:
        yield "its NodePool does not exist"
        return
    # A terminationGracePeriod promises that a drifted node can be replaced, whatever its pods say.
    if reason in _CONSOLIDATION or "terminationGracePeriod" not in document["spec"]:
        yield from _of_pods(cluster, claim)
    if reason in _CONSOLIDATION:
        yield from _of_policy(cluster, claim, pool, reason)


def _of_pods(cluster: Cluster, claim: str) -> Iterator[str]:
    for pod in cluster.pods_of(claim):
        if is_active(pod) and _is_protected(cluster, pod):
            yield f"its pod {key_of(pod)} has {_PROTECTED}"
        else:
            yield from _of_disruption_budgets(cluster, pod)


def holds_out(cluster: Cluster, pod: Document) -> bool:
    """Whether no eviction would ever end the pod (specification 2.8, "fully blocking")."""
    matching = _asked(cluster, pod)
    specs = [budget["spec"] for budget in matching]
    never = any(str(s.get("maxUnavailable")) in ("0", "0%") or str(s.get("minAvailable")) == "100%" for s in specs)
    return _is_protected(cluster, pod) or len(matching) > 1 or never


def _is_protected(cluster: Cluster, pod: Document) -> bool:
    value = str(pod["metadata"].get("annotations", {}).get(_PROTECTED, ""))
    lasts = go_duration(value)
    if value == "true" or lasts is None:
        return value == "true"
    began = pod.get("status", {}).get("startTime")
    return lasts.total_seconds() > 0 and (began is None or cluster.now - moment(began) < lasts)


def _of_disruption_budgets(cluster: Cluster, pod: Document) -> Iterator[str]:
    """PodDisruptionBudgets as decisions take them (specification 2.8)."""
    if not is_active(pod) or is_owned_by(pod, "v1", "Node") or _tolerates_disruption(pod):
        return
    matching = _asked(cluster, pod)
    if len(matching) > 1:
        yield f"its pod {key_of(pod)} has {len(matching)} PodDisruptionBudgets"
    for budget in matching:
        if not budget.get("status", {}).get("disruptionsAllowed", 0):
            yield f"PodDisruptionBudget {budget['metadata']['name']} of its pod {key_of(pod)} allows no disruption"


def _asked(cluster: Cluster, pod: Document) -> list[Document]:
    """The PodDisruptionBudgets that the eviction API asks about the pod (kube-apiserver ``EvictionREST``)."""
    status = pod.get("status", {})
    matching = [budget for budget in cluster.disruption_budgets if _selects(budget, pod)]
    if status.get("phase") == "Pending":
        return []
    is_ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in status.get("conditions", ()))
    return [] if len(matching) == 1 and not is_ready and _lets_unready_go(matching[0]) else matching


def _lets_unready_go(budget: Document) -> bool:
    healthy, wanted = (budget.get("status", {}).get(key, 0) for key in ("currentHealthy", "desiredHealthy"))
    return bool(healthy >= wanted > 0) or budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"


def _tolerates_disruption(pod: Document) -> bool:
    """Whether the pod tolerates the taint of a node that goes, which has no value."""
    return any(
        toleration.get("key", "") in ("", "karpenter.sh/disrupted")
        and toleration.get("effect", "") in ("", "NoSchedule")
        and not toleration.get("value")
        for toleration in pod["spec"].get("tolerations", ())
    )


def _selects(budget: Document, pod: Document) -> bool:
    selector = budget["spec"].get("selector")
    namespaces = (item["metadata"].get("namespace", "default") for item in (budget, pod))
    if selector is None or len(set(namespaces)) > 1:
        return False
    labels = pod["metadata"].get("labels", {})
    is_equal = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return is_equal and all(_fits(entry, labels) for entry in selector.get("matchExpressions") or ())


def _fits(expression: Document, labels: dict[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None


def _of_policy(cluster: Cluster, claim: str, pool: Document, reason: str) -> Iterator[str]:
    disruption = pool["spec"].get("disruption", {})
    if "replicas" in pool["spec"]:
        yield "its NodePool is static"
    if consolidate_after(pool) is None:
        yield f"its NodePool has consolidateAfter {disruption.get('consolidateAfter')}"
    elif not cluster.is_settled(claim) and not is_true(cluster.claims[claim], "Consolidatable"):
        yield "its consolidateAfter has not passed"
    pods = [pod for pod in cluster.pods_of(claim) if is_reschedulable(pod)]
    if pods and reason == "Empty":
        yield f"runs {len(pods)} pods that need another node"
    if pods and disruption.get("consolidationPolicy") == "WhenEmpty":
        yield f"its NodePool's consolidationPolicy is WhenEmpty, and it runs {len(pods)} pods"
