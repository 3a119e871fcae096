"""Whether each of many claims can have a volume of its own (a bipartite matching, by augmenting paths)."""

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

#: Volumes by size and name, in order.
Shelf = Sequence[tuple[int, str]]


class Found(NamedTuple):
    """The volumes that a claim may bind: of each shelf those from an index on."""

    shelves: tuple[tuple[Shelf, int], ...] = ()

    def __len__(self) -> int:
        return sum(len(shelf) - first for shelf, first in self.shelves)

    def names(self) -> Iterator[str]:
        for shelf, first in self.shelves:
            for index in range(first, len(shelf)):
                yield shelf[index][1]


def large_enough(shelves: Iterable[Shelf], size: float) -> Found:
    """The volumes of the shelves that have so many bytes."""
    pairs = ((shelf, bisect_left(shelf, size, key=lambda volume: volume[0])) for shelf in shelves)
    return Found(tuple((shelf, first) for shelf, first in pairs if first < len(shelf)))


def in_all(found: Sequence[Found]) -> Found:
    """The volumes that are among all of those."""
    if len(set(map(id, found))) == 1:
        return found[0]
    names = set(found[0].names()).intersection(*(one.names() for one in found[1:]))
    return Found((([(0, name) for name in sorted(names)], 0),)) if names else Found()


def without_volume(wanted: Mapping[str, Found]) -> Iterable[str]:
    """The claims that get none, where each volume serves one: of the most that can be served together.

    ``wanted``: by claim, the volumes that it could bind. Those with few come first, so that hardly any has to change.
    """
    matching = _Matching(wanted)
    in_order = sorted(wanted, key=lambda claim: (len(wanted[claim]), claim))
    return sorted(claim for claim in in_order if not matching.serve(claim))


class Left:
    """What is left of shelves once volumes are taken. Runs of taken ones are passed over once: none becomes free."""

    def __init__(self, taken: Container[str]) -> None:
        self._taken = taken
        self._next: dict[int, dict[int, int]] = {}

    def first(self, shelf: Shelf, index: int) -> int:
        """The index of the first volume from there on that is left; past the last one if none is. The shelf has to stay
        alive and as it is.
        """
        following, passed = self._next.setdefault(id(shelf), {}), list[int]()
        while index < len(shelf) and shelf[index][1] in self._taken:
            passed.append(index)
            index = following.get(index, index + 1)
        following.update(dict.fromkeys(passed, index))
        return index


class _Matching:
    def __init__(self, wanted: Mapping[str, Found]) -> None:
        self._wanted = wanted
        self._claim_of: dict[str, str] = {}
        self._volume_of: dict[str, str] = {}
        self._left = Left(self._claim_of)
        self._unreachable: set[str] = set()

    def serve(self, claim: str) -> bool:
        """Find the claim a volume, though others change theirs for it."""
        for shelf, first in self._wanted[claim].shelves:
            index = self._left.first(shelf, first)
            if index < len(shelf):
                volume = shelf[index][1]
                self._claim_of[volume], self._volume_of[claim] = claim, volume
                return True
        return self._augment(claim)

    def _augment(self, claim: str) -> bool:
        """A shortest augmenting path. What a failed search has reached leads nowhere later, either."""
        reached_from: dict[str, str] = {}
        queue = [claim]
        for one in queue:
            for volume in self._wanted[one].names():
                if volume in reached_from or volume in self._unreachable:
                    continue
                reached_from[volume] = one
                if volume in self._claim_of:
                    queue.append(self._claim_of[volume])
                    continue
                while volume:
                    owner = reached_from[volume]
                    left = self._volume_of.get(owner, "")
                    self._claim_of[volume], self._volume_of[owner] = owner, volume
                    volume = left
                return True
        self._unreachable.update(reached_from)
        return False
