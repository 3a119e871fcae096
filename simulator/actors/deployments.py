"""The Deployment controller: rolling updates by ReplicaSets, as kube-controller-manager does them.

A pod template of its own has a ReplicaSet of its own, which is numbered. A rolling update adds pods of the newest one
within ``maxSurge``, and takes old ones away as soon as enough pods are available to stay within ``maxUnavailable``.
"""

import math
import random

from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes.core import ObjectMeta, OwnerReference, Pod, PodStatus, PodTemplateSpec
from joinery.objects.kubernetes.rollouts import DeploymentStatus, DeploymentStrategy, RollingUpdate
from simulator.kubernetes.budgets import is_ready
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.resources import (
    StoredDeployment,
    StoredDeploymentSpec,
    StoredReplicaSet,
    StoredReplicaSetSpec,
    with_fields,
    with_metadata,
)

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_GRACE = 30


class Deployments:
    """Keeps the pods of Deployments at their number, and rolls new templates out. ``rng`` names the pods."""

    def __init__(self, cluster: InMemoryCluster, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng

    def apply(
        self,
        metadata: ObjectMeta,
        replicas: int,
        template: PodTemplateSpec,
        *,
        strategy: DeploymentStrategy,
        paused: bool,
    ) -> None:
        """Create a Deployment or change it. As with ``kubectl apply``, the mark of a restart stays."""
        key = f"{metadata.namespace}/{metadata.name}"
        stored: StoredDeployment | None = self._cluster.api.objects("Deployment").get(key)
        if stored is not None:
            marks = stored.spec.template.metadata.annotations
            kept = {mark: marks[mark] for mark in (keys.RESTARTED_AT,) if mark in marks}
            template = with_metadata(template, annotations={**template.metadata.annotations, **kept})
        spec = StoredDeploymentSpec(replicas=replicas, paused=paused, strategy=strategy, template=template)
        if stored is None:
            self._cluster.add(StoredDeployment(metadata=metadata, spec=spec))
        else:
            self._cluster.api.update(with_fields(stored, spec=spec))
        self._cluster.scale(metadata.uid, replicas)

    def reconcile(self) -> None:
        for deployment in list(self._cluster.api.objects("Deployment").values()):
            self._reconcile(deployment)

    def _reconcile(self, deployment: StoredDeployment) -> None:
        newest = self._newest(deployment)
        old = [item for item in self._sets_of(deployment.metadata.uid) if item.metadata.uid != newest.metadata.uid]
        if deployment.spec.strategy.type == "Recreate":
            self._recreate(deployment, newest, old)
        else:
            self._roll(deployment, newest, old)
        for item in self._sets_of(deployment.metadata.uid):
            self._keep_number(item)
        self._report(deployment)

    def _newest(self, deployment: StoredDeployment) -> StoredReplicaSet:
        """The ReplicaSet of the current template; of a paused Deployment, the last one."""
        sets = self._sets_of(deployment.metadata.uid)
        current = next((item for item in sets if item.spec.template == deployment.spec.template), None)
        if deployment.spec.paused and sets:
            return max(sets, key=_revision)
        top = max(map(_revision, sets), default=0)
        if current is not None and _revision(current) == top:
            return current
        number = str(top + 1)
        if current is None:
            current = self._new_set(deployment, number)
        else:
            current = with_metadata(current, annotations={keys.REVISION: number})
        self._cluster.add(current)
        marked = with_metadata(deployment, annotations={**deployment.metadata.annotations, keys.REVISION: number})
        self._cluster.api.update(marked)
        stored: StoredReplicaSet = self._cluster.api.get("ReplicaSet", _key(current.metadata))
        return stored

    def _new_set(self, deployment: StoredDeployment, number: str) -> StoredReplicaSet:
        meta = deployment.metadata
        owner = OwnerReference(api_version="apps/v1", kind="Deployment", name=meta.name, uid=meta.uid, controller=True)
        return StoredReplicaSet(
            metadata=ObjectMeta(
                name=f"{meta.name}-{number}",
                namespace=meta.namespace,
                uid=f"uid-replicaset-{meta.namespace}-{meta.name}-{number}",
                annotations={keys.REVISION: number},
                owner_references=[owner],
            ),
            spec=StoredReplicaSetSpec(replicas=0, template=deployment.spec.template),
        )

    def _recreate(self, deployment: StoredDeployment, newest: StoredReplicaSet, old: list[StoredReplicaSet]) -> None:
        for item in old:
            self._scale(item, 0)
        if not any(self._pods(item, with_terminating=True) for item in old):
            self._scale(newest, deployment.spec.replicas)

    def _roll(self, deployment: StoredDeployment, newest: StoredReplicaSet, old: list[StoredReplicaSet]) -> None:
        """One step of a rolling update (deployment/rolling.go: reconcileNewReplicaSet, reconcileOldReplicaSets)."""
        wanted = deployment.spec.replicas
        surge, unavailable = _limits(deployment)
        others = sum(item.spec.replicas for item in old)
        if newest.spec.replicas > wanted or not others:
            self._scale(newest, wanted)
        else:
            room = wanted + surge - others - newest.spec.replicas
            self._scale(newest, min(wanted, newest.spec.replicas + max(0, room)))
        newest = self._cluster.api.get("ReplicaSet", _key(newest.metadata))
        available = sum(map(is_ready, self._pods(newest)))
        total = others + newest.spec.replicas
        spare = total - (wanted - unavailable) - (newest.spec.replicas - available)
        for item in old:
            going = min(item.spec.replicas, max(spare, 0))
            self._scale(item, item.spec.replicas - going)
            spare -= going

    def _scale(self, item: StoredReplicaSet, replicas: int) -> None:
        if item.spec.replicas != replicas:
            self._cluster.api.update(with_fields(item, spec=with_fields(item.spec, replicas=replicas)))

    def _keep_number(self, item: StoredReplicaSet) -> None:
        pods = self._pods(item)
        for _ in range(item.spec.replicas - len(pods)):
            self._cluster.api.create(self._pod(item))
        # Those that are not ready go first: they serve nobody.
        for pod in sorted(pods, key=is_ready, reverse=True)[item.spec.replicas :]:
            self._cluster.delete_pod(pod, grace_seconds=_GRACE)

    def _pod(self, item: StoredReplicaSet) -> Pod:
        meta, template = item.metadata, item.spec.template
        owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=meta.name, uid=meta.uid, controller=True)
        name = f"{meta.owner_references[0].name}-{suffix(self._rng)}"
        return Pod(
            metadata=ObjectMeta(
                name=name,
                namespace=meta.namespace,
                labels=template.metadata.labels,
                annotations=template.metadata.annotations,
                owner_references=[owner],
            ),
            spec=template.spec,
            status=PodStatus(phase="Pending"),
        )

    def _report(self, before: StoredDeployment) -> None:
        deployment: StoredDeployment = self._cluster.api.get("Deployment", _key(before.metadata))
        sets = self._sets_of(deployment.metadata.uid)
        pods = {_revision(item): self._pods(item) for item in sets}
        status = DeploymentStatus(
            observed_generation=deployment.metadata.generation,
            replicas=sum(map(len, pods.values())),
            updated_replicas=len(pods[max(pods)]),
            available_replicas=sum(is_ready(pod) for listed in pods.values() for pod in listed),
        )
        self._cluster.api.update(with_fields(deployment, status=status))

    def _pods(self, item: StoredReplicaSet, *, with_terminating: bool = False) -> list[Pod]:
        return [
            pod
            for pod in self._cluster.pods.values()
            if any(owner.uid == item.metadata.uid for owner in pod.metadata.owner_references)
            and (with_terminating or pod.metadata.deletion_timestamp is None)
        ]

    def _sets_of(self, uid: str) -> list[StoredReplicaSet]:
        sets = self._cluster.api.objects("ReplicaSet").values()
        return [item for item in sets if any(owner.uid == uid for owner in item.metadata.owner_references)]


def suffix(rng: random.Random) -> str:
    """The end of a generated name."""
    return "".join(rng.choice(_LETTERS) for _ in range(5))


def _key(metadata: ObjectMeta) -> str:
    return f"{metadata.namespace}/{metadata.name}"


def _revision(item: StoredReplicaSet) -> int:
    return int(item.metadata.annotations.get(keys.REVISION, "0"))


def _limits(deployment: StoredDeployment) -> tuple[int, int]:
    """How many pods a rollout may add, and how many it may lack; never none of both (``ResolveFenceposts``)."""
    limits, wanted = deployment.spec.strategy.rolling_update or RollingUpdate(), deployment.spec.replicas
    surge = _scaled(limits.max_surge, wanted, up=True)
    unavailable = _scaled(limits.max_unavailable, wanted, up=False)
    return surge, unavailable if surge or unavailable else 1


def _scaled(limit: str | int, wanted: int, *, up: bool) -> int:
    text = str(limit)
    if not text.endswith("%"):
        return int(text)
    share = int(text[:-1]) * wanted / 100
    return math.ceil(share) if up else math.floor(share)
