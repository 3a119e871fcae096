"""What NodePool, NodeClaim and node classes share: base model, metadata, conditions, taints, requirements.

``OwnerReference``, ``ObjectMeta``, ``Taint`` and ``Condition`` are here and in ``kubernetes.core``. Here they generate
the CRDs and check what people write; there they are read ten thousand times in a run, in an eighth of the time.
"""

import re
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

from pydantic import (
    AfterValidator,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    Strict,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel

from joinery.objects.karpenter import duration, labels
from joinery.objects.karpenter.rules import Rule
from joinery.objects.kubernetes.quantity import parse
from joinery.objects.wording import A_DURATION, A_QUANTITY, must_be

#: A label key: an optional DNS prefix and a name. The lengths of its parts are checked at run time.
LABEL_KEY = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)
LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
#: What Karpenter's CRD takes (v1.15.1): up to EBS' most in each unit, but of Ti neither 18, nor 28, and so on.
VOLUME_SIZE = (
    r"^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}"
    r"|64000)G|([1-9]|[1-5][0-7]|58)Ti|([1-9]|[1-5][0-9]|6[0-3]|64)T)$"
)
#: Karpenter's CRD, which takes more than a label's value may be, and nothing that is empty.
TAINT_VALUE = LABEL_KEY.replace(")*/)?(", ")*(/))?(")
QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


