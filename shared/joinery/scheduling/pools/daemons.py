"""The DaemonSets' pods of nodes to be bought, as rules about pods see them.

kube-scheduler counts them like all others, and they are on a node before any pod of a plan is: whoever keeps apart from
them has no place there, and whoever wants to be near them is, on any node that runs them. Rules reach them by selectors
without a match (``NotIn``, ``DoesNotExist``, empty ones) over all namespaces, or in the DaemonSets' own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from joinery.apis.core import Namespace
from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.constraints.topology_rules import Rule, required_anti_affinity
from joinery.scheduling.pools.pool import Amounts, Pool


@dataclass(frozen=True, eq=False)
class Residents:
    """What the new nodes of each pool run; ``keeping_away``: by pool, the anti-affinity of those pods themselves."""

    pools: Sequence[Pool] = ()
    keeping_away: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)

    def counted(self, rule: Rule) -> Mapping[str, int]:
        """How many of them the rule counts on a node of each pool where it does: for an affinity those that every node
        runs, for other rules those that some node might.
        """
        needs_all = rule.kind == "affinity"
        found = {
            pool.name: sum(
                rule.selects(one.pod) for one in pool.residents if one.is_on_all or not needs_all
            )
            for pool in self.pools
        }  # fmt: skip
        return {name: count for name, count in found.items() if count}

    def by_type(self, rule: Rule) -> Mapping[str, Amounts]:
        """How many of them the rule counts on a node of each type, by pool, where it counts any."""
        found = {
            pool.name: sum(
                (one.types.astype(np.int64) for one in pool.residents if rule.selects(one.pod)),
                start=np.zeros(len(pool.types), dtype=np.int64),
            )
            for pool in self.pools
        }
        return {name: counts for name, counts in found.items() if counts.any()}

    def of_first_node(self, rule: Rule, pods: PodClass) -> int:
        """How many of them a node for the class may bring.

        A domain without a node counts as one with such a node: no pod could ever be the first somewhere if it were
        compared with domains that lack even the DaemonSets' pods. kube-scheduler knows only domains of nodes.
        """
        brought = self.by_type(rule)
        open_pools = [pool for pool in self.pools if pods.untolerated(pool.taints) is None]
        fits = ((pool.name, pool.fit(term)) for pool in open_pools if pool.name in brought for term in pods.terms)
        return max((int(brought[name][f.types].max(initial=0)) for name, f in fits if not f.conflict), default=0)


def residents(pools: Sequence[Pool], namespaces: Iterable[Namespace]) -> Residents:
    """Of all pools."""
    known = tuple(namespaces)
    rules = {
        pool.name: tuple(rule for one in pool.residents for rule in required_anti_affinity(one.pod, known))
        for pool in pools
    }
    return Residents(pools, {name: found for name, found in rules.items() if found})
