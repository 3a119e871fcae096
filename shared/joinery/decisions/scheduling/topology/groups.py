"""The pods that a topology rule counts, domain by domain, and how many more its counts let into a domain.

A ``TopologyGroup`` has the counts of one rule for all classes that own it, and there is one kind for each of
kube-scheduler's rules (``spread.SpreadGroup``, ``affinity.AffinityGroup`` and ``AntiAffinityGroup``). Each answers two
questions, because kube-scheduler may bind the pods of a plan in any order, so that a rule binds both its owners and the
pods that it counts:

- ``allowed``: how many more pods of a class that owns the rule may come to a domain;
- ``allowed_by_owners``: how many more pods of others that the rule counts.

Classes that own the same spread share a group only if they can reach the same domains: a spread compares with the
emptiest domain, and that is another one for pods which a taint keeps out of it.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule

UNLIMITED = 1 << 30


def parts(domain: str) -> tuple[str, ...]:
    """The domains of which a node may still be in any (``demand.Domains``)."""
    return tuple(domain.split(","))


class SavedCounts(NamedTuple):
    """The counts of a group at one moment."""

    counts: Counter[str]
    owners: Counter[str]
    newcomers: Counter[str]
    awaited: int


@dataclass(eq=False)
class TopologyGroup(ABC):
    """The counts of one rule.

    rule            as one of its owners says it
    numbers         of the classes that are to be placed
    selected        which of those it counts: their numbers as bits (``PodIndex``)
    residents       by pool: how many DaemonSets' pods it counts on a new node; without pools where it counts none
    domains         what a spread ranges over, and no other rule
    counts          by domain: pods that the rule selects, on nodes that count for it
    owners          by domain: pods that own it as a hard rule
    awaited         hard owners that are still to be placed
    is_hard         some class owns it as a rule that must hold
    counts_owners   and is selected by it
    is_asked        some class owns it; else only pods that run do, and how many it counts where matters to nobody
    """

    rule: TopologyRule
    numbers: Mapping[PodClass, int] = field(default_factory=dict)
    selected: int = 0
    residents: Mapping[str, int] = field(default_factory=dict)
    domains: frozenset[str] = frozenset()
    counts: Counter[str] = field(default_factory=Counter)
    owners: Counter[str] = field(default_factory=Counter)
    awaited: int = 0
    is_hard: bool = False
    counts_owners: bool = False
    is_asked: bool = False

    @abstractmethod
    def allowed(self, pod_class: PodClass, domain: str) -> int:
        """How many more pods of a class that owns the rule may come to the domain."""

    @abstractmethod
    def allowed_by_owners(self, domain: str, *, cautious: bool) -> int:
        """How many more pods that the rule counts, and that do not own it, may come to the domain.

        ``cautious``: a spread is kept as if its owners that are still to be placed were in the domain already.
        """

    def open_among(self, pod_class: PodClass, hosts: Sequence[str], left: Sequence[int]) -> Sequence[int]:
        """Of the hosts in these positions those that are not full for a class that owns the rule, by counts alone."""
        del pod_class, hosts
        return left

    @property
    def most_in_domain(self) -> int:
        """How many more pods of a class that owns the rule, and that it counts, any one domain may take at most."""
        return UNLIMITED

    @property
    def is_broken(self) -> bool:
        """Whether the rule does not hold for the pods that are counted: they came before it, or others have left."""
        return False

    def selects(self, pod_class: PodClass) -> bool:
        """Whether the rule counts pods of the class."""
        number = self.numbers.get(pod_class)
        return self.rule.counts(pod_class) if number is None else bool(self.selected >> number & 1)

    def match_num(self, domain: str) -> int:
        """The pods that count in the domain."""
        return self.counts[domain]

    def add(self, domain: str, count: int) -> None:
        """Count so many more pods in the domain."""
        self.counts[domain] += count

    def add_owners(self, domain: str, count: int) -> None:
        """Count so many more hard owners in the domain."""
        self.owners[domain] += count

    def saved(self) -> SavedCounts:
        """The counts, for ``restore``."""
        return SavedCounts(Counter(self.counts), Counter(self.owners), Counter(), self.awaited)

    def restore(self, saved: SavedCounts) -> None:
        """Go back to these counts."""
        self.counts, self.owners, self.awaited = Counter(saved.counts), Counter(saved.owners), saved.awaited
