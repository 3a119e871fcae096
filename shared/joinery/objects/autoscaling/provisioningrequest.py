"""ProvisioningRequest (autoscaling.x-k8s.io/v1): nodes for pods that are still to be created, all of them or none.

The API is SIG Autoscaling's (kubernetes/autoscaler, cluster-autoscaler/apis/provisioningrequest); Kueue makes such
objects for workloads that wait for their admission.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from joinery.objects.karpenter.conditions import is_true
from joinery.objects.karpenter.meta import Condition, CustomResource, Model, WholeNumber
from joinery.objects.spelling import meant_by
from joinery.objects.wording import must_be

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
#: Parameters of the classes: how many seconds after its creation a request ends, whether a check that finds no room is
#: made again, and which of several checkers is to make it; a check of parts is not carried out.
VALID_UNTIL, NO_RETRY, CHECKER, IN_PART = "ValidUntilSeconds", "noRetry", "processorInstance", "partialCapacityCheck"
_PARAMETERS = (VALID_UNTIL, NO_RETRY, CHECKER, IN_PART)
#: How long room is looked for where the request does not say (cluster autoscaler ``defaultExpirationTime``), and the
#: seconds that anybody can mean.
SOUGHT, _MOST_SECONDS = timedelta(days=7), 10**9


class PodTemplateRef(Model):
    """A PodTemplate of the request's namespace."""

    name: Annotated[str, Field(min_length=1)]


class PodSet(Model):
    """So many pods of one template."""

    pod_template_ref: PodTemplateRef
    count: Annotated[WholeNumber, Field(ge=1)]


class ProvisioningRequestSpec(Model):
    """``parameters``: of the class. Both know ``ValidUntilSeconds``; check-capacity has ``noRetry``."""

    pod_sets: Annotated[list[PodSet], Field(min_length=1, max_length=32)]
    provisioning_class_name: Annotated[str, Field(min_length=1)]
    parameters: dict[str, str] = {}


class ProvisioningRequestStatus(Model):
    """What has become of the request."""

    conditions: list[Condition] = []


class ProvisioningRequest(CustomResource):
    """Room for pods that are still to be created."""

    api_version = "autoscaling.x-k8s.io/v1"
    kind = "ProvisioningRequest"

    spec: ProvisioningRequestSpec
    status: ProvisioningRequestStatus = ProvisioningRequestStatus()

    @property
    def namespace(self) -> str:
        return self.metadata.namespace or "default"

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.metadata.name}"

    @property
    def is_check(self) -> bool:
        """Whether it only asks if there is room."""
        return self.spec.provisioning_class_name == CHECK

    @property
    def is_ours(self) -> bool:
        """Whether it is of a class that Joinery knows, and nobody else is named for it."""
        is_known = self.spec.provisioning_class_name in (ATOMIC, CHECK)
        return is_known and not (self.is_check and self.spec.parameters.get(CHECKER))

    @property
    def has_ended(self) -> bool:
        """Whether its room is not wanted any more."""
        ended = any(is_true(self.status.conditions, kind) for kind in (FAILED, BOOKING_EXPIRED, CAPACITY_REVOKED))
        return ended or self.metadata.deletion_timestamp is not None

    @property
    def is_open(self) -> bool:
        """Whether it is Joinery's to serve, and its room is still wanted."""
        return self.is_ours and not self.has_ended

    @property
    def lasts(self) -> timedelta:
        """For how long after its creation room is looked for."""
        said = self.spec.parameters.get(VALID_UNTIL, "")
        return timedelta(seconds=min(int(said), _MOST_SECONDS)) if _is_seconds(said) else SOUGHT

    @property
    def ignored(self) -> tuple[str, ...]:
        """What of its parameters counts as if it were not there, each by its field and what it must be."""
        said = self.spec.parameters
        return tuple(f"spec.parameters.{name}: {why}" for name in sorted(said) if (why := _problem(name, said[name])))

    @property
    def is_provisioned(self) -> bool:
        return is_true(self.status.conditions, PROVISIONED)


def _is_seconds(said: str) -> bool:
    return said.isascii() and said.isdecimal()


def _problem(name: str, value: str) -> str:
    """Why the parameter counts for nothing; empty where it counts, and for one of which nobody here knows."""
    if name == VALID_UNTIL and not _is_seconds(value):
        return (
            f"{must_be('a whole number of seconds', value)}, so the request ends {SOUGHT.days} days after its creation"
        )
    if name == NO_RETRY and value not in ("true", "false"):
        return must_be("true or false", value)
    if name == IN_PART and value != "false":
        return "is not carried out: there is room for all of the pods, or there is none"
    meant = meant_by(name, _PARAMETERS) if name not in _PARAMETERS else ""
    return f"no such parameter; is it {meant}?" if meant else ""
