"""What ``resolve`` answers, remembered for as long as a process lives.

A warm function needs the same few node classes against the same catalogue in every run, the command line's tests a
hundred times, the simulator's hundreds of worlds in every run of every door. Whoever gets the same types again also
gets what is remembered of them, such as their market (``scheduling.pools``).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.gateways.ec2.instancetypes.capacity import USUAL, NodeAssumptions
from joinery.gateways.ec2.instancetypes.resolve import LONG_AGO, resolve
from joinery.gateways.ec2.nodeclass.placement import PlacementGroup
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import GPU_SHARING
from joinery.objects.snapshot.offerings import InstanceType

#: A thousand types take some five megabytes.
_MOST = 8


class _CacheKey:
    """A class and a catalogue: equal if they have the same answer, as long as there are no reservations."""

    def __init__(
        self,
        catalog: Catalog,
        node_class: EC2NodeClass,
        assumed: NodeAssumptions,
        group: PlacementGroup | None,
        memory: Mapping[str, int],
    ) -> None:
        # The catalogue is kept, so that its id is not given to another one.
        self.catalog, self.node_class, self.assumed = catalog, node_class, assumed
        self.group, self.memory = group, memory
        reached = node_class.status.model_dump_json(include={"subnets", "amis"})
        seen = frozenset(memory.items())
        sharing = node_class.metadata.annotations.get(GPU_SHARING, "")
        self._key = id(catalog), node_class.spec.model_dump_json(), sharing, reached, assumed, group, seen

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _CacheKey) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def types_of(
    catalog: Catalog,
    node_class: EC2NodeClass,
    *,
    now: datetime = LONG_AGO,
    reservations: Sequence[CapacityReservation] | None = None,
    assumed: NodeAssumptions = USUAL,
    group: PlacementGroup | None = None,
    memory: Mapping[str, int] | None = None,
) -> tuple[InstanceType, ...]:
    """The catalogue's types for a class, as ``resolve`` answers. The answer is shared and must not be changed."""
    counted = catalog.capacity_reservations if reservations is None else reservations
    if counted or node_class.status.capacity_reservations:  # They change from moment to moment.
        return resolve(catalog, node_class, now=now, reservations=counted, assumed=assumed, group=group, memory=memory)
    return _resolved(_CacheKey(catalog, node_class, assumed, group, memory or {}))


@lru_cache(maxsize=_MOST)
def _resolved(key: _CacheKey) -> tuple[InstanceType, ...]:
    return resolve(key.catalog, key.node_class, assumed=key.assumed, group=key.group, memory=key.memory)
