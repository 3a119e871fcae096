"""What each buffer asks for at this moment: for which pods room is kept, for how many, and why not for more.

Namespaces take turns, each with its buffers in the order of their names. So of a quota, and of the most that a cluster
has, the same buffers have their part in every run, and none is left without by the many of another namespace.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from joinery.decisions.headroom.annotations import capacity_types, is_in_force
from joinery.decisions.headroom.sizes import MOST_OF_BUFFER, MOST_OF_CLUSTER, Quotas, size_of
from joinery.decisions.headroom.virtual_pods import as_admitted, template_of, virtual_pods, virtual_spec
from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.decisions.scheduling.packing import Packing
from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.karpenter.pause import Pause, pause_of_buffers
from joinery.objects.kubernetes.core import Pod, PodTemplateSpec
from joinery.objects.kubernetes.shapes import BufferSources, Shape
from joinery.objects.snapshot.extended_resources import read_as_claims
from joinery.objects.snapshot.pods import is_active
from joinery.objects.snapshot.snapshot import Snapshot

#: Reasons of ReadyForProvisioning (Karpenter capacitybuffer), and one of our own.
RESOLVED, RESOLUTION_FAILED, INVALID_ANNOTATION = "Resolved", "ResolutionFailed", "InvalidAnnotation"
POD_TEMPLATE_NOT_FOUND, SCALABLE_NOT_FOUND = "PodTemplateNotFound", "ScalableRefNotFound"


@dataclass(frozen=True, kw_only=True)
class ResolvedBuffer:
    """A buffer, and what it asks for.

    ``reason``, ``message``: of its condition ReadyForProvisioning, which is True for ``RESOLVED`` alone. ``size``: how
    many chunks it would have without quotas and ceilings. ``quotas``: the names of those that allow fewer. ``is_open``:
    whether its schedule counts it now, and nothing is ``paused``, in words. ``pods``: the virtual ones.
    """

    buffer: CapacityBuffer
    shape: Shape
    reason: str
    message: str
    size: int = 0
    quotas: tuple[str, ...] = ()
    is_open: bool = True
    paused: str = ""
    pods: tuple[Pod, ...] = ()

    @property
    def is_ready(self) -> bool:
        return self.reason == RESOLVED


@dataclass
class _Resolver:
    snapshot: Snapshot
    sources: BufferSources
    quotas: Quotas
    left: int = MOST_OF_CLUSTER
    running: dict[str, list[Pod]] = field(default_factory=dict)

    def resolve(self, buffer: CapacityBuffer) -> ResolvedBuffer:
        shape = self.sources.shapes.get(buffer.key, Shape(missing="nothing was read of what it refers to"))
        failure = _failure(buffer, shape)
        if failure:
            return ResolvedBuffer(buffer=buffer, shape=shape, reason=failure[0], message=failure[1])
        template = self._template(buffer, shape)
        if template is None:
            text = "no pod of it runs, and only its pods say what they look like"
            return ResolvedBuffer(buffer=buffer, shape=shape, reason=RESOLUTION_FAILED, message=text)
        try:
            return self._sized(buffer, shape, template)
        except ValueError as error:
            annotated = "annotation" in str(error)
            reason = INVALID_ANNOTATION if annotated else RESOLUTION_FAILED
            return ResolvedBuffer(buffer=buffer, shape=shape, reason=reason, message=str(error))

    def _sized(self, buffer: CapacityBuffer, shape: Shape, template: PodTemplateSpec) -> ResolvedBuffer:
        """Raises ``ValueError`` for an annotation, or a request of the template, that cannot be read."""
        types = capacity_types(buffer.metadata.annotations)
        pause = self._pause(buffer)
        is_open = is_in_force(buffer.metadata.annotations, self.snapshot.now) and pause is None
        requests = requests_of(Pod(spec=virtual_spec(template.spec, types)))
        size = size_of(buffer.spec, requests, shape.replicas) if is_open else 0
        wanted = min(size, MOST_OF_BUFFER, self.left)
        count, quotas = self.quotas.take(buffer.namespace, template.spec, wanted)
        self.left -= count
        most = f"room for {wanted:,} of {size:,} is kept: so many are the most" if wanted < size else ""
        return ResolvedBuffer(
            buffer=buffer,
            shape=shape,
            reason=RESOLVED,
            message=most or "Pod template resolved successfully",
            size=size,
            quotas=quotas,
            is_open=is_open,
            paused=str(pause or ""),
            pods=virtual_pods(buffer, template, count, types, self.snapshot.now),
        )

    def _pause(self, buffer: CapacityBuffer) -> Pause | None:
        """That of its namespace's buffers, or of the whole cluster."""
        named = buffer.namespace
        annotations = next(
            (one.metadata.annotations for one in self.snapshot.namespaces if one.metadata.name == named), {}
        )
        return pause_of_buffers(named, annotations, self.snapshot.node_pools, self.snapshot.now)

    def _template(self, buffer: CapacityBuffer, shape: Shape) -> PodTemplateSpec | None:
        """What one chunk looks like; None where nobody says."""
        running = self._selected(buffer.namespace, shape.selector) if shape.selector else ()
        return template_of(running) if shape.template is None else as_admitted(shape.template, running)

    def _selected(self, namespace: str, labels: Mapping[str, str]) -> Sequence[Pod]:
        if not self.running:
            for pod in filter(is_active, self.snapshot.pods):
                self.running.setdefault(pod.metadata.namespace or "default", []).append(pod)
        of_namespace = self.running.get(namespace, ())
        return [pod for pod in of_namespace if labels.items() <= pod.metadata.labels.items()]


