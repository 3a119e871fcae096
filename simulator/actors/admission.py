"""The API server calling the webhook: FailedScheduling Events and changes of the objects that matter.

What passes here is what the webhook configuration's rules and CEL conditions let pass. Like the API server's, the call
carries the object before and after; unlike the API server's, it comes right after the write instead of during it.
"""

import json
from typing import Any

from joinery.objects.karpenter.labels import ON_DEMAND_SHARE, REPORTER
from simulator.doors.doors import TOKEN, Doors
from simulator.engine import Engine, Turn
from simulator.kubernetes.apiserver import Change
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.resources import KINDS, StoredEvent, to_document

WATCHED = ("Node", "NodeClaim", "NodePool", "EC2NodeClass")


class Admission:
    """Calls the webhook door for every write that its configuration matches. ``member``: the cluster, if it is not the
    stack's own.
    """

    def __init__(self, engine: Engine, cluster: InMemoryCluster, doors: Doors, *, member: str = "") -> None:
        self._engine = engine
        self._doors = doors
        self._token = f"{member}/{TOKEN}" if member else TOKEN
        self._number = 0
        cluster.listen(self._event)
        cluster.api.watch(self._change)

    def _event(self, stored: StoredEvent) -> None:
        if stored.reason == "FailedScheduling" and stored.reporter != REPORTER:
            self._call("events", "events.k8s.io/v1", "Event", event_document(stored), None)

    def _change(self, change: Change) -> None:
        if (change.kind in WATCHED and _matters(change)) or (change.kind == "Pod" and _comes_gated(change)):
            kind = KINDS[change.kind]
            after, before = _document(change.after), _document(change.before)
            self._call(kind.plural, kind.api_version, kind.name, after, before)

    def _call(self, plural: str, api_version: str, kind: str, after: Any, before: Any) -> None:
        self._number += 1
        group, _, version = api_version.rpartition("/")
        operation = "CREATE" if before is None else "DELETE" if after is None else "UPDATE"
        request = {
            "uid": f"00000000-0000-4000-8000-{self._number:012x}",
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": plural},
            "operation": operation,
            "object": after,
            "oldObject": before,
            "dryRun": False,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        call = function_url_call(review, token=self._token)
        self._engine.at(self._engine.clock.now(), Turn.ADMISSION, lambda: self._doors.invoke("webhook", call))


def function_url_call(review: dict[str, Any], *, token: str = TOKEN) -> dict[str, Any]:
    """The event of a Lambda Function URL (payload 2.0) for an AdmissionReview."""
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": f"/{token}",
        "rawQueryString": "timeout=1s",
        "headers": {"content-type": "application/json", "user-agent": "kube-apiserver-admission"},
        "requestContext": {
            "http": {"method": "POST", "path": f"/{token}", "protocol": "HTTP/1.1"},
            "stage": "$default",
        },
        "body": json.dumps(review),
        "isBase64Encoded": False,
    }


def event_document(stored: StoredEvent) -> dict[str, Any]:
    """The Event as events.k8s.io/v1."""
    event = stored.event
    moment = stored.at.isoformat().replace("+00:00", "Z")
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": f"{event.name}.{event.uid[:8]}",
            "namespace": event.namespace,
            "creationTimestamp": moment,
        },
        "eventTime": moment,
        "reportingController": stored.reporter,
        "reason": event.reason,
        "note": event.message,
        "type": "Warning" if event.warning else "Normal",
        "regarding": {
            "apiVersion": event.api_version,
            "kind": event.kind,
            "name": event.name,
            "namespace": event.namespace,
            "uid": event.uid,
        },
    }


def _comes_gated(change: Change) -> bool:
    """The CEL condition for pods: a new one waits at our gate."""
    gates = change.after.spec.scheduling_gates if change.before is None and change.after is not None else ()
    return any(gate.name == ON_DEMAND_SHARE for gate in gates)


def _matters(change: Change) -> bool:
    """The CEL condition of the webhook configuration, which keeps heartbeats inside the API server."""
    before, after = change.before, change.after
    if before is None or after is None:
        return True
    if _facts(before) != _facts(after):
        return True
    if change.kind == "NodeClaim":
        return bool(before.metadata.annotations != after.metadata.annotations)
    return _state(before) != _state(after)


def _facts(item: Any) -> tuple[Any, ...]:
    return (item.spec, item.metadata.deletion_timestamp, item.metadata.finalizers)


def _state(item: Any) -> tuple[Any, ...]:
    conditions = [(condition.type, condition.status) for condition in item.status.conditions]
    return (getattr(item.status, "allocatable", None), conditions)


def _document(item: Any) -> dict[str, Any] | None:
    return None if item is None else to_document(item)
