"""What a person looks at in a decision about nodes: every node before and after, and command by command what goes, what
is bought and where pods move.

Table, page and explanations draw these; ``disruption_groups`` derives them, and ``explain`` what is said of one node.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property

from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision, StayingNode
from joinery.decisions.disruption.expiration import expired
from joinery.decisions.disruption.moves import MovePrice, MovePrices
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.objects.kubernetes.core import Pod
from joinery.objects.objections import ObjectionCode
from joinery.objects.snapshot.claims import DRIFTED
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import is_reschedulable
from joinery_cli.notices import UserNotice
from joinery_cli.prices import Prices
from joinery_cli.view.figures import natural
from joinery_cli.view.headroom import Headroom
from joinery_cli.view.workloads import DrawnWorkload, Filled, owner_of


class Fate(StrEnum):
    """What becomes of a node. ``RECEIVES``: it stays, and pods move to it."""

    STAYS = "stays"
    RECEIVES = "receives"
    GOES = "goes"
    BOUGHT = "bought"


@dataclass(frozen=True, kw_only=True)
class DrawnNode:
    """A node, before the decision or after it.

    name                 of the Node, or of the NodeClaim where there is no Node
    claim, node_pool     names; empty for a node that is not ours
    instance_type, zone, capacity_type   as its labels have them; a new node may have a choice of zones
    alternatives         of a new node: how many other instance types its launch allows
    price                $/h; None where the catalogue does not sell it
    filled               with its pods; ``before`` are those that do not move (DaemonSets' and the kubelet's own)
    fate                 what becomes of it
    """

    name: str
    claim: str
    node_pool: str
    instance_type: str
    zone: str
    capacity_type: str
    price: float | None
    filled: Filled
    fate: Fate
    alternatives: int = 0

    @property
    def use(self) -> float:
        """How full it is of the scarcer of CPU and memory: 0.5 is half. What has no room counts as empty."""
        room, used = self.filled.room, self.filled.used
        return max((used.get(name, 0) / room[name] for name in ("cpu", "memory") if room.get(name)), default=0.0)


@dataclass(frozen=True, slots=True)
class Route:
    """Pods of one workload that move from one node to another, by the names of the nodes."""

    workload: DrawnWorkload
    source: str
    target: str
    is_target_new: bool
    pods: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CommandView:
    """A command. ``number``: its place in the order, from 1. ``retired``, ``bought``: its nodes."""

    number: int
    command: DecidedCommand
    retired: tuple[DrawnNode, ...]
    bought: tuple[DrawnNode, ...]
    routes: tuple[Route, ...]

    @property
    def repaid_in(self) -> timedelta | None:
        """How long its savings take to repay its moves; None where they never do."""
        return repaid_in(self.command.move_price, self.command.savings)


@dataclass(frozen=True, slots=True)
class StayingGroup:
    """Nodes that one rule keeps. ``messages``: what is said of them, with the nodes' names; the most frequent first."""

    code: ObjectionCode
    nodes: tuple[str, ...]
    messages: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class PricedPods:
    """Pods of one owner (namespace/name) that cost the same to move. ``price``: of each of them."""

    owner: str
    pods: tuple[str, ...]
    price: MovePrice


@dataclass(frozen=True, kw_only=True)
class NodeExplanation:
    """What there is to say of one node.

    node         as it is before the decision
    command      the one that retires it; None where it stays
    receives     pods that move to it, with the number of the command that moves them
    kept_by      the rules that keep it
    moving       its pods that would need another node, the dearest first; empty where its NodePool is unknown, and with
                 it what moves are worth
    staying      how many of its pods would end with it (DaemonSets' and the kubelet's own); 0 where its NodePool is
                 unknown, as only a part of its pods would be counted
    payback      within which savings must repay its moves
    is_static    its NodePool keeps a number of nodes, and is not consolidated
    drifted      by what its NodeClaim has drifted (``AMIDrift``); empty where it has not
    is_expired   it goes for its age, whatever is decided
    """

    node: DrawnNode
    command: CommandView | None
    receives: tuple[tuple[int, Route], ...]
    kept_by: tuple[StayingNode, ...]
    moving: tuple[PricedPods, ...]
    staying: int
    payback: timedelta
    is_static: bool
    drifted: str
    is_expired: bool

    @property
    def is_leaving(self) -> bool:
        """It goes whatever is decided: it is being deleted, or EC2 takes it away."""
        return any(one.objection.code is ObjectionCode.LEAVING for one in self.kept_by)

    @property
    def is_consolidated(self) -> bool:
        """Whether it is asked of this node what its moves would save."""
        return not (self.is_static or self.is_leaving)

    @property
    def move_price(self) -> float:
        """Dollars for moving all its pods."""
        return sum(priced.price.dollars * len(priced.pods) for priced in self.moving)


