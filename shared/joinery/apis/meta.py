"""What NodePool, NodeClaim and EC2NodeClass share: base model, metadata, conditions, taints, requirements."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasGenerator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from joinery.apis.quantity import parse


class Model(BaseModel):
    """A frozen part of a custom resource. Field names are snake case here and camel case on the wire."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(alias=to_camel), populate_by_name=True, frozen=True, extra="ignore"
    )


def _quantity(value: str) -> str:
    parse(value)
    return value


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


Quantity = Annotated[str, BeforeValidator(_as_text), AfterValidator(_quantity)]
Duration = Annotated[str, Field(pattern=r"^([0-9]+(s|m|h))+$")]
DurationOrNever = Annotated[str, Field(pattern=r"^(([0-9]+(s|m|h))+|Never)$")]
ConditionStatus = Literal["True", "False", "Unknown"]


class OwnerReference(Model):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []


class Condition(Model):
    type: str
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


class Taint(Model):
    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Requirement(Model):
    """A node selector requirement, with Karpenter's extra operators and ``minValues``."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]
    values: list[str] = []
    min_values: int | None = None


class NodeClassRef(Model):
    group: str = "karpenter.k8s.aws"
    kind: str = "EC2NodeClass"
    name: str


class CustomResource(Model):
    """Wire form and conditions, the same for all three kinds."""

    metadata: ObjectMeta = ObjectMeta()
