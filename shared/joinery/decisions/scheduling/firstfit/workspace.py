"""A problem compiled for packing: pod classes, pools, nodes with their room, and topology counts.

Built once for each attempt from the frozen problem. The packing changes the room of nodes, the free volumes and the
topology counts in here, and nothing else.
"""

from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from joinery.decisions.scheduling.constraints.node_pods import claims_in_use, labels_looked_at, with_volumes
from joinery.decisions.scheduling.constraints.podclasses import Classifier, PodClass, by_precedence, suits
from joinery.decisions.scheduling.constraints.requirements import EXISTS, Requirements
from joinery.decisions.scheduling.constraints.topology_rules import needed_keys, selector_keys
from joinery.decisions.scheduling.constraints.volumes import Volumes
from joinery.decisions.scheduling.constraints.work_bounds import within_bounds
from joinery.decisions.scheduling.devices.claims import Allocated, Claims, promised, without_allocated
from joinery.decisions.scheduling.devices.stock import NOTHING as NO_DEVICES
from joinery.decisions.scheduling.devices.stock import Stock, stock_of
from joinery.decisions.scheduling.firstfit.existing_node import NodeRoom
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.pending import pending, without
from joinery.decisions.scheduling.firstfit.volume_binder import VolumeBinder
from joinery.decisions.scheduling.pools import holdoff
from joinery.decisions.scheduling.pools.builder import build_pools
from joinery.decisions.scheduling.pools.daemonsets import read_daemons
from joinery.decisions.scheduling.pools.holdoff import InitializedNode
from joinery.decisions.scheduling.pools.market import Amounts, Axis, Mask, offered_by
from joinery.decisions.scheduling.pools.node_size import most_pods
from joinery.decisions.scheduling.pools.pool import Fit, Pool
from joinery.decisions.scheduling.pools.reserved import nodes_left
from joinery.decisions.scheduling.pools.residents import residents_of
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import Reason
from joinery.decisions.scheduling.topology.rule_groups import UnforeseenDomain
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.annotations.plans import needs, needs_of, unserved_needs
from joinery.objects.karpenter.labels import INSTANCE_TYPE, PREFER_NO_SCHEDULE
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.pods import priorities_of


class PoolsByLabel:
    """Which pools may suit requirements at all, by the values that their templates list for labels.

    Of hundreds of pools, each for one team, few are asked.
    """

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = pools
        self._having: dict[str, dict[str, set[int]]] = {}
        listing: dict[str, set[int]] = defaultdict(set)
        for number, pool in enumerate(pools):
            for key, allowed in pool.requirements.sets.items():
                if not allowed.complement and not allowed.absent:
                    listing[key].add(number)
                    for value in allowed.values:
                        self._having.setdefault(key, defaultdict(set))[value].add(number)
        self._others = {key: set(range(len(pools))) - numbers for key, numbers in listing.items()}

    def suitable(self, wanted: Requirements) -> Iterator[Pool]:
        """In their order; of any other ``Pool.fit`` says that it conflicts."""
        numbers: set[int] | None = None
        for key, allowed in wanted.canonical().sets.items():
            if key in self._others and not allowed.complement:
                having = self._having.get(key, {})
                suiting = self._others[key].union(*(having[value] for value in allowed.values if value in having))
                numbers = suiting if numbers is None else numbers & suiting
        return iter(self._pools) if numbers is None else (self._pools[number] for number in sorted(numbers))


@dataclass(frozen=True)
class Usage:
    """What a packing takes, for the reasons of pods that it leaves.

    nodes           by pool: how many nodes it buys
    charged         by pool: what they take of its limits
    left_reserved   by capacity reservation: how many nodes it takes after the packing
    found_domains   classes for which there was a domain to buy in when they were last tried, limits apart
    """

    nodes: Mapping[str, int]
    charged: Mapping[str, Amounts]
    left_reserved: Mapping[str, int]
    found_domains: frozenset[PodClass] = frozenset()

    def within_limits(self, pool: Pool) -> Mask:
        """The types of which the pool's limits leave room for one more node."""
        return pool.within_limits(self.nodes.get(pool.name, 0), self.charged.get(pool.name, 0))


