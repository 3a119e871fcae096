"""In which order first-fit places classes, and how it deals them out over domains.

First-fit places one class after another, and each choice of domains is final. ``strategies`` says when other options
than the usual ones are tried, and for whom.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

#: How pods of a class are dealt out over domains.
#:
#: even where the fewest pods are that a spread counts ahead where the fewest are that others must be near to, so that
#: there are some in every domain gathered as many as the rules allow where nodes are bought already
Dealing = Literal["even", "ahead", "gathered"]


@dataclass(frozen=True)
class FirstFitOptions:
    """How first-fit goes about a packing; usually as the defaults say.

    dealing          how pods of a class are dealt out over domains
    smallest_first   small classes come before large ones
    wanted_last      classes that others want to be near to come last instead of first
    shuffle          the number of a random order of classes of one priority; 0 for the usual order
    cautious         no host takes so many pods that a spread over hosts counts that its owners, which may
                     have to join them there, would be too many
    ignores_daemons  pods are dealt out as if new nodes brought no DaemonSets' pods that spreads count; that is right
                     where every domain gets as many nodes, and no node may be in several
    fitting          domains are ranked by the cheapest node there that holds a pod of the class. Usually they are
                     ranked by the cheapest of any size: that is the same for all classes, so that they share nodes
    terms_as_listed  required node affinity terms are tried in the order in which they are listed, as in Karpenter
    neighbours_next  pods that must share a host with others come right after one of those, before the host is full
    """

    dealing: Dealing = "even"
    smallest_first: bool = False
    wanted_last: bool = False
    shuffle: int = 0
    cautious: bool = False
    ignores_daemons: bool = False
    fitting: bool = False
    terms_as_listed: bool = False
    neighbours_next: bool = False

    def sort_key(self, name: str, depth: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """The sort key of a class among those of one priority.

        ``depth``: how many classes come before it because it wants to be near them.
        ``sizes``: larger is harder to place.
        """
        if self.shuffle:
            return (zlib.crc32(f"{self.shuffle} {name}".encode()),)
        sign = 1 if self.smallest_first else -1
        return (-depth if self.wanted_last else depth, *(sign * size for size in sizes))


USUAL = FirstFitOptions()
