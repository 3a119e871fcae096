"""Where a CSI driver has room for a volume that is to be made (kube-scheduler VolumeBinding `hasEnoughCapacity`)."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from joinery.decisions.scheduling.constraints.nodeterms import term
from joinery.decisions.scheduling.constraints.requirements import Requirements, UnknownOperatorError, one_of
from joinery.decisions.scheduling.constraints.selectors import unreadable
from joinery.decisions.scheduling.constraints.volume_stocks import Sized, Stock, VolumePlaces
from joinery.objects.kubernetes.core import CSIDriver, CSIStorageCapacity, NodeSelectorRequirement
from joinery.objects.kubernetes.quantity import amount

#: How many segments claims of all sizes ask about.
MOST_LOOKS = 200_000


class StorageCapacity:
    """What drivers publish of their room, segment by segment of the cluster."""

    def __init__(self, drivers: Iterable[CSIDriver], capacities: Iterable[CSIStorageCapacity]) -> None:
        self._publishing = {driver.metadata.name for driver in drivers if driver.spec.storage_capacity}
        self._of_class: dict[str, list[CSIStorageCapacity]] = {}
        self._stocks: dict[str, tuple[tuple[Requirements, Stock], ...]] = {}
        self._segments: dict[tuple[str, int], tuple[Requirements, ...] | None] = {}
        self._looks_left = MOST_LOOKS
        for capacity in capacities:
            self._of_class.setdefault(capacity.storage_class_name, []).append(capacity)

    def is_published(self, driver: str) -> bool:
        """Whether the driver makes volumes only where it says that it has room."""
        return driver in self._publishing

    def segments(self, storage_class: str, size: int) -> tuple[Requirements, ...] | None:
        """Where the driver has room for a volume of that class and size (bytes). In a segment that nothing is published
        of, such as a host to come, it has none. None where claims of too many sizes ask about too many segments.
        """
        if (storage_class, size) not in self._segments:
            looks = len(self._of_class.get(storage_class, ()))
            is_within = looks <= self._looks_left
            self._looks_left -= looks if is_within else 0
            self._segments[storage_class, size] = tuple(self._with_room(storage_class, size)) if is_within else None
        return self._segments[storage_class, size]

    def _with_room(self, storage_class: str, size: int) -> Iterator[Requirements]:
        for place, rooms in self._rooms(storage_class):
            if not rooms.key and rooms.largest >= size:
                yield place
            values = [value for value, there in rooms.by_value.items() if there.largest >= size]
            if values:
                yield place.intersect(Requirements({rooms.key: one_of(values)}))

    def _rooms(self, storage_class: str) -> tuple[tuple[Requirements, Stock], ...]:
        """What is published for the class, in segments that differ in one label as one: there may be one a node."""
        if storage_class not in self._stocks:
            segments: dict[str, tuple[Requirements, ...]] = {}
            sizes: list[Sized] = []
            for number, capacity in enumerate(self._of_class.get(storage_class, ())):
                segments[str(number)] = tuple(_places(capacity))
                sizes.append(Sized(_largest(capacity), str(number)))
            places = VolumePlaces(segments, may_be_new=lambda _: False)
            self._stocks[storage_class] = tuple(places.stocks(sorted(sizes)))
        return self._stocks[storage_class]


def _largest(capacity: CSIStorageCapacity) -> int:
    """Bytes of the largest volume that there is room for; -1 where nobody says."""
    said = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    try:
        return -1 if said is None else amount("storage", said)
    except ValueError:
        return -1


def _places(capacity: CSIStorageCapacity) -> Iterator[Requirements]:
    topology = capacity.node_topology
    if topology is not None and not unreadable(topology):
        with suppress(UnknownOperatorError):  # such a value no node has
            yield term([*_equal(topology.match_labels), *topology.match_expressions])


def _equal(labels: Mapping[str, str]) -> Iterator[NodeSelectorRequirement]:
    for key, value in labels.items():
        yield NodeSelectorRequirement(key=key, operator="In", values=[value])