@dataclass(frozen=True, kw_only=True)
class DisruptionView:
    """A whole decision to look at. ``seconds``: from parsed objects to verified decision.

    before, after   all nodes; the dearest first
    payback         within which what is saved must repay the moves, where a NodePool says nothing else
    """

    disruptions: DisruptionDecision
    prices: Prices
    notices: tuple[UserNotice, ...]
    now: datetime
    seconds: float
    payback: timedelta
    workloads: tuple[DrawnWorkload, ...]
    before: tuple[DrawnNode, ...]
    after: tuple[DrawnNode, ...]
    commands: tuple[CommandView, ...]
    staying: tuple[StayingGroup, ...]
    headroom: Headroom | None = None
    """What of the nodes before is room that CapacityBuffers keep free."""
    explanations: tuple[NodeExplanation, ...] = ()
    """Of the nodes that were asked for by ``--explain``."""

    @property
    def savings(self) -> float:
        """$/h of all commands; negative where drifted nodes are replaced by dearer ones."""
        return self.disruptions.before - self.disruptions.after

    @cached_property
    def evicted(self) -> int:
        return sum(len(view.command.pods) for view in self.commands)

    @cached_property
    def move_price(self) -> float:
        """Dollars that all evictions count as."""
        return sum(view.command.move_price for view in self.commands)

    @property
    def retired(self) -> tuple[DrawnNode, ...]:
        return _nodes(view.retired for view in self.commands)

    @property
    def bought(self) -> tuple[DrawnNode, ...]:
        return _nodes(view.bought for view in self.commands)

    @property
    def repaid_in(self) -> timedelta | None:
        """How long all savings take to repay all moves; None where they never do."""
        return repaid_in(self.move_price, self.savings)


def repaid_in(move_price: float, savings: float) -> timedelta | None:
    """How long savings ($/h) take to repay moves ($); None where they never do."""
    if move_price <= 0:
        return timedelta()
    # The longest time that a timedelta holds is no answer to anybody.
    is_ever = savings > 0 and move_price / savings < timedelta.max.total_seconds() / 3600
    return timedelta(hours=move_price / savings) if is_ever else None


def _nodes(groups: Iterable[tuple[DrawnNode, ...]]) -> tuple[DrawnNode, ...]:
    return tuple(node for group in groups for node in group)


def explain(name: str, problem: DisruptionProblem, seen: DisruptionView) -> NodeExplanation:
    """Explain the node of that name, of the Node or, where there is none, of the NodeClaim."""
    node_view = next(one for one in problem.packing.snapshot.views if one.name == name)
    node = next(one for one in seen.before if one.name == name)
    moving = [pod for pod in node_view.pods if is_reschedulable(pod)]
    pool = problem.packing.snapshot.pools_by_name.get(node_view.pool)
    prices = MovePrices(problem)
    snapshot = problem.packing.snapshot
    claim = next((one for one in snapshot.managed_claims if one.metadata.name == node_view.claim), None)
    drift = claim.condition(DRIFTED) if claim and claim.is_true(DRIFTED) else None
    return NodeExplanation(
        node=node,
        command=next((one for one in seen.commands if node.claim and node.claim in one.command.retire), None),
        receives=tuple((one.number, route) for one in seen.commands for route in one.routes if route.target == name),
        kept_by=tuple(one for one in seen.disruptions.staying if node.claim and one.node_claim == node.claim),
        moving=_priced(moving, node_view, prices, node.price or 0.0) if pool else (),
        staying=len(node_view.pods) - len(moving) if pool else 0,
        payback=prices.terms(node_view.pool).payback if pool else problem.options.payback,
        is_static=pool is not None and pool.is_static,
        drifted=drift.reason if drift else "",
        is_expired=any(one is claim for _, one in expired(snapshot)),
    )


def _priced(pods: list[Pod], node: NodeView, prices: MovePrices, hourly: float) -> tuple[PricedPods, ...]:
    alike: dict[tuple[str, MovePrice], list[str]] = defaultdict(list)
    for pod in pods:
        alike[owner_of(pod), prices.price(pod, node, hourly)].append(pod.key)
    groups = [PricedPods(owner, tuple(sorted(keys, key=natural)), price) for (owner, price), keys in alike.items()]
    return tuple(sorted(groups, key=lambda one: (-one.price.dollars * len(one.pods), natural(one.owner))))
