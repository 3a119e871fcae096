"""NodeClaim (karpenter.sh/v1): one node, from the decision to launch it until its instance is gone."""

from datetime import datetime

from pydantic import Field

from joinery.apis.meta import (
    Condition,
    CustomResource,
    Duration,
    DurationOrNever,
    Model,
    NodeClassRef,
    Quantity,
    Requirement,
    Taint,
)


class ClaimResources(Model):
    requests: dict[str, Quantity] = {}


class NodeClaimSpec(Model):
    node_class_ref: NodeClassRef
    requirements: list[Requirement] = []
    resources: ClaimResources = ClaimResources()
    taints: list[Taint] = []
    startup_taints: list[Taint] = []
    expire_after: DurationOrNever = "720h"
    termination_grace_period: Duration | None = None


class NodeClaimStatus(Model):
    node_name: str = ""
    provider_id: str = Field(default="", alias="providerID")
    image_id: str = Field(default="", alias="imageID")
    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    last_pod_event_time: datetime | None = None
    conditions: list[Condition] = []


class NodeClaim(CustomResource):
    spec: NodeClaimSpec
    status: NodeClaimStatus = NodeClaimStatus()

    def condition(self, kind: str) -> Condition | None:
        """The status condition of that type, if the claim has it."""
        return next((found for found in self.status.conditions if found.type == kind), None)

    def is_true(self, kind: str) -> bool:
        """Whether the condition of that type is True."""
        found = self.condition(kind)
        return found is not None and found.status == "True"

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None
