"""The webhook's answer: it rings a bell, or it does not, and lets everything pass.

The API server calls at every FailedScheduling Event and at every change of a Node, NodeClaim, NodePool, node class or
CapacityBuffer, and waits. So this module is a doorbell and nothing else: it decides from the review alone which bells
matter, rings them, and always allows. Nothing heavy may be imported here, because a cold start is time the API server
waits.

Who calls is known by one path segment of the URL, a secret of at least 32 characters: an admission webhook can send
neither a query string nor a password. A member's path has its cluster's name before it. Without the secret a caller
gets 403 and learns nothing. Two tokens may be valid at a time (``objects.kubernetes.webhook_secret``). A refusal costs
no request, no line of the log, and no look at the body: anybody can have it made, and we pay.
"""

import hmac
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from joinery.controllers.telemetry import BELL, ERROR, Count, count, logger, of_member
from joinery.controllers.triggers.admission import (
    LARGEST_BODY,
    Request,
    allowed,
    body_of,
    path_of,
    request_in,
    uid_at_the_start,
)
from joinery.gateways.doorbell.gateway import Bell, Doorbell, Tokens, slot
from joinery.objects.errors import JoineryError
from joinery.objects.karpenter import labels

#: Refusals are counted in the metrics no more often than this: each line of a log is paid for.
COUNTED_EVERY = timedelta(minutes=1)

#: A Kubernetes object, as JSON.
Object = Mapping[str, Any]
#: The bells that a change is worth. It takes the object after the change and before it, and the operation's name.
Judge = Callable[[Object, Object, str], frozenset[Bell]]
#: What of an object matters to somebody who would be woken.
Facts = Callable[[Object], tuple[Any, ...]]


