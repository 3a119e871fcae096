"""ProvisioningRequest (autoscaling.x-k8s.io/v1): nodes for pods that are still to be created, all of them or none.

The API is SIG Autoscaling's (kubernetes/autoscaler, cluster-autoscaler/apis/provisioningrequest); Kueue makes such
objects for workloads that wait for their admission.
"""

from typing import Annotated

from pydantic import Field

from joinery.objects.karpenter.conditions import is_true
from joinery.objects.karpenter.meta import Condition, CustomResource, Model, WholeNumber

#: Nodes are bought for all of the pods, or none is.
ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
#: Whether there is room for all of the pods is said, and nothing is bought.
CHECK = "check-capacity.autoscaling.x-k8s.io"
ACCEPTED, PROVISIONED, FAILED = "Accepted", "Provisioned", "Failed"
BOOKING_EXPIRED, CAPACITY_REVOKED = "BookingExpired", "CapacityRevoked"
#: On a pod: the request of its namespace whose room it takes; today's name, and the one before.
CONSUMES = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)


class PodTemplateRef(Model):
    """A PodTemplate of the request's namespace."""

    name: str = ""


class PodSet(Model):
    """So many pods of one template."""

    pod_template_ref: PodTemplateRef = PodTemplateRef()
    count: Annotated[WholeNumber, Field(ge=0)] = 0


class ProvisioningRequestSpec(Model):
    """``parameters``: of the class. Both know ``ValidUntilSeconds``; check-capacity has ``noRetry``."""

    pod_sets: list[PodSet] = []
    provisioning_class_name: str = ""
    parameters: dict[str, str] = {}


class ProvisioningRequestStatus(Model):
    """What has become of the request."""

    conditions: list[Condition] = []


class ProvisioningRequest(CustomResource):
    """Room for pods that are still to be created."""

    api_version = "autoscaling.x-k8s.io/v1"
    kind = "ProvisioningRequest"

    spec: ProvisioningRequestSpec = ProvisioningRequestSpec()
    status: ProvisioningRequestStatus = ProvisioningRequestStatus()

    @property
    def namespace(self) -> str:
        return self.metadata.namespace or "default"

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.metadata.name}"

    @property
    def is_open(self) -> bool:
        """Whether it is of a class that Joinery knows, and its room is still wanted."""
        ended = any(is_true(self.status.conditions, kind) for kind in (FAILED, BOOKING_EXPIRED, CAPACITY_REVOKED))
        is_known = self.spec.provisioning_class_name in (ATOMIC, CHECK)
        return is_known and not ended and self.metadata.deletion_timestamp is None

    @property
    def is_provisioned(self) -> bool:
        return is_true(self.status.conditions, PROVISIONED)
