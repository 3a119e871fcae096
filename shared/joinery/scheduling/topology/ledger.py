"""The counts of every topology rule of a problem, kept as pods are placed and taken back.

``Ledger`` says who is counted where; ``Topology`` says what those counts allow.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

from joinery.apis.core import Namespace
from joinery.apis.labels import HOSTNAME, ZONE
from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.constraints.selectors import Namespaces
from joinery.scheduling.constraints.topology_rules import (
    ALL_NODES,
    NodeFilter,
    TopologyRule,
    required_anti_affinity,
    rules_of,
)
from joinery.scheduling.pools.residents import Residents
from joinery.scheduling.topology.bound_pods import BoundPods
from joinery.scheduling.topology.groups import TopologyGroup, UnforeseenDomain, admits, counts_class, parts
from joinery.scheduling.topology.selection import Selection, numbers_of
from joinery.state.nodes import NodeView

ANY_NEW_NODE = ""
"""The host that stands for any new node without pods of the plan."""

_NOBODY = Residents()

Universe = Callable[[PodClass, str], frozenset[str]]
"""The domains of a topology key that a class can reach through some pool's available offerings."""

Counts = Callable[[NodeFilter], bool]
"""Whether the node that pods go to is one that a spread with that filter counts."""

Saved = Mapping[object, tuple[Counter[str], Counter[str], Counter[str], int]]
"""By group: its counts, owners and newcomers by domain, and how many owners are awaited."""


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """What was noted for pods that were placed, so that exactly that can be taken back.

    count     how many pods of the class (negative: they were taken back)
    counted   the groups that count them, and in which domain; in each of those that are left to a node
    owned     the same of groups of which they are owners
    along     groups with a domain and a number, for DaemonSets' pods of a new node that came with them
    """

    pod_class: PodClass
    count: int
    counted: tuple[tuple[TopologyGroup, str], ...]
    owned: tuple[tuple[TopologyGroup, str], ...]
    along: tuple[tuple[TopologyGroup, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A new node that pods are placed on.

    pool     the name of its pool
    row      the instance type that it counts on, as a row of the pool's market
    pinned   the topology keys over which earlier pods on it settled its domain, and brought its DaemonSets' pods there
    """

    pool: str
    row: int
    pinned: frozenset[str]


class Ledger:
    """Which rules the classes and the running pods own, and how many of the pods that those rules count are where.

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
        self._strange: dict[PodClass, tuple[TopologyGroup, ...]] = {}
        self._meeting: dict[TopologyGroup, frozenset[str]] = {}
        self._keepers: dict[tuple[str, str], dict[TopologyGroup, None]] = defaultdict(dict)
        self._owning: dict[TopologyGroup, list[PodClass]] = defaultdict(list)
        self._classes = classes
        self._numbers = {pod_class: number for number, pod_class in enumerate(classes)}
        self._selection = Selection([pod_class.example for pod_class in classes])
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
            bits = self._selection.of(rule.matchers)
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
            bound.count(group)
            self._note_keepers(group)

    def _note_keepers(self, group: TopologyGroup, domains: Iterable[str] = ()) -> None:
        """Note where owners of a required anti-affinity are: they keep others out of the domain."""
        if group.rule.kind == "anti-affinity":
            for domain in domains or group.owners:
                if group.owners[domain] > 0:
                    self._keepers[group.rule.key, domain][group] = None
                else:
                    self._keepers[group.rule.key, domain].pop(group, None)

    def is_kept_out(self, pod_class: PodClass, key: str, domain: str) -> bool:
        """Whether pods in the domain keep the class away by their required anti-affinity."""
        keepers = self._keepers.get((key, domain))
        if not keepers:
            return False
        foreign = self.foreign_over(pod_class, key)
        if len(keepers) <= len(foreign):
            own = self._own_hard(pod_class)
            return any(group.selects(pod_class) and group not in own for group in keepers)
        return any(group in keepers for group in foreign)

    def close_hosts(self, hosts: Callable[[NodeFilter], Iterable[str]]) -> bool:
        """Let hard spreads over hosts range over these hosts, now that no more will come. Whether there are such
        spreads.

        Until then one more host may come, which would be empty, so such spreads compare with 0.
        """
        spreads = [g for g in self._groups.values() if g.is_hard and (g.rule.kind, g.rule.key) == ("spread", HOSTNAME)]
        for group in spreads:
            group.range_over(hosts(group.rule.nodes))
        return bool(spreads)

    def reopen_hosts(self) -> None:
        """Count on one more host again."""
        self.close_hosts(lambda _: ())

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
            foreign = self._foreign[pod_class] = (*self._strangers(pod_class), *alike)
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

    def _own_hard(self, pod_class: PodClass) -> frozenset[TopologyGroup]:
        """The groups of the class's own hard rules."""
        groups = self._hard.get(pod_class)
        if groups is None:
            hard = (rule for rule in self.rules[pod_class] if rule.weight is None)
            groups = self._hard[pod_class] = frozenset(map(self.group, hard))
        return groups

    def _strangers(self, pod_class: PodClass) -> tuple[TopologyGroup, ...]:
        """Groups that count the class without being its own in any way."""
        groups = self._strange.get(pod_class)
        if groups is None:
            own = {self.group(rule) for rule in self.rules.get(pod_class, ())}
            number = self._numbers[pod_class]
            groups = self._strange[pod_class] = tuple(g for g in self._selecting[number] if g not in own)
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
            spreads = (g for g in self._strangers(pod_class) if g.is_hard and g.rule.kind == "spread")
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

    def count_daemons(self, host: str, pool: str) -> None:
        """Count the DaemonSets' pods of a new node that has no other pods yet."""
        for group in self._resident_groups:
            if group.rule.key == HOSTNAME:
                group.add(host, group.residents.get(pool, 0) - group.counts[host])

    def record(  # noqa: PLR0913
        self,
        pod_class: PodClass,
        rules: Sequence[TopologyRule],
        domains: Mapping[str, str],
        count: int,
        counts: Counts,
        *,
        newcomer: Newcomer | None = None,
    ) -> Entry:
        """Count pods of the class on a node.

        rules      those of its rules that it keeps on this try
        domains    the node's domain by topology key, as far as it is known
        count      how many pods; negative to take them back
        counts     whether a spread's filter admits the node
        newcomer   the new node, where it is one and spreads count the DaemonSets' pods that it brings

        Returns what was noted, for ``erase``.
        """
        active = {self.group(rule) for rule in rules}
        counted: list[tuple[TopologyGroup, str]] = []
        owned: list[tuple[TopologyGroup, str]] = []
        seen: set[TopologyGroup] = set()
        for rule in self.rules[pod_class]:
            group = self.group(rule)
            domain = domains.get(rule.key)
            if domain is None or group in seen:
                continue
            seen.add(group)  # a rule said twice, hard and soft perhaps, counts a pod once
            if rule.weight is None and group in active:
                owned += [(group, part) for part in parts(domain)]
            if group.selects(pod_class) and counts(group.rule.nodes):
                counted += [(group, part) for part in parts(domain)]
        for group in self._strangers(pod_class):
            domain = domains.get(group.rule.key)
            nodes = group.rule.nodes
            if domain is not None and group.is_asked and (nodes is ALL_NODES or counts(nodes)):
                counted += [(group, part) for part in parts(domain)]
        along = tuple(self._brought(newcomer, domains, counts)) if newcomer else ()
        entry = Entry(pod_class, count, tuple(counted), tuple(owned), along)
        self._book(entry, 1)
        return entry

    def _brought(
        self, newcomer: Newcomer, domains: Mapping[str, str], counts: Counts
    ) -> Iterator[tuple[TopologyGroup, str, int]]:
        for group in self.counting_daemons:
            domain = domains.get(group.rule.key)
            if domain and group.rule.key not in newcomer.pinned and counts(group.rule.nodes):
                brought = group.brought.get(newcomer.pool)
                yield group, domain, int(brought[newcomer.row]) if brought is not None else 0

    def erase(self, entry: Entry) -> None:
        """Take back exactly what was noted."""
        self._book(entry, -1)

    def _book(self, entry: Entry, times: int) -> None:
        count = entry.count * times
        for rule in self.rules[entry.pod_class]:
            if rule.weight is None:
                self.group(rule).awaited -= count
        for group, domain in entry.counted:
            group.add(domain, count)
        for group, domain in entry.owned:
            group.owners[domain] += count
            self._note_keepers(group, (domain,))
        for group, domain, number in entry.along:
            group.add(domain, number * times)
            group.add_newcomer(domain, times)

    def saved(self) -> Saved:
        """All counts, to be restored later or compared."""
        return {
            identity: (Counter(group.counts), Counter(group.owners), Counter(group.newcomers), group.awaited)
            for identity, group in self._groups.items()
        }

    def restore(self, saved: Saved) -> None:
        """Go back to these counts."""
        self._keepers.clear()
        for identity, (counts, owners, newcomers, awaited) in saved.items():
            group = self._groups[identity]
            group.restore(counts, owners, newcomers, awaited)
            self._note_keepers(group)

    @property
    def is_uneven(self) -> bool:
        """Whether the DaemonSets' pods that new nodes bring break a spread."""
        return any(group.is_uneven for group in self.counting_daemons)

    @property
    def is_broken(self) -> bool:
        """Whether some spread or anti-affinity over domains that must hold does not."""
        hard = [group for group in self._groups.values() if group.is_hard and group.rule.key != HOSTNAME]
        return any(group.is_uneven if group.rule.kind == "spread" else group.is_broken for group in hard)

    def differs(self, saved: Saved) -> bool:
        """Whether any count by domain has changed, so that rules that held may not hold any more.

        Counts by host may change: which node of a domain a pod is on is checked as it is put there. Spreads that count
        DaemonSets' pods change with the number of nodes; they need only be even.
        """
        listed = [(self._groups[identity], *before) for identity, before in saved.items()]
        return self.is_uneven or any(
            group.rule.key != HOSTNAME
            and group not in self.counting_daemons
            and (group.counts, group.owners) != (counts, owners)
            for group, counts, owners, _, _ in listed
        )


def _same_zone(pod_class: PodClass) -> tuple[TopologyRule, ...]:
    """Pods that share an unbound claim follow the first of them into its zone: that is where the volume will be."""
    return tuple(TopologyRule("affinity", ZONE, (), claim=name) for name in pod_class.volumes.unbound)
