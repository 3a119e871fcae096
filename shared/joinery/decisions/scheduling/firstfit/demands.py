"""What each class asks for, try by try: required terms and volumes in turn, and ever fewer preferences."""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.relaxation import Variant, variants
from joinery.decisions.scheduling.constraints.requirements import Requirements
from joinery.decisions.scheduling.firstfit.demand import Demand
from joinery.decisions.scheduling.firstfit.new_nodes import is_open_to
from joinery.decisions.scheduling.firstfit.opened import fair_price_of_one
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.pools.market import Amounts

#: Of more required terms the order stays: to price each in every NodePool would take seconds for many pods.
_FEW_TERMS = 8


class Demands:
    """The demands of the classes of a workspace.

    They are the same objects however often a class is tried, because they remember what pools and nodes said.
    ``terms_as_listed``: required node affinity terms are tried in the order in which they are listed, as in Karpenter.
    """

    def __init__(self, work: Workspace, *, terms_as_listed: bool) -> None:
        self._work = work
        self._terms_as_listed = terms_as_listed
        self._demands: dict[tuple[PodClass, int], tuple[Demand, ...]] = {}
        self._terms: dict[PodClass, Sequence[Requirements]] = {}

    def tries(self, pod_class: PodClass) -> Iterator[tuple[Demand, ...]]:
        """Every try, from all preferences to none; each has a demand for each zone or host that the volumes allow."""
        tries = variants(
            pod_class,
            self._work.topology.rules[pod_class],
            respect=self._work.problem.options.respect_preferences,
            prefer_taints=self._work.prefers_taints,
            terms=self._ordered_terms(pod_class),
        )
        for number, variant in enumerate(tries):
            key = pod_class, number
            if key not in self._demands:
                hosts = self._work.hosts_of_claims
                row = self._work.axis.asked(pod_class.requests)
                asked = np.flatnonzero(row)
                self._demands[key] = tuple(
                    Demand(pod_class, variant, row, asked, volumes=way.requirements, choices=way.choices, hosts=hosts)
                    for way in pod_class.volumes.ways
                )
            yield self._demands[key]

    def by_term(self, pod_class: PodClass) -> Iterator[Demand]:
        """The class with all its preferences, on each of its required terms."""
        for demands in islice(self.tries(pod_class), len(pod_class.terms)):
            yield from demands

    def _ordered_terms(self, pod_class: PodClass) -> Sequence[Requirements]:
        """The required node affinity terms: any of them will do (kube-scheduler NodeAffinity), so the cheapest first;
        none where the listed order stays.

        Those that NodePools of other weights serve keep their order, as in Karpenter, which tries one after another.
        """
        if self._terms_as_listed or not 1 < len(pod_class.terms) <= _FEW_TERMS:
            return ()
        if pod_class not in self._terms:
            row = self._work.axis.asked(pod_class.requests)
            served = [(term, *self._least_price(pod_class, term, row)) for term in pod_class.terms]
            tiers = [tier for _, tier, _ in served]
            unserved = len(self._work.tiers)
            served.sort(key=lambda one: (one[1] == unserved, tiers.index(one[1]), one[2]))
            self._terms[pod_class] = tuple(term for term, _, _ in served)
        return self._terms[pod_class]

    def _least_price(self, pod_class: PodClass, term: Requirements, row: Amounts) -> tuple[int, float]:
        """Of one pod on the term: the place of the heaviest tier that serves it, and its fair price there, in $/h."""
        variant = Variant(requirements=term, rules=(), tolerates_preferred=True, dropped=())
        asked = np.flatnonzero(row)
        demands = [Demand(pod_class, variant, row, asked, volumes=one) for one in pod_class.volumes.alternatives]
        for number, tier in enumerate(self._work.tiers):
            prices = [
                price
                for demand in demands
                for pool in tier
                if is_open_to(pool, demand, self._work.topology) and (price := fair_price_of_one(pool, demand)) > 0
            ]
            if prices:
                # Sums that are one price keep their order.
                return number, round(min(prices), 6)
        return len(self._work.tiers), 0.0
