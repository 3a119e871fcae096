"""The topology rules of a problem: whose they are, which groups count for them, and whom they bind.

Rules that count the same in the same domains share a ``TopologyGroup``. ``ledger.Ledger`` keeps the groups' counts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, reduce
from operator import or_

from joinery.decisions.scheduling.constraints.pod_index import PodIndex, numbers_of
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.selectors import Namespaces
from joinery.decisions.scheduling.constraints.topology_rules import (
    NodeFilter,
    TopologyRule,
    required_anti_affinity,
    rules_of,
)
from joinery.decisions.scheduling.pools.residents import Residents
from joinery.decisions.scheduling.topology.bound_pods import BoundPods
from joinery.decisions.scheduling.topology.groups import TopologyGroup, UnforeseenDomain, admits, counts_class
from joinery.objects.karpenter.labels import HOSTNAME, ZONE
from joinery.objects.kubernetes.core import Namespace
from joinery.objects.snapshot.nodes import NodeView

ANY_NEW_NODE = ""
"""The host that stands for any new node without pods of the plan."""

_NOBODY = Residents()

Universe = Callable[[PodClass, str], frozenset[str]]
"""The domains of a topology key that a class can reach through some pool's available offerings."""


class RuleGroups:
    """The rules that the classes and the running pods own, and the groups that count for them.

    rules              by class: the rules it owns, hard ones first
    unforeseen         domains that earlier packings opened without having counted them
    counting_daemons   hard spreads over zones and the like that count DaemonSets' pods wherever a new node comes
    """

    def __init__(
        self,
        classes: Sequence[PodClass],
        nodes: Sequence[NodeView],
        namespaces: Sequence[Namespace],
        universe: Universe,
        unforeseen: Iterable[UnforeseenDomain] = (),
        residents: Residents = _NOBODY,
    ) -> None:
        self._residents = residents
        self.unforeseen = tuple(unforeseen)
        self._nodes = nodes
        self._universe = universe
        self._groups: dict[object, TopologyGroup] = {}
        self._group_of: dict[TopologyRule, TopologyGroup] = {}
        self._foreign: dict[PodClass, tuple[TopologyGroup, ...]] = {}
        self._foreign_over: dict[tuple[PodClass, str], tuple[TopologyGroup, ...]] = {}
        self._binding_over: dict[tuple[PodClass, str], tuple[TopologyGroup, ...]] = {}
        self._watching: dict[PodClass, tuple[NodeFilter, ...]] = {}
        self._hard: dict[PodClass, frozenset[TopologyGroup]] = {}
        self._others: dict[PodClass, tuple[TopologyGroup, ...]] = {}
        self._meeting: dict[TopologyGroup, frozenset[str]] = {}
        self._owning: dict[TopologyGroup, list[PodClass]] = defaultdict(list)
        self._classes = classes
        self._numbers = {pod_class: number for number, pod_class in enumerate(classes)}
        self._index = PodIndex([pod_class.example for pod_class in classes])
        known = Namespaces(namespaces)
        self.rules: dict[PodClass, tuple[TopologyRule, ...]] = {}
        for pod_class in classes:
            self.rules[pod_class] = (*rules_of(pod_class, known), *_same_zone(pod_class))
            for rule in self.rules[pod_class]:
                self._adopt(rule, pod_class)
        self._count_bound(known)
        self._resident_groups = tuple(group for group in self._groups.values() if group.residents)
        spreads = [group for group in self._resident_groups if group.is_hard and group.rule.kind == "spread"]
        self.counting_daemons = tuple(group for group in spreads if group.rule.key != HOSTNAME)
        for group in self._resident_groups:
            if group.rule.key == HOSTNAME:
                group.counts[ANY_NEW_NODE] = min(group.residents.get(pool.name, 0) for pool in residents.pools)

    def _adopt(self, rule: TopologyRule, pod_class: PodClass) -> None:
        domains = self._domains(pod_class, rule) if rule.kind == "spread" and rule.key != HOSTNAME else frozenset()
        identity = rule.identity, domains
        group = self._groups.get(identity)
        if group is None:
            group = self._groups[identity] = self._group(rule, domains, self._residents.counted(rule))
            if group.residents and domains and rule.min_domains <= 1:
                first = self._residents.of_first_node(rule, pod_class)
                group.awaited_daemons = dict.fromkeys(domains - self._inhabited(rule), first)
            if group.residents and domains:
                group.brought = self._residents.by_type(rule)
        self._group_of[rule] = group
        group.is_asked = True
        if rule.weight is None:
            self._owning[group].append(pod_class)
            group.is_hard = True
            group.counts_owners |= group.selects(pod_class)
            group.awaited += len(pod_class.names)

    def _group(self, rule: TopologyRule, domains: frozenset[str], residents: Mapping[str, int]) -> TopologyGroup:
        if rule.claim:
            bits = sum(1 << number for pods, number in self._numbers.items() if counts_class(rule, pods))
        else:
            bits = self._index.selected_by(rule.matchers)
        return TopologyGroup(rule, domains, residents=residents, numbers=self._numbers, selected=bits)

    def _domains(self, pod_class: PodClass, rule: TopologyRule) -> frozenset[str]:
        """What a spread of this class ranges over: domains of nodes that count for it, and of what it could buy."""
        also = frozenset(domain.domain for domain in self.unforeseen if domain.rule == rule.identity)
        return self._inhabited(rule) | self._universe(pod_class, rule.key) | also

    def _inhabited(self, rule: TopologyRule) -> frozenset[str]:
        """The domains of nodes that exist and count."""
        return frozenset(
            view.labels[rule.key] for view in self._nodes if rule.key in view.labels and admits(rule.nodes, view)
        )

    def _count_bound(self, namespaces: Namespaces) -> None:
        """Count the pods of existing nodes, and note whom their required anti-affinity keeps away."""
        for view in self._nodes:
            for pod in view.pods:
                for rule in required_anti_affinity(pod, namespaces):
                    identity = rule.identity, frozenset[str]()
                    if identity not in self._groups:
                        self._groups[identity] = self._group(rule, frozenset(), {})
                    group = self._groups[identity]
                    group.is_hard = True
                    if rule.key in view.labels:
                        group.owners[view.labels[rule.key]] += 1
        bound = BoundPods(self._nodes)
        for group in self._groups.values():
            if group.is_asked or group.rule.key != HOSTNAME:
                bound.count(group)

    def group(self, rule: TopologyRule) -> TopologyGroup:
        """The counts of the rule, which is one of a class of this topology."""
        return self._group_of[rule]

    def selected(self, rules: Iterable[TopologyRule]) -> Sequence[PodClass]:
        """The classes that some of the rules count."""
        bits = reduce(or_, (self.group(rule).selected for rule in rules), 0)
        return [self._classes[number] for number in numbers_of(bits)]

    def foreign(self, pod_class: PodClass) -> tuple[TopologyGroup, ...]:
        """Groups by which others bind the class: spreads, affinities and anti-affinities that count it.

        Its own preference may be somebody else's hard rule. Then it still binds the class once the class has given it
        up.
        """
        foreign = self._foreign.get(pod_class)
        if foreign is None:
            own = dict.fromkeys(self.group(rule) for rule in self.rules[pod_class])
            hard = self._own_hard(pod_class)
            preferred = [g for g in own if g.is_hard and g.rule.kind != "affinity" and g not in hard]
            alike = [g for g in preferred if g.selects(pod_class)]
            foreign = self._foreign[pod_class] = (*self._groups_of_others(pod_class), *alike)
        return foreign

    def foreign_over(self, pod_class: PodClass, key: str) -> tuple[TopologyGroup, ...]:
        """The ``foreign`` groups over this key."""
        groups = self._foreign_over.get((pod_class, key))
        if groups is None:
            groups = tuple(group for group in self.foreign(pod_class) if group.rule.key == key)
            self._foreign_over[pod_class, key] = groups
        return groups

    def only_keeps_apart(self, pod_class: PodClass, rules: Iterable[TopologyRule], key: str) -> bool:
        """Whether rules over the key bind the class, and all, own and others', are required anti-affinity."""
        own = [rule for rule in rules if rule.key == key]
        others = (group.rule for group in self.foreign_over(pod_class, key) if group.is_hard)
        bringing = (group.rule for group in self.counting_daemons if group.rule.key == key)
        is_required = all(rule.weight is None for rule in own)
        return is_required and {rule.kind for rule in (*own, *others, *bringing)} == {"anti-affinity"}

    def host_affinity(self, pod_class: PodClass) -> tuple[TopologyRule, ...]:
        """The rules by which the class must share a host with others."""
        hard = (rule for rule in self.rules[pod_class] if rule.weight is None)
        return tuple(rule for rule in hard if (rule.kind, rule.key) == ("affinity", HOSTNAME))

    def _own_hard(self, pod_class: PodClass) -> frozenset[TopologyGroup]:
        """The groups of the class's own hard rules."""
        groups = self._hard.get(pod_class)
        if groups is None:
            hard = (rule for rule in self.rules[pod_class] if rule.weight is None)
            groups = self._hard[pod_class] = frozenset(map(self.group, hard))
        return groups

    def _groups_of_others(self, pod_class: PodClass) -> tuple[TopologyGroup, ...]:
        """Groups that count the class without being its own in any way."""
        groups = self._others.get(pod_class)
        if groups is None:
            own = {self.group(rule) for rule in self.rules.get(pod_class, ())}
            number = self._numbers[pod_class]
            groups = self._others[pod_class] = tuple(g for g in self._selecting[number] if g not in own)
        return groups

    @cached_property
    def _selecting(self) -> Sequence[Sequence[TopologyGroup]]:
        """By number of the class, the groups that count it."""
        selecting: list[list[TopologyGroup]] = [[] for _ in self._classes]
        for group in self._groups.values():
            for number in numbers_of(group.selected):
                selecting[number].append(group)
        return selecting

    def watching(self, pod_class: PodClass) -> tuple[NodeFilter, ...]:
        """The filters of hard spreads of others that count the class only on nodes with certain labels."""
        filters = self._watching.get(pod_class)
        if filters is None:
            spreads = (g for g in self._groups_of_others(pod_class) if g.is_hard and g.rule.kind == "spread")
            filters = tuple({g.rule.nodes.identity: g.rule.nodes for g in spreads if g.rule.nodes.terms}.values())
            self._watching[pod_class] = filters
        return filters

    def concerns(self, pod_class: PodClass) -> bool:
        """Whether it matters to other pods where the class runs: it keeps others away, or a rule counts it.

        Asked of classes too that are not to be placed.
        """
        affinity = pod_class.affinity.pod_anti_affinity
        return affinity is not None or any(group.selects(pod_class) for group in self._groups.values())

    def keys(self, pod_class: PodClass, rules: Iterable[TopologyRule]) -> tuple[str, ...]:
        """The topology keys whose domain is to be known where the class goes, in name order, without the host's."""
        preferred = {group.rule.key for group in self.foreign(pod_class)}
        preferred |= {rule.key for rule in self.rules[pod_class] if self.group(rule).selects(pod_class)}
        return tuple(sorted({*self.binding_keys(pod_class, rules), *preferred} - {HOSTNAME}))

    def binding_keys(self, pod_class: PodClass, rules: Iterable[TopologyRule]) -> tuple[str, ...]:
        """Those of them without which a rule might be broken.

        The others only let preferences count the class that it does not own, or has given up.
        """
        keys = {rule.key for rule in rules} | {group.rule.key for group in self.foreign(pod_class) if group.is_hard}
        return tuple(sorted(keys - {HOSTNAME}))


def _same_zone(pod_class: PodClass) -> tuple[TopologyRule, ...]:
    """Pods that share an unbound claim follow the first of them into its zone: that is where the volume will be."""
    return tuple(TopologyRule("affinity", ZONE, (), claim=name) for name in pod_class.volumes.unbound)
