"""CapacityBuffer (autoscaling.x-k8s.io/v1beta1): room that is kept free for pods that are still to come.

The API is SIG Autoscaling's (kubernetes/autoscaler, cluster-autoscaler/apis/capacitybuffer). Karpenter and the cluster
autoscaler read the same objects.
"""

from typing import Annotated

from pydantic import Field

from joinery.objects.karpenter.meta import Condition, CustomResource, Model, Quantity, WholeNumber
from joinery.objects.karpenter.rules import Rule

#: The strategy that buys nodes ahead. Others are of other controllers, whose buffers are left to them.
ACTIVE_CAPACITY = "buffer.x-k8s.io/active-capacity"
READY_FOR_PROVISIONING, PROVISIONING, LIMITED_BY_QUOTAS = "ReadyForProvisioning", "Provisioning", "LimitedByQuotas"
Count = Annotated[WholeNumber, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]


class TemplateRef(Model):
    """A PodTemplate of the buffer's namespace."""

    name: Name
    """The PodTemplate's name."""


class ScalableRef(Model):
    """An object of the buffer's namespace that has a scale subresource."""

    api_group: str = ""
    """Its API group; empty for `apps`, and of a ReplicationController for the core group."""
    kind: Name
    """Its kind: Deployment, StatefulSet, ReplicaSet, or another that has a scale subresource."""
    name: Name
    """Its name."""


class CapacityBufferSpec(Model):
    """For which pods room is kept, and for how many."""

    provisioning_strategy: str = ACTIVE_CAPACITY
    """How the room is kept. Joinery buys nodes ahead, which is `buffer.x-k8s.io/active-capacity`."""
    pod_template_ref: TemplateRef | None = None
    """The PodTemplate that says what one chunk of the buffer looks like."""
    scalable_ref: ScalableRef | None = None
    """The workload whose pods say what one chunk of the buffer looks like."""
    replicas: Count | None = None
    """How many chunks. Beside `percentage`, the larger of the two counts."""
    percentage: Count | None = None
    """How many chunks, as a share of the replicas of `scalableRef`, rounded up; at least one."""
    limits: dict[str, Quantity] = {}
    """What all chunks may request together. Alone, as many chunks as fit into it."""


CheckedSpec = Annotated[
    CapacityBufferSpec,
    Rule(
        "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
        "If podTemplateRef is set, replicas or limits must also be set",
        lambda it: it.pod_template_ref is None or it.replicas is not None or bool(it.limits),
        field="podTemplateRef",
    ),
    Rule(
        "!(has(self.podTemplateRef) && has(self.scalableRef))",
        "You must define either PodTemplateRef or ScalableRef, but not both",
        lambda it: it.pod_template_ref is None or it.scalable_ref is None,
        field="podTemplateRef",
    ),
]


class CapacityBufferStatus(Model):
    """What has become of the buffer."""

    pod_template_ref: TemplateRef | None = None
    """The PodTemplate that was read."""
    pod_template_generation: WholeNumber | None = None
    """Its generation."""
    replicas: WholeNumber | None = None
    """How many chunks room is kept for."""
    provisioning_strategy: str = ""
    """The strategy that is followed."""
    conditions: list[Condition] = []
    """`ReadyForProvisioning`: its pods are known; `Provisioning`: their room is there; `LimitedByQuotas`: not all."""


class CapacityBuffer(CustomResource):
    """Room that is kept free for pods that are still to come."""

    api_version = "autoscaling.x-k8s.io/v1beta1"
    kind = "CapacityBuffer"

    spec: CheckedSpec
    status: CapacityBufferStatus = CapacityBufferStatus()

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.metadata.name}"

    @property
    def namespace(self) -> str:
        return self.metadata.namespace or "default"

    @property
    def is_ours(self) -> bool:
        """Whether its strategy is the one that Joinery follows."""
        return self.spec.provisioning_strategy in ("", ACTIVE_CAPACITY)
