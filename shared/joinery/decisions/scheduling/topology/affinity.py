"""Pod affinity and pod anti-affinity, as kube-scheduler's InterPodAffinity counts them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.topology.groups import UNLIMITED, SavedCounts, TopologyGroup
from joinery.objects.karpenter.labels import HOSTNAME

#: By topology key and domain, the required anti-affinities that have owners there: these keep others out.
OwnersByDomain = dict[tuple[str, str], dict["AntiAffinityGroup", None]]


@dataclass(eq=False)
class AffinityGroup(TopologyGroup):
    """Pod affinity: a pod goes only where the rule counts one.

    reaches           the domains that a class can reach
    is_met_anywhere   every new node brings a DaemonSet's pod that it counts, whatever domain it comes to
    hard_owners       the classes that own it as a hard rule
    required          by class that owns it: the groups of all required terms of that class
    """

    reaches: Callable[[PodClass], frozenset[str]] = lambda _: frozenset()
    is_met_anywhere: bool = False
    hard_owners: list[PodClass] = field(default_factory=list)
    required: dict[PodClass, Sequence["AffinityGroup"]] = field(default_factory=dict)

    def allowed(self, pod_class: PodClass, domain: str) -> int:
        if self.counts[domain] or self.is_met_anywhere:
            return UNLIMITED
        return UNLIMITED if self.may_begin(pod_class) and (not self._meeting or domain in self._meeting) else 0

    def allowed_by_owners(self, domain: str, *, cautious: bool) -> int:
        del cautious
        return UNLIMITED if self.owners[domain] or not self._is_lonely else 0

    def may_begin(self, pod_class: PodClass) -> bool:
        """Whether the class may be first where its affinity finds nobody: it selects itself, and nobody matches
        anywhere.

        With several required terms, nobody may match any of them (kube-scheduler InterPodAffinity,
        ``satisfyPodAffinity``).
        """
        if not self.selects(pod_class) or self.residents or any(self.counts.values()):
            return False
        return not self.is_hard or not any(any(group.counts.values()) for group in self.required.get(pod_class, ()))

    @cached_property
    def _meeting(self) -> frozenset[str]:
        """The domains that every class with this hard rule can reach; empty if there is none, or it is over hosts, of
        which one more can always be bought.

        kube-scheduler would let the first pod be anywhere. But all who own the rule must follow it there, so a plan
        that is to place them all begins where all of them can go.
        """
        if self.rule.key == HOSTNAME or self.rule.weight is not None or not self.hard_owners:
            return frozenset()
        return frozenset.intersection(*map(self.reaches, self.hard_owners))

    @property
    def _is_lonely(self) -> bool:
        """Whether the one pod that the affinity counts owns it. It could be the first without a neighbour only because
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


@dataclass(eq=False)
class AntiAffinityGroup(TopologyGroup):
    """Pod anti-affinity: a pod goes only where the rule counts none.

    ``with_owners``: where this and all other required anti-affinities have owners.
    """

    with_owners: OwnersByDomain = field(default_factory=dict)

    def allowed(self, pod_class: PodClass, domain: str) -> int:
        selects_itself = self.selects(pod_class)
        if self.counts[domain] or (selects_itself and self.owners[domain]):
            return 0
        return 1 if selects_itself else UNLIMITED

    def allowed_by_owners(self, domain: str, *, cautious: bool) -> int:
        del cautious
        return 0 if self.owners[domain] else UNLIMITED

    @property
    def most_in_domain(self) -> int:
        return 1

    def open_among(self, pod_class: PodClass, hosts: Sequence[str], left: Sequence[int]) -> Sequence[int]:
        left = [position for position in left if not self.counts.get(hosts[position])]
        if self.selects(pod_class):
            left = [position for position in left if not self.owners.get(hosts[position])]
        return left

    @property
    def is_broken(self) -> bool:
        return any(owners and self.counts[domain] > 1 for domain, owners in self.owners.items())

    def add_owners(self, domain: str, count: int) -> None:
        self.owners[domain] += count
        here = self.with_owners.setdefault((self.rule.key, domain), {})
        if self.owners[domain] > 0:
            here[self] = None
        else:
            here.pop(self, None)

    def restore(self, saved: SavedCounts) -> None:
        for domain in saved.owners.keys() | self.owners.keys():
            self.add_owners(domain, saved.owners[domain] - self.owners[domain])
        super().restore(saved)
