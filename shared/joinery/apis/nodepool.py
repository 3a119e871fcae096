"""NodePool (karpenter.sh/v1): what nodes may look like, how many, and when they may be disrupted."""

from typing import Literal

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


class Budget(Model):
    nodes: str = "10%"
    reasons: list[Literal["Underutilized", "Empty", "Drifted"]] | None = None
    schedule: str | None = None
    duration: str | None = None


class Disruption(Model):
    consolidate_after: DurationOrNever = "0s"
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] = "WhenEmptyOrUnderutilized"
    budgets: list[Budget] = [Budget()]


class TemplateMetadata(Model):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class NodeClaimTemplateSpec(Model):
    node_class_ref: NodeClassRef
    requirements: list[Requirement] = []
    taints: list[Taint] = []
    startup_taints: list[Taint] = []
    expire_after: DurationOrNever = "720h"
    termination_grace_period: Duration | None = None


class NodeClaimTemplate(Model):
    metadata: TemplateMetadata = TemplateMetadata()
    spec: NodeClaimTemplateSpec


class NodePoolSpec(Model):
    template: NodeClaimTemplate
    disruption: Disruption = Disruption()
    limits: dict[str, Quantity] = {}
    weight: int | None = Field(default=None, ge=1, le=100)
    replicas: int | None = Field(default=None, ge=0)


class NodePoolStatus(Model):
    resources: dict[str, Quantity] = {}
    nodes: int = 0
    node_class_observed_generation: int | None = None
    conditions: list[Condition] = []


class NodePool(CustomResource):
    spec: NodePoolSpec
    status: NodePoolStatus = NodePoolStatus()

    @property
    def is_static(self) -> bool:
        """A pool with ``replicas`` keeps a fixed size and takes no pending pods (scheduling.md 3.22)."""
        return self.spec.replicas is not None
