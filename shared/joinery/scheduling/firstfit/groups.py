"""One rule's counts per domain, and which nodes and pods count for it.

One ``Group`` keeps the counts of one rule, for all classes that say the same and, of a spread, can reach the same domains: the
emptiest domain is another one for pods that a taint keeps out of it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from joinery.apis.core import Pod
from joinery.apis.labels import HOSTNAME
from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.constraints.taints import first_untolerated
from joinery.scheduling.constraints.topology_rules import NodeFilter, Rule
from joinery.scheduling.pools.pool import Amounts
from joinery.state.nodes import NodeView
from joinery.state.pods import is_terminating

UNLIMITED = 1 << 30


@dataclass(frozen=True, slots=True)
class UnforeseenDomain:
    """A domain of a spread (by its rule's identity) that only nodes of the plan itself are in."""

    rule: tuple[object, ...]
    key: str
    domain: str


@dataclass(eq=False)
class Group:
    """One rule's counts: pods it selects by domain, and hard owners by domain. ``awaited``: owners still to be placed.

    ``domains`` are those that a spread ranges over; of hosts none until it is settled which there will be. ``is_hard``: somebody owns
    it as a rule that must hold; ``counts_owners``: and is counted by it. ``residents``: how many DaemonSets' pods it counts on a new node, by pool, where it counts any;
    ``brought``: the same by pool for each type; ``newcomers``: new nodes by domain; ``unsettled``: what a domain without any node counts as, if not 0 (``residents``).
    """

    rule: Rule
    domains: frozenset[str] = frozenset()
    counts: Counter[str] = field(default_factory=Counter)
    owners: Counter[str] = field(default_factory=Counter)
    awaited: int = 0
    is_hard: bool = False
    counts_owners: bool = False
    residents: Mapping[str, int] = field(default_factory=dict)
    brought: Mapping[str, Amounts] = field(default_factory=dict)
    newcomers: Counter[str] = field(default_factory=Counter)
    unsettled: dict[str, int] = field(default_factory=dict)
    _selected: dict[PodClass, bool] = field(default_factory=dict)

    def selects(self, pods: PodClass) -> bool:
        known = self._selected.get(pods)
        if known is None:
            claim = self.rule.claim
            known = claim in pods.volumes.unbound if claim else self.rule.selects(pods.example)
            self._selected[pods] = known
        return known

    @property
    def least(self) -> int:
        """The smallest count that a spread compares with; 0 with fewer domains than minDomains, and over hosts while one more may come."""
        if len(self.domains) < self.rule.min_domains:
            return 0
        return min((self.filled(domain) for domain in self.domains), default=0)

    def filled(self, domain: str) -> int:
        """What a spread compares: the pods in the domain; where no node is, those that the first one will bring."""
        if domain not in self.unsettled or self.newcomers[domain]:
            return self.counts[domain]
        return self.counts[domain] + self.unsettled[domain]

    def admits_newcomer(self, domain: str, brought: int, pods: int) -> bool:
        """Whether so many pods may be in the domain on one more node, with so many of the DaemonSets' pods."""
        here = self.counts[domain] + brought
        least = min((self.filled(other) for other in self.domains if other != domain), default=here)
        if len(self.domains) < self.rule.min_domains:
            least = 0
        return here + pods - min(least, here) <= self.rule.max_skew

    @property
    def is_uneven(self) -> bool:
        """Whether some owner is in a domain that is fuller than the spread allows."""
        fullest = max((self.filled(domain) for domain, owners in self.owners.items() if owners), default=0)
        return fullest - self.least > self.rule.max_skew

    @property
    def is_lonely(self) -> bool:
        """Whether the one pod that the rule counts is an owner: it could begin without a neighbour only as long as there is none."""
        if self.residents or not self.counts_owners:
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

    def count(self, views: Iterable[NodeView]) -> None:
        """Note the pods of nodes that exist."""
        seen: dict[tuple[str, str], bool] = {}
        for view in views:
            domain = view.labels.get(self.rule.key)
            if domain is None or not admits(self.rule.nodes, view):
                continue
            for pod in view.pods:
                if _is_counted(self.rule, pod) and _selects(self.rule, pod, seen):
                    self.counts[domain] += 1


def counted(group: Group, domain: str, *, cautious: bool) -> int:
    """What someone else's rule allows a pod that it counts (``Topology.foreign``)."""
    if group.rule.kind == "anti-affinity":
        return 0 if group.owners[domain] else UNLIMITED
    if group.rule.kind == "affinity":
        return UNLIMITED if group.owners[domain] or not group.is_lonely else 0
    if group.ranges_over(domain) and (group.owners[domain] or (cautious and group.awaited > 0)):
        return max(0, group.rule.max_skew + group.least - group.filled(domain))
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
