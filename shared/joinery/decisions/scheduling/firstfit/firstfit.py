"""First-fit decreasing over pod classes: the start of every packing, and its fallback.

Classes go in order of priority and size. Each pod goes to existing capacity first, then to NodePools by weight: into a
node that is already being bought, or into one more.

Whatever places pods takes the names of those that wait, and returns how many of them it placed, from the first.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from types import MappingProxyType

import numpy as np

from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.relaxation import Variant, variants
from joinery.decisions.scheduling.constraints.requirements import Requirements
from joinery.decisions.scheduling.constraints.topology_rules import NodeFilter
from joinery.decisions.scheduling.firstfit.allotment import Allotment
from joinery.decisions.scheduling.firstfit.buying import Buyer
from joinery.decisions.scheduling.firstfit.class_order import in_turns, ordered
from joinery.decisions.scheduling.firstfit.deferral import Deferral, Deferred
from joinery.decisions.scheduling.firstfit.demand import Dealt, Demand, Domains
from joinery.decisions.scheduling.firstfit.existing_node import ExistingNode
from joinery.decisions.scheduling.firstfit.existing_nodes import ExistingNodes
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.new_nodes import NewNodes, Wanted, is_open_to
from joinery.decisions.scheduling.firstfit.opened import fair_price_of_one
from joinery.decisions.scheduling.firstfit.options import USUAL, FirstFitOptions
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.pools.market import Amounts
from joinery.decisions.scheduling.pools.reserved import only_reservations
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import HOSTNAME

_FEW_TERMS = 8
"""Of more required terms the order stays: to price each in every NodePool would take seconds for many pods."""


class FirstFit:
    """One run over a workspace.

    classes   in the order in which they are placed
    left      the pods without a place, by class
    relaxed   the preferences that were given up, by pod
    deferred  pods that get their nodes from the optimizer, or from ``place_deferred``
    tried     the classes that were tried to the end, before it was too late

    ``defers``: whether there may be any. ``effort``: once it is late, no more pods are placed. ``dealt``: of demands
    that are not to be dealt out anew.
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
        self._work = work
        self._topology: Topology = work.topology
        self._effort = effort or Effort()
        self._existing = ExistingNodes(work, options, self._effort)
        self._may_open_nodes = True
        self._only_reservations: dict[PodClass, frozenset[str]] = {}
        self._remembered_demands: dict[tuple[PodClass, int], tuple[Demand, ...]] = {}
        self._remembered_terms: dict[PodClass, Sequence[Requirements]] = {}
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

    def run(self) -> None:
        """Place everything that can be placed."""
        self.classes = tuple(ordered(self._work.possible, self._topology, self._options))
        self.left = {pod_class: pod_class.names for pod_class in self.classes}
        if self._work.reservations:
            only = (
                (pod_class, only_reservations(self._work.pools, pod_class, self._work.axis.asked(pod_class.requests)))
                for pod_class in self.classes
            )
            self._only_reservations = {pod_class: reservations for pod_class, reservations in only if reservations}
        if self._defers and self.nodes.tiers:
            self._deferral = Deferral(self._work, self.nodes.tiers[0], self.classes)
        self._keep_plans()
        self._buy_wished()
        if self._options.neighbours_next:
            self._sow()
        self._place_all()
        self._deferral = None

    def place_deferred(self) -> None:
        """Buy nodes for the deferred pods after all. If there are none, all pods were tried already."""
        if self.deferred:
            self._take_back()
            self._place_all()

    def resume(self, buyer: Buyer, waiting: Mapping[PodClass, Sequence[str]] = MappingProxyType({})) -> None:
        """Try again for what is left, on the nodes of another buyer, which carry the pods that were placed, and the
        deferred ones but those that are ``waiting``.

        They may take less of a limit than those before.
        """
        self._use(buyer)
        self.left |= waiting
        self._place_all()

    def _take_back(self) -> None:
        """Have no pods deferred."""
        self.left |= {deferred.demand.pod_class: deferred.pods for deferred in self.deferred}
        self._deferral, self.deferred = None, []

    def place_leftovers(self) -> None:
        """Last of all, put what is left on nodes that there will be anyway.

        Once no more nodes come, spreads over hosts let more pods in.
        """
        if self.left and self._topology.close_hosts(self._hosts):
            self._may_open_nodes = False
            self._place_all()
            self._topology.reopen_hosts()

    def _use(self, buyer: Buyer) -> None:
        self._buyer = buyer
        self._allotment = Allotment(self._work, buyer, self._options, self._effort, self._dealt)

    def _hosts(self, nodes: NodeFilter) -> Iterator[str]:
        """The hosts of the plan that count for such a spread."""
        yield from (view.labels.get(HOSTNAME, view.name) for view in self._work.views if nodes.admits(view))
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
                placed = self._place_class(pod_class, names) if names else 0
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
            yield from in_turns([pods for pods in self.classes if pods in untried], self._work.is_sold)

    def _sow(self) -> None:
        """Place one pod that others must share a host with, then as many of these as find room there, and so on."""
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

        Once its node is complete the plan is history: only pods that still wait are held to it, and those whose node it
        will replace.
        """
        planned = {
            name: node
            for node in self._work.nodes
            for name in node.view.planned
            if not node.view.is_initialized or node.view.replaces or name in self._work.waiting
        }
        wished = self._work.problem.wishes.nodes
        nodes = {node.view.node: node for node in self._work.nodes if node.view.node} if wished else {}
        planned |= {pod: nodes[name] for pod, name in wished.items() if name in nodes}
        for pod_class, names in self.left.items():
            by_node: dict[ExistingNode, list[str]] = {}
            for name in (name for name in names if name in planned):
                by_node.setdefault(planned[name], []).append(name)
            if by_node:
                kept = self._existing.keep(by_node, self._by_term(pod_class))
                self.left[pod_class] = [name for name in names if name not in kept]

    def _buy_wished(self) -> None:
        """Buy the nodes that the problem wishes for (``Wishes.launches``), as far as the rules permit."""
        wished = self._work.problem.wishes.launches
        pools = {pool.name: pool for pool in self._work.pools} if wished else {}
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
        demand = self._demands(pod_class, 0, next(self._variants(pod_class)))[0]
        rules = demand.variant.rules
        room = (
            self._topology.allowance(pod_class, rules, key, value, cautious=False) for key, value in domains.items()
        )
        return demand, domains, names[: max(0, min(room, default=len(names)))]

    def _variants(self, pod_class: PodClass) -> Iterator[Variant]:
        return variants(
            pod_class,
            self._topology.rules[pod_class],
            respect=self._work.problem.options.respect_preferences,
            prefer_taints=self._work.prefers_taints,
            terms=self._terms(pod_class),
        )

    def _terms(self, pod_class: PodClass) -> Sequence[Requirements]:
        """The required node affinity terms: any of them will do (kube-scheduler NodeAffinity), so the cheapest first;
        none where the listed order stays.

        Those that NodePools of other weights serve keep their order, as in Karpenter, which tries one after another.
        """
        if self._options.listed or not 1 < len(pod_class.terms) <= _FEW_TERMS:
            return ()
        if pod_class not in self._remembered_terms:
            row = self._work.axis.asked(pod_class.requests)
            served = [(term, *self._least_price(pod_class, term, row)) for term in pod_class.terms]
            tiers = [tier for _, tier, _ in served]
            unserved = len(self.nodes.tiers)
            served.sort(key=lambda one: (one[1] == unserved, tiers.index(one[1]), one[2]))
            self._remembered_terms[pod_class] = tuple(term for term, _, _ in served)
        return self._remembered_terms[pod_class]

    def _least_price(self, pod_class: PodClass, term: Requirements, row: Amounts) -> tuple[int, float]:
        """Of one pod on the term: the place of the heaviest tier that serves it, and its fair price there, in $/h."""
        variant = Variant(requirements=term, rules=(), tolerates_preferred=True, dropped=())
        asked = np.flatnonzero(row)
        demands = [Demand(pod_class, variant, row, asked, volumes=one) for one in pod_class.volumes.alternatives]
        for number, tier in enumerate(self.nodes.tiers):
            prices = [
                price
                for demand in demands
                for pool in tier
                if is_open_to(pool, demand, self._topology) and (price := fair_price_of_one(pool, demand)) > 0
            ]
            if prices:
                # Sums that are one price keep their order.
                return number, round(min(prices), 6)
        return len(self.nodes.tiers), 0.0

    def _by_term(self, pod_class: PodClass) -> Iterator[Demand]:
        """The class with all its preferences, on each of its required terms."""
        for number, variant in enumerate(islice(self._variants(pod_class), len(pod_class.terms))):
            yield from self._demands(pod_class, number, variant)

    def _place_class(self, pod_class: PodClass, names: Sequence[str]) -> int:
        """Place as many as possible, giving up one preference after another."""
        placed = 0
        self._buyer.reserved.kept_back = self._kept_back(pod_class)
        self._work.dealt.discard(pod_class)
        if len(pod_class.terms) > 1 or pod_class.volumes.choices:
            # Nothing is bought for one term, or volume, while there is room for another.
            for demand in self._by_term(pod_class):
                placed += self._existing.take(demand, names[placed:])
        for number, variant in enumerate(self._variants(pod_class)):
            for demand in self._demands(pod_class, number, variant):
                while placed < len(names) and (more := self._place_demand(demand, names[placed:])):
                    if variant.dropped:
                        self.relaxed.update(dict.fromkeys(names[placed : placed + more], variant.dropped))
                    placed += more
            if placed == len(names) or self._effort.is_late():
                break
        else:
            self.tried.add(pod_class)
        return placed

    def _kept_back(self, pod_class: PodClass) -> frozenset[str]:
        """The reservations that this class leaves alone: other classes that still wait can be nowhere else."""
        if pod_class in self._only_reservations:
            return frozenset()
        return frozenset(
            name for other, names in self._only_reservations.items() if self.left.get(other) for name in names
        )

    def _demands(self, pod_class: PodClass, number: int, variant: Variant) -> tuple[Demand, ...]:
        """The class on its try of that number, once for each zone or host that its volumes allow.

        The same objects however often the class is tried, because they remember what pools and nodes said.
        """
        key = (pod_class, number)
        if key not in self._remembered_demands:
            row = self._work.axis.asked(pod_class.requests)
            asked = np.flatnonzero(row)
            self._remembered_demands[key] = tuple(
                Demand(pod_class, variant, row, asked, volumes=way.requirements, choices=way.choices)
                for way in pod_class.volumes.ways
            )
        return self._remembered_demands[key]

    def _place_demand(self, demand: Demand, names: Sequence[str]) -> int:
        """One pass over all targets: existing capacity, then new nodes."""
        placed = self._existing.take(demand, names)
        if placed == len(names) or demand.pod_class in self._work.held:
            return placed
        if self._deferral and (deferred := self._deferral.of(demand, names[placed:])):
            self.deferred.append(deferred)
            return len(names)
        free, waiting = self._work.free_volumes, names[placed:]
        bought = self._place_on_new_nodes(demand, waiting[: free.left(demand.choices, len(waiting))])
        free.take(demand.choices, bought)
        return placed + bought

    def _place_on_new_nodes(self, demand: Demand, names: Sequence[str]) -> int:
        """Deal the pods out over domains and buy there.

        Where nothing can be bought in any of these domains, the pods are dealt out over the others.
        """
        refused: list[Domains] = []
        while True:
            placed, newly_refused = self._buy_where_dealt(demand, names, refused)
            if placed or not newly_refused or self._effort.is_late():
                return placed
            refused += newly_refused

    def _buy_where_dealt(
        self, demand: Demand, names: Sequence[str], refused: Sequence[Domains]
    ) -> tuple[int, list[Domains]]:
        """Buy where the pods are dealt to. How many were placed, and the domains in which nothing could be bought.

        Domains with room on existing nodes come last: a spread may let more pods in there once others are elsewhere.
        """
        placed, newly_refused, postponed = 0, list[Domains](), list[tuple[Domains, int]]()
        with_room = self._existing.domains_with_room(demand)
        for domains, quota in self._allotment.of(demand, len(names), refused):
            self._work.dealt.add(demand.pod_class)
            if any(domains.items() <= there for there in with_room):
                postponed.append((domains, quota))
            elif bought := self._buy(demand, domains, names[placed : placed + quota]):
                placed += bought
            else:
                newly_refused.append(domains)
            if placed == len(names) or self._effort.is_late():
                break
        for domains, quota in postponed if not placed else ():
            if bought := self._buy(demand, domains, names[placed : placed + quota]):
                placed += bought
            else:
                newly_refused.append(domains)
        return placed, newly_refused

    def _buy(self, demand: Demand, domains: Domains, names: Sequence[str]) -> int:
        """Put pods on new nodes in those domains, in heavier pools first."""
        put = self._buyer.buy if self._may_open_nodes else self._buyer.grow
        placed = 0
        for pools in self.nodes.tiers:
            placed += put(pools, demand, domains, names[placed:])
        return placed
