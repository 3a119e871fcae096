"""Topology spread, as kube-scheduler's PodTopologySpread counts it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.pools.market import Amounts
from joinery.decisions.scheduling.topology.groups import UNLIMITED, SavedCounts, TopologyGroup
from joinery.objects.karpenter.labels import HOSTNAME


@dataclass(eq=False)
class SpreadGroup(TopologyGroup):
    """A topology spread: no domain has more than maxSkew pods above the emptiest.

    Over hosts ``domains`` is empty until it is known which hosts there will be; ``ranges_over`` is true of each.

    brought           by pool and instance type (a row of its market): how many DaemonSets' pods it counts on a new node
    newcomers         by domain: new nodes
    awaited_daemons   by domain without any node: how many DaemonSets' pods its first node will bring, as it counts
    """

    brought: Mapping[str, Amounts] = field(default_factory=dict)
    newcomers: Counter[str] = field(default_factory=Counter)
    awaited_daemons: dict[str, int] = field(default_factory=dict)
    _min_match_num: int | None = field(default=None, init=False)

    def allowed(self, pod_class: PodClass, domain: str) -> int:
        if not self.ranges_over(domain):
            return 0
        left = self.rule.max_skew + self.min_match_num - self.match_num(domain)
        if self.selects(pod_class):
            return max(0, left)
        return UNLIMITED if left >= 0 else 0

    def allowed_by_owners(self, domain: str, *, cautious: bool) -> int:
        if self.ranges_over(domain) and (self.owners[domain] or (cautious and self.awaited > 0)):
            return max(0, self.rule.max_skew + self.min_match_num - self.match_num(domain))
        return UNLIMITED

    def open_among(self, pod_class: PodClass, hosts: Sequence[str], left: Sequence[int]) -> Sequence[int]:
        if not self.selects(pod_class):
            return left
        most = self.rule.max_skew + self.min_match_num
        return [position for position in left if self.counts.get(hosts[position], 0) < most]

    @property
    def most_in_domain(self) -> int:
        return max(0, self.rule.max_skew + self.min_match_num)

    @property
    def min_match_num(self) -> int:
        """The smallest count of a domain.

        0 if there are fewer domains than minDomains, and over hosts as long as one more may come.
        """
        if self._min_match_num is None:
            self._min_match_num = self._least_of_all()
        return self._min_match_num

    def _least_of_all(self) -> int:
        if len(self.domains) < self.rule.min_domains:
            return 0
        if len(self.counts) < len(self.domains) and not self.awaited_daemons:
            # A shortcut, for there may be a domain for each of 800 instance types: some domain was never counted.
            return 0
        return min((self.match_num(domain) for domain in self.domains), default=0)

    def match_num(self, domain: str) -> int:
        """The pods that count in the domain and, where no node is, those that the first one will bring."""
        if domain not in self.awaited_daemons or self.newcomers[domain]:
            return self.counts[domain]
        return self.counts[domain] + self.awaited_daemons[domain]

    def ranges_over(self, domain: str) -> bool:
        """Whether pods in that domain are within the spread; every host is."""
        return self.rule.key == HOSTNAME or domain in self.domains

    def admits_newcomer(self, domain: str, brought: int, pods: int) -> bool:
        """Whether one more node may come to the domain with so many ``pods`` of the plan,
        and ``brought`` DaemonSets' pods.
        """
        here = self.counts[domain] + brought
        least = min((self.match_num(other) for other in self.domains if other != domain), default=here)
        if len(self.domains) < self.rule.min_domains:
            least = 0
        return here + pods - min(least, here) <= self.rule.max_skew

    @property
    def is_uneven(self) -> bool:
        """Whether some owner is in a domain that is fuller than the spread allows."""
        return self._is_too_full(domain for domain, owners in self.owners.items() if owners)

    @property
    def is_broken(self) -> bool:
        return self._is_too_full(filter(self.ranges_over, self.counts))

    def _is_too_full(self, domains: Iterable[str]) -> bool:
        """Whether one of the domains is fuller than the spread allows."""
        return max(map(self.match_num, domains), default=0) - self.min_match_num > self.rule.max_skew

    def add(self, domain: str, count: int) -> None:
        self.counts[domain] += count
        self._min_match_num = None

    def add_newcomer(self, domain: str, times: int) -> None:
        """Count one more new node in the domain, or ``times`` -1 one less."""
        self.newcomers[domain] += times
        self._min_match_num = None

    def range_over(self, domains: Iterable[str]) -> None:
        """Let the spread range over these domains."""
        self.domains = frozenset(domains)
        self._min_match_num = None

    def saved(self) -> SavedCounts:
        return super().saved()._replace(newcomers=Counter(self.newcomers))

    def restore(self, saved: SavedCounts) -> None:
        super().restore(saved)
        self.newcomers, self._min_match_num = Counter(saved.newcomers), None
