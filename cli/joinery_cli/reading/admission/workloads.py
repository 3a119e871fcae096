"""Pods that a workload will have and that the files do not hold: a Deployment of a person's file, and no pod of it yet.

Who tries a plan has manifests; who exports a cluster has pods and their owners. So a workload is expanded by what is
missing: its replicas less the live pods that are there and are its own (kube-controller-manager, "controllers count
what they own": by owner reference, through a ReplicaSet or a Job too, or, without an owner, by selector). Pods are
named by number, so that one file gives one plan.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from joinery.decisions.scheduling.constraints.selectors import Selector, read
from joinery.objects.errors import ConfigurationError
from joinery.objects.kubernetes.core import (
    ObjectMeta,
    OwnerReference,
    PersistentVolumeClaim,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodTemplateSpec,
    Volume,
)
from joinery.objects.kubernetes.workloads import Workload, label_selector
from joinery.objects.snapshot.pods import is_active
from joinery.objects.snapshot.successors import OwnerKey
from joinery_cli.notices import some_of

API_VERSIONS: Mapping[str, str] = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicationController": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}
#: Deployments and CronJobs have others make their pods.
_MAKER = {"Deployment": "ReplicaSet", "CronJob": "Job"}
_TEMPLATE_HASH = "pod-template-hash"
#: What a cluster of Kubernetes holds at most ("Considerations for large clusters").
_MOST_PODS = 150_000


class Owner(NamedTuple):
    """Which workload: its kind and ``namespace/name``."""

    kind: str
    key: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


Workloads = Mapping[Owner, Workload]


@dataclass
class Expansion:
    """What the workloads add to the files.

    ``owners``: the workload of each pod, by ``namespace/name``. ``notes`` and ``warnings`` are lines for a person.
    """

    pods: list[Pod] = field(default_factory=list)
    claims: list[PersistentVolumeClaim] = field(default_factory=list)
    owners: dict[str, Owner] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def pod_counts(self) -> Counter[Owner]:
        """How many pods each workload adds."""
        return Counter(self.owners.values())

    def keep(self, pods: Container[str]) -> None:
        """Forget those that are not among these pods."""
        self.pods = [pod for pod in self.pods if pod.key in pods]
        self.owners = {key: owner for key, owner in self.owners.items() if key in pods}


def expand(workloads: Workloads, pods: Mapping[str, Pod], claims: Container[str]) -> Expansion:
    """The pods that are missing, and the volume claims of those of StatefulSets.

    ``pods`` and ``claims`` by ``namespace/name``.
    """
    present = _present(workloads, pods.values())
    runs = any(pod.spec.node_name for pod in pods.values())
    expansion, taken_names = Expansion(), set(pods)
    for owner in sorted(workloads):
        workload = workloads[owner]
        if workload.metadata.deletion_timestamp is not None or _parent(workload, owner) in workloads:
            continue
        if owner.kind == "CronJob":
            workload = _next_run(owner, workload, present, runs, expansion.notes)
        missing = list(_missing(owner, workload, present[owner], taken_names))
        if missing and not workload.spec.template.spec.containers:
            expansion.warnings.append(f"{owner}: its template has no containers, none of its pods is planned")
            continue
        taken_names.update(pod.key for pod in missing)
        expansion.pods += missing
        expansion.owners |= dict.fromkeys((pod.key for pod in missing), owner)
        expansion.claims += (claim for pod in missing for claim in _claims(workload, pod) if _key(claim) not in claims)
    return expansion


def of_no_pods(workloads: Workloads) -> Iterator[str]:
    """A word on manifests of examples, which are to be scaled up: that nothing is pending is no news to their reader.
    Likewise on suspended Jobs, also a cluster's: a queue such as Kueue's lets them run later.

    What a cluster has scaled to nothing, and old revisions, are no business of a plan.
    """
    idle = [str(owner) for owner, one in sorted(workloads.items()) if one.spec.replicas == 0 and not one.metadata.uid]
    if idle:
        yield f"no pods of {some_of(idle)}: {'its' if len(idle) == 1 else 'their'} replicas are 0"
    suspended = [str(owner) for owner, one in sorted(workloads.items()) if _is_suspended(owner, one)]
    if suspended:
        yield f"no pods of {some_of(suspended)}: {'it is' if len(suspended) == 1 else 'they are'} suspended"


def _is_suspended(owner: Owner, job: Workload) -> bool:
    """Whether it would run if it were not suspended. A CronJob has a word of its own."""
    return owner.kind == "Job" and job.spec.suspend and not _has_ended(job) and job.metadata.deletion_timestamp is None


def _parent(workload: Workload, owner: Owner) -> Owner | None:
    """Whose revision it is. A Job is its own master: the CronJob does not look after its pods."""
    return _controller(workload.metadata, owner.key) if owner.kind == "ReplicaSet" else None


def _controller(metadata: ObjectMeta, key: str) -> Owner | None:
    """The controller of an object, in its own namespace."""
    namespace = key.partition("/")[0]
    return next((Owner(o.kind, f"{namespace}/{o.name}") for o in metadata.owner_references if o.controller), None)


def _key(claim: PersistentVolumeClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


# --- which pods are there ---


def _present(workloads: Workloads, pods: Iterable[Pod]) -> Mapping[Owner, list[Pod]]:
    """The live pods of each workload. Finished ones count for what their Job's status does not say."""
    pods_of: dict[Owner, list[Pod]] = defaultdict(list)
    selectors = _selectors(workloads)
    for pod in pods:
        owner = _root(workloads, pod) or _selecting(selectors, pod)
        if owner is not None and (is_active(pod) or owner.kind == "Job"):
            pods_of[owner].append(pod)
    for owner, workload in workloads.items():
        parent = _controller(workload.metadata, owner.key)
        if owner.kind == "Job" and parent is not None and parent in workloads:
            pods_of[parent].extend(pods_of.get(owner, ()))
    return pods_of


