"""NodeClaim (karpenter.sh/v1): one node, from the decision to launch it until its instance is gone."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from joinery.objects.karpenter.conditions import find
from joinery.objects.karpenter.meta import (
    ClaimRequirements,
    Condition,
    CustomResource,
    Duration,
    DurationOrNever,
    Model,
    Quantity,
    Taint,
)
from joinery.objects.karpenter.nodeclass import NodeClassRef
from joinery.objects.karpenter.rules import Transition


class ClaimResources(Model):
    """What the node must have room for."""

    requests: dict[str, Quantity] = {}
    """What the pods that it is for ask for together, by resource."""


def _of_older_version(ref: Any) -> Any:
    """The reference with the blanks left out that Karpenter 1.0 stored as group and kind, when there was only one kind.

    (Karpenter 1.1 upgrade guide.)
    """
    if not isinstance(ref, dict):
        return ref
    return {key: value for key, value in ref.items() if value != "" or key not in ("group", "kind")}


class NodeClaimSpec(Model):
    """The node that is wanted. It never changes."""

    required_on_wire = frozenset({"requirements"})

    node_class_ref: Annotated[NodeClassRef, BeforeValidator(_of_older_version)]
    """The node class that says what the instance is made of."""
    requirements: ClaimRequirements = []
    """Which labels the node may have: the launch picks among the instance types that satisfy them."""
    resources: ClaimResources = ClaimResources()
    """What the node must hold."""
    taints: list[Taint] = []
    """Taints that pods have to tolerate."""
    startup_taints: list[Taint] = []
    """Taints that something on the node removes while it starts."""
    expire_after: DurationOrNever = "720h"
    """How old the node may become."""
    termination_grace_period: Duration | None = None
    """How long its drain may take before pods are deleted past their budgets."""


class NodeClaimStatus(Model):
    """The node that is there."""

    node_name: str = ""
    """The Node, once it has registered."""
    provider_id: str = Field(default="", alias="providerID")
    """The instance: `aws:///zone/instance-id`."""
    image_id: str = Field(default="", alias="imageID")
    """The AMI it was launched from."""
    capacity: dict[str, Quantity] = {}
    """Estimated when it was launched."""
    allocatable: dict[str, Quantity] = {}
    """Estimated when it was launched."""
    last_pod_event_time: datetime | None = None
    """When a pod last came or went."""
    conditions: list[Condition] = []
    """How far the node has come: `Launched`, `Registered`, `Initialized`, and `Ready`, which sums them up."""


class NodeClaim(CustomResource):
    """One node, from the decision to launch it until its instance is gone."""

    api_version = "karpenter.sh/v1"
    kind = "NodeClaim"

    spec: Annotated[NodeClaimSpec, Transition("self == oldSelf", "spec is immutable")]
    status: NodeClaimStatus = NodeClaimStatus()

    def condition(self, condition_type: str) -> Condition | None:
        """The status condition of that type, if the claim has it."""
        return find(self.status.conditions, condition_type)

    def is_true(self, condition_type: str) -> bool:
        """Whether the condition of that type is True."""
        condition = self.condition(condition_type)
        return condition is not None and condition.status == "True"

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None