class Workspace:
    """Everything that a packing needs, in the shape in which it needs it.

    What earlier packings taught is given:

    unforeseen   domains that they opened without having counted them
    staying      pods that stay on a node that is going, because they have no other place: they count there
    own_devices  whether claims that a node could serve by itself get no devices of several nodes

    What it holds:

    pending         the pods to place; ``waiting``: the names of those that are not bound to any node
    views           the nodes, without the pods that are placed anew; ``nodes``: those that pods may go to
    classes         the pending pods by class; ``possible``: the classes that can be placed at all
    axis            the resources, in the order of all rows and columns of amounts
    room            what existing nodes have left
    free_volumes    which free PersistentVolumes the packing has taken
    claims          what the pods claim of devices; ``hosts_of_claims``: where those of several pods have them by now
    pools           what can be bought, by weight and name; ``rejected_pools``: why the others cannot
    reservations    how many nodes each capacity reservation takes before the packing
    fair_prices     $/h of one pod of a class in a pool, as far as anyone asked (``NewNodes.fair_price_in``)
    """

    def __init__(
        self,
        problem: Problem,
        unforeseen: Iterable[UnforeseenDomain] = (),
        staying: Container[str] = frozenset(),
        *,
        own_devices: bool = False,
    ) -> None:
        snapshot = problem.snapshot
        self.problem = problem
        all_views = snapshot.views
        self.volumes = Volumes(snapshot)
        self.pending = tuple(pod for pod in pending(problem, all_views) if pod.key not in staying)
        self.waiting = frozenset(pod.key for pod in self.pending if not pod.spec.node_name)
        names = frozenset(pod.key for pod in self.pending)
        self.views = without(all_views, names)
        daemons = read_daemons(snapshot.daemons, snapshot.daemon_pods)
        priorities = priorities_of(snapshot.priority_classes)
        claiming = by_precedence((pod for pod in self.pending if pod.spec.resource_claims), priorities)
        self._stocks: dict[int, Stock] = {}
        self.claims = Claims(
            snapshot, claiming, names - self.waiting, suits, self._stocks_sold, own_devices=own_devices
        )
        self.hosts_of_claims: dict[str, str] = {}
        if self.claims.is_used:
            daemons = tuple(replace(daemon, devices=self.claims.of_daemon(daemon.pod)) for daemon in daemons)
        self.classes = within_bounds(self._classes(priorities), snapshot.namespaces)
        self.free_volumes = self._free_volumes()
        self.axis = Axis.of(
            [pod_class.requests for pod_class in self.classes] + [daemon.requests for daemon in daemons],
            (*map(offered_by, problem.kinds), *(view.allocatable for view in self.views)),
        )
        self.pools, self.rejected_pools = build_pools(problem, self.axis, daemons, self.views, len(self.pending))
        csi = {node.metadata.name: node for node in reversed(snapshot.csi_nodes)}
        most = most_pods(snapshot.node_pools, self.views, len(self.pending)) if problem.is_by_choice else {}
        self.room = NodeRoom(self.axis, daemons, self.volumes, csi, self._attachments, most, self._stock_of)
        self.nodes = self.room.existing([view for view in self.views if not view.is_leaving])
        self.reservations: Mapping[str, int] = nodes_left(self.pools, snapshot.managed_claims)
        self.fair_prices: dict[tuple[PodClass, str], float] = {}
        self._universes: dict[Hashable, frozenset[str]] = {}
        self._unforeseen = tuple(unforeseen)

    @cached_property
    def topology(self) -> Topology:
        """The counts of topology rules."""
        return self.topology_of(self.views, self._unforeseen)

    def topology_of(self, views: Iterable[NodeView], unforeseen: Iterable[UnforeseenDomain] = ()) -> Topology:
        """Their counts with the pods of these nodes."""
        namespaces = self.problem.snapshot.namespaces
        return Topology(
            self.possible,
            [self.room.with_daemons(view) for view in views],
            namespaces,
            self.universe,
            unforeseen,
            residents_of(self.pools, namespaces),
        )

    def _classes(self, priorities: Mapping[str, int]) -> tuple[PodClass, ...]:
        keys = selector_keys(self.pending).union(*(view.derived(labels_looked_at) for view in self.views))
        in_use = frozenset().union(*(view.derived(claims_in_use) for view in self.views))
        limited = frozenset(driver for kind in self.problem.kinds for driver in kind.attachments)
        return Classifier(self.volumes, priorities, keys, in_use, limited, self.claims).classes(self.pending)

    @cached_property
    def room_now(self) -> NodeRoom:
        """What nodes have left while all pods are where they are: those to place have their devices."""
        if not self.claims.is_used:
            return self.room
        return replace(self.room, stock_of=lambda view: self._stock_with(view, self.claims.allocated_now))

    def _stock_of(self, view: NodeView) -> Stock:
        return self._stock_with(view, self.claims.allocated) if self.claims.is_used else NO_DEVICES

    def _stock_with(self, view: NodeView, allocated: Allocated) -> Stock:
        """The devices of a node: as its drivers publish them, and before it is initialised as its type says."""
        published = self.claims.published.by_node.get(view.node, NO_DEVICES)
        if view.is_initialized or not view.pool:
            return without_allocated(published, allocated)
        kinds = self._kinds.get(view.pool, {})
        kind = kinds.get(view.labels.get(INSTANCE_TYPE, ""))
        return promised(self._stock_of_type(kind), published, allocated) if kind else NO_DEVICES

    def _stocks_sold(self) -> Iterator[Stock]:
        return (self._stock_of_type(kind) for kind in self.problem.kinds)

    def _stock_of_type(self, kind: InstanceType) -> Stock:
        """One for all nodes of a type, so that what is remembered for one serves the others."""
        stock = self._stocks.get(id(kind.slices))
        if stock is None:
            stock = self._stocks[id(kind.slices)] = stock_of(kind.slices)
        return stock

    @cached_property
    def _kinds(self) -> Mapping[str, Mapping[str, InstanceType]]:
        """By NodePool, its instance types by name."""
        pools = self.problem.snapshot.node_pools
        return {pool.metadata.name: {kind.name: kind for kind in self.problem.types_of(pool)} for pool in pools}

    def _free_volumes(self) -> VolumeBinder:
        """Those of pods that have a node and whose claims are still without a volume are taken."""
        free = VolumeBinder()
        for view in self.views:
            for pod in view.derived(with_volumes):
                for way in self.volumes.needs(pod).ways if self.volumes.is_unbound(pod) else ():
                    if way.requirements.matches(view.labels) and free.left(way.choices, 1, view.labels):
                        free.take(way.choices, 1, view.labels)
                        break
        return free

    @cached_property
    def tiers(self) -> Sequence[tuple[Pool, ...]]:
        """The pools by weight, heaviest first; pools of one weight compete by price."""
        return [tuple(tier) for _, tier in groupby(self.pools, key=lambda pool: pool.weight)]

    @cached_property
    def pools_by_label(self) -> PoolsByLabel:
        """The pools, by the labels that their templates list values for."""
        return PoolsByLabel(self.pools)

    @cached_property
    def _attachments(self) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
        """How many volumes each CSI driver attaches to a node, by NodePool and instance type, where that is limited."""
        by_class = {
            name: {kind.name: kind.attachments for kind in kinds if kind.attachments}
            for name, kinds in self.problem.instance_types.items()
        }
        return {
            pool.metadata.name: by_class.get(pool.spec.template.spec.node_class_ref.name, {})
            for pool in self.problem.snapshot.node_pools
        }

    @cached_property
    def possible(self) -> tuple[PodClass, ...]:
        """The classes without a problem of their own."""
        return tuple(pod_class for pod_class in self.classes if not pod_class.problems)

    @cached_property
    def class_of(self) -> Mapping[str, PodClass]:
        """The class of each pending pod, by name."""
        return {name: pod_class for pod_class in self.classes for name in pod_class.names}

    @cached_property
    def held_off(self) -> Mapping[PodClass, Reason]:
        """The classes for which nothing is bought now, because nodes came that cannot take them."""
        nodes = {view.claim: view for view in self.views if view.claim and view.is_initialized and not view.is_leaving}
        snapshot = self.problem.snapshot
        waiting = {pod.key: pod for pod in self.pending if not pod.spec.node_name}
        asked = {needs(waiting[name]) for it in self.possible for name in it.names if name in waiting}
        fit = [
            InitializedNode(
                nodes[claim.metadata.name],
                since,
                needs_of(claim),
                self.room.empty(nodes[claim.metadata.name]),
                unserved_needs(claim),
            )
            for claim, since in holdoff.initialized_since(snapshot.node_claims, asked)
            if claim.metadata.name in nodes
        ]
        return holdoff.held_off(self.possible, waiting, fit, self.axis, snapshot.now)

    @cached_property
    def prefers_taints(self) -> bool:
        """Whether some pool or node has a PreferNoSchedule taint, so that accepting it can help at all."""
        taints = [taint for pool in self.pools for taint in pool.taints]
        return any(taint.effect == PREFER_NO_SCHEDULE for taint in taints) or any(
            taint.effect == PREFER_NO_SCHEDULE for view in self.views for taint in view.taints
        )

    def universe(self, pod_class: PodClass, key: str) -> frozenset[str]:
        """The domains in which some pool that the class may use could add a node that holds one of its pods.

        Of thousands of classes most differ in their labels only, so it is remembered.
        """
        requests, needed = self.axis.asked(pod_class.requests), frozenset(needed_keys(pod_class))
        said = tuple(map(str, pod_class.terms)), tuple(map(repr, pod_class.tolerations))
        asked = key, requests.tobytes(), needed, said, pod_class.devices
        if asked not in self._universes:
            self._universes[asked] = self._universe(pod_class, key, requests, needed)
        return self._universes[asked]

    def _universe(self, pod_class: PodClass, key: str, requests: Amounts, needed: Iterable[str]) -> frozenset[str]:
        domains: set[str] = set()
        labelled = Requirements(dict.fromkeys(needed, EXISTS))
        for term in (term.intersect(labelled) for term in pod_class.terms):
            for pool in self.pools_by_label.suitable(term):
                if pod_class.untolerated(pool.taints) is None:
                    domains |= _values_of(key, pool, pool.fit(pool.asked(term)), requests, pool.within_limits())
        return frozenset(domains)

    def is_sold(self, pod_class: PodClass) -> bool:
        """Whether some pool has a type for one of the pods on offer, rules about other pods and limits apart."""
        requests = self.axis.asked(pod_class.requests)
        pools = [pool for pool in self.pools if pod_class.untolerated(pool.taints) is None]
        fits = ((pool, pool.fit(pool.asked(term))) for term in pod_class.terms for pool in pools)
        return any(not fit.conflict and (fit.sold & pool.has_room(requests)).any() for pool, fit in fits)

    def offered(self, pool: Pool, pod_class: PodClass, key: str) -> set[str]:
        """The domains in which the pool has an available offering that holds one of the pods.

        Neither taints nor limits matter.
        """
        requests = self.axis.asked(pod_class.requests)
        fits = (pool.fit(pool.asked(term)) for term in pod_class.terms)
        return {domain for fit in fits for domain in _values_of(key, pool, fit, requests, pool.types)}


def _values_of(key: str, pool: Pool, fit: Fit, requests: Amounts, types: Mask) -> set[str]:
    """The values of a key over those of the types that hold one such pod, where they are sold."""
    if fit.conflict:
        return set()
    holding = fit.types & types & pool.has_room(requests)
    node = NewNode("", pool, fit.requirements, holding, fit.columns, requests, {})
    return set(node.values(key)) if holding.any() else set()
