"""The counts of every topology rule of a problem, kept as pods are placed and taken back.

``Ledger`` says who is counted where; ``topology.Topology`` says what those counts allow.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from joinery.apis.core import Namespace
from joinery.apis.labels import HOSTNAME, ZONE
from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.constraints.topology_rules import NodeFilter, TopologyRule, required_anti_affinity, rules_of
from joinery.scheduling.firstfit.topology_groups import TopologyGroup, UnforeseenDomain, admits, parts
from joinery.scheduling.pools.residents import Residents
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
    tallies   the counters that they were added to, and under which domain; under each of those that are left to a node
    along     the same with a number, for DaemonSets' pods of a new node that came with them
    """

    pod_class: PodClass
    count: int
    tallies: tuple[tuple[Counter[str], str], ...]
    along: tuple[tuple[Counter[str], str, int], ...] = ()


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
        self._watching: dict[PodClass, tuple[NodeFilter, ...]] = {}
        self._strange: dict[PodClass, tuple[TopologyGroup, ...]] = {}
        self._meeting: dict[object, frozenset[str]] = {}
        self._classes = classes
        self.rules: dict[PodClass, tuple[TopologyRule, ...]] = {}
        for pod_class in classes:
            self.rules[pod_class] = (*rules_of(pod_class, namespaces), *_same_zone(pod_class))
            for rule in self.rules[pod_class]:
                self._adopt(rule, pod_class)
        self._count_bound(namespaces)
        self._resident_groups = tuple(group for group in self._groups.values() if group.residents)
        spreads = [group for group in self._resident_groups if group.is_hard and group.rule.kind == "spread"]
        self.counting_daemons = tuple(group for group in spreads if group.rule.key != HOSTNAME)
        for group in self._resident_groups:
            if group.rule.key == HOSTNAME:
                group.counts[ANY_NEW_NODE] = min(group.residents.get(pool.name, 0) for pool in residents.pools)

    def _adopt(self, rule: TopologyRule, pod_class: PodClass) -> None:
        domains = self._domains(pod_class, rule) if rule.kind == "spread" and rule.key != HOSTNAME else frozenset()
        group = self._groups.get((rule.identity, domains))
        if group is None:
            group = self._groups[rule.identity, domains] = TopologyGroup(
                rule, domains, residents=self._residents.counted(rule)
            )
            if group.residents and domains and rule.min_domains <= 1:
                first = self._residents.of_first_node(rule, pod_class)
                group.awaited_daemons = dict.fromkeys(domains - self._inhabited(rule), first)
            if group.residents and domains:
                group.brought = self._residents.by_type(rule)
        self._group_of[rule] = group
        if rule.weight is None:
            group.is_hard = True
            group.counts_owners |= group.selects(pod_class)
            group.awaited += len(pod_class.names)

    def _domains(self, pod_class: PodClass, rule: TopologyRule) -> frozenset[str]:
        """What a spread of this class ranges over: domains of nodes that count for it, and of what it could buy."""
        also = frozenset(domain.domain for domain in self.unforeseen if domain.rule == rule.identity)
        return self._inhabited(rule) | self._universe(pod_class, rule.key) | also

    def _inhabited(self, rule: TopologyRule) -> frozenset[str]:
        """The domains of nodes that exist and count."""
        return frozenset(
            view.labels[rule.key] for view in self._nodes if rule.key in view.labels and admits(rule.nodes, view)
        )

    def _count_bound(self, namespaces: Sequence[Namespace]) -> None:
        """Count the pods of existing nodes, and note whom their required anti-affinity keeps away."""
        for view in self._nodes:
            for pod in view.pods:
                for rule in required_anti_affinity(pod, namespaces):
                    group = self._groups.setdefault((rule.identity, frozenset()), TopologyGroup(rule))
                    group.is_hard = True
                    if rule.key in view.labels:
                        group.owners[view.labels[rule.key]] += 1
        for group in self._groups.values():
            group.count(self._nodes)

    def close_hosts(self, hosts: Callable[[NodeFilter], Iterable[str]]) -> bool:
        """Let hard spreads over hosts range over these hosts, now that no more will come. Whether there are such
        spreads.

        Until then one more host may come, which would be empty, so such spreads compare with 0.
        """
        spreads = [g for g in self._groups.values() if g.is_hard and (g.rule.kind, g.rule.key) == ("spread", HOSTNAME)]
        for group in spreads:
            group.domains = frozenset(hosts(group.rule.nodes))
        return bool(spreads)

    def reopen_hosts(self) -> None:
        """Count on one more host again."""
        self.close_hosts(lambda _: ())

    def group(self, rule: TopologyRule) -> TopologyGroup:
        """The counts of the rule, which is one of a class of this topology."""
        return self._group_of[rule]

    def foreign(self, pod_class: PodClass) -> tuple[TopologyGroup, ...]:
        """Groups by which others bind the class: spreads, affinities and anti-affinities that count it.

        Its own preference may be somebody else's hard rule. Then it still binds the class once the class has given it
        up.
        """
        foreign = self._foreign.get(pod_class)
        if foreign is None:
            own = [self.group(rule) for rule in self.rules[pod_class]]
            preferred = [g for g in own if g.is_hard and g.rule.kind != "affinity" and not self._is_held(g, pod_class)]
            alike = [g for g in dict.fromkeys(preferred) if g.selects(pod_class)]
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

    def _is_held(self, group: TopologyGroup, pod_class: PodClass) -> bool:
        return any(rule.weight is None and self.group(rule) is group for rule in self.rules[pod_class])

    def _strangers(self, pod_class: PodClass) -> tuple[TopologyGroup, ...]:
        """Groups that count the class without being its own in any way."""
        groups = self._strange.get(pod_class)
        if groups is None:
            own = {self.group(rule) for rule in self.rules[pod_class]}
            groups = tuple(g for g in self._groups.values() if g not in own and g.selects(pod_class))
            self._strange[pod_class] = groups
        return groups

    def watching(self, pod_class: PodClass) -> tuple[NodeFilter, ...]:
        """The filters of hard spreads of others that count the class only on nodes with certain labels."""
        filters = self._watching.get(pod_class)
        if filters is None:
            spreads = (g for g in self._strangers(pod_class) if g.is_hard and g.rule.kind == "spread")
            filters = tuple({g.rule.nodes.identity: g.rule.nodes for g in spreads if g.rule.nodes.terms}.values())
            self._watching[pod_class] = filters
        return filters

    def minds(self, pod_class: PodClass) -> bool:
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

    def furnish(self, host: str, pool: str) -> None:
        """Count the DaemonSets' pods of a new node that has no other pods yet."""
        for group in self._resident_groups:
            if group.rule.key == HOSTNAME:
                group.counts[host] = group.residents.get(pool, 0)

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
        active = [self.group(rule) for rule in rules]
        tallies: list[tuple[Counter[str], str]] = []
        seen: list[TopologyGroup] = []
        for rule in self.rules[pod_class]:
            group = self.group(rule)
            domain = domains.get(rule.key)
            if domain is None or group in seen:
                continue
            seen.append(group)  # a rule said twice, hard and soft perhaps, counts a pod once
            if rule.weight is None and group in active:
                tallies += [(group.owners, part) for part in parts(domain)]
            if group.selects(pod_class) and counts(group.rule.nodes):
                tallies += [(group.counts, part) for part in parts(domain)]
        for group in self._strangers(pod_class):
            domain = domains.get(group.rule.key)
            if domain is not None and counts(group.rule.nodes):
                tallies += [(group.counts, part) for part in parts(domain)]
        entry = Entry(
            pod_class, count, tuple(tallies), tuple(self._brought(newcomer, domains, counts)) if newcomer else ()
        )
        self._book(entry, 1)
        return entry

    def _brought(
        self, newcomer: Newcomer, domains: Mapping[str, str], counts: Counts
    ) -> Iterator[tuple[Counter[str], str, int]]:
        for group in self.counting_daemons:
            domain = domains.get(group.rule.key)
            if domain and group.rule.key not in newcomer.pinned and counts(group.rule.nodes):
                brought = group.brought.get(newcomer.pool)
                yield group.counts, domain, int(brought[newcomer.row]) if brought is not None else 0
                yield group.newcomers, domain, 1

    def erase(self, entry: Entry) -> None:
        """Take back exactly what was noted."""
        self._book(entry, -1)

    def _book(self, entry: Entry, times: int) -> None:
        count = entry.count * times
        for rule in self.rules[entry.pod_class]:
            if rule.weight is None:
                self.group(rule).awaited -= count
        for tally, domain in entry.tallies:
            tally[domain] += count
        for tally, domain, number in entry.along:
            tally[domain] += number * times

    def saved(self) -> Saved:
        """All counts, to be restored later or compared."""
        return {
            identity: (Counter(group.counts), Counter(group.owners), Counter(group.newcomers), group.awaited)
            for identity, group in self._groups.items()
        }

    def restore(self, saved: Saved) -> None:
        """Go back to these counts."""
        for identity, (counts, owners, newcomers, awaited) in saved.items():
            group = self._groups[identity]
            for tally, before in ((group.counts, counts), (group.owners, owners), (group.newcomers, newcomers)):
                tally.clear()  # entries hold on to the tally itself
                tally.update(before)
            group.awaited = awaited

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
