"""What CapacityBuffers refer to, as the cluster has it: pod templates, and how many pods a workload keeps."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from joinery.objects.kubernetes.core import ObjectMeta, Pod, PodTemplateSpec, _Object
from joinery.objects.kubernetes.workloads import ResourceQuota, Workload, equal_labels


class PodTemplate(_Object, frozen=True):
    """A template that nothing makes pods of by itself (v1)."""

    metadata: ObjectMeta = ObjectMeta()
    template: PodTemplateSpec = PodTemplateSpec()


class ScaleSpec(_Object, frozen=True):
    replicas: int = 0


class ScaleStatus(_Object, frozen=True):
    replicas: int = 0
    selector: str = ""


class Scale(_Object, frozen=True):
    """The subresource by which anything can be scaled (autoscaling/v1). ``selector``: of its pods, as a string."""

    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a buffer refers to.

    template     of its pods; None where only its running pods say what they look like
    replicas     how many pods the workload keeps; None of a PodTemplate, which keeps none
    selector     of the workload's pods: all of these labels
    generation   of a PodTemplate
    missing      why there is nothing; empty where there is
    is_unread    it is not there, or it may be and nobody could read it
    """

    template: PodTemplateSpec | None = None
    replicas: int | None = None
    selector: Mapping[str, str] | None = None
    generation: int | None = None
    missing: str = ""
    is_unread: bool = False

    def example(self, namespace: str) -> Pod | None:
        """A pod as the template makes it; None where there is none."""
        if self.template is None:
            return None
        meta = ObjectMeta(namespace=namespace, labels=self.template.metadata.labels)
        return Pod(metadata=meta, spec=self.template.spec)


def shape_of_template(read: PodTemplate) -> Shape:
    """What a PodTemplate says of pods."""
    return Shape(template=read.template, generation=read.metadata.generation)


def shape_of_workload(read: Workload) -> Shape:
    """What a workload says of its pods. Without ``replicas`` it keeps one."""
    spec = read.spec
    replicas = 1 if spec.replicas is None else spec.replicas
    return Shape(template=spec.template, replicas=replicas, selector=equal_labels(spec))


@dataclass(frozen=True, kw_only=True)
class BufferSources:
    """What all buffers need besides themselves. ``shapes``: by namespace/name of the buffer."""

    shapes: Mapping[str, Shape] = field(default_factory=dict)
    quotas: tuple[ResourceQuota, ...] = ()