def _failure(buffer: CapacityBuffer, shape: Shape) -> tuple[str, str] | None:
    """Why nothing is known of its pods: a reason and a sentence; None where something is."""
    if buffer.spec.pod_template_ref is None and buffer.spec.scalable_ref is None:
        return RESOLUTION_FAILED, "Neither podTemplateRef nor scalableRef is set"
    if not shape.missing:
        return None
    if shape.is_unread:
        return RESOLUTION_FAILED, shape.missing
    return (POD_TEMPLATE_NOT_FOUND if buffer.spec.pod_template_ref else SCALABLE_NOT_FOUND), shape.missing


def resolve(snapshot: Snapshot, sources: BufferSources) -> tuple[ResolvedBuffer, ...]:
    """The buffers of the snapshot that are Joinery's, by namespace and name."""
    resolver = _Resolver(snapshot, sources, Quotas(sources.quotas))
    return tuple(sorted(map(resolver.resolve, _ours(snapshot)), key=lambda one: one.buffer.key))


def _ours(snapshot: Snapshot) -> Iterator[CapacityBuffer]:
    buffers = (one for one in snapshot.capacity_buffers if one.is_ours and one.metadata.deletion_timestamp is None)
    turns: Counter[str] = Counter()
    queued = []
    for buffer in sorted(buffers, key=lambda one: one.key):
        turns[buffer.namespace] += 1
        queued.append((turns[buffer.namespace], buffer.key, buffer))
    return (buffer for *_, buffer in sorted(queued, key=lambda one: one[:2]))


def with_headroom(snapshot: Snapshot, resolved: Sequence[ResolvedBuffer]) -> Snapshot:
    """The snapshot with the pods that stand for the buffers."""
    return read_as_claims(snapshot.with_virtual(pod for one in resolved for pod in one.pods))


def for_real_pods(packing: Packing, snapshot: Snapshot) -> Packing:
    """The packing as far as it is about pods that there are: for whoever counts pods, or speaks of them."""
    virtual = frozenset(pod.key for pod in snapshot.virtual_pods)
    if not virtual:
        return packing
    existing = (replace(one, pods=tuple(pod for pod in one.pods if pod not in virtual)) for one in packing.existing)
    return replace(
        packing,
        existing=tuple(one for one in existing if one.pods),
        launches=tuple(
            replace(one, pods=tuple(pod for pod in one.pods if pod not in virtual)) for one in packing.launches
        ),
        unplaced=tuple(one for one in packing.unplaced if one.pod not in virtual),
    )
