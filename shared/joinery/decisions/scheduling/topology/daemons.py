"""The DaemonSets' pods that new nodes bring, as topology rules count them (``pools.residents``)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.topology_rules import NodeFilter, TopologyRule
from joinery.decisions.scheduling.pools.market import Mask
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.pools.residents import Residents
from joinery.decisions.scheduling.topology.rule_groups import RuleGroups
from joinery.decisions.scheduling.topology.spread import SpreadGroup
from joinery.objects.karpenter.labels import HOSTNAME

#: Whether the node that pods go to is one that a spread with that filter counts.
Counts = Callable[[NodeFilter], bool]


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A new node that pods are placed on.

    pool     the name of its pool
    row      the instance type that it counts on, as a row of the pool's market
    pinned   the topology keys over which earlier pods on it decided its domain, and brought its DaemonSets' pods there
    """

    pool: str
    row: int
    pinned: frozenset[str]


class DaemonCounts:
    """What they count.

    spreads   hard spreads over zones and the like that count DaemonSets' pods wherever a new node comes
    """

    def __init__(self, groups: RuleGroups, residents: Residents) -> None:
        self._groups, self._residents = groups, residents
        counting = [group for group in groups if group.residents]
        self._is_nobody = not counting and not residents.keeping_away
        self._over_hosts = [group for group in counting if group.rule.key == HOSTNAME]
        spreads = (group for group in counting if isinstance(group, SpreadGroup) and group.is_hard)
        self.spreads = tuple(group for group in spreads if group.rule.key != HOSTNAME)

    def barring(self, pod_class: PodClass, rules: Iterable[TopologyRule], pool: str) -> tuple[TopologyRule, ...]:
        """The rules by which the class and the DaemonSets' pods on new nodes of the pool keep apart."""
        if self._is_nobody:
            return ()
        own = tuple(r for r in rules if r.kind == "anti-affinity" and self._groups.of(r).residents.get(pool))
        theirs = self._residents.keeping_away.get(pool, ())
        return own + tuple(rule for rule in theirs if rule.selects(pod_class.example))

    def bearable(
        self, pod_class: PodClass, rules: Iterable[TopologyRule], domains: Mapping[str, str], pool: Pool
    ) -> Mask:
        """The types of which one more node of the pool may come to these domains with a pod of the class.

        A mask over the pool's types: spreads count the DaemonSets' pods that the node brings, and those depend on its
        type.
        """
        types = pool.types
        own = {self._groups.of(rule) for rule in rules} if self.spreads else set()
        for spread in self.spreads:
            domain = domains.get(spread.rule.key, "")
            if spread.ranges_over(domain) and (spread in own or spread.owners[domain]):
                brought = spread.brought.get(pool.name, np.zeros_like(types, dtype=np.int64))
                selected = int(spread.selects(pod_class))
                allowed = [n for n in np.unique(brought) if spread.admits_newcomer(domain, int(n), selected)]
                types = types & np.isin(brought, allowed)
        return types

    def count_on(self, host: str, pool: str) -> None:
        """Count those of a new node that has no other pods yet."""
        for group in self._over_hosts:
            group.add(host, group.residents.get(pool, 0) - group.counts[host])

    def brought(
        self, newcomer: Newcomer, domains: Mapping[str, str], counts: Counts
    ) -> Iterator[tuple[SpreadGroup, str, int]]:
        """The spreads that count those of the node, each with the node's domain and how many they are."""
        for spread in self.spreads:
            domain = domains.get(spread.rule.key)
            if domain and spread.rule.key not in newcomer.pinned and counts(spread.rule.nodes):
                brought = spread.brought.get(newcomer.pool)
                yield spread, domain, int(brought[newcomer.row]) if brought is not None else 0
