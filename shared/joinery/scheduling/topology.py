"""Counts per domain, and how many more pods of a class a domain may take.

One ``Group`` keeps the counts of one rule, for all classes that say the same and, of a spread, can reach the same domains: the
emptiest domain is another one for pods that a taint keeps out of it. Rules bind in both directions, because kube-scheduler judges the final state as
the pods of a plan arrive in any order:

- a pod obeys the rules it owns;
- a pod that a required anti-affinity of someone else selects keeps away from its owners;
- a pod that the spread of someone else counts must not push a domain where an owner sits over its skew. While such
  owners are still to come, pods they count are kept balanced too, as long as that costs no placement (``cautious``).

Rules about soft terms bind only until they are relaxed, and never others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from joinery.apis.core import Namespace, Pod
from joinery.apis.labels import HOSTNAME, ZONE
from joinery.scheduling.classes import PodClass
from joinery.scheduling.residents import Residents
from joinery.scheduling.rules import NodeFilter, Rule, required_anti_affinity, rules_of
from joinery.scheduling.taints import first_untolerated
from joinery.state.nodes import NodeView
from joinery.state.pods import is_terminating

UNLIMITED = 1 << 30
ANY_NEW_NODE = ""
"""The host that stands for any new node without pods of the plan."""

_NOBODY = Residents()

Universe = Callable[[PodClass, str], frozenset[str]]
"""The domains of a key that a class can reach through some pool's available offerings (design, section 4)."""


@dataclass(frozen=True, slots=True)
class Stray:
    """A domain of a spread (by its rule's identity) that only nodes of the plan itself are in."""

    rule: tuple[object, ...]
    key: str
    domain: str


@dataclass(eq=False)
class Group:
    """One rule's counts: pods it selects by domain, and hard owners by domain. ``awaited``: owners still to be placed.

    ``domains`` are those that a spread ranges over; ``is_hard``: somebody owns it as a rule that must hold. ``residents``: how
    many DaemonSets' pods it counts on a new node, by pool, where it counts any.
    """

    rule: Rule
    domains: frozenset[str] = frozenset()
    counts: Counter[str] = field(default_factory=Counter)
    owners: Counter[str] = field(default_factory=Counter)
    awaited: int = 0
    is_hard: bool = False
    residents: Mapping[str, int] = field(default_factory=dict)
    _selected: dict[int, bool] = field(default_factory=dict)

    def selects(self, pods: PodClass) -> bool:
        known = self._selected.get(id(pods))
        if known is None:
            claim = self.rule.claim
            known = claim in pods.volumes.unbound if claim else self.rule.selects(pods.example)
            self._selected[id(pods)] = known
        return known

    @property
    def least(self) -> int:
        """The smallest count that a spread compares with; 0 with fewer domains than minDomains, or over hosts."""
        if self.rule.key == HOSTNAME or len(self.domains) < self.rule.min_domains:
            return 0
        return min((self.counts[domain] for domain in self.domains), default=0)

    @property
    def is_lonely(self) -> bool:
        """Whether the one pod that the rule counts is an owner: it could begin without a neighbour only as long as there is none."""
        if self.residents:
            return False
        found = 0
        for count in self.counts.values():
            found += count
            if found > 1:
                return False
        return found == 1 and any(self.owners[domain] for domain, count in self.counts.items() if count)

    def ranges_over(self, domain: str) -> bool:
        """Whether pods in that domain are within the spread; every host is."""
        return self.rule.key == HOSTNAME or domain in self.domains


