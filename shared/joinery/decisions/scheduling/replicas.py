"""The nodes that static NodePools lack: launches for nobody, so that a pool has as many nodes as it is to have.

No pod decides what such a node is. It may be of every instance type that the pool admits and that holds the DaemonSets'
pods; EC2 gets the cheapest of them, as for any launch. Three choices are left, and all are made here:

- Capacity reservations that the pool may use come first, because they are paid for already.
- As many as the pool's share on demand lacks are on demand (``pool_shares``).
- The other nodes are spread evenly over the zones in which the pool can buy now: each is for the zone with the fewest
  nodes of the pool. A pool of a fixed size is mostly there to survive the loss of a zone. A zone where nothing is left
  to buy is passed over. Karpenter leaves the zone to EC2, which tends to take the cheapest for all
  (docs/decisions/0042). A pool whose minValues want several zones for each launch is left to EC2 here, too.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from joinery.decisions.scheduling.firstfit.new_node import NewNode, empty_node
from joinery.decisions.scheduling.launches import Slack, launch_of
from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.pool_shares import keep_shares
from joinery.decisions.scheduling.pools.builder import build_static_pools
from joinery.decisions.scheduling.pools.daemonsets import read_daemons
from joinery.decisions.scheduling.pools.deaths import launch_holds
from joinery.decisions.scheduling.pools.market import Axis, Mask, offered_by
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.pools.reserved import nodes_left, reserved_columns
from joinery.decisions.scheduling.pools.type_choice import choose_types, lowered
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import Reason, ReasonCode, Subject
from joinery.objects.karpenter.labels import ZONE
from joinery.objects.snapshot.replicas import static_pools

#: ``Packing.method`` of these packings.
METHOD = "replicas"


def replenish(problem: Problem) -> Packing:
    """The launches that the static NodePools of a problem lack, and why some pools cannot have theirs.

    Pure and deterministic. Pods play no part in it. Costs nothing where no pool lacks a node.
    """
    lacking = {name: pool.lacking for name, pool in static_pools(problem.snapshot).items() if pool.lacking > 0}
    if not lacking:
        return Packing(method=METHOD)
    snapshot = problem.snapshot
    daemons = read_daemons(snapshot.daemons, snapshot.daemon_pods)
    axis = Axis.of([daemon.requests for daemon in daemons], map(offered_by, problem.kinds))
    nodes = snapshot.views
    pools, reasons = build_static_pools(problem, axis, daemons, nodes, names=lacking)
    on_trial = {hold.node_class for hold in launch_holds(snapshot) if hold.is_tried}
    stock = dict(nodes_left(pools, snapshot.managed_claims))
    launches: list[Launch] = []
    share_cost = 0.0
    for pool in pools:
        wanted = lacking[pool.name]
        room = pool.limits.get("nodes", wanted)
        by_zone = Counter(node.labels.get(ZONE, "") for node in nodes if node.pool == pool.name and not node.is_leaving)
        static = _StaticNodes(pool, axis, stock, by_zone, problem.options.best_effort_min_values)
        is_tried = pool.node_pool.spec.template.spec.node_class_ref.name in on_trial
        new = list(static.nodes(min(wanted, room, 1) if is_tried else min(wanted, room)))
        share_cost += keep_shares(snapshot.pool_shares, new).cost
        launches += _launches(new, axis)
        if len(new) < wanted and not is_tried:
            reasons = (*reasons, _shortage(pool, wanted, room))
    return Packing(launches=tuple(launches), pool_reasons=reasons, method=METHOD, share_cost=share_cost)


def _launches(nodes: Sequence[NewNode], axis: Axis) -> Iterator[Launch]:
    """The launches of one pool's nodes. Those of like nodes share everything but the name."""
    slack = Slack([node.pool for node in nodes[:1]], nodes)
    by_columns: dict[bytes, Launch] = {}
    for node in nodes:
        likeness = node.columns.tobytes()
        if likeness not in by_columns:
            by_columns[likeness] = launch_of(node, node.name, axis, slack)
        yield replace(by_columns[likeness], name=node.name)


def _shortage(pool: Pool, wanted: int, room: int) -> Reason:
    subject = Subject.node_pool(pool.name)
    if room < wanted:
        template = "it lacks {wanted} nodes, and its limit leaves room for {room}"
        return Reason.of(ReasonCode.LIMITS, template, subject, wanted=wanted, room=max(room, 0))
    return Reason(ReasonCode.OFFERINGS, "nothing that it may buy holds its DaemonSets' pods", subject)


@dataclass(frozen=True)
class _Place:
    """Where a node may be launched.

    ``zone``: empty if that is left to EC2. ``columns``: bool[columns], the offerings there. ``price``: $/h of the
    cheapest. ``reservation``: the id of the capacity reservation; empty if the node is bought.
    """

    zone: str
    columns: Mask
    price: float
    reservation: str = ""


@dataclass
class _StaticNodes:
    """The new nodes of one pool. ``stock``: what is left of each capacity reservation, for all pools."""

    pool: Pool
    axis: Axis
    stock: dict[str, int]
    by_zone: Counter[str]
    best_effort: bool
    _places: list[_Place] = field(default_factory=list)

    def nodes(self, count: int) -> Iterator[NewNode]:
        """As many nodes as wanted, or fewer if there is nothing to launch."""
        self._places = [*self._in_reservations(), *(self._in_zones() or self._anywhere())]
        for number in range(1, count + 1):
            place = self._next()
            if place is None:
                return
            self.by_zone[place.zone] += 1
            if place.reservation:
                self.stock[place.reservation] -= 1
            node = empty_node(self.pool, f"new/{self.pool.name}-{number}", self.axis, reserved=place.columns)
            yield replace(node, min_values=self._min_values(place.columns))

    def _next(self) -> _Place | None:
        """Reservations first, then the zone with the fewest nodes, then the cheapest."""
        left = [place for place in self._places if not place.reservation or self.stock.get(place.reservation, 0) > 0]
        return min(
            left,
            key=lambda place: (not place.reservation, self.by_zone[place.zone], place.price, place.zone),
            default=None,
        )

    def _in_reservations(self) -> Iterator[_Place]:
        for reservation, columns in reserved_columns(self.pool, self.pool.columns):
            zone = self.pool.market.columns[int(columns.argmax())].zone
            yield from self._place(zone, columns, reservation)

    def _in_zones(self) -> list[_Place]:
        zones = np.array([column.zone for column in self.pool.market.columns])
        bought = {str(zone) for zone in zones[self.pool.unreserved]}
        return [place for zone in sorted(bought) for place in self._place(zone, self.pool.unreserved & (zones == zone))]

    def _anywhere(self) -> list[_Place]:
        return list(self._place("", self.pool.unreserved, min_values=self._min_values(self.pool.unreserved)))

    def _place(
        self, zone: str, columns: Mask, reservation: str = "", *, min_values: Mapping[str, int] | None = None
    ) -> Iterator[_Place]:
        """The place, if something that the pool admits is sold there and minValues can be met."""
        quotas = self.pool.min_values if min_values is None else min_values
        rows = choose_types(self.pool, self.pool.types, columns, quotas)
        if rows:
            yield _Place(zone, columns, float(self.pool.market.prices[rows[0], columns].min()), reservation)

    def _min_values(self, columns: Mask) -> Mapping[str, int]:
        """minValues of the pool, lowered to what is possible there if the policy is BestEffort."""
        if not self.best_effort:
            return self.pool.min_values
        return lowered(self.pool, self.pool.types, columns, self.pool.min_values)
