"""The DaemonSets' pods of nodes to be bought, as topology rules count them.

kube-scheduler counts them like all other pods, and they are on a node before any pod of a plan. So a pod that must keep
apart from them has no place on the node, and a pod that must be near them has one.

Few rules select DaemonSets' pods: those with a selector without a match (``NotIn``, ``DoesNotExist``, an empty one)
over all namespaces, and those of pods in the DaemonSet's own namespace.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.selectors import Namespaces
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule, required_anti_affinity
from joinery.decisions.scheduling.pools.market import Amounts
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.objects.kubernetes.core import Namespace


@dataclass(frozen=True, eq=False)
class Residents:
    """The DaemonSets' pods that the new nodes of each pool run.

    ``pools``: with their ``residents``. ``keeping_away``: the required anti-affinity of those pods themselves, by pool;
    pools without any are not in it.
    """

    pools: Sequence[Pool] = ()
    keeping_away: Mapping[str, tuple[TopologyRule, ...]] = field(default_factory=dict)

    def counted(self, rule: TopologyRule) -> Mapping[str, int]:
        """How many residents the rule counts on a new node, by pool; pools where it counts none are not in it.

        For each rule the count errs on the side where the pod cannot be promised too much. Pod affinity is sure to be
        met only by pods that every node runs. A spread and anti-affinity may be broken by pods that some node runs.
        """
        needs_all = rule.kind == "affinity"
        counts = {
            pool.name: sum(
                rule.selects(resident.pod) for resident in pool.residents if resident.is_on_all or not needs_all
            )
            for pool in self.pools
        }
        return {name: count for name, count in counts.items() if count}

    def by_type(self, rule: TopologyRule) -> Mapping[str, Amounts]:
        """int64[types] by pool: how many residents the rule counts on a node of each type.

        Without pools where it counts none.
        """
        counts = {
            pool.name: sum(
                (resident.types.astype(np.int64) for resident in pool.residents if rule.selects(resident.pod)),
                start=np.zeros(len(pool.types), dtype=np.int64),
            )
            for pool in self.pools
        }
        return {name: by_type for name, by_type in counts.items() if by_type.any()}

    def of_first_node(self, rule: TopologyRule, pod_class: PodClass) -> int:
        """The most residents that a new node for the class may bring into a domain.

        A spread compares a domain with the emptiest one. A domain that has no node yet counts as if it had its first
        one. Otherwise it would count 0, and no pod could be the first in any domain: the DaemonSets' pods alone would
        already be more than that. kube-scheduler has no such case, because it knows only domains of nodes that exist.
        """
        brought = self.by_type(rule)
        tolerated = [pool for pool in self.pools if pod_class.untolerated(pool.taints) is None]
        fits = [
            (brought[pool.name], pool.fit(term))
            for pool in tolerated
            if pool.name in brought
            for term in pod_class.terms
        ]
        return max((int(counts[fit.types].max(initial=0)) for counts, fit in fits if not fit.conflict), default=0)


NO_RESIDENTS = Residents()


def residents_of(pools: Sequence[Pool], namespaces: Iterable[Namespace]) -> Residents:
    """The residents of all pools. ``namespaces``: those that namespace selectors of their own rules look at."""
    listed = Namespaces(namespaces)
    rules = {
        pool.name: tuple(rule for resident in pool.residents for rule in required_anti_affinity(resident.pod, listed))
        for pool in pools
    }
    return Residents(pools, {name: of_pool for name, of_pool in rules.items() if of_pool})