class Topology:
    """All groups of a problem."""

    def __init__(
        self,
        classes: Sequence[PodClass],
        nodes: Sequence[NodeView],
        namespaces: Sequence[Namespace],
        universe: Universe,
        strays: Iterable["Stray"] = (),
        residents: Residents = _NOBODY,
    ) -> None:
        self._residents = residents
        self.strays = tuple(strays)
        self._nodes = nodes
        self._universe = universe
        self._groups: dict[object, Group] = {}
        self._of_rule: dict[int, tuple[Rule, Group]] = {}
        self._foreign: dict[int, tuple[Group, ...]] = {}
        self._foreign_over: dict[tuple[int, str], tuple[Group, ...]] = {}
        self._watching: dict[int, tuple[NodeFilter, ...]] = {}
        self._strange: dict[int, tuple[Group, ...]] = {}
        self._meeting: dict[object, frozenset[str]] = {}
        self._classes = classes
        self.rules: dict[int, tuple[Rule, ...]] = {}
        for pods in classes:
            self.rules[id(pods)] = (*rules_of(pods, namespaces), *_same_zone(pods))
            for rule in self.rules[id(pods)]:
                self._adopt(rule, pods)
        self._count_bound(namespaces)
        self._resident_groups = tuple(group for group in self._groups.values() if group.residents)
        for group in self._resident_groups:
            if group.rule.key == HOSTNAME:
                group.counts[ANY_NEW_NODE] = min(group.residents.get(pool.name, 0) for pool in residents.pools)

    def _adopt(self, rule: Rule, pods: PodClass) -> None:
        domains = self._domains(pods, rule) if rule.kind == "spread" and rule.key != HOSTNAME else frozenset()
        group = self._groups.get((rule.identity, domains))
        if group is None:
            group = self._groups[rule.identity, domains] = Group(rule, domains, residents=self._residents.counted(rule))
        self._of_rule[id(rule)] = (rule, group)
        if rule.weight is None:
            group.is_hard = True
            group.awaited += len(pods.pods)

    def _domains(self, pods: PodClass, rule: Rule) -> frozenset[str]:
        """What a spread of this class ranges over: domains of nodes that count for it, and of what it could buy."""
        existing = frozenset(
            view.labels[rule.key] for view in self._nodes if rule.key in view.labels and admits(rule.nodes, view)
        )
        also = frozenset(stray.domain for stray in self.strays if stray.rule == rule.identity)
        return existing | self._universe(pods, rule.key) | also

    def _count_bound(self, namespaces: Sequence[Namespace]) -> None:
        known = tuple(namespaces)
        for view in self._nodes:
            for pod in view.pods:
                for rule in required_anti_affinity(pod, known):
                    group = self._groups.setdefault((rule.identity, frozenset()), Group(rule))
                    group.is_hard = True
                    if rule.key in view.labels:
                        group.owners[view.labels[rule.key]] += 1
        for group in self._groups.values():
            self._count_group(group)

    def _count_group(self, group: Group) -> None:
        key = group.rule.key
        seen: dict[tuple[str, str], bool] = {}
        for view in self._nodes:
            if key not in view.labels or not admits(group.rule.nodes, view):
                continue
            for pod in view.pods:
                if _is_counted(group.rule, pod) and _selects(group.rule, pod, seen):
                    group.counts[view.labels[key]] += 1

    def group(self, rule: Rule) -> Group:
        """The counts of the rule, which is one of a class of this topology."""
        return self._of_rule[id(rule)][1]

    def foreign(self, pods: PodClass) -> tuple[Group, ...]:
        """Groups by which others bind the class: spreads, affinities and anti-affinities that count it.

        Its own preference may be somebody else's hard rule, and binds it still once it is given up.
        """
        known = self._foreign.get(id(pods))
        if known is None:
            own = [self.group(rule) for rule in self.rules[id(pods)]]
            preferred = [g for g in own if g.is_hard and g.rule.kind != "affinity" and not self._is_held(g, pods)]
            alike = [g for g in dict.fromkeys(preferred) if g.selects(pods)]
            known = self._foreign[id(pods)] = (*self._strangers(pods), *alike)
        return known

    def foreign_over(self, pods: PodClass, key: str) -> tuple[Group, ...]:
        """Those of them that are over this key."""
        known = self._foreign_over.get((id(pods), key))
        if known is None:
            known = tuple(group for group in self.foreign(pods) if group.rule.key == key)
            self._foreign_over[id(pods), key] = known
        return known

    def _is_held(self, group: Group, pods: PodClass) -> bool:
        return any(rule.weight is None and self.group(rule) is group for rule in self.rules[id(pods)])

    def _strangers(self, pods: PodClass) -> tuple[Group, ...]:
        """Groups that count the class without being its own in any way."""
        known = self._strange.get(id(pods))
        if known is None:
            own = {id(self.group(rule)) for rule in self.rules[id(pods)]}
            known = tuple(g for g in self._groups.values() if id(g) not in own and g.selects(pods))
            self._strange[id(pods)] = known
        return known

    def watching(self, pods: PodClass) -> tuple[NodeFilter, ...]:
        """The nodes on which hard spreads of others count the class, where they look at more than taints."""
        known = self._watching.get(id(pods))
        if known is None:
            spreads = (g for g in self._strangers(pods) if g.is_hard and g.rule.kind == "spread")
            known = tuple({g.rule.nodes.identity: g.rule.nodes for g in spreads if g.rule.nodes.terms}.values())
            self._watching[id(pods)] = known
        return known

    def minds(self, pods: PodClass) -> bool:
        """Whether any rule is of the class, or looks at it; the class may be one that is not to be placed."""
        affinity = pods.affinity.pod_anti_affinity
        return affinity is not None or any(group.selects(pods) for group in self._groups.values())

    def keys(self, pods: PodClass, rules: Iterable[Rule]) -> tuple[str, ...]:
        """The keys whose domain must be known where the class goes, hosts apart."""
        keys = {rule.key for rule in rules} | {group.rule.key for group in self.foreign(pods)}
        keys |= {rule.key for rule in self.rules[id(pods)] if self.group(rule).selects(pods)}
        return tuple(sorted(keys - {HOSTNAME}))

    def allowance(self, pods: PodClass, rules: Iterable[Rule], key: str, domain: str, *, cautious: bool) -> int:
        """How many more pods of the class the domain may take under these rules of its own and everybody else's."""
        allowed = UNLIMITED
        for rule in rules:
            if rule.key == key and allowed > 0:
                allowed = min(allowed, self._owned(pods, rule, domain))
        for group in self.foreign_over(pods, key):
            if allowed > 0:
                allowed = min(allowed, counted(group, domain, cautious=cautious))
        return allowed

    def _owned(self, pods: PodClass, rule: Rule, domain: str) -> int:
        group = self.group(rule)
        selects_itself = group.selects(pods)
        if rule.kind == "spread":
            return self._spread(group, rule, pods, domain)
        if rule.kind == "affinity":
            is_met = group.counts[domain] or self._has_residents(group)
            return UNLIMITED if is_met or self._begins_at(group, pods, domain) else 0
        if group.counts[domain] or (selects_itself and group.owners[domain]):
            return 0
        return 1 if selects_itself else UNLIMITED

    def _has_residents(self, group: Group) -> bool:
        """Whether any new node brings along what an affinity wants, into whatever domain it comes; hosts are counted one by one."""
        return group.rule.key != HOSTNAME and 0 < len(self._residents.pools) == len(group.residents)

    def furnish(self, host: str, pool: str) -> None:
        """Count the DaemonSets' pods of a new node that has no others yet."""
        for group in self._resident_groups:
            if group.rule.key == HOSTNAME:
                group.counts[host] = group.residents.get(pool, 0)

    def barring(self, pods: PodClass, rules: Iterable[Rule], pool: str) -> tuple[Rule, ...]:
        """The rules by which the class and the DaemonSets' pods on new nodes of the pool keep apart."""
        if not self._resident_groups and not self._residents.keeping_away:
            return ()
        own = tuple(r for r in rules if r.kind == "anti-affinity" and self.group(r).residents.get(pool))
        theirs = self._residents.keeping_away.get(pool, ())
        return own + tuple(rule for rule in theirs if rule.selects(pods.example))

    def neighbouring(self, classes: Iterable[PodClass], key: str) -> frozenset[str]:
        """The domains in which pods are that some class's required affinity over the key names."""
        rules = [r for c in classes for r in self.rules[id(c)] if (r.kind, r.key, r.weight) == ("affinity", key, None)]
        return frozenset(d for rule in rules for d, count in self.group(rule).counts.items() if count)

    def _spread(self, group: Group, rule: Rule, pods: PodClass, domain: str) -> int:
        if rule.key == HOSTNAME:
            left = rule.max_skew - group.counts[domain]
        else:
            if not group.ranges_over(domain):
                return 0
            left = rule.max_skew + group.least - group.counts[domain]
        if group.selects(pods):
            return max(0, left)
        return UNLIMITED if left >= 0 else 0

    def may_begin(self, group: Group, pods: PodClass) -> bool:
        """Whether this is the first of a self-affine group: nobody matches anywhere, and the pod matches itself.

        Where several terms are required, nobody may match where any of them looks.
        """
        if not group.selects(pods) or group.residents or any(group.counts.values()):
            return False
        required = (r for r in self.rules[id(pods)] if r.kind == "affinity" and r.weight is None and not r.claim)
        return not group.is_hard or not any(any(self.group(rule).counts.values()) for rule in required)

    def _begins_at(self, group: Group, pods: PodClass, domain: str) -> bool:
        """Whether the group may begin in that domain: where all its owners can go, if there is such a domain."""
        if not self.may_begin(group, pods):
            return False
        meeting = self._meeting_places(group.rule)
        return not meeting or domain in meeting

    def _meeting_places(self, rule: Rule) -> frozenset[str]:
        """The domains that every class with this hard rule can reach; none are sought over hosts."""
        if rule.key == HOSTNAME or rule.weight is not None:
            return frozenset()
        if rule.identity not in self._meeting:
            owners = (
                c
                for c in self._classes
                if any(r.identity == rule.identity and r.weight is None for r in self.rules[id(c)])
            )
            reached = [self._universe(pods, rule.key) | self._standing(pods, rule.key) for pods in owners]
            self._meeting[rule.identity] = frozenset.intersection(*reached) if reached else frozenset()
        return self._meeting[rule.identity]

    def _standing(self, pods: PodClass, key: str) -> frozenset[str]:
        """The domains of nodes that exist and that the class may run on by its own node affinity."""
        views = (view for view in self._nodes if not view.is_leaving and key in view.labels)
        return frozenset(v.labels[key] for v in views if any(term.matches(v.labels) for term in pods.terms))

    def pressure(self, pods: PodClass, rules: Iterable[Rule], key: str, domain: str, *, ahead: bool = False) -> int:
        """How many pods the domain has already that its own spreads count, or others' that must hold: the emptier the better.

        ``ahead``: also those that others must be near to.
        """
        groups = [self.group(rule) for rule in rules if rule.key == key and rule.kind == "spread"]
        groups += [
            group
            for group in self.foreign_over(pods, key)
            if group.rule.kind == "spread" and group.is_hard and group not in groups
        ]
        if ahead:
            groups += [
                group for group in self.foreign_over(pods, key) if group.rule.kind == "affinity" and group.is_hard
            ]
        return sum(group.counts[domain] for group in groups)

    def record(
        self, pods: PodClass, rules: Sequence[Rule], domains: Mapping[str, str], count: int, counts: "Counts"
    ) -> "Entry":
        """Note ``count`` pods of the class (negative: take them back) where keys have these domains.

        ``counts`` says whether a node filter admits the target, for spreads that leave some nodes out. Returns what was noted.
        """
        active = [self.group(rule) for rule in rules]
        tallies: list[tuple[Counter[str], str]] = []
        seen: list[Group] = []
        for rule in self.rules[id(pods)]:
            group = self.group(rule)
            domain = domains.get(rule.key)
            if not domain or group in seen:
                continue
            seen.append(group)  # a rule said twice, hard and soft perhaps, counts a pod once
            if rule.weight is None and group in active:
                tallies.append((group.owners, domain))
            if group.selects(pods) and counts(group.rule.nodes):
                tallies.append((group.counts, domain))
        for group in self._strangers(pods):
            domain = domains.get(group.rule.key)
            if domain and counts(group.rule.nodes):
                tallies.append((group.counts, domain))
        entry = Entry(pods, count, tuple(tallies))
        self._book(entry, count)
        return entry

    def erase(self, entry: "Entry") -> None:
        """Take back exactly what was noted."""
        self._book(entry, -entry.count)

    def _book(self, entry: "Entry", count: int) -> None:
        for rule in self.rules[id(entry.pods)]:
            if rule.weight is None:
                self.group(rule).awaited -= count
        for tally, domain in entry.tallies:
            tally[domain] += count

    def saved(self) -> "Saved":
        """All counts, to be restored later or compared."""
        return {
            identity: (Counter(group.counts), Counter(group.owners), group.awaited)
            for identity, group in self._groups.items()
        }

    def restore(self, saved: "Saved") -> None:
        """Go back to these counts."""
        for identity, (counts, owners, awaited) in saved.items():
            group = self._groups[identity]
            for tally, known in ((group.counts, counts), (group.owners, owners)):
                tally.clear()  # entries hold on to the tally itself
                tally.update(known)
            group.awaited = awaited

    def differs(self, saved: "Saved") -> bool:
        """Whether any count has changed, hosts apart: which node of a domain a pod is on does not matter there."""
        return any(
            self._groups[identity].rule.key != HOSTNAME
            and (self._groups[identity].counts != counts or self._groups[identity].owners != owners)
            for identity, (counts, owners, _) in saved.items()
        )


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """Pods that were noted, and in which tallies under which domain."""

    pods: PodClass
    count: int
    tallies: tuple[tuple[Counter[str], str], ...]


