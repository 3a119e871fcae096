"""From a cluster to its model: classes of pods become items, nodes become standing bins.

The instance is a guide: a simulation by the packing core decides what is right (``simulation``). So what the optimiser
has no word for is taken strictly:

- A class of pods that a rule over zones or other domains counts, or that owns one, moves within its domain only. Then
  no count of any rule changes, and every order of the moves is right, if the rule holds to begin with
  (``grouping.bonds_of``).
- Where rules over hosts would let no more pods of a class onto a node as it is, none go there.
- Nodes with pods that must share a host with others stay.
- New nodes for a class come from the heaviest NodePools that can hold it.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from types import MappingProxyType

import numpy as np

from joinery.decisions.disruption.candidates import Candidate, Candidates
from joinery.decisions.disruption.consolidation.admitting import AdmittingNodes
from joinery.decisions.disruption.consolidation.dealing import broken_spreads, dealt
from joinery.decisions.disruption.consolidation.model import MUST_GO, ConsolidationModel, hourly
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.lifecycle.disrupting.new_commands import as_if_retired
from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.consolidation.instance import ConsolidationInstance
from joinery.decisions.optimizer.consolidation.relaxation import KeepRelaxation, is_kept
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance
from joinery.decisions.scheduling.constraints.budgets import Coverage
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.relaxation import Variant, variants
from joinery.decisions.scheduling.constraints.requirements import NO_REQUIREMENTS
from joinery.decisions.scheduling.firstfit.demand import Demand, Domains
from joinery.decisions.scheduling.firstfit.existing_node import ExistingNode
from joinery.decisions.scheduling.firstfit.new_nodes import is_open_to
from joinery.decisions.scheduling.firstfit.pending import must_move
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.optimise.bin_types import BinTypes, PoolUse, supplies
from joinery.decisions.scheduling.optimise.device_columns import DeviceColumns, columns_for_bound
from joinery.decisions.scheduling.optimise.dominance import bin_types_for
from joinery.decisions.scheduling.optimise.orders import Order, host_rules
from joinery.decisions.scheduling.topology.groups import TopologyGroup
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import HOSTNAME
from joinery.objects.snapshot.nodes import NodeView


class ModelInputs:
    """What every model of one decision is made from, built once. ``chosen``: the candidates that may go.

    ``work``: the cluster without them. ``nodes``: those that may go or receive pods.
    """

    def __init__(self, problem: DisruptionProblem, judged: Candidates, chosen: Iterable[Candidate]) -> None:
        self._judged = judged
        self._by_claim = {candidate.claim.metadata.name: candidate for candidate in chosen}
        retired = as_if_retired(problem.packing.snapshot, self._by_claim)
        self.work = Workspace(replace(problem.packing, snapshot=retired, is_by_choice=True))
        self.nodes = tuple(view for view in judged.nodes if view.claim in self._by_claim or self.receives(view))

    @cached_property
    def targets(self) -> Sequence[ExistingNode]:
        """The room of each node with all its pods."""
        return self.work.room_now.existing(self.nodes)

    @cached_property
    def present(self) -> Topology:
        """Counts of all rules with all pods where they are: what a node that is kept lets in beside its own."""
        return self.work.topology_of(self._judged.nodes)

    def receives(self, view: NodeView) -> bool:
        """Whether moved pods may go there."""
        return view.node in self._judged.destinations

    def candidate(self, view: NodeView) -> Candidate | None:
        """The candidate of this node, if it may go."""
        return self._by_claim.get(view.claim)


def model_of(inputs: ModelInputs, effort: Effort) -> ConsolidationModel:
    """The problem of which candidates to keep.

    Pods stay in their domains, unless a spread would not let them back (``dealing``).
    """
    model = _Compiler(inputs).model()
    spreads = broken_spreads(model.classes, inputs.present) if model.broken else {}
    # What would probably go takes as long to find out as a choice begins with.
    relaxed = KeepRelaxation(model.instance, effort.patience()).solve() if spreads else None
    if relaxed is None or effort.is_over():
        return model
    return dealt_for(inputs, model, is_kept(relaxed.keep) | ~model.instance.may_retire)


def dealt_for(inputs: ModelInputs, model: ConsolidationModel, keep: Mask) -> ConsolidationModel:
    """The model whose pods go where broken spreads let them if just these standing bins stay (``keep``: a bool each).

    Itself where they go there already.
    """
    spreads = broken_spreads(model.classes, inputs.present) if model.broken else {}
    leaving = dealt(model, spreads, keep)
    going = {pod for (_, index), pods in model.pods.items() if not keep[index] for pod in pods}
    known = {pod: domains for pod, domains in model.leaving.items() if pod in going}
    return model if leaving == known else _Compiler(inputs, leaving=leaving).model()


def loosened(inputs: ModelInputs, model: ConsolidationModel) -> ConsolidationModel:
    """The same problem, in which no rule is stricter than kube-scheduler's: for a bound.

    Pods may leave their domains, preferences do not count, and new nodes come from any NodePool. Of rules over hosts
    those count that hold on every node whatever is on the others: required anti-affinity, and host ports. It is the
    model itself where that makes no difference.
    """
    return _Compiler(inputs, is_loose=True).model() if model.is_strict else model


class _Compiler:
    """``leaving``: by name, the labels that a pod's next node has in place of its own's."""

    def __init__(
        self, inputs: ModelInputs, *, is_loose: bool = False, leaving: Mapping[str, Domains] = MappingProxyType({})
    ) -> None:
        self._inputs, self._is_loose, self._leaving = inputs, is_loose, leaving
        self._work, self._present, self._nodes = inputs.work, inputs.present, inputs.nodes
        self._orders: list[Order] = []
        self._item_of: dict[tuple[PodClass, tuple[tuple[str, str], ...]], int] = {}
        self._pods: dict[tuple[int, int], list[str]] = defaultdict(list)
        self._bound_to_stay: set[int] = set()
        self._immovable: set[int] = set()
        self._forced = 0.0

    def model(self) -> ConsolidationModel:
        self._items()
        sizes = np.array([order.demand.requests for order in self._orders], dtype=np.int64)
        sizes = sizes.reshape(len(self._orders), len(self._work.axis.names))
        claimed = [order.demand.pod_class.devices for order in self._orders]
        standing = (target.stock for target in self._inputs.targets)
        devices = columns_for_bound(self._work.claims, claimed, self._work.pools, standing)
        sizes = np.hstack([sizes, devices.sizes(claimed)])
        bin_types = bin_types_for(devices.widened(self._work.pools), sizes, list(self._uses()))
        coupled = [self._rules_over_domains(order.demand.pod_class) for order in self._orders]
        instance = self._instance(sizes, bin_types, devices)
        return ConsolidationModel(
            instance=instance,
            nodes=self._nodes,
            candidates=tuple(self._inputs.candidate(view) for view in self._nodes),
            pods={key: tuple(sorted(names)) for key, names in self._pods.items()},
            classes=tuple(order.demand.pod_class for order in self._orders),
            domains=tuple(order.domains for order in self._orders),
            leaving=self._leaving,
            coupled=tuple(frozenset(map(id, groups)) for groups in coupled),
            broken=frozenset(id(group) for group in chain.from_iterable(coupled) if group.is_broken),
            new=tuple(self._names(bin_types)),
            forced=self._forced,
            is_strict=self._is_strict(),
            immovable=frozenset(self._immovable | self._without_place(instance.bins.compatible)),
        )

    def _without_place(self, compatible: Mask) -> set[int]:
        """The standing bins with an item that no other bin is compatible with."""
        places = compatible.sum(axis=1)
        return {index for item, index in self._pods if places[item] == compatible[item, index]}

    def _is_strict(self) -> bool:
        has_rules = self._work.prefers_taints or any(map(self._is_choosy, {o.demand.pod_class for o in self._orders}))
        weights = {pool.weight for pool in self._work.pools}
        return not self._is_loose and (has_rules or bool(self._bound_to_stay) or len(weights) > 1)

    def _is_choosy(self, pod_class: PodClass) -> bool:
        """Whether anything but room and requirements bears on where the class goes."""
        is_counted = bool(self._present.rules[pod_class] or self._present.binding(pod_class).foreign)
        return (
            is_counted
            or bool(pod_class.preferred or pod_class.volumes.choices)
            or len(pod_class.volumes.alternatives) > 1
        )

    def _rules_over_domains(self, pod_class: PodClass) -> Sequence[TopologyGroup]:
        topology = self._present
        own = (topology.group(rule) for rule in topology.rules[pod_class])
        return [group for group in (*own, *topology.binding(pod_class).foreign) if group.rule.key != HOSTNAME]

    def _names(self, bin_types: BinTypes) -> Iterator[tuple[str, str]]:
        for index, row in zip(bin_types.pool, bin_types.instance_type, strict=True):
            pool = self._work.pools[int(index)]
            yield pool.name, pool.market.types[int(row)].name

    # --- items: classes of pods, in their domains where they have to stay there ---

    def _items(self) -> None:
        class_of = {name: pod_class for pod_class in self._work.possible for name in pod_class.names}
        demands: dict[PodClass, Demand] = {}
        snapshot = self._work.problem.snapshot
        budgets = Coverage(snapshot.disruption_budgets)
        for index, view in enumerate(self._nodes):
            candidate = self._inputs.candidate(view)
            for pod in candidate.pods if candidate else ():
                pod_class = class_of.get(pod.key)
                if pod_class is None:
                    # One that no eviction ends gets its place when its time is over.
                    if must_move(pod, budgets, snapshot.now):
                        self._bound_to_stay.add(index)
                        self._immovable.add(index)
                    continue
                demand = demands.get(pod_class) or demands.setdefault(pod_class, self._demand(pod_class))
                if demand.gathers and not self._is_loose:
                    self._bound_to_stay.add(index)
                self._pods[self._item(demand, view, pod.key), index].append(pod.key)

    def _demand(self, pod_class: PodClass) -> Demand:
        """What the class asks for with all its preferences; in a loose model with none, and its last term."""
        work = self._work
        options = work.problem.options
        tries = variants(
            pod_class,
            self._present.rules[pod_class],
            respect=options.respect_preferences and not self._is_loose,
            prefer_taints=work.prefers_taints,
        )
        row = work.axis.asked(pod_class.requests)
        volumes = pod_class.volumes.alternatives[0]
        several = self._is_loose and len(pod_class.volumes.alternatives) > 1
        variant = _bare(deque(tries, maxlen=1)[0]) if self._is_loose else next(iter(tries))
        return Demand(pod_class, variant, row, np.flatnonzero(row), volumes=NO_REQUIREMENTS if several else volumes)

    def _item(self, demand: Demand, view: NodeView, pod: str) -> int:
        keys = () if self._is_loose else self._present.binding(demand.pod_class).keys(demand.variant.rules)
        leaving = self._leaving.get(pod, {})
        domains = {key: leaving.get(key, view.labels.get(key, "")) for key in keys}
        key = demand.pod_class, tuple(sorted(domains.items()))
        if key not in self._item_of:
            self._item_of[key] = len(self._orders)
            self._orders.append(Order(demand, domains, 0))
        return self._item_of[key]

    # --- the arrays ---

    def _instance(self, sizes: Ints, bin_types: BinTypes, devices: DeviceColumns) -> ConsolidationInstance:
        standing, items, targets = len(self._nodes), len(self._orders), self._inputs.targets
        residents = np.zeros((items, standing), dtype=np.int64)
        for (item, index), names in self._pods.items():
            residents[item, index] = len(names)
        rows = [np.concatenate([target.free, devices.left(target.stock, target.taken)]) for target in targets]
        free = np.array(rows, dtype=np.int64).reshape(standing, sizes.shape[1])
        prices, moves, may_retire = self._candidate_arrays()
        is_open, kinds = self._open()
        available, supply = supplies(bin_types, self._work.reservations)
        rules = host_rules(self._orders, self._present)
        bins = PackingInstance(
            sizes=sizes,
            demands=residents.sum(axis=1),
            costs=np.concatenate([prices, bin_types.prices]),
            capacities=np.concatenate([free, bin_types.capacities]),
            compatible=np.concatenate([is_open & self._has_room(sizes, free), bin_types.compatible], axis=1),
            cardinality_limits=tuple(CardinalityLimit(np.array(members), cap) for members, cap in rules.limits),
            conflicts=rules.conflicts,
            available=np.concatenate([np.ones(standing, dtype=np.int64), available]),
            supply=np.concatenate([np.arange(standing), standing + supply]),
        )
        return ConsolidationInstance(bins=bins, residents=residents, moves=moves, may_retire=may_retire, kinds=kinds)

    def _candidate_arrays(self) -> tuple[Floats, Floats, Mask]:
        """float64[standing bins] twice, $/h: prices and moves; and bool[standing bins], which may be retired.

        What cannot be retired costs the same whatever is decided, so it counts nothing.
        """
        prices, moves = np.zeros(len(self._nodes)), np.zeros(len(self._nodes))
        for index, view in enumerate(self._nodes):
            candidate = self._inputs.candidate(view)
            if candidate is None or index in self._bound_to_stay:
                continue
            moves[index] = hourly(candidate)
            # Whatever its moves count as, it goes.
            forced = float(MUST_GO + moves[index]) if candidate.is_drifted else 0.0
            self._forced += forced
            prices[index] = candidate.price + forced
        return prices, moves, prices > 0

    def _open(self) -> tuple[Mask, Ints]:
        """bool[items, standing bins]: whether labels, taints, ports and domains let the item in; and int64[standing
        bins], a label that is the same for nodes that let the same items in.
        """
        signatures: dict[Hashable, int] = {}
        signature = [signatures.setdefault(_signature(order), len(signatures)) for order in self._orders]
        examples = {number: order for order, number in zip(self._orders, signature, strict=True)}
        targets = self._inputs.targets
        is_open = np.zeros((len(signatures), len(targets)), dtype=np.bool_)
        admitting = AdmittingNodes({index: it for index, it in enumerate(targets) if self._inputs.receives(it.view)})
        for number, order in examples.items():
            is_open[number, admitting.of(order)] = True
        kinds = np.unique(is_open, axis=1, return_inverse=True)[1] if signatures else np.zeros(len(targets))
        return is_open[signature], kinds.ravel().astype(np.int64)

    def _has_room(self, sizes: Ints, free: Ints) -> Mask:
        """bool[items, standing bins]: whether the node, with all its pods, would hold one more."""
        has_room: Mask = np.asarray((sizes[:, None, :] <= free[None]).all(axis=2))
        targets = self._inputs.targets
        hosts = [target.host for target in targets]
        open_hosts = self._present.hosts_without_foes if self._is_loose else self._present.open_hosts
        for item, order in enumerate(self._orders):
            demand, room = order.demand, has_room[item]
            is_open = np.zeros_like(room)
            is_open[open_hosts(demand.pod_class, demand.variant.rules, hosts)] = True
            room &= is_open
            is_asked = (demand.pod_class.volumes.claims or demand.pod_class.devices) and not self._is_loose
            for index in np.flatnonzero(room) if is_asked else ():
                room[index] = targets[index].holds(demand) > 0
        return has_room

    def _uses(self) -> Iterator[PoolUse]:
        """Which types and offerings may hold each item: those of the heaviest NodePools that have any."""
        pools = self._work.pools
        for item, order in enumerate(self._orders):
            heaviest: int | None = None
            for index, pool in enumerate(pools):
                if not self._is_loose and heaviest not in (None, pool.weight):
                    continue
                if not is_open_to(pool, order.demand, self._present):
                    continue
                _, fit = order.demand.fit(pool, order.domains)
                holds = (pool.room >= order.demand.requests).all(axis=1) & fit.types
                if not fit.conflict and holds.any():
                    heaviest = pool.weight
                    yield PoolUse(item, index, fit.types, fit.columns)


def _bare(variant: Variant) -> Variant:
    """Without the rules that do not hold by themselves on every node."""
    rules = (one for one in variant.rules if one.key == HOSTNAME and one.kind == "anti-affinity" and one.weight is None)
    return replace(variant, rules=tuple(rules))


def _signature(order: Order) -> Hashable:
    """Equal for items that the same nodes let in, room and pods apart."""
    demand = order.demand
    requirements = frozenset(demand.requirements.sets.items())
    return (
        requirements,
        tuple(repr(toleration) for toleration in demand.pod_class.tolerations),
        demand.variant.tolerates_preferred,
        demand.pod_class.ports,
        tuple(sorted(order.domains.items())),
    )
