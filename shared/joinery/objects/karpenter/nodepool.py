"""NodePool (karpenter.sh/v1): what nodes may look like, how many, and when they may be disrupted."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field

from joinery.objects.karpenter import duration, labels
from joinery.objects.karpenter.meta import (
    AWS_KEYS,
    CORE_KEYS,
    LABEL_VALUE,
    Condition,
    CustomResource,
    Duration,
    DurationOrNever,
    Model,
    PoolRequirements,
    Quantity,
    Requirement,
    Taint,
    WholeNumber,
    in_domain,
    in_domain_cel,
    listed_cel,
)
from joinery.objects.karpenter.nodeclass import PoolNodeClassRef
from joinery.objects.karpenter.rules import Rule, Transition


def _restricted(domain: str, allowed: frozenset[str]) -> Rule:
    """Labels of a domain that nodes get from us alone, but for those that a person may set.

    A NodePool that was made from a Provisioner has the older label of its name; no API server stores such a NodePool.
    """
    accepted = allowed | {labels.PROVISIONER_NAME}

    def first_of(keys: Iterable[str]) -> str:
        return next((key for key in keys if key not in accepted and in_domain(key, domain)), "")

    return Rule(
        f"self.all(k, k in {listed_cel(allowed)} || !{in_domain_cel('k', domain)})",
        f"labels of {domain} are restricted",
        lambda keys: not first_of(keys),
        blamed=first_of,
    )


NodeLabels = Annotated[
    dict[str, Annotated[str, Field(max_length=63, pattern=LABEL_VALUE)]],
    Field(max_length=100),
    _restricted(labels.CORE_GROUP, CORE_KEYS),
    _restricted(labels.AWS_GROUP, AWS_KEYS),
    Rule(
        f"!('{labels.NODE_POOL}' in self)",
        f"label {labels.NODE_POOL} is restricted",
        lambda keys: labels.NODE_POOL not in keys,
    ),
    Rule(
        f"!('{labels.HOSTNAME}' in self)",
        f"label {labels.HOSTNAME} is restricted",
        lambda keys: labels.HOSTNAME not in keys,
    ),
]


class Budget(Model):
    """How many nodes of the pool may be disrupted at once, always or in a window."""

    required_on_wire = frozenset({"nodes"})

    nodes: Annotated[str, Field(pattern=r"^((100|[0-9]{1,2})%|[0-9]+)$")] = "10%"
    """A number, or a percentage of the pool's nodes, rounded up."""
    reasons: Annotated[list[Literal["Underutilized", "Empty", "Drifted", "Unhealthy"]], Field(max_length=50)] | None = (
        None
    )
    """Which disruptions the budget limits. All but repair (`Unhealthy`), if absent."""
    schedule: (
        Annotated[
            str,
            Field(pattern=r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|(.+)\s(.+)\s(.+)\s(.+)\s(.+))$"),
        ]
        | None
    ) = None
    """When the window opens: a cron expression, in UTC."""
    duration: Annotated[str, Field(pattern=r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$")] | None = None
    """How long the window stays open, in hours and minutes."""


CheckedBudget = Annotated[
    Budget,
    Rule(
        "has(self.schedule) == has(self.duration)",
        "'schedule' and 'duration' must be given together",
        lambda it: (it.schedule is None) == (it.duration is None),
    ),
]


class Disruption(Model):
    """When nodes of the pool may be replaced or removed, and how many at once."""

    consolidate_after: DurationOrNever = "0s"
    """How long a node must have been quiet before it is consolidated."""
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] = "WhenEmptyOrUnderutilized"
    """Which nodes consolidation looks at."""
    budgets: Annotated[list[CheckedBudget], Field(max_length=50)] = [Budget()]
    """The strictest active budget counts. An empty list sets no limit."""


class TemplateMetadata(Model):
    """What the node is labelled and annotated with."""

    labels: NodeLabels = {}
    """Labels of the nodes."""
    annotations: dict[str, str] = {}
    """Annotations of the nodes."""


class NodeClaimTemplateSpec(Model):
    """What a node of the pool looks like."""

    required_on_wire = frozenset({"requirements"})

    node_class_ref: PoolNodeClassRef
    """The node class that says what the instances are made of."""
    requirements: PoolRequirements = []
    """Which labels, hence which instance types, zones and capacity types, a node may have. May be empty."""
    taints: list[Taint] = []
    """Taints that pods have to tolerate."""
    startup_taints: list[Taint] = []
    """Taints that something on the node removes while it starts: pods need not tolerate them."""
    expire_after: DurationOrNever = "720h"
    """How old a node may become."""
    termination_grace_period: Duration | None = None
    """How long a drain may take before pods are deleted past their budgets. Without it, as long as it takes."""


class NodeClaimTemplate(Model):
    """The node, as the pool would launch it."""

    metadata: TemplateMetadata = TemplateMetadata()
    """Labels and annotations of the nodes."""
    spec: NodeClaimTemplateSpec
    """What the nodes may look like."""


class NodePoolSpec(Model):
    """What nodes may look like, how many, and when they may be disrupted."""

    template: NodeClaimTemplate
    """What nodes of the pool look like."""
    disruption: Disruption = Disruption()
    """When nodes of the pool may be replaced or removed."""
    limits: dict[str, Quantity] = {}
    """The most that all nodes of the pool may have together, by resource; `nodes` counts nodes."""
    weight: Annotated[WholeNumber, Field(ge=1, le=100)] | None = None
    """Pools with a higher weight are tried first."""
    replicas: Annotated[WholeNumber, Field(ge=0)] | None = None
    """A fixed number of nodes, whether pods need them or not."""


CheckedNodePoolSpec = Annotated[
    NodePoolSpec,
    Transition(
        "has(self.replicas) == has(oldSelf.replicas)",
        "a static NodePool (with 'replicas') cannot become dynamic, nor the other way round",
    ),
    Rule(
        "!has(self.replicas) || !has(self.limits) || self.limits.size() == 0"
        " || (self.limits.size() == 1 && 'nodes' in self.limits)",
        "only 'nodes' may be limited together with 'replicas'",
        lambda it: it.replicas is None or set(it.limits) <= {"nodes"},
        field="limits",
    ),
    Rule(
        "!has(self.replicas) || !has(self.weight)",
        "'weight' cannot be set together with 'replicas'",
        lambda it: it.replicas is None or it.weight is None,
        field="weight",
    ),
]


class NodePoolStatus(Model):
    """What the pool has."""

    required_on_wire = frozenset({"nodes"})

    resources: dict[str, Quantity] = {}
    """The capacity of all its nodes together."""
    nodes: WholeNumber = 0
    """How many there are."""
    node_class_observed_generation: WholeNumber | None = None
    """The EC2NodeClass generation that NodeRegistrationHealthy speaks of."""
    conditions: list[Condition] = []
    """Whether the pool can get nodes; `Ready` sums it up."""


#: By the label of a default, that by which a pod chooses instead.
CHOSEN_BY: Mapping[str, str] = {
    **dict.fromkeys(labels.KINDS, labels.INSTANCE_TYPE),
    labels.ZONE: labels.ZONE,
    labels.ARCH: labels.ARCH,
    labels.CAPACITY_TYPE: labels.CAPACITY_TYPE,
}


def _is_default(requirement: Requirement) -> bool:
    """minValues are for launches that may choose, which one that a pod has chosen may not."""
    return labels.canonical(requirement.key) in CHOSEN_BY and requirement.min_values is None


class NodePool(CustomResource):
    """What nodes may look like, how many, and when they may be disrupted."""

    api_version = "karpenter.sh/v1"
    kind = "NodePool"

    spec: CheckedNodePoolSpec
    status: NodePoolStatus = NodePoolStatus()

    @property
    def is_static(self) -> bool:
        """A pool with ``replicas`` keeps a fixed size and takes no pending pods (Karpenter static capacity)."""
        return self.spec.replicas is not None

    @property
    def requirements(self) -> list[Requirement]:
        """What every node of the pool satisfies: what its template requires, but for ``defaults``."""
        listed = self.spec.template.spec.requirements
        return [one for one in listed if not _is_default(one)] if self._has_defaults else listed

    @property
    def defaults(self) -> list[Requirement]:
        """What its template requires for pods that choose nothing else (``joinery.dev/overrides``).

        Provisioners of v1alpha3 and v1alpha4 were "defaults", and what a pod selects "overrides" (Karpenter
        ``v1alpha3.ProvisionerSpec``, ``Constraints.WithOverrides``).
        """
        return [one for one in self.spec.template.spec.requirements if _is_default(one)] if self._has_defaults else []

    @property
    def _has_defaults(self) -> bool:
        # No pod chooses the nodes of a static pool.
        return self.metadata.annotations.get(labels.OVERRIDES) == "true" and not self.is_static

    def requiring(self, more: Iterable[Requirement]) -> "NodePool":
        """The NodePool with these requirements beside those of its template."""
        template = self.spec.template
        spec = template.spec.model_copy(update={"requirements": [*template.spec.requirements, *more]})
        narrowed = template.model_copy(update={"spec": spec})
        return self.model_copy(update={"spec": self.spec.model_copy(update={"template": narrowed})})

    @property
    def notes_emptiness(self) -> bool:
        """Whether its empty Nodes say since when: those of a Provisioner with ``ttlSecondsAfterEmpty`` do."""
        disruption = self.spec.disruption
        waits = disruption.consolidation_policy == "WhenEmpty" and disruption.consolidate_after != duration.NEVER
        return waits and self.origin is not None and self.origin.kind == "Provisioner"
