"""The counts of every topology rule of a problem, and how many more pods they let into a domain (kube-scheduler
PodTopologySpread and InterPodAffinity).

Rules bind in both directions, because kube-scheduler may bind the pods of a plan in any order:

- a pod obeys the rules that it owns;
- a pod that a required anti-affinity of another pod selects keeps away from that pod;
- a pod that the spread of another pod counts must not push a domain where such an owner is over its skew. While owners
  are still to be placed, the pods that they count are kept balanced too, as long as that costs no placement
  (``cautious``).

Preferred rules bind their owner until it gives them up, and never bind others.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.topology_rules import ALL_NODES, NodeFilter, TopologyRule
from joinery.decisions.scheduling.pools.residents import NO_RESIDENTS, Residents
from joinery.decisions.scheduling.topology.affinity import AffinityGroup
from joinery.decisions.scheduling.topology.class_rules import ClassRules
from joinery.decisions.scheduling.topology.daemons import Counts, DaemonCounts, Newcomer
from joinery.decisions.scheduling.topology.groups import UNLIMITED, SavedCounts, TopologyGroup, parts
from joinery.decisions.scheduling.topology.rule_groups import RuleGroups, UnforeseenDomain, Universe
from joinery.decisions.scheduling.topology.spread import SpreadGroup
from joinery.objects.karpenter.labels import HOSTNAME
from joinery.objects.kubernetes.core import Namespace
from joinery.objects.snapshot.nodes import NodeView


@dataclass(frozen=True, eq=False, slots=True)
class Record:
    """What was counted for pods that were placed, so that exactly that can be taken back.

    count     how many pods of the class (negative: they were taken back)
    counted   the groups that count them, and in which domain; in each of those that are left to a node
    owned     the same of groups of which they are owners
    along     spreads with a domain and a number, for DaemonSets' pods of a new node that came with them
    """

    pod_class: PodClass
    count: int
    counted: tuple[tuple[TopologyGroup, str], ...]
    owned: tuple[tuple[TopologyGroup, str], ...]
    along: tuple[tuple[SpreadGroup, str, int], ...] = ()


class Topology:
    """What the rules of a problem allow, given the counts so far.

    unforeseen   domains that earlier packings opened without having counted them
    daemons      the DaemonSets' pods that new nodes bring
    """

    def __init__(
        self,
        classes: Sequence[PodClass],
        nodes: Sequence[NodeView],
        namespaces: Sequence[Namespace],
        universe: Universe,
        unforeseen: Iterable[UnforeseenDomain] = (),
        residents: Residents = NO_RESIDENTS,
    ) -> None:
        self.unforeseen = tuple(unforeseen)
        self._groups = RuleGroups(classes, nodes, namespaces, universe, self.unforeseen, residents)
        self._with_owners = self._groups.with_owners
        self._of_class: dict[PodClass, ClassRules] = {}
        self.daemons = DaemonCounts(self._groups, residents)

    # --- the rules ---

    @property
    def rules(self) -> Mapping[PodClass, tuple[TopologyRule, ...]]:
        """By class: the rules that it owns, hard ones first."""
        return self._groups.rules

    def group(self, rule: TopologyRule) -> TopologyGroup:
        """The counts of the rule, which is one of a class of this topology."""
        return self._groups.of(rule)

    def selected(self, rules: Iterable[TopologyRule]) -> Sequence[PodClass]:
        """The classes that some of the rules count."""
        return self._groups.selected(rules)

    def binding(self, pod_class: PodClass) -> ClassRules:
        """The rules that bind the class."""
        bound = self._of_class.get(pod_class)
        if bound is None:
            bound = self._of_class[pod_class] = ClassRules.of(pod_class, self._groups)
        return bound

    def concerns(self, pod_class: PodClass) -> bool:
        """Whether it matters to other pods where the class runs: it keeps others away, or a rule counts it.

        Asked of classes too that are not to be placed.
        """
        affinity = pod_class.affinity.pod_anti_affinity
        return affinity is not None or any(group.selects(pod_class) for group in self._groups)

    def only_keeps_apart(self, pod_class: PodClass, rules: Iterable[TopologyRule], key: str) -> bool:
        """Whether rules over the key bind the class, and all, own and others', are required anti-affinity."""
        own = [rule for rule in rules if rule.key == key]
        others = (group.rule for group in self.binding(pod_class).foreign_over(key) if group.is_hard)
        bringing = (group.rule for group in self.daemons.spreads if group.rule.key == key)
        is_required = all(rule.weight is None for rule in own)
        return is_required and {rule.kind for rule in (*own, *others, *bringing)} == {"anti-affinity"}

    # --- what they allow ---

    def allowance(
        self, pod_class: PodClass, rules: Sequence[TopologyRule], key: str, domain: str, *, cautious: bool
    ) -> int:
        """How many more pods of the class the domain may take under these
        rules of its own and under everybody else's. Of several that are left to a node, each must.
        """
        if "," in domain:
            return min(self.allowance(pod_class, rules, key, part, cautious=cautious) for part in parts(domain))
        allowed = UNLIMITED
        for rule in rules:
            if rule.key == key and allowed > 0:
                allowed = min(allowed, self.group(rule).allowed(pod_class, domain))
        bound = self.binding(pod_class)
        if allowed > 0 and self._is_kept_out(bound, key, domain):
            return 0
        for group in bound.binding_over(key):
            if allowed > 0:
                allowed = min(allowed, group.allowed_by_owners(domain, cautious=cautious))
        return allowed

    def most_in_domain(self, pod_class: PodClass, rules: Iterable[TopologyRule], key: str) -> int:
        """How many more pods of the class any one domain may take at most, whatever is there already."""
        own = (self.group(rule) for rule in rules if rule.key == key)
        return min((group.most_in_domain for group in own if group.selects(pod_class)), default=UNLIMITED)

    def _is_kept_out(self, bound: ClassRules, key: str, domain: str) -> bool:
        """Whether pods in the domain keep the class away by their required anti-affinity."""
        owning = self._with_owners.get((key, domain))
        if not owning:
            return False
        foreign = bound.foreign_over(key)
        if len(owning) <= len(foreign):
            return any(group.selects(bound.pod_class) and group not in bound.hard for group in owning)
        return any(group in owning for group in foreign)

    def unfilled(self, pod_class: PodClass, rules: Iterable[TopologyRule], hosts: Sequence[str]) -> Sequence[int]:
        """The positions of hosts that rules of its own over hosts have not closed to the class; others' are not asked.

        Most of thousands of hosts are closed, and to see that here costs least.
        """
        left: Sequence[int] = range(len(hosts))
        for rule in rules:
            if rule.key == HOSTNAME:
                left = self.group(rule).open_among(pod_class, hosts, left)
        return left

    def open_hosts(self, pod_class: PodClass, rules: Sequence[TopologyRule], hosts: Sequence[str]) -> Sequence[int]:
        """The positions of the hosts that may take one more pod of the class (``allowance``).

        Where all rules keep pods apart, which counts they ask for is enough.
        """
        left = self.hosts_without_foes(pod_class, rules, hosts)
        bound = self.binding(pod_class)
        others = (rule for rule in rules if rule.key == HOSTNAME and rule.kind != "anti-affinity")
        if next(others, None) is None and not bound.binding_over(HOSTNAME):
            return left
        allowances = ((at, self.allowance(pod_class, rules, HOSTNAME, hosts[at], cautious=False)) for at in left)
        return [position for position, allowed in allowances if allowed > 0]

    def hosts_without_foes(
        self, pod_class: PodClass, rules: Sequence[TopologyRule], hosts: Sequence[str]
    ) -> Sequence[int]:
        """The positions of the hosts where counts of its own rules let the class in, and no pod keeps it away by a
        required anti-affinity.
        """
        left, bound = self.unfilled(pod_class, rules, hosts), self.binding(pod_class)
        if not bound.foreign_over(HOSTNAME):
            return left
        return [position for position in left if not self._is_kept_out(bound, HOSTNAME, hosts[position])]

    def must_gather(self, pod_class: PodClass, rules: Iterable[TopologyRule]) -> bool:
        """Whether by these rules the class must gather on one host and none is chosen yet."""
        groups = (self.group(rule) for rule in rules if rule.key == HOSTNAME)
        return any(isinstance(group, AffinityGroup) and group.may_begin(pod_class) for group in groups)

    def neighbouring(self, classes: Iterable[PodClass], key: str) -> frozenset[str]:
        """The domains of the key in which there are pods that the required
        affinity of one of these classes wants to be near.
        """
        groups = (group for pod_class in classes for group in self.binding(pod_class).hard if group.rule.key == key)
        affinities = (group for group in groups if isinstance(group, AffinityGroup))
        return frozenset(domain for group in affinities for domain, count in group.counts.items() if count)

    def pressure(
        self, pod_class: PodClass, rules: Iterable[TopologyRule], key: str, domain: str, *, ahead: bool = False
    ) -> int:
        """How many pods in the domain its own spreads count, or hard spreads of others: pods are dealt to where this is
        least.

        ``ahead``: also pods that hard affinities of others count, so that there are neighbours in every domain.
        """
        groups = [self.group(rule) for rule in rules if rule.key == key and rule.kind == "spread"]
        others = self.binding(pod_class).binding_over(key)
        groups += [group for group in others if isinstance(group, SpreadGroup) and group not in groups]
        if ahead:
            groups += [group for group in others if isinstance(group, AffinityGroup)]
        return sum(group.match_num(domain) for group in groups)

    # --- counting ---

    def record(  # noqa: PLR0913
        self,
        pod_class: PodClass,
        rules: Sequence[TopologyRule],
        domains: Mapping[str, str],
        count: int,
        counts: Counts,
        *,
        newcomer: Newcomer | None = None,
    ) -> Record:
        """Count pods of the class on a node.

        rules      those of its rules that it keeps on this try
        domains    the node's domain by topology key, as far as it is known
        count      how many pods; negative to take them back
        counts     whether a spread's filter admits the node
        newcomer   the new node, where it is one and spreads count the DaemonSets' pods that it brings

        Returns what was counted, for ``erase``.
        """
        kept, bound = {self.group(rule) for rule in rules}, self.binding(pod_class)
        counted: list[tuple[TopologyGroup, str]] = []
        owned: list[tuple[TopologyGroup, str]] = []
        for group, is_hard in bound.own.items():
            domain = domains.get(group.rule.key)
            if domain is None:
                continue
            if is_hard and group in kept:
                owned += [(group, part) for part in parts(domain)]
            if group.selects(pod_class) and counts(group.rule.nodes):
                counted += [(group, part) for part in parts(domain)]
        for group in bound.others:
            domain = domains.get(group.rule.key)
            nodes = group.rule.nodes
            if domain is not None and group.is_asked and (nodes is ALL_NODES or counts(nodes)):
                counted += [(group, part) for part in parts(domain)]
        along = tuple(self.daemons.brought(newcomer, domains, counts)) if newcomer else ()
        record = Record(pod_class, count, tuple(counted), tuple(owned), along)
        self._book(record, 1)
        return record

    def erase(self, record: Record) -> None:
        """Take back exactly what was counted."""
        self._book(record, -1)

    def count_again(self, record: Record) -> None:
        """Count what was erased."""
        self._book(record, 1)

    def _book(self, record: Record, times: int) -> None:
        count = record.count * times
        for group in self.binding(record.pod_class).hard:
            group.awaited -= count
        for group, domain in record.counted:
            group.add(domain, count)
        for group, domain in record.owned:
            group.add_owners(domain, count)
        for spread, domain, number in record.along:
            spread.add(domain, number * times)
            spread.add_newcomer(domain, times)

    def close_hosts(self, hosts: Callable[[NodeFilter], Iterable[str]]) -> bool:
        """Let hard spreads over hosts range over these hosts, now that no more will come. Whether there are such
        spreads.

        Until then one more host may come, which would be empty, so such spreads compare with 0.
        """
        spreads = [group for group in self._groups if isinstance(group, SpreadGroup) and group.is_hard]
        over_hosts = [group for group in spreads if group.rule.key == HOSTNAME]
        for group in over_hosts:
            group.range_over(hosts(group.rule.nodes))
        return bool(over_hosts)

    def reopen_hosts(self) -> None:
        """Count on one more host again."""
        self.close_hosts(lambda _: ())

    # --- all counts at once ---

    def saved(self) -> Mapping[TopologyGroup, SavedCounts]:
        """All counts, to be restored later or compared."""
        return {group: group.saved() for group in self._groups}

    def restore(self, saved: Mapping[TopologyGroup, SavedCounts]) -> None:
        """Go back to these counts."""
        for group, counts in saved.items():
            group.restore(counts)

    def differs(self, saved: Mapping[TopologyGroup, SavedCounts]) -> bool:
        """Whether any count by domain has changed, so that rules that held may not hold any more.

        Counts by host may change: which node of a domain a pod is on is checked as it is put there. Spreads that count
        DaemonSets' pods change with the number of nodes; they need only be even.
        """
        return self.is_uneven or any(
            group.rule.key != HOSTNAME
            and group not in self.daemons.spreads
            and (group.counts, group.owners) != (before.counts, before.owners)
            for group, before in saved.items()
        )

    @property
    def is_uneven(self) -> bool:
        """Whether the DaemonSets' pods that new nodes bring break a spread."""
        return any(group.is_uneven for group in self.daemons.spreads)

    @property
    def is_broken(self) -> bool:
        """Whether some spread or anti-affinity over domains that must hold does not."""
        hard = (group for group in self._groups if group.is_hard and group.rule.key != HOSTNAME)
        return any(group.is_uneven if isinstance(group, SpreadGroup) else group.is_broken for group in hard)
