"""What is paid for already, as a document: in a file for ``--commitments``, and in the bucket, where functions read it.

    discount: 0.06
    reservedInstances:
    - {name: web, instanceType: m7a.xlarge, zone: eu-central-1a, count: 20, usedElsewhere: 3}
    - {name: api, instanceType: m7a.xlarge, count: 10, end: 2027-01-01T00:00:00Z}
    savingsPlans:
    - {name: m7, family: m7a, commitment: 12.5, discount: 0.34}
    - {name: compute, commitment: 40, usedElsewhere: 10, rates: {m7a.large: 0.07}}

``discount`` of all is the share that a private pricing agreement (EDP) takes off prices. A Reserved Instance without a
zone is one of the region; then it is for all sizes of its family, unless ``sizeFlexible: false``. A Savings Plan
without a family is a Compute Savings Plan. Its rates are $/h by instance type (AWS API DescribeSavingsPlanRates), or a
share off on-demand prices. ``usedElsewhere``: what others than this cluster's nodes use. ``end``: when it ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec

from joinery.objects.errors import ConfigurationError, JoineryError

LINUX, SHARED = "Linux/UNIX", "shared"
#: Of instances, or $/h.
_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
_Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]


class ReservedInstances(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """``count`` of them. ``size_flexible``: None where AWS's rule says it."""

    name: str
    instance_type: str
    count: _Amount
    zone: str = ""
    used_elsewhere: _Amount = 0.0
    size_flexible: bool | None = None
    end: datetime | None = None


class SavingsPlan(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """``commitment``, ``rates``: $/h. Either rates or a ``discount``."""

    name: str
    commitment: _Amount
    family: str = ""
    used_elsewhere: _Amount = 0.0
    discount: _Share = 0.0
    rates: Mapping[str, _Amount] | None = None
    end: datetime | None = None


class PaidFor(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """The document. ``read``: when AWS said it; None where a person has written it. ``missing``: lines about what could
    not be read then.
    """

    discount: _Share = 0.0
    reserved_instances: tuple[ReservedInstances, ...] = ()
    savings_plans: tuple[SavingsPlan, ...] = ()
    read: datetime | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OtherInstance:
    """An on-demand instance that is not the cluster's. ``platform``, ``tenancy``: in the words of Savings Plans."""

    instance_type: str
    platform: str
    tenancy: str
    zone: str

    @property
    def usage(self) -> tuple[str, str]:
        return self.platform, self.tenancy


@dataclass(frozen=True, kw_only=True)
class Bought:
    """What an account has bought in a region, and who else uses it there; of each, why it could not be read instead.

    Rates are by ``kind_of``, for all that is among the others.
    """

    savings_plans: tuple[SavingsPlan, ...] | JoineryError = ()
    reserved_instances: tuple[ReservedInstances, ...] | JoineryError = ()
    others: tuple[OtherInstance, ...] | JoineryError = ()


def kind_of(instance_type: str, platform: str, tenancy: str) -> str:
    """What a rate is for: the type alone on Linux and shared hardware, as nodes are; with both words otherwise."""
    is_usual = (platform, tenancy) == (LINUX, SHARED)
    return instance_type if is_usual else f"{instance_type} ({platform}, {tenancy})"


def decode(data: bytes) -> PaidFor:
    """The document in JSON. Raises ``ConfigurationError`` naming the field that is wrong."""
    try:
        return msgspec.json.decode(data, type=PaidFor)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"not a document of commitments: {error}") from error


def encode(document: PaidFor) -> bytes:
    """As it is stored."""
    return msgspec.json.encode(document, order="deterministic")
