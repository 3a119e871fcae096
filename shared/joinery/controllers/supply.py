"""The supply: what can be bought now.

That is the catalogue as each node class has it, less what EC2 was out of lately.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from joinery.apis.nodeclass import NodeClass
from joinery.controllers.catalog import current
from joinery.gateways import Gateways
from joinery.state.offerings import InstanceType, OfferingKey, without


@dataclass(frozen=True)
class Supply:
    """``types``: by the name of a node class, the instance types that its nodes may be of, with their offerings.

    ``unavailable``: the capacity pools that EC2 was out of lately. Their offerings are marked unavailable in ``types``.
    """

    types: Mapping[str, tuple[InstanceType, ...]]
    unavailable: frozenset[OfferingKey]


def read_supply(gateways: Gateways, node_classes: Sequence[NodeClass], now: datetime) -> Supply:
    """Read the catalogue, what is left of capacity reservations, and what EC2 was out of. Costs about 40 ms a class."""
    types = gateways.cloud.instance_types(node_classes, current(gateways), now)
    unavailable = gateways.unavailable.at(now)
    return Supply({name: without(listed, unavailable) for name, listed in types.items()}, unavailable)