def _root(workloads: Workloads, pod: Pod) -> Owner | None:
    """The workload that looks after the pod: a Deployment rather than its ReplicaSet,
    also where that is not in the files.
    """
    owner = _controller(pod.metadata, pod.key)
    if owner is None:
        return None
    if owner.kind == "ReplicaSet":
        revision = workloads.get(owner)
        deployment = _controller(revision.metadata, owner.key) if revision else _by_revision_name(owner, pod)
        return deployment if deployment in workloads else owner
    if owner.kind == "Job" and owner not in workloads:
        scheduled = Owner("CronJob", owner.key.rpartition("-")[0])
        return scheduled if scheduled in workloads else owner
    return owner


def _by_revision_name(owner: Owner, pod: Pod) -> Owner:
    return Owner("Deployment", owner.key.removesuffix(f"-{pod.metadata.labels.get(_TEMPLATE_HASH, '')}"))


def revisions(workloads: Workloads, pods: Iterable[Pod]) -> Mapping[OwnerKey, Workload]:
    """The ReplicaSets of Deployments that pods name as their owner and that the files lack, as far as their selector
    goes (kube-controller-manager ``getNewReplicaSet``).
    """
    made: dict[OwnerKey, Workload] = {}
    for pod in pods:
        owner = _controller(pod.metadata, pod.key)
        revision = pod.metadata.labels.get(_TEMPLATE_HASH)
        if owner is None or owner.kind != "ReplicaSet" or owner in workloads or revision is None:
            continue
        deployment = workloads.get(_by_revision_name(owner, pod))
        selector = label_selector(deployment.spec) if deployment else None
        if deployment is not None and selector is not None:
            narrowed = replace(selector, match_labels={**selector.match_labels, _TEMPLATE_HASH: revision})
            spec = replace(deployment.spec, selector=msgspec.to_builtins(narrowed))
            namespace, name = owner.key.split("/", 1)
            made[owner.kind, namespace, name] = replace(deployment, spec=spec)
    return made


def _selectors(workloads: Workloads) -> Mapping[str, list[tuple[Owner, Selector]]]:
    """By namespace. Jobs select by a label that only their own pods get."""
    selectors: dict[str, list[tuple[Owner, Selector]]] = defaultdict(list)
    for owner, workload in sorted(workloads.items()):
        selector = label_selector(workload.spec)
        is_revision = _parent(workload, owner) in workloads
        if selector is not None and owner.kind not in ("Job", "CronJob") and not is_revision:
            selectors[owner.key.partition("/")[0]].append((owner, read(selector)))
    return selectors


def _selecting(selectors: Mapping[str, list[tuple[Owner, Selector]]], pod: Pod) -> Owner | None:
    """The workload that would adopt a pod without owner."""
    if any(o.controller for o in pod.metadata.owner_references):
        return None
    listed = selectors.get(pod.metadata.namespace or "default", ())
    return next((owner for owner, selector in listed if selector.matches(pod.metadata.labels)), None)


# --- which are missing ---


def _next_run(
    owner: Owner, workload: Workload, present: Mapping[Owner, list[Pod]], runs: bool, notes: list[str]
) -> Workload:
    """A CronJob as the Job of one run; as one of no pods where it is suspended, or idle in a cluster that runs."""
    job = workload.spec.job_template
    empty = Workload(metadata=workload.metadata)
    empty = replace(empty, spec=replace(empty.spec, replicas=0, parallelism=0))
    if job is None or present.get(owner):
        return empty
    if workload.spec.suspend:
        notes.append(f"{owner}: is suspended, no run of it is planned")
        return empty
    if runs and workload.status.last_schedule_time:
        notes.append(f"{owner}: does not run at the moment, no run of it is planned")
        return empty
    notes.append(f"{owner}: one run of it is planned")
    return Workload(metadata=workload.metadata, spec=job.spec)


