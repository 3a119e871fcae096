"""The groups of a problem: which rules there are, who owns them, whom they count, and the pods that run already."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import or_
from types import MappingProxyType

from joinery.decisions.scheduling.constraints.node_pods import keeping_apart
from joinery.decisions.scheduling.constraints.pod_index import PodIndex, numbers_of
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.selectors import Namespaces
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule, required_anti_affinity, rules_of
from joinery.decisions.scheduling.pools.residents import Residents
from joinery.decisions.scheduling.topology.affinity import AffinityGroup, AntiAffinityGroup, OwnersByDomain
from joinery.decisions.scheduling.topology.groups import TopologyGroup
from joinery.decisions.scheduling.topology.running_pods import RunningPods
from joinery.decisions.scheduling.topology.spread import SpreadGroup
from joinery.objects.karpenter.labels import HOSTNAME, ZONE
from joinery.objects.kubernetes.core import Namespace
from joinery.objects.snapshot.nodes import NodeView

#: The host that stands for any new node without pods of the plan.
ANY_NEW_NODE = ""

#: The domains of a topology key that a class can reach through some pool's available offerings.
Universe = Callable[[PodClass, str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class UnforeseenDomain:
    """A domain of a spread that only nodes of the plan itself are in, which first-fit learns of too late.

    rule     the identity of the spread's rule (``TopologyRule.identity``)
    key      its topology key
    domain   the value of that label
    """

    rule: tuple[object, ...]
    key: str
    domain: str


class RuleGroups:
    """The rules that the classes and the running pods own, and the groups that count for them.

    rules         by class: the rules that it owns, hard ones first
    with_owners   where required anti-affinity has owners
    """

    def __init__(
        self,
        classes: Sequence[PodClass],
        nodes: Sequence[NodeView],
        namespaces: Sequence[Namespace],
        universe: Universe,
        unforeseen: Sequence[UnforeseenDomain],
        residents: Residents,
    ) -> None:
        self._classes, self._nodes, self._universe = classes, nodes, universe
        self._unforeseen, self._residents = unforeseen, residents
        self._numbers = {pod_class: number for number, pod_class in enumerate(classes)}
        self._index = PodIndex([pod_class.example for pod_class in classes])
        self._by_identity: dict[object, TopologyGroup] = {}
        self._of_rule: dict[TopologyRule, TopologyGroup] = {}
        self.with_owners: OwnersByDomain = {}
        self.rules: dict[PodClass, tuple[TopologyRule, ...]] = {}
        known = Namespaces(namespaces)
        for pod_class in classes:
            # Pods that share an unbound claim follow the first of them into its zone: that is where the volume will be.
            same_zone = (TopologyRule("affinity", ZONE, (), claim=name) for name in pod_class.volumes.unbound)
            self.rules[pod_class] = (*rules_of(pod_class, known), *same_zone)
            self._adopt(pod_class)
        self._count_running(known)
        for group in self:
            if group.residents and group.rule.key == HOSTNAME:
                group.counts[ANY_NEW_NODE] = min(group.residents.get(pool.name, 0) for pool in residents.pools)

    def __iter__(self) -> Iterator[TopologyGroup]:
        return iter(self._by_identity.values())

    def of(self, rule: TopologyRule) -> TopologyGroup:
        """The group of the rule, which some class owns."""
        return self._of_rule[rule]

    def selected(self, rules: Iterable[TopologyRule]) -> Sequence[PodClass]:
        """The classes that some of the rules count."""
        bits = reduce(or_, (self.of(rule).selected for rule in rules), 0)
        return [self._classes[number] for number in numbers_of(bits)]

    def counting(self, pod_class: PodClass) -> Sequence[TopologyGroup]:
        """The groups that count the class."""
        return self._selecting[self._numbers[pod_class]]

    @cached_property
    def _selecting(self) -> Sequence[Sequence[TopologyGroup]]:
        """By number of the class, the groups that count it."""
        selecting: list[list[TopologyGroup]] = [[] for _ in self._classes]
        for group in self:
            for number in numbers_of(group.selected):
                selecting[number].append(group)
        return selecting

    def _adopt(self, pod_class: PodClass) -> None:
        """Find or make the groups of the class's rules, and note that it owns them."""
        for rule in self.rules[pod_class]:
            domains = self._domains(pod_class, rule) if rule.kind == "spread" and rule.key != HOSTNAME else frozenset()
            identity = rule.identity, domains
            group = self._by_identity.get(identity)
            if group is None:
                group = self._by_identity[identity] = self._new(rule, domains, self._residents.counted(rule), pod_class)
            self._of_rule[rule] = group
            group.is_asked = True
        hard = dict.fromkeys(self.of(rule) for rule in self.rules[pod_class] if rule.weight is None)
        for group in hard:
            group.is_hard = True
            group.counts_owners |= group.selects(pod_class)
            group.awaited += len(pod_class.names)
            if isinstance(group, AffinityGroup):
                group.hard_owners.append(pod_class)
        required = tuple(group for group in hard if isinstance(group, AffinityGroup) and not group.rule.claim)
        for rule in self.rules[pod_class]:
            group = self.of(rule)
            if isinstance(group, AffinityGroup):
                group.required[pod_class] = required

    def _new(
        self,
        rule: TopologyRule,
        domains: frozenset[str] = frozenset(),
        residents: Mapping[str, int] = MappingProxyType({}),
        owner: PodClass | None = None,
    ) -> TopologyGroup:
        if rule.claim:
            selected = sum(1 << number for pods, number in self._numbers.items() if rule.counts(pods))
        else:
            selected = self._index.selected_by(rule.matchers)
        common = (rule, self._numbers, selected, residents, domains)
        if rule.kind == "anti-affinity":
            return AntiAffinityGroup(*common, with_owners=self.with_owners)
        if rule.kind == "affinity":
            is_met_anywhere = rule.key != HOSTNAME and 0 < len(self._residents.pools) == len(residents)
            return AffinityGroup(*common, reaches=partial(self._reachable, rule.key), is_met_anywhere=is_met_anywhere)
        spread = SpreadGroup(*common)
        if residents and domains and owner is not None:
            spread.brought = self._residents.by_type(rule)
            if rule.min_domains <= 1:
                first = self._residents.of_first_node(rule, owner)
                spread.awaited_daemons = dict.fromkeys(domains - self._inhabited(rule), first)
        return spread

    def _domains(self, pod_class: PodClass, rule: TopologyRule) -> frozenset[str]:
        """What a spread of this class ranges over: domains of nodes that count for it, and of what it could buy."""
        also = frozenset(domain.domain for domain in self._unforeseen if domain.rule == rule.identity)
        return self._inhabited(rule) | self._universe(pod_class, rule.key) | also

    def _inhabited(self, rule: TopologyRule) -> frozenset[str]:
        """The domains of nodes that exist and count."""
        return frozenset(
            view.labels[rule.key] for view in self._nodes if rule.key in view.labels and rule.nodes.admits(view)
        )

    def _reachable(self, key: str, pod_class: PodClass) -> frozenset[str]:
        """The domains of what the class could buy, and of nodes that exist and that its node affinity selects."""
        views = (view for view in self._nodes if not view.is_leaving and key in view.labels)
        standing = (view.labels[key] for view in views if any(term.matches(view.labels) for term in pod_class.terms))
        return self._universe(pod_class, key).union(standing)

    def _count_running(self, namespaces: Namespaces) -> None:
        """Count the pods of existing nodes, and note whom their required anti-affinity keeps away."""
        for view in self._nodes:
            apart = view.derived(keeping_apart)
            selecting = (rule for pod in apart.others for rule in required_anti_affinity(pod, namespaces))
            for rule in (*apart.rules, *selecting):
                identity = rule.identity, frozenset[str]()
                if identity not in self._by_identity:
                    self._by_identity[identity] = self._new(rule)
                group = self._by_identity[identity]
                group.is_hard = True
                if rule.key in view.labels:
                    group.add_owners(view.labels[rule.key], 1)
        running = RunningPods(self._nodes)
        for group in self:
            if group.is_asked or group.rule.key != HOSTNAME:
                running.count(group)
