"""The counts of every topology rule of a problem, kept as pods are placed and taken back.

``RuleGroups`` says which rules there are; ``Ledger`` who is counted where; ``Topology`` what those counts allow.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.topology_rules import ALL_NODES, NodeFilter, TopologyRule
from joinery.decisions.scheduling.topology.groups import TopologyGroup, parts
from joinery.decisions.scheduling.topology.rule_groups import RuleGroups
from joinery.objects.karpenter.labels import HOSTNAME

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


class Ledger(RuleGroups):
    """How many of the pods that the rules count are where."""

    @cached_property
    def _keepers(self) -> dict[tuple[str, str], dict[TopologyGroup, None]]:
        """By key and domain, the groups of required anti-affinity with owners there: these keep others out."""
        keepers: dict[tuple[str, str], dict[TopologyGroup, None]] = defaultdict(dict)
        for group in self._groups.values():
            for domain in group.owners if group.rule.kind == "anti-affinity" else ():
                if group.owners[domain] > 0:
                    keepers[group.rule.key, domain][group] = None
        return keepers

    def _note_keepers(self, group: TopologyGroup, domain: str) -> None:
        """Note whether owners of a required anti-affinity are in the domain."""
        if group.rule.kind == "anti-affinity":
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
        for group in self._groups_of_others(pod_class):
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
            self._note_keepers(group, domain)
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
        for identity, (counts, owners, newcomers, awaited) in saved.items():
            self._groups[identity].restore(counts, owners, newcomers, awaited)
        self.__dict__.pop("_keepers", None)

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
