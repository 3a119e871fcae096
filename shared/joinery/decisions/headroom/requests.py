"""ProvisioningRequests: virtual pods that are a gang, bought for once and kept for a while.

While a request is open its pods are in plans as a buffer's are (``virtual_pods``): last of all, and created nowhere.
They are a gang, so they are bought for together, and what came in part goes back. Once all of them have room on nodes
that are fit the request is Provisioned, and the room is kept for ten minutes, in which those who asked create the pods;
each that names the request takes the place of one.

Conditions and reasons are the cluster autoscaler's (``provisioningrequest/conditions``), so that Kueue understands
them. Its Provisioned is true once nodes are requested; here, as the API says, once they are there.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from joinery.decisions.headroom.virtual_pods import virtual_pods_of
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.decisions.scheduling.solve import Stopwatch, solve_unproven
from joinery.objects.actions import UpdateRequest
from joinery.objects.autoscaling.provisioningrequest import (
    ACCEPTED,
    BOOKING_EXPIRED,
    CONSUMES,
    FAILED,
    NO_RETRY,
    PROVISIONED,
    ProvisioningRequest,
)
from joinery.objects.karpenter.conditions import Observation, false, find, put, true
from joinery.objects.karpenter.labels import FAKE_POD, PROVISIONING_REQUEST
from joinery.objects.karpenter.meta import Condition
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.shapes import Shape
from joinery.objects.snapshot.pods import is_active
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.wording import shortened

#: How long room is kept (cluster autoscaler ``defaultReservationTime``).
BOOKED = timedelta(minutes=10)
#: The most pods of one request: more than that is a mistake, and would outlast any plan.
MOST_PODS = 5_000


@dataclass(frozen=True, kw_only=True)
class ResolvedRequest:
    """An open request and the pods that stand for it. ``problem``: why there are none, though it asks for some.
    ``is_consumed``: whether all that it was for are on nodes. ``is_over``: whether room was looked for long enough.
    """

    request: ProvisioningRequest
    pods: tuple[Pod, ...] = ()
    problem: str = ""
    is_consumed: bool = False
    is_over: bool = False

    @property
    def is_sought(self) -> bool:
        """Whether nodes are bought for it."""
        return not self.request.is_check and (self.request.is_provisioned or not self.is_over)


def templates_named(snapshot: Snapshot) -> tuple[str, ...]:
    """The PodTemplates (namespace/name) of open requests."""
    requests = (request for request in snapshot.provisioning_requests if request.is_open)
    names = {f"{one.namespace}/{part.pod_template_ref.name}" for one in requests for part in one.spec.pod_sets}
    return tuple(sorted(names))


def resolve(snapshot: Snapshot, templates: Mapping[str, Shape]) -> tuple[ResolvedRequest, ...]:
    """The open requests, in the order of their names. ``templates``: by namespace/name."""
    open_ones = sorted((one for one in snapshot.provisioning_requests if one.is_open), key=lambda one: one.key)
    if not open_ones:
        return ()
    consuming = [(key, pod) for pod in snapshot.pods if (key := _consumed(pod))]
    taken = Counter(key for key, _ in consuming)
    bound = Counter(key for key, pod in consuming if pod.spec.node_name)
    resolved = (_resolved(request, templates, taken[request.key], snapshot.now) for request in open_ones)
    return tuple(
        replace(
            one,
            is_consumed=0 < _total(one.request) <= bound[one.request.key],
            is_over=_is_over(one.request, snapshot.now),
        )
        for one in resolved
    )


def _total(request: ProvisioningRequest) -> int:
    return sum(part.count for part in request.spec.pod_sets)


def _resolved(
    request: ProvisioningRequest, templates: Mapping[str, Shape], taken: int, now: datetime
) -> ResolvedRequest:
    total = _total(request)
    if total > MOST_PODS:
        return ResolvedRequest(request=request, problem=f"{total:,} pods are more than {MOST_PODS:,}")
    pods: list[Pod] = []
    for number, part in enumerate(request.spec.pod_sets):
        shape = templates.get(f"{request.namespace}/{part.pod_template_ref.name}", Shape(missing="it was not read"))
        if shape.template is None:
            return ResolvedRequest(request=request, problem=shape.missing)
        annotations = {FAKE_POD: "true", PROVISIONING_REQUEST: request.key}
        name = f"provisioning-request-{request.metadata.name}-{number}"
        meta = (name, request.namespace, f"{request.metadata.uid}-{number}")
        pods += virtual_pods_of(meta, shape.template, part.count, annotations, now)
    return ResolvedRequest(request=request, pods=tuple(pods[taken:]))


def _consumed(pod: Pod) -> str:
    """The request (namespace/name) whose room the pod takes; empty for most."""
    annotations = pod.metadata.annotations
    name = next((annotations[key] for key in CONSUMES if key in annotations), "") if annotations else ""
    return f"{pod.metadata.namespace or 'default'}/{name}" if name and is_active(pod) else ""


def to_buy(resolved: Iterable[ResolvedRequest]) -> Iterator[Pod]:
    """The pods that nodes are bought for."""
    return (pod for one in resolved if one.is_sought for pod in one.pods)


def to_keep(resolved: Iterable[ResolvedRequest]) -> Iterator[Pod]:
    """The pods whose room is kept, and those that nodes are being bought for."""
    return (pod for one in resolved if one.request.is_provisioned or one.is_sought for pod in one.pods)


def checked(
    problem: Problem, resolved: Iterable[ResolvedRequest], stopwatch: Stopwatch = lambda: 0.0
) -> Mapping[str, str]:
    """By request to check (namespace/name), why nodes that there are have no room for all of its pods, one request
    beside the other; empty where they have. Costs a packing without purchases where any is to be checked.
    """
    asked = [one for one in resolved if one.request.is_check and not one.request.is_provisioned and not one.problem]
    pods = [pod for one in asked for pod in one.pods]
    if not pods:
        return {one.request.key: "" for one in asked}
    nothing_sold = replace(problem.snapshot, node_pools=()).with_virtual(pods)
    packing = solve_unproven(replace(problem, snapshot=nothing_sold), stopwatch=stopwatch).packing
    ready, left = _ready(nothing_sold, packing), {one.pod: one.reasons for one in packing.unplaced}
    return {one.request.key: _room_there(one, ready, left) for one in asked}


def _room_there(one: ResolvedRequest, ready: frozenset[str], left: Mapping[str, tuple[Reason, ...]]) -> str:
    """How many of its pods have room, if not all have. Of a gang that is left out, its reason knows."""
    missing = [pod.key for pod in one.pods if pod.key not in ready]
    reasons = (reason for pod in missing for reason in left.get(pod, ()) if reason.code is ReasonCode.GANG)
    figures = next((dict(reason.figures) for reason in reasons), {})
    there = figures.get("found", len(one.pods) - len(missing))
    return f"{there} of {len(one.pods)} pods have room on nodes that there are" if missing else ""


def _lacking(one: ResolvedRequest, ready: frozenset[str], left: Mapping[str, tuple[Reason, ...]]) -> str:
    """Why not all of its pods have room on nodes that are fit; empty if they have."""
    missing = [pod.key for pod in one.pods if pod.key not in ready]
    there = f"{len(one.pods) - len(missing)} of {len(one.pods)} pods have room; the rest is on its way"
    return next((str(left[pod][0]) for pod in missing if pod in left), there) if missing else ""


def _ready(snapshot: Snapshot, packing: Packing) -> frozenset[str]:
    """The pods that have room on nodes that are fit."""
    fit = {view.node for view in snapshot.views if view.node and view.is_initialized}
    return frozenset(pod for placement in packing.existing if placement.node in fit for pod in placement.pods)


def request_statuses(
    snapshot: Snapshot, resolved: Sequence[ResolvedRequest], packing: Packing, lacking: Mapping[str, str]
) -> Iterator[tuple[UpdateRequest]]:
    """A chain for each request whose conditions change. ``packing``: the plan of the snapshot with its virtual pods.
    ``lacking``: see ``checked``.
    """
    ready = _ready(snapshot, packing) if resolved else frozenset[str]()
    left = {one.pod: one.reasons for one in packing.unplaced} if resolved else {}
    for one in resolved:
        why = lacking.get(one.request.key, "") if one.request.is_check else _lacking(one, ready, left)
        conditions = _conditions(one, why=why, now=snapshot.now)
        if conditions != one.request.status.conditions:
            status = one.request.status.model_copy(update={"conditions": conditions})
            after = one.request.model_copy(update={"status": status})
            yield (UpdateRequest(one.request, after, f"{conditions[-1].type}: {conditions[-1].reason}"),)


def _conditions(one: ResolvedRequest, *, why: str, now: datetime) -> list[Condition]:
    """``why`` its pods have no room; empty if they have."""
    request, at = one.request, Observation(now=now, generation=one.request.metadata.generation)
    accepted = "; ".join(("ProvisioningRequest is accepted", *request.ignored))
    conditions = put(request.status.conditions, true(ACCEPTED, at, shortened(accepted)))

    def made(kind: str, reason: str, message: str) -> list[Condition]:
        return put(conditions, true(kind, at, message, reason=reason))

    if one.problem:
        return made(FAILED, "FailedToCreatePods", one.problem)
    if request.is_provisioned and one.is_consumed:
        # Else the room would be bought again for the first of the pods that ends within these ten minutes.
        return made(BOOKING_EXPIRED, "CapacityBookingConsumed", "Capacity booking consumed: all pods scheduled")
    if request.is_provisioned:
        since = find(conditions, PROVISIONED)
        if since is not None and since.last_transition_time and now - since.last_transition_time >= BOOKED:
            return made(BOOKING_EXPIRED, "CapacityReservationTimeExpired", "Capacity reservation time is expired")
        return conditions
    if not why:
        # Found are nodes that nobody had to ask for.
        was_sought = not request.is_check and find(conditions, PROVISIONED) is not None
        reason = "CapacityIsProvisioned" if was_sought else "CapacityIsFound"
        return made(PROVISIONED, reason, "Capacity is found in the cluster")
    if request.is_check and request.spec.parameters.get(NO_RETRY) == "true":
        return made(FAILED, "CapacityIsNotFound", why)
    if one.is_over:
        return made(FAILED, "Expired", "ProvisioningRequest is expired")
    return put(conditions, false(PROVISIONED, "CapacityIsNotFound", why, at))


def _is_over(request: ProvisioningRequest, now: datetime) -> bool:
    created = request.metadata.creation_timestamp
    return created is not None and now - created >= request.lasts
