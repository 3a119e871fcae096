"""What `resolve` answers, remembered.

The same few node classes are resolved against the same catalogue for every run of every door, in hundreds of worlds
that stand in one process. That took a third of their time.
"""

from collections.abc import Sequence
from datetime import datetime

from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.cloudprovider.catalog.document import Catalog
from joinery.cloudprovider.catalog.reservations import CapacityReservation
from joinery.cloudprovider.instancetypes.resolve import LONG_AGO, resolve
from joinery.state.offerings import InstanceType

#: A test that makes class after class must not fill the memory: the oldest answer goes first.
_MOST = 64

_Key = tuple[int, str, str]
# With the catalogue itself, which keeps its id from being given to another one.
_remembered: dict[_Key, tuple[Catalog, tuple[InstanceType, ...]]] = {}


def types_of(
    catalog: Catalog,
    node_class: EC2NodeClass,
    *,
    now: datetime = LONG_AGO,
    reservations: Sequence[CapacityReservation] | None = None,
) -> tuple[InstanceType, ...]:
    """The catalogue's types for a class, as ``resolve`` answers. The answer is shared and must not be changed."""
    counted = catalog.capacity_reservations if reservations is None else reservations
    if counted or node_class.status.capacity_reservations:  # They change from moment to moment.
        return resolve(catalog, node_class, now=now, reservations=counted)
    key = _key(catalog, node_class)
    remembered = _remembered.get(key)
    if remembered is None:
        remembered = catalog, resolve(catalog, node_class)
        if len(_remembered) >= _MOST:
            _remembered.pop(next(iter(_remembered)), None)
        _remembered[key] = remembered
    return remembered[1]


def _key(catalog: Catalog, node_class: EC2NodeClass) -> _Key:
    """Whatever an answer depends on, as long as there are no reservations."""
    reached = node_class.status.model_dump_json(include={"subnets", "amis"})
    return id(catalog), node_class.spec.model_dump_json(), reached
