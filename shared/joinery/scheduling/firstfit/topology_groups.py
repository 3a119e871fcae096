"""One topology rule's counts per domain, and which nodes and pods count for it.

A ``TopologyGroup`` keeps the counts of one rule for all classes that own it. Classes that own the same spread share a
group only if they can reach the same domains: a spread compares with the emptiest domain, and that is another one for
pods which a taint keeps out of it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from joinery.apis.core import Pod
from joinery.apis.labels import HOSTNAME
from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.constraints.taints import first_untolerated
from joinery.scheduling.constraints.topology_rules import NodeFilter, TopologyRule
from joinery.scheduling.pools.market import Amounts
from joinery.state.nodes import NodeView
from joinery.state.pods import is_terminating

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
    residents         by pool: how many DaemonSets' pods it counts on a new node; without pools where it counts none
    brought           the same by pool and instance type (a row of the pool's market)
    newcomers         by domain: new nodes
    awaited_daemons   by domain without any node: how many DaemonSets' pods its first node will bring, as it counts
    """

    rule: TopologyRule
    domains: frozenset[str] = frozenset()
    counts: Counter[str] = field(default_factory=Counter)
    owners: Counter[str] = field(default_factory=Counter)
    awaited: int = 0
    is_hard: bool = False
    counts_owners: bool = False
    residents: Mapping[str, int] = field(default_factory=dict)
    brought: Mapping[str, Amounts] = field(default_factory=dict)
    newcomers: Counter[str] = field(default_factory=Counter)
    awaited_daemons: dict[str, int] = field(default_factory=dict)
    _selected: dict[PodClass, bool] = field(default_factory=dict)

    def selects(self, pod_class: PodClass) -> bool:
        """Whether the rule counts pods of the class."""
        is_selected = self._selected.get(pod_class)
        if is_selected is None:
            claim = self.rule.claim
            is_selected = claim in pod_class.volumes.unbound if claim else self.rule.selects(pod_class.example)
            self._selected[pod_class] = is_selected
        return is_selected

    @property
    def least(self) -> int:
        """The smallest count of a domain, which a spread compares with (kube-scheduler PodTopologySpread, minMatchNum).

        0 if there are fewer domains than minDomains, and over hosts as long as one more may come.
        """
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

    def count(self, views: Iterable[NodeView]) -> None:
        """Count the pods of nodes that exist."""
        selected: dict[tuple[str, str], bool] = {}
        for view in views:
            domain = view.labels.get(self.rule.key)
            if domain is None or not admits(self.rule.nodes, view):
                continue
            for pod in view.pods:
                if _is_counted(self.rule, pod) and _selects(self.rule, pod, selected):
                    self.counts[domain] += 1


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


def _is_counted(rule: TopologyRule, pod: Pod) -> bool:
    """kube-scheduler leaves terminating pods out of a spread, and counts them for affinity until they are gone."""
    return rule.kind != "spread" or not is_terminating(pod)


def _selects(rule: TopologyRule, pod: Pod, selected: dict[tuple[str, str], bool]) -> bool:
    # Thousands of pods have a few sets of labels between them, and selectors are slow.
    key = (pod.metadata.namespace, str(sorted(pod.metadata.labels.items())))
    if key not in selected:
        selected[key] = rule.selects(pod)
    return selected[key]
