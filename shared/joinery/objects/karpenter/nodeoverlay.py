"""NodeOverlay (karpenter.sh/v1alpha1): other prices, and extended resources, for the instance types that match."""

from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field, model_validator

from joinery.objects.karpenter import labels
from joinery.objects.karpenter.meta import (
    LABEL_KEY,
    SELECTOR_RULES,
    Condition,
    CustomResource,
    Model,
    Quantity,
    WholeNumber,
)
from joinery.objects.karpenter.rules import Rule, RuleError
from joinery.objects.kubernetes.decoding import decoder
from joinery.objects.kubernetes.dynamic_resources import ResourceSliceSpec

#: What a node has beside extended resources. Its capacity is the instance type's.
_OWN_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")


class OverlayRequirement(Model):
    """A node selector requirement, with Karpenter's extra operators."""

    key: Annotated[str, Field(max_length=316, pattern=LABEL_KEY)]
    """The label: of instance types and offerings, `karpenter.sh/nodepool`, or one of a NodePool's template."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]
    """How the label's value relates to `values`. The last four compare integers."""
    values: list[str] = []
    """What `operator` compares with: at least one for In and NotIn, exactly one integer for Gt, Lt, Gte and Lte."""


OverlayRequirements = Annotated[
    list[
        Annotated[
            OverlayRequirement,
            *SELECTOR_RULES,
            Rule(
                "self.operator != 'NotIn' || (has(self.values) && self.values.size() > 0)",
                "operator NotIn must have a value",
                lambda it: it.operator != "NotIn" or bool(it.values),
                field="values",
            ),
        ]
    ],
    Field(max_length=100),
]
#: The pattern is Karpenter's: a sign is needed, and nothing is taken off beyond the whole price.
Adjustment = Annotated[
    str, Field(pattern=r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$")
]
ExtendedResources = Annotated[
    dict[str, Quantity],
    Rule(
        f"self.all(x, !(x in [{', '.join(repr(name) for name in _OWN_RESOURCES)}]))",
        f"only extended resources can be added, not {', '.join(_OWN_RESOURCES)}",
        lambda it: not any(name in _OWN_RESOURCES for name in it),
        blamed=lambda it: next(name for name in it if name in _OWN_RESOURCES),
    ),
]


class NodeOverlaySpec(Model):
    """Which instance types are changed, and how."""

    required_on_wire = frozenset({"requirements"})

    requirements: OverlayRequirements
    """Which instance types and offerings of which NodePools are changed. All of them, if empty."""
    price: Annotated[str, Field(pattern=r"^\d+(\.\d+)?$")] | None = None
    """$/h, in place of what the offering costs. For instance types that alone are named, also where they have none."""
    price_adjustment: Adjustment | None = None
    """What is added to the offering's price: $/h (`+0.5`, `-0.5`) or a share of it (`+10%`, `-15%`)."""
    capacity: ExtendedResources = {}
    """Extended resources (and huge pages) that nodes will have beside what their instance type has."""
    weight: Annotated[WholeNumber, Field(ge=1, le=10000)] | None = None
    """Of overlays for the same offering or resource the heaviest counts; 0 without it. Equal ones are a conflict."""

    @model_validator(mode="before")
    @classmethod
    def _says_what_it_is_for(cls, given: Any) -> Any:
        """Nobody should change all prices by leaving a field out, so an API server wants it (Karpenter, required)."""
        if isinstance(given, dict) and given.get("requirements") is None:
            raise RuleError("is missing: which instance types is it for? [] means all of them", "requirements")
        return given


CheckedSpec = Annotated[
    NodeOverlaySpec,
    Rule(
        "!has(self.price) || !has(self.priceAdjustment)",
        "cannot set both 'price' and 'priceAdjustment'",
        lambda it: it.price is None or it.price_adjustment is None,
        field="price",
    ),
]


class NodeOverlayStatus(Model):
    """Whether the overlay counts."""

    conditions: list[Condition] = []
    """Whether the overlay is valid and in conflict with no other; `Ready` sums it up."""


class NodeOverlay(CustomResource):
    """Other prices, and extended resources, for the instance types that match."""

    api_version = "karpenter.sh/v1alpha1"
    kind = "NodeOverlay"

    spec: CheckedSpec
    status: NodeOverlayStatus = NodeOverlayStatus()

    @property
    def weight(self) -> int:
        return self.spec.weight or 0

    @property
    def slices(self) -> tuple[ResourceSliceSpec, ...]:
        """The devices that it says nodes will have. Raises ``ValueError`` for what is no list of such."""
        text = self.metadata.annotations.get(labels.RESOURCE_SLICES)
        if text is None:
            return ()
        try:
            return tuple(decoder(list[ResourceSliceSpec]).decode(text))
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from error

    @property
    def previewed(self) -> frozenset[str]:
        """The instance types (names) that it gives a price even where AWS has none: those that are all that it asks
        for (Karpenter for AWS `GetOverlayPrice`).
        """
        asked = self.spec.requirements
        is_one = len(asked) == 1 and (asked[0].key, asked[0].operator) == (labels.INSTANCE_TYPE, "In")
        return frozenset(asked[0].values) if is_one and self.spec.price is not None else frozenset()

    def priced(self, price: float) -> float:
        """$/h that it makes of a price (Karpenter `AdjustedPrice`)."""
        if self.spec.price is not None:
            return float(self.spec.price)
        change = self.spec.price_adjustment
        if change is None:
            return price
        if change.endswith("%"):
            return max(0.0, price * (1 + float(change.removesuffix("%")) / 100))
        return max(0.0, price + float(change))

    @property
    def prices(self) -> bool:
        """Whether it changes prices at all."""
        return self.spec.price is not None or self.spec.price_adjustment is not None
