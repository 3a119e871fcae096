"""Free PersistentVolumes during a packing: each serves one claim (kube-scheduler VolumeBinding `findMatchingVolumes`).

Only first-fit chooses among the places where a class's volumes may be. Whoever improves on its nodes keeps to the place
that was chosen, so what is left of the volumes is known at every moment.
"""

from collections.abc import Iterable, Mapping

from joinery.scheduling.constraints.volume_needs import Choice, FreeVolume

Labels = Mapping[str, str]
_Here = tuple[str, list[FreeVolume], bool]
"""A claim, the volumes for it, and whether it has bound one already."""


class FreeVolumes:
    """Which of them are taken, and by which of the claims that several pods share (``Choice.claim``)."""

    def __init__(self) -> None:
        self._of_claim: dict[str, FreeVolume] = {}
        self._taken: set[str] = set()

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
        for claim, volumes in choices:
            own = self._of_claim.get(claim)
            at = [one for one in volumes if labels is None or one.is_at(labels)]
            left = [one for one in at if (one == own if own else one.name not in self._taken)]
            here.append((claim, left, own is not None))
        return here


def _pick(here: Iterable[_Here], gone: Iterable[str]) -> list[tuple[str, FreeVolume]] | None:
    """A volume for each claim of one pod that has none yet; None where some claim gets none."""
    taken, picked = set(gone), list[tuple[str, FreeVolume]]()
    for claim, volumes, is_bound in here:
        volume = next((one for one in volumes if is_bound or one.name not in taken), None)
        if volume is None:
            return None
        if not is_bound:
            taken.add(volume.name)
            picked.append((claim, volume))
    return picked
