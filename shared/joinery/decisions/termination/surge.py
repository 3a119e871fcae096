"""Surge before evict: whether a rollout of its Deployment can bring a pod's successor before the pod ends.

An eviction ends a pod first and has it made anew after that. A rolling update does it the other way round: within
``maxSurge`` a Deployment has more pods than it wants, and ends an old one when a new one is Ready. ``kubectl rollout
restart`` starts one by changing an annotation of the pod template, and so do we. The Deployment's controller does the
rest; the old pod is deleted by it, so no disruption budget is in the way.

A Deployment is restarted only for a pod of its newest ReplicaSet, and only while no rollout is under way. So however
often a step is repeated, it starts one rollout: right after the restart its controller has not yet seen the newest
template, and from then on the pod's ReplicaSet is an old one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum

from msgspec.structs import replace

from joinery.objects.actions import Announce, RestartDeployment
from joinery.objects.karpenter.labels import RESTARTED_AT, REVISION
from joinery.objects.kubernetes.core import OwnerReference, Pod
from joinery.objects.kubernetes.rollouts import Deployment, ReplicaSet, RollingUpdate

#: The kinds of owner that a surge goes by.
REPLICA_SET, DEPLOYMENT = "ReplicaSet", "Deployment"
_MOST_DIGITS = 9


class Obstacle(StrEnum):
    """Why no rollout can bring a pod's successor, as the pod's Event says it."""

    NO_DEPLOYMENT = "its ReplicaSet belongs to no Deployment"
    PAUSED = "its Deployment is paused"
    RECREATE = "its Deployment's strategy is Recreate"
    NO_SURGE = "its Deployment's maxSurge is 0"
    ALL_UNAVAILABLE = "its Deployment's maxUnavailable lets a rollout end all of its pods first"
    UNDONE = "the rollout that was to replace it was undone"
    UNREADABLE = "its Deployment may not be read"
    NOT_A_DEPLOYMENT = "only a Deployment can surge"


class Progress(Enum):
    """How far the rollout is that brings a pod's successor."""

    TO_BEGIN = "no rollout is under way: the Deployment has to be restarted"
    BEGUN = "a rollout is under way that replaces the pod"
    BUSY = "a rollout is under way that does not replace the pod: the next one begins after it"
    UNKNOWN = "nobody answered"


@dataclass(frozen=True, slots=True)
class Owners:
    """What a pod belongs to, as just read.

    ``replica_set``, ``deployment``: None where there is none. ``is_refused``: the API server refused to show one of
    them. ``is_unknown``: it did not answer.
    """

    replica_set: ReplicaSet | None = None
    deployment: Deployment | None = None
    is_refused: bool = False
    is_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Surge:
    """What becomes of one pod whose successor is to come first.

    ``event``: the Event for its owner. ``restart``: what starts the rollout, if it is to be started now and by this
    pod; pods of one Deployment share one. ``is_kept``: whether the pod is kept from eviction for now. ``is_replaced``:
    whether a rollout replaces it.
    """

    event: Announce
    restart: RestartDeployment | None = None
    is_kept: bool = True
    is_replaced: bool = False


def owner_of_kind(references: list[OwnerReference], kind: str) -> OwnerReference | None:
    """The controller among the owners, if it is of that kind of apps/v1."""
    for owner in references:
        if owner.controller and (owner.api_version, owner.kind) == ("apps/v1", kind):
            return owner
    return None


def assess(pod: Pod, owners: Owners, was_begun: bool) -> Progress | Obstacle:
    """How the rollout stands that brings the pod's successor, or why there can be none.

    ``was_begun``: whether a rollout replaced the pod earlier in this drain. It is not started a second time: whoever
    undid it had a reason.
    """
    if owner_of_kind(pod.metadata.owner_references, REPLICA_SET) is None:
        return Obstacle.NOT_A_DEPLOYMENT
    if owners.is_unknown:
        return Progress.UNKNOWN
    if owners.is_refused:
        return Obstacle.UNREADABLE
    if owners.replica_set is None or owners.deployment is None:
        return Obstacle.NO_DEPLOYMENT
    return _obstacle(owners.deployment) or _progress(owners.replica_set, owners.deployment, was_begun)


def restarted(deployment: Deployment, at: datetime) -> Deployment:
    """The Deployment as ``kubectl rollout restart`` leaves it."""
    template = deployment.spec.template
    annotations = {**template.metadata.annotations, RESTARTED_AT: at.isoformat(timespec="seconds")}
    changed = replace(template, metadata=replace(template.metadata, annotations=annotations))
    return replace(deployment, spec=replace(deployment.spec, template=changed))


def _obstacle(deployment: Deployment) -> Obstacle | None:
    spec, limits = deployment.spec, deployment.spec.strategy.rolling_update or RollingUpdate()
    if spec.paused:
        return Obstacle.PAUSED
    if spec.strategy.type == "Recreate":
        return Obstacle.RECREATE
    if _pods(limits.max_surge, spec.replicas, up=True) == 0:
        return Obstacle.NO_SURGE
    if _pods(limits.max_unavailable, spec.replicas, up=False) >= spec.replicas:
        return Obstacle.ALL_UNAVAILABLE
    return None


def _progress(replica_set: ReplicaSet, deployment: Deployment, was_begun: bool) -> Progress | Obstacle:
    if deployment.status.observed_generation < deployment.metadata.generation:
        # Its controller has yet to see our restart, or somebody else's change, of which nothing is known yet.
        return Progress.BEGUN if was_begun else Progress.BUSY
    if _revision(replica_set.metadata.annotations) != _revision(deployment.metadata.annotations):
        return Progress.BEGUN
    if was_begun:
        return Obstacle.UNDONE
    return Progress.TO_BEGIN if _is_complete(deployment) else Progress.BUSY


def _revision(annotations: Mapping[str, str]) -> str:
    """The number of the rollout that made a ReplicaSet, or of the Deployment's newest one."""
    return annotations.get(REVISION, "")


def _is_complete(deployment: Deployment) -> bool:
    """As ``kubectl rollout status`` judges it: every pod is of the newest template, and available."""
    status = deployment.status
    return (
        status.updated_replicas >= deployment.spec.replicas
        and status.replicas <= status.updated_replicas
        and status.available_replicas >= status.updated_replicas
    )


def _pods(limit: str | int, replicas: int, *, up: bool) -> int:
    """A count of pods, or a percentage of the replicas (Kubernetes ``ResolveFenceposts``)."""
    text = str(limit)
    digits = text.removesuffix("%").lstrip("0")
    # The API server takes a percentage of any number of digits.
    number = int(digits or "0") if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS
    if not text.endswith("%"):
        return number
    share = number * replicas / 100
    return math.ceil(share) if up else math.floor(share)
