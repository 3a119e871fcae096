"""How an EC2NodeClass names the AWS objects it uses: terms that are alternatives, whose fields all have to match.

Karpenter's CRDs write the rule "id excludes the other fields" of subnets, security groups and capacity reservations as
"not *every* term breaks it", so a list in which only some term mixes them is stored in clusters today. It stays
accepted, and of such a term an id counts before a name, and a name before the rest.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from joinery.objects.karpenter.meta import Model
from joinery.objects.karpenter.rules import Rule

ALIAS_FAMILIES = ("al2", "al2023", "bottlerocket", "windows2019", "windows2022", "windows2025")

#: Tags to match. The value ``*`` matches any.
SelectorTags = Annotated[
    dict[str, str],
    Field(max_length=20),
    Rule(
        "self.all(k, k != '' && self[k] != '')",
        "a tag needs a key and a value",
        lambda tags: all(key and value for key, value in tags.items()),
    ),
]


def _has(field: str, term: str = "self") -> str:
    """CEL: the term says something with that field. An empty map says nothing."""
    return f"(has({term}.{field}) && {term}.{field}.size() > 0)" if field == "tags" else f"has({term}.{field})"


def _any(fields: tuple[str, ...], term: str = "self") -> str:
    return " || ".join(_has(field, term) for field in fields)


def _says(term: Any, fields: tuple[str, ...]) -> bool:
    names = {field.alias or name: name for name, field in type(term).model_fields.items()}
    return any(getattr(term, names[field]) for field in fields)


def _not_empty(*fields: str) -> Rule:
    return Rule(_any(fields), f"expected at least one of {', '.join(fields)}", lambda term: _says(term, fields))


def _alone(field: str, *others: str) -> Rule:
    """In one term, the field excludes the others."""
    return Rule(
        f"!({_has(field)} && ({_any(others)}))",
        f"'{field}' excludes {', '.join(others)}",
        lambda term: not (_says(term, (field,)) and _says(term, others)),
        field=field,
    )


def _not_all(field: str, *others: str) -> Rule:
    """Of all terms, at least one does not mix the field with others (see the module's docstring)."""
    return Rule(
        f"self.size() == 0 || !self.all(x, {_has(field, 'x')} && ({_any(others, 'x')}))",
        f"'{field}' excludes {', '.join(others)}",
        lambda terms: not terms or not all(_says(term, (field,)) and _says(term, others) for term in terms),
    )


class SubnetSelectorTerm(Model):
    """Subnets by id or by tags."""

    tags: SelectorTags = {}
    """Tags that it has, all of them. The value `*` matches any."""
    id: Annotated[str, Field(pattern=r"subnet-[0-9a-z]+")] = ""
    """The subnet's id. It excludes tags."""


SubnetSelectorTerms = Annotated[
    list[Annotated[SubnetSelectorTerm, _not_empty("tags", "id")]],
    Field(min_length=1, max_length=30),
    _not_all("id", "tags"),
]


class SecurityGroupSelectorTerm(Model):
    """Security groups by id, by name or by tags."""

    tags: SelectorTags = {}
    """Tags that it has, all of them. The value `*` matches any."""
    id: Annotated[str, Field(pattern=r"sg-[0-9a-z]+")] = ""
    """The group's id. It excludes tags."""
    name: str = ""
    """The group's name, which is not its Name tag."""


SecurityGroupSelectorTerms = Annotated[
    list[Annotated[SecurityGroupSelectorTerm, _not_empty("tags", "id", "name")]],
    Field(min_length=1, max_length=30),
    _not_all("id", "tags", "name"),
    _not_all("name", "tags", "id"),
]


class CapacityReservationSelectorTerm(Model):
    """Capacity reservations by id, or by tags, owner and criteria."""

    tags: SelectorTags = {}
    """Tags that it has, all of them. The value `*` matches any."""
    id: Annotated[str, Field(pattern=r"^cr-[0-9a-z]+$")] = ""
    """The reservation's id. It excludes tags."""
    owner_id: Annotated[str, Field(pattern=r"^[0-9]{12}$")] = Field(default="", alias="ownerID")
    """The account that owns it."""
    instance_match_criteria: Literal["", "open", "targeted"] = ""
    """Whether any matching instance uses the reservation (open), or only one that names it (targeted)."""


CapacityReservationSelectorTerms = Annotated[
    list[Annotated[CapacityReservationSelectorTerm, _not_empty("tags", "id", "instanceMatchCriteria")]],
    Field(max_length=30),
    _not_all("id", "tags", "ownerID", "instanceMatchCriteria"),
]


class AMISelectorTerm(Model):
    """AMIs by alias, by id, or by name, owner, tags and SSM parameter."""

    alias: Annotated[
        str,
        Field(max_length=30),
        Rule(
            "self.find('^[^@]+') in [" + ", ".join(f"'{family}'" for family in ALIAS_FAMILIES) + "]",
            f"the family must be one of {', '.join(ALIAS_FAMILIES)}",
            lambda alias: alias.partition("@")[0] in ALIAS_FAMILIES,
        ),
        Rule(
            "self.matches('^[a-zA-Z0-9]+@.+$')",
            "'alias' must have the format family@version",
            lambda alias: alias.partition("@")[0].isalnum() and bool(alias.partition("@")[2]),
        ),
        Rule(
            "!self.startsWith('windows') || self.endsWith('@latest')",
            "Windows images have no version but 'latest'",
            lambda alias: not alias.startswith("windows") or alias.endswith("@latest"),
        ),
    ] = ""
    """An EKS optimised AMI: family@version, such as al2023@latest."""
    id: Annotated[str, Field(pattern=r"ami-[0-9a-z]+")] = ""
    """The image's id."""
    name: str = ""
    """The image's name; `*` stands for any letters."""
    owner: str = ""
    """An account id, self, amazon or aws-marketplace."""
    ssm_parameter: str = Field(default="", alias="ssmParameter")
    """The SSM parameter that holds the id."""
    tags: SelectorTags = {}
    """Tags that it has, all of them. The value `*` matches any."""


AMISelectorTerms = Annotated[
    list[
        Annotated[
            AMISelectorTerm,
            _not_empty("tags", "id", "name", "alias", "ssmParameter"),
            _alone("id", "alias", "name", "owner", "tags"),
            _alone("alias", "id", "name", "owner", "tags"),
        ]
    ],
    Field(min_length=1, max_length=30),
    Rule(
        "!self.exists(x, has(x.alias)) || self.size() == 1",
        "'alias' must be the only term",
        lambda terms: len(terms) == 1 or not any(term.alias for term in terms),
    ),
]


class PlacementGroupSelector(Model):
    """A placement group by name or by id."""

    name: Annotated[str, Field(min_length=1)] = ""
    """The group's name."""
    id: Annotated[str, Field(pattern=r"^pg-[0-9a-z]+$")] = ""
    """The group's id."""


CheckedPlacementGroupSelector = Annotated[
    PlacementGroupSelector,
    Rule(
        "has(self.name) != has(self.id)",
        "expected exactly one of name, id",
        lambda it: bool(it.name) != bool(it.id),
    ),
]
