"""What can be bought now: the catalogue as each node class has it, less what the cloud was out of lately."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from joinery.apis.nodeclass import NodeClass
from joinery.controllers.catalog import current
from joinery.gateways import Gateways
from joinery.state.offerings import InstanceType, OfferingKey, without


@dataclass(frozen=True)
class Supply:
    """``types`` maps a node class's name to the types its nodes may be of."""

    types: Mapping[str, tuple[InstanceType, ...]]
    unavailable: frozenset[OfferingKey]


def read_supply(gateways: Gateways, node_classes: Sequence[NodeClass], now: datetime) -> Supply:
    """Read it. Costs about 40 ms a class."""
    types = gateways.cloud.instance_types(node_classes, current(gateways), now)
    unavailable = gateways.memory.unavailable(now)
    return Supply({name: without(listed, unavailable) for name, listed in types.items()}, unavailable)
