"""What ``joinery top`` shows of a cluster at one moment: its nodes by NodePool, the pods that wait, what comes next.

Screen, table and document draw these; ``top_groups`` derives them.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property

from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.objects.snapshot.pool_shares import PoolShare
from joinery_cli.view.disruption_view import DisruptionView, DrawnNode


class Phase(StrEnum):
    """How far a node is. What is ready either stays, or is about to go by a command that is decided."""

    LAUNCHING = "launching"
    BOOTING = "booting"
    STAYS = "stays"
    GOES = "goes"
    LEAVING = "leaving"


@dataclass(frozen=True, kw_only=True)
class TopNode:
    """A node. ``price``: $/h; None where nobody knows it. ``age``: since its creation; None where that is not known.

    code     the rule that keeps it, or the reason for which it goes, in one word; empty where neither is there
    why      the same as a sentence: what it waits for, or why it stays
    until    when the rule ends by itself, if that is known
    """

    drawn: DrawnNode
    price: float | None
    age: timedelta | None
    phase: Phase
    code: str
    why: str
    until: datetime | None = None

    @property
    def name(self) -> str:
        return self.drawn.name


@dataclass(frozen=True, kw_only=True)
class TopPool:
    """The nodes of one NodePool; its name is empty for nodes that are of none. ``share``: how its share on demand
    stands, if it has one.
    """

    name: str
    nodes: tuple[TopNode, ...]
    share: PoolShare | None = None

    @property
    def hourly(self) -> float:
        """$/h of the nodes whose price is known."""
        return sum(node.price or 0.0 for node in self.nodes)

    def fullness(self, resource: str) -> float:
        """How full the nodes are together: 0.5 is half."""
        return fullness(self.nodes, resource)


def fullness(nodes: tuple[TopNode, ...], resource: str) -> float:
    """How full the nodes are together of the resource: 0.5 is half; 0 where none has any."""
    room = sum(node.drawn.filled.room.get(resource, 0) for node in nodes)
    return sum(node.drawn.filled.used.get(resource, 0) for node in nodes) / room if room else 0.0


@dataclass(frozen=True, kw_only=True)
class TopPods:
    """Pods that wait, and have one answer. ``waiting``: for how long the first of them has.

    home      where they go; empty where they have no place
    reasons   why they have none
    is_room   they are no pods, but room that a buffer or a ProvisioningRequest wants
    """

    owner: str
    pods: tuple[str, ...]
    waiting: timedelta | None
    home: str = ""
    reasons: tuple[str, ...] = ()
    is_room: bool = False


@dataclass(frozen=True, kw_only=True)
class TopNext:
    """Something that comes next. ``at``: when; None for as soon as Joinery acts. ``subject``: nodes or a NodePool."""

    subject: str
    what: str
    at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class TopView:
    """A cluster at one moment. ``source``: where it was read. ``problem``, ``seen``: the decision about its nodes, for
    what is asked about one of them.
    """

    source: str
    now: datetime
    pools: tuple[TopPool, ...]
    pending: tuple[TopPods, ...]
    coming: tuple[TopNext, ...]
    problem: DisruptionProblem
    seen: DisruptionView

    @cached_property
    def nodes(self) -> tuple[TopNode, ...]:
        return tuple(node for pool in self.pools for node in pool.nodes)

    @property
    def hourly(self) -> float:
        """$/h of the nodes whose price is known, others' nodes too."""
        return sum(pool.hourly for pool in self.pools)

    @property
    def spot(self) -> int:
        """How many of the nodes are spot."""
        return sum(node.drawn.capacity_type == "spot" for node in self.nodes)

    @property
    def waiting(self) -> int:
        """How many pods wait."""
        return sum(len(one.pods) for one in self.pending if not one.is_room)

    @property
    def homeless(self) -> int:
        """How many of these have no place in the plan."""
        return sum(len(one.pods) for one in self.pending if not one.home and not one.is_room)

    @property
    def room(self) -> int:
        """For how many pods room is wanted that is not there."""
        return sum(len(one.pods) for one in self.pending if one.is_room)

    @property
    def homeless_room(self) -> int:
        """For how many of these the plan has none."""
        return sum(len(one.pods) for one in self.pending if one.is_room and not one.home)
