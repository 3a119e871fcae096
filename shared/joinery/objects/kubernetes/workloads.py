"""What makes pods: Deployment, ReplicaSet, ReplicationController, StatefulSet, Job and CronJob, as far as a plan needs
them.

One struct reads them all: what each kind has beside the pod template is a field that the others lack.
"""

from typing import Any

from joinery.objects.kubernetes.core import (
    Condition,
    LabelSelector,
    ObjectMeta,
    PersistentVolumeClaim,
    PodTemplateSpec,
    Toleration,
    _Object,
)


class StatefulSetOrdinals(_Object, frozen=True):
    """With which number a StatefulSet begins."""

    start: int = 0


class StatefulSetRollingUpdate(_Object, frozen=True):
    """Below which number a StatefulSet's pods keep their older revision."""

    partition: int = 0


class StatefulSetUpdateStrategy(_Object, frozen=True):
    """A StatefulSet's. ``type``: ``RollingUpdate`` or ``OnDelete``."""

    type: str = "RollingUpdate"
    rolling_update: StatefulSetRollingUpdate = StatefulSetRollingUpdate()


class WorkloadSpec(_Object, frozen=True):
    """``selector`` is a ``LabelSelector``, of a ReplicationController a plain map of labels."""

    replicas: int | None = None
    selector: dict[str, Any] | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    ordinals: StatefulSetOrdinals = StatefulSetOrdinals()
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    volume_claim_templates: list[PersistentVolumeClaim] = []
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = ""
    suspend: bool = False
    schedule: str = ""
    job_template: "JobTemplate | None" = None


class JobTemplate(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


class WorkloadStatus(_Object, frozen=True):
    conditions: list[Condition] = []
    replicas: int = 0
    succeeded: int = 0
    last_schedule_time: str = ""
    current_revision: str = ""
    update_revision: str = ""


class Workload(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ScaleTarget(_Object, frozen=True):
    kind: str = ""
    name: str = ""


class AutoscalerSpec(_Object, frozen=True):
    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replicas: int = 1
    max_replicas: int = 0


class HorizontalPodAutoscaler(_Object, frozen=True):
    """Who decides on a workload's replicas once it runs."""

    metadata: ObjectMeta = ObjectMeta()
    spec: AutoscalerSpec = AutoscalerSpec()


class ScaledTarget(ScaleTarget, frozen=True):
    kind: str = "Deployment"


class ScaledObjectSpec(_Object, frozen=True):
    scale_target_ref: ScaledTarget = ScaledTarget()
    idle_replica_count: int | None = None
    min_replica_count: int = 0
    max_replica_count: int = 100


class ScaledObject(_Object, frozen=True):
    """KEDA's autoscaler, with its own defaults: one of no replicas while nothing happens."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ScaledObjectSpec = ScaledObjectSpec()


class LimitRangeItem(_Object, frozen=True):
    type: str = ""
    default: dict[str, str | int | float] = {}
    default_request: dict[str, str | int | float] = {}
    min: dict[str, str | int | float] = {}
    max: dict[str, str | int | float] = {}


class LimitRangeSpec(_Object, frozen=True):
    limits: list[LimitRangeItem] = []


class LimitRange(_Object, frozen=True):
    """What containers of a namespace get that ask for nothing."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


class QuotaScope(_Object, frozen=True):
    """Which pods are counted. ``operator`` and ``values``: of the scope PriorityClass."""

    scope_name: str = ""
    operator: str = ""
    values: list[str] = []


class QuotaScopeSelector(_Object, frozen=True):
    match_expressions: list[QuotaScope] = []


class ResourceQuotaSpec(_Object, frozen=True):
    hard: dict[str, str | int | float] = {}
    scopes: list[str] = []
    scope_selector: QuotaScopeSelector | None = None


class ResourceQuotaStatus(_Object, frozen=True):
    used: dict[str, str | int | float] = {}


class ResourceQuota(_Object, frozen=True):
    """What the objects of a namespace may use together."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class RuntimeOverhead(_Object, frozen=True):
    pod_fixed: dict[str, str | int | float] = {}


class RuntimeScheduling(_Object, frozen=True):
    node_selector: dict[str, str] = {}
    tolerations: list[Toleration] = []


class RuntimeClass(_Object, frozen=True):
    """What pods get that run in it: what its sandbox takes, and the nodes that have it."""

    metadata: ObjectMeta = ObjectMeta()
    overhead: RuntimeOverhead = RuntimeOverhead()
    scheduling: RuntimeScheduling = RuntimeScheduling()


def equal_labels(spec: WorkloadSpec) -> dict[str, str] | None:
    """The labels that the pods have by the selector; None where it says anything else of them."""
    given = spec.selector or {}
    labels = given.get("matchLabels", {}) if {"matchLabels", "matchExpressions"} & given.keys() else given
    is_plain = not given.get("matchExpressions") and labels and all(isinstance(one, str) for one in labels.values())
    return dict(labels) if is_plain else None


def label_selector(spec: WorkloadSpec) -> LabelSelector | None:
    """The selector of any kind as a label selector; ``None`` without one. Raises ``msgspec.ValidationError``."""
    import msgspec

    given = spec.selector
    if not given:
        return None
    is_plain = all(isinstance(value, str) for value in given.values())
    return msgspec.convert({"matchLabels": given} if is_plain else given, LabelSelector)