def _missing(owner: Owner, workload: Workload, present: list[Pod], taken: Container[str]) -> Iterator[Pod]:
    wanted = _of_job(workload) if owner.kind in ("Job", "CronJob") else _replicas(workload)
    if wanted > _MOST_PODS:
        raise ConfigurationError(f"{owner}: {wanted:,} pods are more than a cluster holds ({_MOST_PODS:,})")
    if owner.kind == "StatefulSet":
        missing = _free_ordinals(workload, wanted, taken)
    else:
        missing = _free_names(workload.metadata, wanted - sum(is_active(pod) for pod in present), taken)
    revision = _revision(workload, present)
    for name in missing:
        yield _pod(owner, workload, name, revision)


def _free_ordinals(workload: Workload, wanted: int, taken: Container[str]) -> Iterator[str]:
    """A StatefulSet's pods are numbered: a missing one in between is made again."""
    first, metadata = workload.spec.ordinals.start, workload.metadata
    names = (f"{metadata.name}-{ordinal}" for ordinal in range(first, first + wanted))
    return (name for name in names if f"{metadata.namespace}/{name}" not in taken)


def _replicas(workload: Workload) -> int:
    return 1 if workload.spec.replicas is None else workload.spec.replicas


def _of_job(job: Workload) -> int:
    """How many pods run at once (kube-controller-manager, Job): ``parallelism``,
    and no more than are still to succeed.
    """
    if job.spec.suspend or _has_ended(job):
        return 0
    parallel = 1 if job.spec.parallelism is None else job.spec.parallelism
    if job.spec.completions is None:
        return 0 if job.status.succeeded else parallel
    return max(0, min(parallel, job.spec.completions - job.status.succeeded))


def _has_ended(job: Workload) -> bool:
    return any(c.type in ("Complete", "Failed") and c.status == "True" for c in job.status.conditions)


def _free_names(metadata: ObjectMeta, number: int, taken: Container[str]) -> Iterator[str]:
    at = 0
    while number > 0:
        at += 1
        name = f"{metadata.name}-{at}"
        if f"{metadata.namespace}/{name}" not in taken:
            number -= 1
            yield name


# --- what they look like ---


def _revision(workload: Workload, present: list[Pod]) -> str:
    """The hash that controllers label pods of one template with; that of the newest pod where there is one."""
    dated = sorted(present, key=lambda pod: (str(pod.metadata.creation_timestamp or ""), pod.metadata.name))
    for pod in reversed(dated):
        if _TEMPLATE_HASH in pod.metadata.labels:
            return pod.metadata.labels[_TEMPLATE_HASH]
    return hashlib.sha256(msgspec.json.encode(workload.spec.template)).hexdigest()[:10]


def _pod(owner: Owner, workload: Workload, name: str, revision: str) -> Pod:
    template: PodTemplateSpec = workload.spec.template
    kind, controller = _MAKER.get(owner.kind, owner.kind), workload.metadata.name
    if owner.kind == "Deployment":
        controller = f"{controller}-{revision}"
    reference = OwnerReference(
        api_version=API_VERSIONS[kind], kind=kind, name=controller, uid=workload.metadata.uid, controller=True
    )
    metadata = replace(
        template.metadata,
        name=name,
        namespace=workload.metadata.namespace,
        labels={**template.metadata.labels, **_own_labels(owner.kind, controller, name, revision)},
        owner_references=[reference],
    )
    spec = template.spec
    if workload.spec.volume_claim_templates:
        mounted = {claim.metadata.name: _volume(claim, name) for claim in workload.spec.volume_claim_templates}
        spec = replace(spec, volumes=[v for v in spec.volumes if v.name not in mounted] + [*mounted.values()])
    return Pod(metadata=metadata, spec=spec)


def _own_labels(kind: str, controller: str, name: str, revision: str) -> Mapping[str, str]:
    """What the controller labels its pods with, as far as selectors and spreads ask for it."""
    if kind == "Deployment":
        return {_TEMPLATE_HASH: revision}
    if kind == "StatefulSet":
        return {
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": name.rpartition("-")[2],
            "controller-revision-hash": f"{controller}-{revision}",
        }
    if kind in ("Job", "CronJob"):
        return {"job-name": controller, "batch.kubernetes.io/job-name": controller}
    return {}


def _volume(claim: PersistentVolumeClaim, pod: str) -> Volume:
    source = PersistentVolumeClaimVolumeSource(claim_name=f"{claim.metadata.name}-{pod}")
    return Volume(name=claim.metadata.name, persistent_volume_claim=source)


def _claims(workload: Workload, pod: Pod) -> Iterator[PersistentVolumeClaim]:
    for template in workload.spec.volume_claim_templates:
        name = f"{template.metadata.name}-{pod.metadata.name}"
        yield replace(template, metadata=replace(template.metadata, name=name, namespace=pod.metadata.namespace))