Saved = Mapping[object, tuple[Counter[str], Counter[str], int]]


Counts = Callable[[NodeFilter], bool]


def counted(group: Group, domain: str, *, cautious: bool) -> int:
    """What someone else's rule allows a pod that it counts (``Topology.foreign``)."""
    if group.rule.kind == "anti-affinity":
        return 0 if group.owners[domain] else UNLIMITED
    if group.rule.kind == "affinity":
        return UNLIMITED if group.owners[domain] or not group.is_lonely else 0
    if group.ranges_over(domain) and (group.owners[domain] or (cautious and group.awaited > 0)):
        return max(0, group.rule.max_skew + group.least - group.counts[domain])
    return UNLIMITED


def admits(nodes: NodeFilter, view: NodeView) -> bool:
    """Whether an existing node counts for a spread."""
    if any(key not in view.labels for key in nodes.keys):
        return False
    if nodes.terms is not None and not any(term.matches(view.labels) for term in nodes.terms):
        return False
    hard = [taint for taint in view.taints if taint.effect != "PreferNoSchedule"]
    return nodes.tolerations is None or first_untolerated(nodes.tolerations, hard) is None


def _is_counted(rule: Rule, pod: Pod) -> bool:
    """kube-scheduler leaves terminating pods out of a spread, and minds them in affinity until they are gone."""
    return rule.kind != "spread" or not is_terminating(pod)


def _selects(rule: Rule, pod: Pod, seen: dict[tuple[str, str], bool]) -> bool:
    key = (pod.metadata.namespace, str(sorted(pod.metadata.labels.items())))
    if key not in seen:
        seen[key] = rule.selects(pod)
    return seen[key]


def _same_zone(pods: PodClass) -> tuple[Rule, ...]:
    """Pods that share an unbound claim follow the first of them into its zone: that is where the volume will be."""
    return tuple(Rule("affinity", ZONE, (), claim=name) for name in pods.volumes.unbound)
