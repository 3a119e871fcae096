"""A decision as a document: what was read, with which options, and what was decided.

The document is a Kubernetes ``List`` of every object of the snapshot, which ``joinery plan -f`` and ``joinery disrupt
-f`` read, so that a recorded decision can be made again on anybody's desk. What is not an object (the moment, the
policies, the offerings that EC2 was out of, what was left of capacity reservations, what is paid for already, the
result) is beside it under ``joinery``.

A record is kept, mailed and looked at by many, and objects carry what nobody should see: ``kubectl apply`` repeats a
whole manifest in an annotation, user data holds tokens. So a record has what decisions read and nothing besides: the
fields that the models have, of annotations those on a list, of a node class those that instance types depend on.

Each purchase is recorded and paid for, so a record has a ceiling: the largest pods beyond it are left out, and their
number is said.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate, chain
from typing import Any

import msgspec
from pydantic import BaseModel

from joinery import __version__
from joinery.controllers.acting.actor import Actor
from joinery.controllers.telemetry import COST, PAID, RECORD, logger
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.gateways.memory.bucket import Store
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.conditions import READY
from joinery.objects.karpenter.validation import MOST_ANNOTATED
from joinery.objects.snapshot import gangs
from joinery.objects.snapshot.offerings import OfferingKey
from joinery.objects.snapshot.pod_events import PODS_SEEN
from joinery.objects.snapshot.pod_groups import PodGroup
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.snapshot.vertical_autoscalers import VPA_IN_PLACE, VPA_UPDATES
from joinery.objects.wording import shortened

#: How often a plan that was refused is recorded: those of the next seconds are the same, and each is paid for.
REFUSALS_RECORDED_EVERY = timedelta(minutes=10)
#: The annotations that decisions read.
_READ = frozenset(
    {
        labels.DO_NOT_DISRUPT, labels.NODE_SIZE, labels.MAX_NODE_SHARE, labels.REBALANCE, labels.MIN_VALUES_RELAXED,
        labels.DEVICE_DRIVERS, labels.GPU_SHARING, labels.RESOURCE_SLICES,
        labels.PLANNED_PODS, labels.PLANNED_NEEDS, labels.GANGS, labels.UNSERVED_NEEDS, labels.SURGED_PODS,
        labels.INTERRUPTED_AT, labels.RETIRED_FOR, labels.REPLACEMENT_LAUNCHED,
        labels.DISRUPTION_COMMAND, labels.REPLACES, labels.DISRUPTION, labels.DISRUPTION_PRICE,
        labels.DISRUPTION_RATE, labels.DISRUPTED_LATELY, labels.EVICTION_RATE, labels.PAYBACK,
        labels.CANARY, labels.CANARY_APPROVED, labels.CANARIES, labels.RAN_WELL, labels.TERMINATE_FIRST,
        labels.OVERRIDES, labels.PAUSE, labels.PAUSED,
        labels.NEW_NODES_REPAY, labels.BOUGHT_FOR, labels.BOUGHT_FOR_DISPLACED, labels.MOVED_LATELY,
        labels.TERMINATION_TIMESTAMP, labels.LAUNCH_TOKEN, labels.NODE_POOL_HASH, labels.NODE_POOL_HASH_VERSION,
        labels.NODE_CLASS_HASH, labels.NODE_CLASS_HASH_VERSION,
        labels.FAKE_POD, labels.PROVISIONING_REQUEST, labels.BUFFER_NAME, labels.BUFFER_NAMESPACE,
        labels.POD_DELETION_COST, labels.DISRUPTION_COST, VPA_UPDATES, VPA_IN_PLACE,
        gangs.KUEUE_GROUP, gangs.KUEUE_TOTAL, gangs.KUEUE_FAST_ADMISSION, *gangs.VOLCANO_GROUPS,
        labels.BIND_COMPLETED, labels.SELECTED_NODE, labels.BETA_STORAGE_CLASS,
        "storageclass.kubernetes.io/is-default-class",
    }
)  # fmt: skip
#: Bytes of JSON that the pods of a record have at most: a usual one takes 500, so these are 30,000 pods.
MOST_OF_PODS = 16 << 20
#: Stands for annotations of a template that were left out, with as many characters: their number is judged
#: (``objects.karpenter.validation``).
_LEFT_OUT = f"{labels.OWN_GROUP}/left-out"
#: Field of the snapshot to the API version and kind of the Kubernetes objects in it that are no pods.
_KINDS = {
    "nodes": ("v1", "Node"),
    "daemon_sets": ("apps/v1", "DaemonSet"),
    "namespaces": ("v1", "Namespace"),
    "priority_classes": ("scheduling.k8s.io/v1", "PriorityClass"),
    "volume_claims": ("v1", "PersistentVolumeClaim"),
    "volumes": ("v1", "PersistentVolume"),
    "storage_classes": ("storage.k8s.io/v1", "StorageClass"),
    "csi_nodes": ("storage.k8s.io/v1", "CSINode"),
    "csi_drivers": ("storage.k8s.io/v1", "CSIDriver"),
    "storage_capacities": ("storage.k8s.io/v1", "CSIStorageCapacity"),
    "volume_attachments": ("storage.k8s.io/v1", "VolumeAttachment"),
    "disruption_budgets": ("policy/v1", "PodDisruptionBudget"),
    "replica_sets": ("apps/v1", "ReplicaSet"),
    "stateful_sets": ("apps/v1", "StatefulSet"),
    "jobs": ("batch/v1", "Job"),
    "replication_controllers": ("v1", "ReplicationController"),
    "vertical_autoscalers": ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"),
    "scheduling_groups": ("scheduling.k8s.io/v1beta1", "PodGroup"),
    "coscheduling_groups": ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    "volcano_groups": ("scheduling.volcano.sh/v1beta1", "PodGroup"),
    "resource_claims": ("resource.k8s.io/v1", "ResourceClaim"),
    "resource_claim_templates": ("resource.k8s.io/v1", "ResourceClaimTemplate"),
    "device_classes": ("resource.k8s.io/v1", "DeviceClass"),
    "resource_slices": ("resource.k8s.io/v1", "ResourceSlice"),
}


class PlanRecorder:
    """Writes the plans of a door to the bucket, refused ones too: a person will want to look at them."""

    def __init__(self, store: Store, door: str) -> None:
        self._store = store
        self._door = door
        self._refused_at: datetime | None = None

    def record(
        self, what: str, problem: Problem, packing: Packing, unavailable: Iterable[OfferingKey], actor: Actor
    ) -> None:
        """``what``: ``decided`` or ``refused``. If it cannot be written, the actor notes that, and the run goes on."""
        now = problem.snapshot.now
        if what == "refused":
            if self._refused_at is not None and timedelta() <= now - self._refused_at < REFUSALS_RECORDED_EVERY:
                return
            self._refused_at = now
        with actor.noting(f"the plan of {self._door} that was {what} was not recorded"):
            key = self._store.record(self._door, now, decision_document(problem, packing, unavailable))
            paid = {PAID: round(packing.paid, 4)} if problem.commitments else {}
            logger.info(what, extra={RECORD: key, COST: packing.hourly, **paid})


def decision_document(problem: Problem, packing: Packing, unavailable: Iterable[OfferingKey]) -> dict[str, Any]:
    """The document of one plan."""
    return _document(problem, unavailable, result=packing)


def disruption_document(
    problem: DisruptionProblem, disruptions: DisruptionDecision, unavailable: Iterable[OfferingKey]
) -> dict[str, Any]:
    """The document of one decision about disruption."""
    alone = sorted(name for name, replicas in problem.replicas.items() if replicas == 1)
    return _document(problem.packing, unavailable, disruption=problem.options, onlyReplicas=alone, result=disruptions)


def _document(problem: Problem, unavailable: Iterable[OfferingKey], **decided: Any) -> dict[str, Any]:
    groups = sorted(problem.snapshot.pod_groups, key=lambda group: group.node)
    pods = [line for group in groups for line in zlib.decompress(group.derived(_recorded)).splitlines()]
    kept = _not_too_large(pods)
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [*_items(problem.snapshot), *map(msgspec.Raw, kept)],
        "joinery": {
            **({"podsLeftOut": len(pods) - len(kept)} if len(kept) < len(pods) else {}),
            "version": __version__,
            "now": problem.snapshot.now.isoformat(),
            "options": _plain(problem.options),
            "unavailable": _plain(sorted(unavailable)),
            **({"unserved": sorted(problem.snapshot.unserved)} if problem.snapshot.unserved else {}),
            "reservations": dict(sorted(_reservations(problem))),
            **({"commitments": _plain(problem.paid_for)} if problem.paid_for else {}),
            **{name: _cut(_plain(value)) for name, value in decided.items()},
        },
    }


def _reservations(problem: Problem) -> Iterable[tuple[str, int]]:
    """By the id of a capacity reservation, how many instances were left of it."""
    for instance_type in chain.from_iterable(problem.instance_types.values()):
        for offering in instance_type.offerings:
            if offering.reservation:
                yield offering.reservation.id, offering.reservation.remaining


def _recorded(group: PodGroup) -> bytes:
    """The pods of a node as a record has them: a line of JSON for each, deflated.

    They are kept (``objects.snapshot.derived``), because to make those of a large cluster anew takes longer than a
    plan; deflated, because they take a tenth of the memory so.
    """
    pods = (msgspec.json.encode(_object("v1", "Pod", pod), order="deterministic") for pod in group.pods)
    return zlib.compress(b"\n".join(pods), level=1)


def _not_too_large(pods: Sequence[bytes]) -> Sequence[bytes]:
    """The pods without the largest, for which there is no room."""
    sizes = [len(pod) for pod in pods]
    if sum(sizes) <= MOST_OF_PODS:
        return pods
    by_size = sorted(range(len(pods)), key=sizes.__getitem__)
    total = accumulate(sizes[number] for number in by_size)
    kept = {number for number, so_far in zip(by_size, total, strict=True) if so_far <= MOST_OF_PODS}
    return [pod for number, pod in enumerate(pods) if number in kept]


def _cut(value: Any) -> Any:
    """The JSON value without the rest of texts that quote what a pod says."""
    if isinstance(value, str):
        return shortened(value)
    if isinstance(value, list):
        return [_cut(item) for item in value]
    return {key: _cut(item) for key, item in value.items()} if isinstance(value, dict) else value


def _object(api_version: str, kind: str, item: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, **_without_messages(_terse(_plain(item)))}


def _items(snapshot: Snapshot) -> Iterable[dict[str, Any]]:
    """All but the pods."""
    for pool in snapshot.node_pools:
        yield _without_annotations(pool.to_wire(), of_template=True)
    for overlay in snapshot.node_overlays:
        yield _without_annotations(overlay.to_wire())
    for node_class in snapshot.node_classes:
        yield _without_annotations(node_class.to_record())
    for claim in snapshot.node_claims:
        yield _without_annotations(claim.to_wire())
    for field, (api_version, kind) in _KINDS.items():
        for item in getattr(snapshot, field):
            yield _object(api_version, kind, item)


def _without_annotations(document: dict[str, Any], *, of_template: bool = False) -> dict[str, Any]:
    """The document with only those annotations that decisions read."""
    terse: dict[str, Any] = _terse(document)
    template = document["spec"]["template"] if of_template else {}
    annotations = template.get("metadata", {}).get("annotations", {})
    size = sum(len(key) + len(value) for key, value in annotations.items())
    if size > MOST_ANNOTATED:
        terse["spec"]["template"]["metadata"]["annotations"] = {_LEFT_OUT: "*" * (size - len(_LEFT_OUT))}
    return terse


def _without_messages(document: dict[str, Any]) -> dict[str, Any]:
    """An object of Kubernetes' own, whose conditions are others' words. No decision quotes them."""
    status = document.get("status")
    if not isinstance(status, dict) or not status.get("conditions"):
        return document
    silent = [{**condition, "message": ""} for condition in status["conditions"]]
    return {**document, "status": {**status, "conditions": silent}}


def _terse(value: Any) -> Any:
    """The JSON value without what people and controllers wrote for each other.

    That is annotations that no decision reads, messages of conditions, and parameters of drivers.
    """
    if isinstance(value, list):
        return [_terse(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _SHORTENED[key](field) if key in _SHORTENED else _terse(field) for key, field in value.items()}


def _conditions(conditions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # A reason quotes only why something is not ready, and a digest tells when pods came or went. Other messages are not
    # needed to decide again.
    return [
        {**condition, "message": condition.get("message", "") if condition.get("type") in (READY, PODS_SEEN) else ""}
        for condition in conditions
    ]


def _read_annotations(annotations: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if key in _READ}


#: By the field's name, what is kept of its value.
_SHORTENED: Mapping[str, Callable[[Any], Any]] = {
    "annotations": _read_annotations,
    "conditions": _conditions,
    "local": lambda volume: None if volume is None else {},
    "hostPath": lambda volume: None if volume is None else {},
    "awsElasticBlockStore": lambda volume: None if volume is None else {"volumeID": volume.get("volumeID", "")},
}


def _plain(value: Any) -> Any:
    """As JSON values, with the API's own field names."""
    return msgspec.to_builtins(value, enc_hook=_model)


def _model(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    raise NotImplementedError(f"{type(value).__name__} has no place in a record")
