"""Free PersistentVolumes during a packing: each serves one claim (kube-scheduler VolumeBinding `findMatchingVolumes`).

Only first-fit chooses among the places where a class's volumes may be. Whoever improves on its nodes keeps to the place
that was chosen, so what is left of the volumes is known at every moment.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from joinery.decisions.scheduling.constraints.volume_needs import VolumeChoice
from joinery.decisions.scheduling.constraints.volume_stocks import Sized, Stock, Taken

Labels = Mapping[str, str]


@dataclass(slots=True)
class _ClaimToBind:
    """A claim, the stock that it chooses from, from where on, and for how many volumes."""

    claim: str
    stock: Stock
    index: int
    number: int


class VolumeBinder:
    """Which of them are taken, and by which of the claims that several pods share (``VolumeChoice.claim``)."""

    def __init__(self) -> None:
        self._of_claim: dict[str, Sized] = {}
        self._taken = Taken()

    def left(self, choices: tuple[VolumeChoice, ...], most: int, labels: Labels | None = None) -> int:
        """For how many more pods there are volumes, ``most`` at the most.

        ``labels``: of the node that they would be on; None for a node to come, which is wherever the choices are.
        """
        looking, gone = self._looking(choices, labels), set[str]()
        for count in range(most if looking else 0):
            picked = self._pick(looking, gone)
            if picked is None:
                return count
            if not picked:
                break
        return most

    def take(self, choices: tuple[VolumeChoice, ...], count: int, labels: Labels | None = None) -> None:
        """Take the volumes of so many pods, as far as there are any."""
        looking = self._looking(choices, labels) if count else []
        for _ in range(count if looking else 0):
            for claim, volume in self._pick(looking, set()) or ():
                self._taken.add(volume.name)
                if claim:
                    self._of_claim[claim] = volume

    def _looking(self, choices: Iterable[VolumeChoice], labels: Labels | None) -> list[_ClaimToBind]:
        """The claims that still need a volume. One that has its own needs none there, and finds none elsewhere."""
        looking = []
        for claim, everywhere, size, number in choices:
            stock, own = everywhere if labels is None else everywhere.at(labels), self._of_claim.get(claim)
            if own is None or not stock.has(own):
                looking.append(_ClaimToBind(claim, stock, len(stock.volumes) if own else stock.first(size), number))
        return looking

    def _pick(self, looking: Collection[_ClaimToBind], gone: set[str]) -> list[tuple[str, Sized]] | None:
        """The volumes that one more pod binds, which are gone then; None where there are too few."""
        picked = list[tuple[str, Sized]]()
        for one in looking:
            for _ in range(one.number):
                volumes = one.stock.volumes
                one.index = self._taken.first_left(one.stock, one.index)
                while one.index < len(volumes) and volumes[one.index].name in gone:
                    one.index = self._taken.first_left(one.stock, one.index + 1)
                if one.index == len(volumes):
                    return None
                picked.append((one.claim, volumes[one.index]))
                gone.add(volumes[one.index].name)
                one.index += 1
            one.number = 0 if one.claim else one.number  # the pods that share it need one together
        return picked