class Model(BaseModel):
    """A frozen part of a custom resource. Field names are snake case here and camel case on the wire.

    ``required_on_wire`` names fields that have a default for us, and that the API server wants to see all the same.
    """

    model_config = ConfigDict(
        alias_generator=AliasGenerator(alias=to_camel),
        populate_by_name=True,
        frozen=True,
        extra="ignore",
        defer_build=True,
    )

    required_on_wire: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        """``taints: null`` is no taints: the API server prunes nulls before it looks."""
        if isinstance(data, dict) and None in data.values():
            return {key: value for key, value in data.items() if value is not None}
        return data

    @model_serializer(mode="wrap")
    def _without_empties(self, dump: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """Leave out what says nothing: the API server refuses ``role: ""``, but would take an absent role.

        What is empty on purpose (``budgets: []``, where the default is a budget) is not the default, and stays.
        """
        document: dict[str, Any] = dump(self)
        for name, field in type(self).model_fields.items():
            key = field.alias if info.by_alias and field.alias else name
            says_nothing = not document.get(key, True) and name not in self.required_on_wire
            if says_nothing and getattr(self, name) == field.default:
                del document[key]
        return document


def _quantity(value: str) -> str:
    try:
        parse(value)
        if value != value.strip():
            # The pattern of a custom resource takes no blanks, other than a quantity of Kubernetes' own objects.
            raise ValueError(f"{value!r} is not a quantity")
    except ValueError as error:
        raise ValueError(f"{error}: write {A_QUANTITY}") from error
    return value


def _duration(value: str) -> str:
    duration.parse(value)
    return value


def _as_text(value: object) -> object:
    """A number is a quantity too. Raises ``ValueError`` for what is neither number nor text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(must_be(A_QUANTITY, value))
    return str(value)


def _written_duration(value: object) -> object:
    """Raises ``ValueError`` for a number: a duration in quotes would still lack its unit."""
    if not isinstance(value, str):
        raise ValueError(must_be(A_DURATION, value))
    return value


Quantity = Annotated[
    str,
    BeforeValidator(_as_text),
    AfterValidator(_quantity),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY,
            "x-kubernetes-int-or-string": True,
        }
    ),
]
_Written = BeforeValidator(_written_duration)
Duration = Annotated[str, Field(pattern=r"^([0-9]+(s|m|h))+$"), AfterValidator(_duration), _Written]
DurationOrNever = Annotated[str, Field(pattern=r"^(([0-9]+(s|m|h))+|Never)$"), AfterValidator(_duration), _Written]
#: Neither text that looks like one nor, for a whole number, true: an API server takes none of it.
WholeNumber = Annotated[int, Strict()]
TrueOrFalse = Annotated[bool, Strict()]
ConditionStatus = Literal["True", "False", "Unknown"]


class OwnerReference(Model):
    required_on_wire = frozenset({"api_version", "kind", "name", "uid"})

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: TrueOrFalse | None = None
    block_owner_deletion: TrueOrFalse | None = None


class ObjectMeta(Model):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: WholeNumber = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []


class Condition(Model):
    """One aspect of an object's state: what it is, since when, and at which generation that was observed."""

    required_on_wire = frozenset({"reason", "message", "last_transition_time"})

    type: str
    """What the condition is about, in CamelCase."""
    status: ConditionStatus
    """`True`, `False` or `Unknown`."""
    reason: str = ""
    """Why it has that status, in one word for programs."""
    message: str = ""
    """Why it has that status, in a sentence for people."""
    last_transition_time: datetime | None = None
    """When the status last changed."""
    observed_generation: WholeNumber | None = None
    """The generation of the object that it is about."""


class Taint(Model):
    """Keeps pods that do not tolerate it off the node."""

    key: Annotated[str, Field(min_length=1, pattern=LABEL_KEY)]
    """The taint's key."""
    value: Annotated[str, Field(pattern=TAINT_VALUE)] = ""
    """The taint's value."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """What becomes of pods that do not tolerate it: `NoSchedule`, `PreferNoSchedule` or `NoExecute`."""
    time_added: datetime | None = None
    """When it was put onto the node; of `NoExecute` only."""

    @model_validator(mode="before")
    @classmethod
    def _without_an_empty_value(cls, data: Any) -> Any:
        """``value: ""`` is no value: Nodes have it so, and Karpenter's CRD takes only its absence."""
        if isinstance(data, dict) and data.get("value") == "":
            return {key: value for key, value in data.items() if key != "value"}
        return data


class Requirement(Model):
    """A node selector requirement, with Karpenter's extra operators and `minValues`."""

    key: Annotated[str, Field(max_length=316, pattern=LABEL_KEY)]
    """The label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]
    """How the label's value relates to `values`. The last four compare integers."""
    values: list[str] = []
    """What `operator` compares with: at least one for In, exactly one integer for Gt, Lt, Gte and Lte."""
    min_values: Annotated[WholeNumber, Field(ge=1, le=50)] | None = None
    """How many distinct values must stay possible when a node is launched."""


NUMERIC = frozenset({"Gt", "Lt", "Gte", "Lte"})


_KEY, _VALUE = re.compile(LABEL_KEY), re.compile(LABEL_VALUE)
_LONGEST_NAME, _LONGEST_PREFIX = 63, 253


def is_label_key(key: str) -> bool:
    """Whether a label may be called that (apimachinery ``IsQualifiedName``)."""
    prefix, _, name = key.rpartition("/")
    return len(name) <= _LONGEST_NAME and len(prefix) <= _LONGEST_PREFIX and _KEY.fullmatch(key) is not None


@lru_cache(maxsize=4096)
def is_label_value(value: str) -> bool:
    """Whether a label may have that value (apimachinery ``IsValidLabelValue``)."""
    return len(value) <= _LONGEST_NAME and _VALUE.fullmatch(value) is not None


def is_whole_number(text: str) -> bool:
    """Whether a value fits an operator that compares integers."""
    return text.isascii() and text.isdigit() and int(text) < 2**63


def in_domain(key: str, domain: str) -> bool:
    """Whether a label belongs to a domain or one of its sub-domains."""
    prefix = key.rpartition("/")[0]
    return prefix == domain or prefix.endswith(f".{domain}")


AWS_KEYS = labels.AWS_WELL_KNOWN | {labels.NODE_CLASS}
CORE_KEYS = frozenset({labels.CAPACITY_TYPE, labels.NODE_POOL})


def in_domain_cel(key: str, domain: str) -> str:
    """The same in CEL, for an expression that is a key."""
    return f"({key}.startsWith('{domain}/') || {key}.find('^[^/]+/').endsWith('.{domain}/'))"


def listed_cel(keys: frozenset[str]) -> str:
    """A CEL list of strings, in a stable order."""
    return "[" + ", ".join(f"'{key}'" for key in sorted(keys)) + "]"


_OPERAND_RULES = (
    Rule(
        "self.operator != 'In' || (has(self.values) && self.values.size() > 0)",
        "operator In must have a value",
        lambda it: it.operator != "In" or bool(it.values),
        field="values",
    ),
    Rule(
        "!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte'])"
        " || (has(self.values) && self.values.size() == 1 && int(self.values[0]) >= 0)",
        "operators Gt, Lt, Gte and Lte must have a single integer that is not negative",
        lambda it: it.operator not in NUMERIC or (len(it.values) == 1 and is_whole_number(it.values[0])),
        field="values",
    ),
)
_KEY_RULES = (
    Rule(
        f"self.key in {listed_cel(CORE_KEYS)} || !{in_domain_cel('self.key', labels.CORE_GROUP)}",
        f"labels of {labels.CORE_GROUP} are restricted",
        lambda it: it.key in CORE_KEYS or not in_domain(it.key, labels.CORE_GROUP),
        field="key",
    ),
    Rule(
        f"self.key in {listed_cel(AWS_KEYS)} || !{in_domain_cel('self.key', labels.AWS_GROUP)}",
        f"labels of {labels.AWS_GROUP} are restricted",
        lambda it: it.key in AWS_KEYS or not in_domain(it.key, labels.AWS_GROUP),
        field="key",
    ),
    Rule(
        f"self.key != '{labels.HOSTNAME}'",
        f"label {labels.HOSTNAME} is restricted",
        lambda it: it.key != labels.HOSTNAME,
        field="key",
    ),
)
#: Of every requirement.
SELECTOR_RULES = (*_OPERAND_RULES, *_KEY_RULES)
CheckedRequirement = Annotated[
    Requirement,
    *_OPERAND_RULES,
    Rule(
        "self.operator != 'In' || !has(self.minValues) || (has(self.values) && self.values.size() >= self.minValues)",
        "operator In must have at least minValues values",
        lambda it: it.operator != "In" or it.min_values is None or len(it.values) >= it.min_values,
        field="values",
    ),
    *_KEY_RULES,
]
#: Of a NodeClaim: ``karpenter.sh/nodepool`` is allowed, because a claim knows its pool.
ClaimRequirements = Annotated[list[CheckedRequirement], Field(max_length=100)]
#: Of a NodePool.
PoolRequirements = Annotated[
    list[
        Annotated[
            CheckedRequirement,
            Rule(
                f"self.key != '{labels.NODE_POOL}'",
                f"label {labels.NODE_POOL} is restricted",
                lambda it: it.key != labels.NODE_POOL,
                field="key",
            ),
        ]
    ],
    Field(max_length=100),
]


class Origin(NamedTuple):
    """The object of an older API that a custom resource was made from: that is what the API server stores."""

    api_version: str
    kind: str
    name: str


class CustomResource(Model):
    """An object of one of our kinds: what the API server stores under its name.

    An object of an older API is read as one of them too (``joinery.objects.karpenter.legacy``), and remembers its
    ``origin``.
    """

    api_version: ClassVar[str]
    kind: ClassVar[str]

    metadata: ObjectMeta = ObjectMeta()
    _origin: Origin | None = PrivateAttr(default=None)

    @property
    def origin(self) -> Origin | None:
        """The object of an older API that this one was made from; None if it is stored as it is."""
        return self._origin

    @property
    def stored_as(self) -> tuple[str, str]:
        """API version and kind by which the API server knows it: owner references and Events name these."""
        return (self._origin.api_version, self._origin.kind) if self._origin else (self.api_version, self.kind)

    def made_from(self, origin: Origin) -> Self:
        """The same with that origin."""
        made = self.model_copy()
        made._origin = origin
        return made

    def to_wire(self) -> dict[str, Any]:
        """The document that the API server accepts: camel case, RFC3339 times, nothing that is null or says nothing."""
        document = self.model_dump(mode="json", by_alias=True)
        return {"apiVersion": self.api_version, "kind": self.kind, **document}


R = TypeVar("R", bound=CustomResource)


def with_metadata(resource: R, **changes: Any) -> R:
    """A copy with other metadata."""
    return resource.model_copy(update={"metadata": resource.metadata.model_copy(update=changes)})
