"""Where a CSI driver has room for a volume that is to be made (kube-scheduler VolumeBinding `hasEnoughCapacity`)."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from joinery.apis.core import CSIDriver, CSIStorageCapacity, NodeSelectorRequirement
from joinery.apis.quantity import amount
from joinery.scheduling.constraints.nodeterms import term
from joinery.scheduling.constraints.requirements import Requirements, UnknownOperatorError, one_of
from joinery.scheduling.constraints.selectors import unreadable


class StorageCapacity:
    """What drivers publish of their room, segment by segment of the cluster."""

    def __init__(self, drivers: Iterable[CSIDriver], capacities: Iterable[CSIStorageCapacity]) -> None:
        self._publishing = {driver.metadata.name for driver in drivers if driver.spec.storage_capacity}
        self._of_class: dict[str, list[CSIStorageCapacity]] = {}
        for capacity in capacities:
            self._of_class.setdefault(capacity.storage_class_name, []).append(capacity)

    def is_published(self, driver: str) -> bool:
        """Whether the driver makes volumes only where it says that it has room."""
        return driver in self._publishing

    def segments(self, storage_class: str, size: int) -> tuple[Requirements, ...]:
        """Where the driver has room for a volume of that class and size (bytes). In a segment that nothing is published
        of, such as a host to come, it has none.
        """
        enough = (one for one in self._of_class.get(storage_class, ()) if _largest(one) >= size)
        return tuple(_united(_places(enough)))


def _largest(capacity: CSIStorageCapacity) -> int:
    """Bytes of the largest volume that there is room for; -1 where nobody says."""
    said = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    try:
        return -1 if said is None else amount("storage", said)
    except ValueError:
        return -1


def _places(capacities: Iterable[CSIStorageCapacity]) -> Iterator[Requirements]:
    for capacity in capacities:
        topology = capacity.node_topology
        if topology is not None and not unreadable(topology):
            with suppress(UnknownOperatorError):  # such a value no node has
                yield term([*_equal(topology.match_labels), *topology.match_expressions])


def _equal(labels: Mapping[str, str]) -> Iterator[NodeSelectorRequirement]:
    for key, value in labels.items():
        yield NodeSelectorRequirement(key=key, operator="In", values=[value])


def _united(places: Iterable[Requirements]) -> Iterator[Requirements]:
    """Those that list values of one label alone as one: some drivers have a segment for each node."""
    values: dict[str, set[str]] = {}
    others: list[Requirements] = []
    for place in places:
        (key,) = place.sets if len(place.sets) == 1 else ("",)
        if key and place.get(key).operator == "In":
            values.setdefault(key, set()).update(place.get(key).values)
        elif place not in others:
            others.append(place)
    yield from others
    yield from (Requirements({key: one_of(listed)}) for key, listed in values.items())
