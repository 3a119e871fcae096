"""Free PersistentVolumes during a packing: each serves one claim (kube-scheduler VolumeBinding `findMatchingVolumes`).

Only first-fit chooses among the places where a class's volumes may be. Whoever improves on its nodes keeps to the place
that was chosen, so what is left of the volumes is known at every moment.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from joinery.scheduling.constraints.volume_needs import Choice, FreeVolume

Labels = Mapping[str, str]
_Here = tuple[str, list[FreeVolume], int]
"""A claim, the volumes for it, and how many of them are still to be taken."""


class FreeVolumes:
    """Which of them are taken, and by which of the claims that several pods share (``Choice.claim``)."""

    def __init__(self) -> None:
        self._of_claim: dict[str, FreeVolume] = {}
        self._taken: set[str] = set()
        self._reached: dict[tuple[int, int], Sequence[FreeVolume]] = {}

    def left(self, choices: tuple[Choice, ...], most: int, labels: Labels | None = None) -> int:
        """For how many more pods there are volumes, ``most`` at the most.

        ``labels``: of the node that they would be on; None for a node to come, which is wherever the choices are.
        """
        here, gone = self._here(choices, labels), set[str]()
        for count in range(most if here else 0):
            picked = _pick(here, gone)
            if picked is None:
                return count
            if not picked:
                break
            gone.update(volume.name for _, volume in picked)
        return most

    def take(self, choices: tuple[Choice, ...], count: int, labels: Labels | None = None) -> None:
        """Take the volumes of so many pods, as far as there are any."""
        for _ in range(count if choices else 0):
            for claim, volume in _pick(self._here(choices, labels), ()) or ():
                self._taken.add(volume.name)
                if claim:
                    self._of_claim[claim] = volume

    def _here(self, choices: tuple[Choice, ...], labels: Labels | None) -> list[_Here]:
        """For each claim the volumes that it may still bind there; only its own, once it has one."""
        here: list[_Here] = []
        for claim, volumes, number in choices:
            own = self._of_claim.get(claim)
            at = volumes if labels is None else self._at(volumes, labels)
            left = [one for one in at if (one == own if own else one.name not in self._taken)]
            here.append((claim, left, 0 if own and left else number))
        return here

    def _at(self, volumes: tuple[FreeVolume, ...], labels: Labels) -> Sequence[FreeVolume]:
        # Claims that ask for the same choose from the same tuple, and nodes keep their labels while pods are placed.
        key = id(volumes), id(labels)
        if key not in self._reached:
            self._reached[key] = [one for one in volumes if one.is_at(labels)]
        return self._reached[key]


def _pick(here: Iterable[_Here], gone: Iterable[str]) -> list[tuple[str, FreeVolume]] | None:
    """The volumes that the claims of one pod still need; None where there are too few."""
    taken, picked = set(gone), list[tuple[str, FreeVolume]]()
    for claim, volumes, number in here:
        left = islice((one for one in volumes if one.name not in taken), number) if number <= len(volumes) else ()
        chosen = [(claim, volume) for volume in left]
        if len(chosen) < number:
            return None
        taken.update(volume.name for _, volume in chosen)
        picked += chosen
    return picked