class WebhookController:
    """Answers one call. Costs one SQS message a bell and slot at most, however many calls there are: the message of the
    first is delivered when the slot has ended (``gateways.doorbell.gateway``). ``now`` gives the moment of a call.
    ``member``: the cluster, if it is not the stack's own.
    """

    def __init__(
        self, doorbell: Doorbell, tokens: Tokens, *, now: Callable[[], datetime], enabled: bool = True, member: str = ""
    ) -> None:
        self._doorbell = doorbell
        self._tokens = tokens
        self._now = now
        self._enabled = enabled
        self._member = member
        self._place = f"/{member}/" if member else "/"
        self._refused = 0
        self._counted: datetime | None = None
        self._rung: dict[Bell, int] = {}

    def answer(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """The response to a call (``controllers.triggers.admission``): 403 for a wrong token, 503 while the secret
        could not be read yet, else ``allowed: true``.
        """
        of_member(self._member)
        try:
            is_known = self._knows(call)
        except JoineryError as error:
            count(Count.REVIEWS_UNJUDGED)
            logger.error("nobody can be known", extra={ERROR: str(error)})
            return {"statusCode": 503}
        if not is_known:
            self._refuse()
            return {"statusCode": 403}
        body = body_of(call)
        request = request_in(body)
        if request is None:
            count(Count.REVIEWS_TOO_LARGE if len(body) > LARGEST_BODY else Count.REVIEWS_MALFORMED)
            return allowed(uid_at_the_start(body))
        self._ring(request)
        return allowed(request["uid"])

    def _knows(self, call: Mapping[str, Any]) -> bool:
        """Whether the path has a valid token, compared in constant time. Without a secret no token is valid."""
        path = path_of(call)
        # Every token is compared: the time must not tell which one was nearly right.
        return any([hmac.compare_digest(path, f"{self._place}{token}".encode()) for token in self._tokens.valid()])

    def _refuse(self) -> None:
        """Count a refusal, and send all since the last time as a metric if that is a while ago."""
        self._refused += 1
        now = self._now()
        if self._counted is None or now - self._counted >= COUNTED_EVERY:
            count(Count.REVIEWS_FORBIDDEN, self._refused)
            self._refused, self._counted = 0, now

    def _ring(self, request: Request) -> None:
        """Ring the bells that the request is worth.

        One that cannot be rung is logged; the schedule rings it within a minute.
        """
        if not self._enabled:
            count(Count.SWITCHED_OFF)
            return
        now = self._now()
        for bell in sorted(bells(request), key=lambda bell: bell.value):
            if self._rung.get(bell) == slot(bell, now):
                continue
            try:
                self._doorbell.ring(bell)
                count(Count.BELLS_RUNG)
                self._rung[bell] = slot(bell, now)
            except JoineryError as error:
                count(Count.RUNS_FAILED)
                logger.error("the bell could not be rung", extra={BELL: bell.value, ERROR: str(error)})


def bells(request: Request) -> frozenset[Bell]:
    """The bells that a request is worth: none for a dry run, or for a resource that nobody looks at."""
    if request.get("dryRun"):
        return frozenset()
    judges: Mapping[str, Judge] = {
        "events.": _event,
        "events.events.k8s.io": _event,
        "nodes.": _node,
        "pods.": _pod,
        "capacitybuffers.autoscaling.x-k8s.io": _room,
        "provisioningrequests.autoscaling.x-k8s.io": _room,
        f"nodeclaims.{labels.CORE_GROUP}": _node_claim,
        f"machines.{labels.CORE_GROUP}": _node_claim,
        f"nodepools.{labels.CORE_GROUP}": _configuration,
        f"provisioners.{labels.CORE_GROUP}": _configuration,
        f"ec2nodeclasses.{labels.AWS_GROUP}": _configuration,
        f"awsnodetemplates.{labels.AWS_GROUP}": _configuration,
    }
    resource = _mapping(request, "resource")
    judge = judges.get(f"{resource.get('resource')}.{resource.get('group', '')}")
    if judge is None:
        return frozenset()
    return judge(_mapping(request, "object"), _mapping(request, "oldObject"), str(request.get("operation")))


def _event(event: Object, _: Object, operation: str) -> frozenset[Bell]:
    """A pod that fits nowhere, whichever scheduler says so.

    Our own Events are left out, or they would wake us again.
    """
    ours = labels.REPORTER in (
        event.get("reportingController"),
        event.get("reportingComponent"),
        _mapping(event, "source").get("component"),
        _mapping(event, "deprecatedSource").get("component"),
    )
    pending = event.get("reason") == "FailedScheduling" and operation in ("CREATE", "UPDATE")
    return frozenset({Bell.PROVISIONING}) if pending and not ours else frozenset()


def _node(node: Object, before: Object, operation: str) -> frozenset[Bell]:
    """A change that registration, initialization or termination look at. A kubelet's heartbeat is none."""
    return _changed(node, before, operation, of=_node_facts, worth={Bell.LIFECYCLE})


def _node_facts(node: Object) -> tuple[Any, ...]:
    return (
        _leaving(node),
        _mapping(node, "metadata").get("finalizers"),
        _mapping(node, "spec"),
        _mapping(node, "status").get("allocatable"),
        [(condition.get("type"), condition.get("status")) for condition in _conditions(node)],
    )


def _pod(pod: Object, _: Object, operation: str) -> frozenset[Bell]:
    """A new pod that waits at our gate. kube-scheduler says nothing about it."""
    gates = _mapping(pod, "spec").get("schedulingGates")
    is_ours = isinstance(gates, list) and {"name": labels.ON_DEMAND_SHARE} in gates
    return frozenset({Bell.LIFECYCLE}) if is_ours and operation == "CREATE" else frozenset()


def _room(asked: Object, before: Object, operation: str) -> frozenset[Bell]:
    """Room that is asked for anew, or otherwise: nobody else sees to it. What is deleted has nothing bought."""
    is_going = operation == "DELETE" or _leaving(asked)
    return frozenset() if is_going else _changed(asked, before, operation, of=_room_facts, worth={Bell.PROVISIONING})


def _room_facts(asked: Object) -> tuple[Any, ...]:
    return _mapping(asked, "spec"), _mapping(_mapping(asked, "metadata"), "annotations")


def _node_claim(claim: Object, before: Object, operation: str) -> frozenset[Bell]:
    """A claim that is retired leaves pods that need another node, so provisioning is woken.

    Any change wakes lifecycle.
    """
    retired = _changed(claim, before, operation, of=_retirement, worth={Bell.PROVISIONING})
    if operation == "CREATE":
        retired = frozenset()
    return retired | _changed(claim, before, operation, of=_claim_facts, worth={Bell.LIFECYCLE})


def _retirement(claim: Object) -> tuple[Any, ...]:
    annotations = _mapping(_mapping(claim, "metadata"), "annotations")
    return (_leaving(claim), annotations.get(labels.INTERRUPTED_AT))


def _claim_facts(claim: Object) -> tuple[Any, ...]:
    metadata = _mapping(claim, "metadata")
    return (_retirement(claim), _mapping(metadata, "annotations"), metadata.get("finalizers"))


def _configuration(thing: Object, before: Object, operation: str) -> frozenset[Bell]:
    """A NodePool or node class that changed may have room for pods that had none."""
    return _changed(thing, before, operation, of=_configuration_facts, worth={Bell.PROVISIONING, Bell.LIFECYCLE})


def _configuration_facts(thing: Object) -> tuple[Any, ...]:
    ready = [condition.get("status") for condition in _conditions(thing) if condition.get("type") == "Ready"]
    return (_leaving(thing), _mapping(thing, "spec"), ready)


def _changed(after: Object, before: Object, operation: str, *, of: Facts, worth: set[Bell]) -> frozenset[Bell]:
    """The bells, if the facts that matter differ. What is created or deleted always matters."""
    differs = operation in ("CREATE", "DELETE") or of(after) != of(before)
    return frozenset(worth) if differs else frozenset()


def _leaving(thing: Object) -> bool:
    return bool(_mapping(thing, "metadata").get("deletionTimestamp"))


def _conditions(thing: Object) -> list[Object]:
    """The conditions in an object's status. Anything that is not one is left out."""
    conditions = _mapping(thing, "status").get("conditions")
    if not isinstance(conditions, list):
        return []
    return [condition for condition in conditions if isinstance(condition, Mapping)]


def _mapping(thing: Object, key: str) -> Object:
    """A field that should be an object; empty where it is missing or something else."""
    value = thing.get(key)
    return value if isinstance(value, Mapping) else {}
