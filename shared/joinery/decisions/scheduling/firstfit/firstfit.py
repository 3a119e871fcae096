"""First-fit decreasing over pod classes: the start of every packing, and its fallback.

Classes go in order of priority and size. Each pod goes to existing capacity first, then to NodePools by weight: into a
node that is already being bought, or into one more.

Every method that places pods takes their names and returns how many it placed: the first so many of them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.topology_rules import NodeFilter
from joinery.decisions.scheduling.firstfit.allotment import Allotment
from joinery.decisions.scheduling.firstfit.buying import Buyer
from joinery.decisions.scheduling.firstfit.class_order import in_turns, ordered
from joinery.decisions.scheduling.firstfit.deferral import Deferral, Deferred
from joinery.decisions.scheduling.firstfit.demand import Dealt, Demand, Domains
from joinery.decisions.scheduling.firstfit.demands import Demands
from joinery.decisions.scheduling.firstfit.existing_node import ExistingNode
from joinery.decisions.scheduling.firstfit.existing_nodes import ExistingNodes
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.new_nodes import NewNodes, Wanted
from joinery.decisions.scheduling.firstfit.options import USUAL, FirstFitOptions
from joinery.decisions.scheduling.firstfit.workspace import Usage, Workspace
from joinery.decisions.scheduling.pools.reserved import only_reservations
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import HOSTNAME
from joinery.objects.snapshot.pods import is_virtual

#: Pods of a class that are placed at once when time is up: a class that spreads is placed to its end, so that this is
#: how long the plan goes on.
_AT_ONCE_WHEN_OVER = 1_000


class FirstFit:
    """One run over a workspace.

    work      the workspace
    classes   in the order in which they are placed
    left      the pods without a place, by class
    relaxed   the preferences that were given up, by pod
    deferred  pods that get their nodes from the optimizer, or from ``place_deferred``
    tried     the classes of which pods are left after every try, with time to spare

    ``defers``: whether pods may be deferred. ``effort``: once it is late, no more pods are placed. ``dealt``: by
    demand, how its pods are divided over domains, where that is known already.
    """

    def __init__(
        self,
        work: Workspace,
        options: FirstFitOptions = USUAL,
        *,
        defers: bool = False,
        effort: Effort | None = None,
        dealt: Dealt = MappingProxyType({}),
    ) -> None:
        self._options, self._dealt = options, dealt
        self.work = work
        self._topology: Topology = work.topology
        self._effort = effort or Effort()
        self._existing = ExistingNodes(work, options, self._effort)
        self._demands = Demands(work, terms_as_listed=options.terms_as_listed)
        self._only_reservations: dict[PodClass, frozenset[str]] = {}
        self._use(Buyer(work, NewNodes(work, options), self._effort))
        self.relaxed: dict[str, tuple[str, ...]] = {}
        self.left: dict[PodClass, Sequence[str]] = {}
        self.classes: tuple[PodClass, ...] = ()
        self.deferred: list[Deferred] = []
        self.tried: set[PodClass] = set()
        self._defers = defers
        self._deferral: Deferral | None = None

    @property
    def nodes(self) -> NewNodes:
        """The nodes that it buys."""
        return self._buyer.nodes

    @property
    def bought(self) -> Sequence[NewNode]:
        """Those nodes, in the order in which they were opened."""
        return self._buyer.nodes.opened.nodes

    @property
    def usage(self) -> Usage:
        """What the packing has used so far of limits and reservations."""
        nodes = Counter(node.pool.name for node in self.bought)
        charged = {name: self.nodes.limits[name].spent for name in nodes}
        found_domains = frozenset(self._allotment.found_domains)
        return Usage(nodes, charged, self.nodes.reservations.remaining(), found_domains)

    @property
    def left_by_priority(self) -> list[tuple[int, int]]:
        """How many pods of each priority have no place, as (-priority, count), highest priority first: comparing two
        such lists compares plans.
        """
        left: Counter[int] = Counter()
        for pod_class in self.classes:
            left[pod_class.priority] += len(self.left.get(pod_class, ()))
        return [(-priority, left[priority]) for priority in sorted(left, reverse=True)]

    def run(self) -> None:
        """Place everything that can be placed."""
        self.classes = tuple(ordered(self.work.possible, self._topology, self._options))
        self.left = {pod_class: pod_class.names for pod_class in self.classes}
        if self.work.reservations:
            only = (
                (pod_class, only_reservations(self.work.pools, pod_class, self.work.axis.asked(pod_class.requests)))
                for pod_class in self.classes
            )
            self._only_reservations = {pod_class: reservations for pod_class, reservations in only if reservations}
        if self._defers and self.work.tiers:
            self._deferral = Deferral(self.work, self.work.tiers[0], self.classes)
        self._keep_plans()
        if self.work.problem.wishes.launches:
            self._buy_wished()
            # A spread lets more pods in once those that new nodes hold are counted.
            self._keep_plans()
        if self._options.neighbours_next:
            self._place_with_neighbours()
        self._place_all()
        self._deferral = None

    def place_deferred(self) -> None:
        """Buy nodes for the deferred pods after all. If there are none, all pods were tried already."""
        if self.deferred:
            self._take_back()
            self._place_all()

    def resume(self, buyer: Buyer, waiting: Mapping[PodClass, Sequence[str]] = MappingProxyType({})) -> None:
        """Try again for what is left, with another buyer. Its nodes hold the pods that were placed, and those deferred
        ones that are not ``waiting``.

        They may use less of a NodePool's limits, so that there is room for more.
        """
        self._use(buyer)
        self.left |= waiting
        self._place_all()

    def _take_back(self) -> None:
        """Put deferred pods back among those that are left."""
        self.left |= {deferred.demand.pod_class: deferred.pods for deferred in self.deferred}
        self._deferral, self.deferred = None, []

    def place_leftovers(self) -> None:
        """Last of all, put what is left on nodes that there will be anyway.

        Once no more nodes come, spreads over hosts let more pods in.
        """
        if self.left and self._topology.close_hosts(self._hosts):
            self._allotment.may_open_nodes = False
            self._place_all()
            self._topology.reopen_hosts()

    def _use(self, buyer: Buyer) -> None:
        self._buyer = buyer
        self._allotment = Allotment(self.work, buyer, self._options, self._effort, self._dealt)

    def _hosts(self, nodes: NodeFilter) -> Iterator[str]:
        """The hosts of the plan that count for a spread with this node filter."""
        yield from (view.labels.get(HOSTNAME, view.name) for view in self.work.views if nodes.admits(view))
        yield from (node.name for node in self.bought if node.counts(nodes))

    def _place_all(self) -> None:
        """Class after class, again and again for as long as that places something.

        A pod that found a place may be what another waited to be near to.
        """
        self._effort.begin_placing()
        progress = True
        while progress:
            progress = False
            for pod_class in self._in_order():
                if self._effort.is_late():
                    break
                names = self.left[pod_class]
                wanted = names[:_AT_ONCE_WHEN_OVER] if self._effort.is_over() else names
                placed = self._place_class(pod_class, wanted) if names else 0
                self.left[pod_class] = names[placed:]
                progress |= placed > 0
        self.left = {pod_class: names for pod_class, names in self.left.items() if names}

    def _in_order(self) -> Iterator[PodClass]:
        """The classes that have pods left: in first-fit's order, and once time is up in turns of their namespaces."""
        untried = dict.fromkeys(self.left)
        for pod_class in tuple(untried):
            if self._effort.is_over():
                break
            del untried[pod_class]
            yield pod_class
        if untried:
            if self._deferral:
                untried |= {deferred.demand.pod_class: None for deferred in self.deferred}
                self._take_back()
            yield from in_turns([pods for pods in self.classes if pods in untried], self.work.is_sold)

    def _place_with_neighbours(self) -> None:
        """In turns place a pod that others must share a host with, and one of each of these, until none finds room."""
        for pod_class in self.classes:
            groups = self._topology.binding(pod_class).host_affinity
            wanted = [other for other in self.classes if any(group.selects(other) for group in groups)]
            others = [other for other in wanted if other is not pod_class]
            while self.left[pod_class] and others and not self._effort.is_late():
                if not self._place_first(pod_class, len(self.left[pod_class])):
                    others = [other for other in others if self.left[other] and self._place_first(other, 1)]

    def _place_first(self, pod_class: PodClass, count: int) -> int:
        """Place the first so many of the class; how many found a place."""
        placed = self._place_class(pod_class, self.left[pod_class][:count])
        self.left[pod_class] = self.left[pod_class][placed:]
        return placed

    def _keep_plans(self) -> None:
        """Pods that a claim was launched for go there, as planned, if that is still right; so do those with a wish.

        Once the node is initialised, the plan binds only pods that are still pending, and pods of a node that it
        replaces.
        """
        waiting = self.work.waiting
        planned = {
            name: node
            for node in self.work.nodes
            if not node.view.is_initialized or node.view.replaces or not waiting.isdisjoint(node.view.planned)
            for name in node.view.planned
            if not node.view.is_initialized or node.view.replaces or name in waiting
        }
        wished = self.work.problem.wishes.nodes
        nodes = {node.view.node: node for node in self.work.nodes if node.view.node} if wished else {}
        wanted = {pod: nodes[name] for pod, name in wished.items() if name in nodes}
        # A buffer's room is anybody's as soon as others could use it.
        virtual = {pod: node for pod, node in planned.items() if node.view.is_unlaunched} | wanted
        planned |= wanted
        for pod_class, names in self.left.items():
            places = virtual if is_virtual(pod_class.example) else planned
            by_node: dict[ExistingNode, list[str]] = {}
            for name in (name for name in names if name in places):
                by_node.setdefault(places[name], []).append(name)
            if by_node:
                kept = self._existing.keep(by_node, self._demands.by_term(pod_class))
                self.left[pod_class] = [name for name in names if name not in kept]

    def _buy_wished(self) -> None:
        """Buy the nodes that the problem wishes for (``Wishes.launches``), as far as the rules permit."""
        wished = self.work.problem.wishes.launches
        pools = {pool.name: pool for pool in self.work.pools} if wished else {}
        waiting = {name: pod_class for pod_class, names in self.left.items() for name in names} if wished else {}
        placed: set[str] = set()
        for launch in wished:
            pool = pools.get(launch.node_pool)
            rows = [row for row, it in enumerate(pool.market.types) if it.name == launch.instance_type] if pool else []
            if pool is None or not rows:
                continue
            wanted = [
                self._allowed(pod_class, domains, tuple(names))
                for domains, pods in launch.pods
                for pod_class, names in groupby((name for name in pods if name in waiting), key=waiting.__getitem__)
                if not pod_class.volumes.choices
            ]
            _, taken = self.nodes.build(pool, rows[0], wanted)
            for (_, _, names), count in zip(wanted, taken, strict=True):
                placed.update(names[:count])
        if placed:
            self.left = {c: [name for name in names if name not in placed] for c, names in self.left.items()}

    def _allowed(self, pod_class: PodClass, domains: Domains, names: tuple[str, ...]) -> Wanted:
        """As many of the pods as rules let into the domains now."""
        demand = next(self._demands.tries(pod_class))[0]
        rules = demand.variant.rules
        room = (
            self._topology.allowance(pod_class, rules, key, value, cautious=False) for key, value in domains.items()
        )
        return demand, domains, names[: max(0, min(room, default=len(names)))]

    def _place_class(self, pod_class: PodClass, names: Sequence[str]) -> int:
        """Place as many as possible, giving up one preference after another."""
        placed = 0
        self._buyer.reserved.kept_back = self._kept_back(pod_class)
        self._allotment.found_domains.discard(pod_class)
        if len(pod_class.terms) > 1 or pod_class.volumes.choices:
            # Nothing is bought for one term, or volume, while there is room for another.
            for demand in self._demands.by_term(pod_class):
                placed += self._existing.take(demand, names[placed:])
        for demands in self._demands.tries(pod_class):
            for demand in demands:
                while placed < len(names) and (more := self._place_demand(demand, names[placed:])):
                    if dropped := demand.variant.dropped:
                        self.relaxed.update(dict.fromkeys(names[placed : placed + more], dropped))
                    placed += more
            if placed == len(names) or self._effort.is_late():
                break
        else:
            self.tried.add(pod_class)
        return placed

    def _kept_back(self, pod_class: PodClass) -> frozenset[str]:
        """The reservations that are kept for other classes, which still wait and fit nowhere else."""
        if pod_class in self._only_reservations:
            return frozenset()
        return frozenset(
            name for other, names in self._only_reservations.items() if self.left.get(other) for name in names
        )

    def _place_demand(self, demand: Demand, names: Sequence[str]) -> int:
        """One pass over all targets: existing capacity, then new nodes."""
        placed = self._existing.take(demand, names)
        if placed == len(names) or demand.pod_class in self.work.held_off:
            return placed
        if self._deferral and (deferred := self._deferral.of(demand, names[placed:])):
            self.deferred.append(deferred)
            return len(names)
        free, waiting = self.work.free_volumes, names[placed:]
        buyable = waiting[: free.left(demand.choices, len(waiting))]
        bought = self._allotment.buy(demand, buyable, self._existing.domains_with_room(demand))
        free.take(demand.choices, bought)
        return placed + bought
