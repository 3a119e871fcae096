"""One topology rule's counts per domain, and which nodes and pods count for it.

A ``TopologyGroup`` keeps the counts of one rule for all classes that own it. Classes that own the same spread share a
group only if they can reach the same domains: a spread compares with the emptiest domain, and that is another one for
pods which a taint keeps out of it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.taints import first_untolerated
from joinery.decisions.scheduling.constraints.topology_rules import NodeFilter, TopologyRule
from joinery.decisions.scheduling.pools.market import Amounts
from joinery.objects.karpenter.labels import HOSTNAME
from joinery.objects.snapshot.nodes import NodeView

UNLIMITED = 1 << 30


def parts(domain: str) -> tuple[str, ...]:
    """The domains of which a node may still be in any (``demand.Domains``)."""
    return tuple(domain.split(","))


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


@dataclass(eq=False)
class TopologyGroup:
    """The counts of one rule.

    domains           what a spread ranges over; over hosts empty until it is known which there will be
    counts            by domain: pods that the rule selects, on nodes that count for it
    owners            by domain: pods that own it as a hard rule
    awaited           hard owners that are still to be placed
    is_hard           some class owns it as a rule that must hold
    counts_owners     and is selected by it
    is_asked          some class owns it; else only pods that run do, and how many it counts where matters to nobody
    residents         by pool: how many DaemonSets' pods it counts on a new node; without pools where it counts none
    brought           the same by pool and instance type (a row of the pool's market)
    newcomers         by domain: new nodes
    awaited_daemons   by domain without any node: how many DaemonSets' pods its first node will bring, as it counts
    numbers           of the classes that are to be placed
    selected          which of those it counts: their numbers as bits (``PodIndex``)
    """

    rule: TopologyRule
    domains: frozenset[str] = frozenset()
    counts: Counter[str] = field(default_factory=Counter)
    owners: Counter[str] = field(default_factory=Counter)
    awaited: int = 0
    is_hard: bool = False
    counts_owners: bool = False
    is_asked: bool = False
    residents: Mapping[str, int] = field(default_factory=dict)
    brought: Mapping[str, Amounts] = field(default_factory=dict)
    newcomers: Counter[str] = field(default_factory=Counter)
    awaited_daemons: dict[str, int] = field(default_factory=dict)
    numbers: Mapping[PodClass, int] = field(default_factory=dict)
    selected: int = 0
    _least: int | None = field(default=None, init=False)

    def selects(self, pod_class: PodClass) -> bool:
        """Whether the rule counts pods of the class."""
        number = self.numbers.get(pod_class)
        if number is None:
            return counts_class(self.rule, pod_class)
        return bool(self.selected >> number & 1)

    def add(self, domain: str, count: int) -> None:
        """Count so many more pods in the domain."""
        self.counts[domain] += count
        self._least = None

    def add_newcomer(self, domain: str, times: int) -> None:
        """Count one more new node in the domain, or ``times`` -1 one less."""
        self.newcomers[domain] += times
        self._least = None

    def range_over(self, domains: Iterable[str]) -> None:
        """Let a spread range over these domains."""
        self.domains = frozenset(domains)
        self._least = None

    def restore(self, counts: Counter[str], owners: Counter[str], newcomers: Counter[str], awaited: int) -> None:
        """Go back to these counts."""
        self.counts, self.owners, self.newcomers = Counter(counts), Counter(owners), Counter(newcomers)
        self.awaited, self._least = awaited, None

    @property
    def least(self) -> int:
        """The smallest count of a domain, which a spread compares with (kube-scheduler PodTopologySpread, minMatchNum).

        0 if there are fewer domains than minDomains, and over hosts as long as one more may come.
        """
        if self._least is None:
            self._least = self._least_of_all()
        return self._least

    def _least_of_all(self) -> int:
        if len(self.domains) < self.rule.min_domains:
            return 0
        if len(self.counts) < len(self.domains) and not self.awaited_daemons:
            # Some domain has never been counted. There may be a domain for each of 800 instance types.
            return 0
        return min((self.filled(domain) for domain in self.domains), default=0)

    def filled(self, domain: str) -> int:
        """The pods that a spread counts in the domain; where no node is, those that the first one will bring."""
        if domain not in self.awaited_daemons or self.newcomers[domain]:
            return self.counts[domain]
        return self.counts[domain] + self.awaited_daemons[domain]

    def admits_newcomer(self, domain: str, brought: int, pods: int) -> bool:
        """Whether one more node may come to the domain with so many ``pods`` of the plan,
        and ``brought`` DaemonSets' pods.
        """
        here = self.counts[domain] + brought
        least = min((self.filled(other) for other in self.domains if other != domain), default=here)
        if len(self.domains) < self.rule.min_domains:
            least = 0
        return here + pods - min(least, here) <= self.rule.max_skew

    @property
    def is_uneven(self) -> bool:
        """Whether some owner is in a domain that is fuller than the spread allows."""
        return self._is_too_full(domain for domain, owners in self.owners.items() if owners)

    @property
    def is_broken(self) -> bool:
        """Whether the rule does not hold for the pods that are counted: they came before it, or others have left."""
        if self.rule.kind == "anti-affinity":
            return any(owners and self.counts[domain] > 1 for domain, owners in self.owners.items())
        return self.rule.kind == "spread" and self._is_too_full(filter(self.ranges_over, self.counts))

    def _is_too_full(self, domains: Iterable[str]) -> bool:
        """Whether one of the domains is fuller than a spread allows."""
        return max(map(self.filled, domains), default=0) - self.least > self.rule.max_skew

    @property
    def is_lonely(self) -> bool:
        """Whether the one pod that an affinity counts owns it. It could be the first without a neighbour only because
        there was none: kube-scheduler would refuse it if another counted pod came before it, somewhere else.
        """
        if self.residents or not self.counts_owners:
            return False
        total = 0
        for count in self.counts.values():
            total += count
            if total > 1:
                return False
        return total == 1 and any(self.owners[domain] for domain, count in self.counts.items() if count)

    def ranges_over(self, domain: str) -> bool:
        """Whether pods in that domain are within the spread; every host is."""
        return self.rule.key == HOSTNAME or domain in self.domains


def counts_class(rule: TopologyRule, pod_class: PodClass) -> bool:
    """Whether the rule counts pods of the class."""
    return rule.claim in pod_class.volumes.unbound if rule.claim else rule.selects(pod_class.example)


def allowed_by_others(group: TopologyGroup, domain: str, *, cautious: bool) -> int:
    """How many more pods that somebody else's rule counts may come to the domain (``Topology.foreign``).

    ``cautious``: a spread is kept as if its owners that are still to be placed were in the domain already.
    """
    if group.rule.kind == "anti-affinity":
        return 0 if group.owners[domain] else UNLIMITED
    if group.rule.kind == "affinity":
        return UNLIMITED if group.owners[domain] or not group.is_lonely else 0
    if group.ranges_over(domain) and (group.owners[domain] or (cautious and group.awaited > 0)):
        return max(0, group.rule.max_skew + group.least - group.filled(domain))
    return UNLIMITED


def admits(nodes: NodeFilter, view: NodeView) -> bool:
    """Whether an existing node counts for a spread (kube-scheduler PodTopologySpread,
    nodeAffinityPolicy and nodeTaintsPolicy).
    """
    if any(key not in view.labels for key in nodes.keys):
        return False
    if nodes.terms is not None and not any(term.matches(view.labels) for term in nodes.terms):
        return False
    hard = [taint for taint in view.taints if taint.effect != "PreferNoSchedule"]
    return nodes.tolerations is None or first_untolerated(nodes.tolerations, hard) is None
