"""Preferences, and the order in which they are dropped (Karpenter `Preferences.Relax`).

Everything preferred is first treated as required. When nothing satisfies that, one preference is dropped and all is
tried again. They are dropped in this order:

1. required node affinity terms, but the last (any one of them will do, and they are tried one by one; where the caller
   has an order for them, it is the first that stays)
2. preferred pod affinity, then preferred pod anti-affinity, the heaviest first
3. preferred node affinity, the heaviest first
4. ScheduleAnyway spreads
5. PreferNoSchedule taints: they are tolerated

Karpenter stops there. Here the required terms that were dropped in step 1 are tried once more without any preference,
because kube-scheduler would accept each of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.requirements import Requirements
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule


@dataclass(frozen=True, kw_only=True)
class Variant:
    """What is asked for on one try.

    requirements          on the node: one required term, with the heaviest preferred term that is left
    rules                 the topology rules that count
    tolerates_preferred   whether PreferNoSchedule taints are tolerated
    dropped               the preferences that were dropped so far, in words
    """

    requirements: Requirements
    rules: tuple[TopologyRule, ...]
    tolerates_preferred: bool
    dropped: tuple[str, ...]


def variants(
    pod_class: PodClass,
    rules: tuple[TopologyRule, ...],
    *,
    respect: bool,
    prefer_taints: bool,
    terms: Sequence[Requirements] = (),
) -> Iterator[Variant]:
    """Every try for a class, from all preferences to none.

    terms           the class's required terms, the best first, if they have an order other than the listed one
    respect         whether preferences count at all (PREFERENCE_POLICY)
    prefer_taints   whether some NodePool or node has a PreferNoSchedule taint
    """
    kept = terms[0] if terms else pod_class.terms[-1]
    steps = _Steps(pod_class, terms or pod_class.terms, kept, rules, respect)
    yield steps.variant()
    while steps.relax():
        yield steps.variant()
    if prefer_taints:
        steps.tolerates_preferred = True
        steps.dropped.append("PreferNoSchedule taints")
        yield steps.variant()
    for term in terms or pod_class.terms:
        if term is not kept:
            yield replace(steps.variant(), requirements=term)


class _Steps:
    def __init__(
        self,
        pod_class: PodClass,
        terms: Sequence[Requirements],
        kept: Requirements,
        rules: tuple[TopologyRule, ...],
        respect: bool,
    ) -> None:
        self._terms, self._kept = list(terms), kept
        self._preferred = list(pod_class.preferred) if respect else []
        self._rules = [rule for rule in rules if rule.weight is None or respect]
        self.tolerates_preferred = False
        self.dropped: list[str] = list(pod_class.impossible) if respect else []

    def variant(self) -> Variant:
        requirements = self._terms[0]
        if self._preferred:
            requirements = requirements.intersect(self._preferred[0].requirements)
        return Variant(
            requirements=requirements,
            rules=tuple(self._rules),
            tolerates_preferred=self.tolerates_preferred,
            dropped=tuple(self.dropped),
        )

    def relax(self) -> bool:
        """Drop the next preference; False if none is left."""
        if len(self._terms) > 1:
            del self._terms[0]
            return True
        self._terms = [self._kept]
        if self._drop_heaviest("affinity") or self._drop_heaviest("anti-affinity"):
            return True
        if self._preferred:
            self.dropped.append(str(self._preferred.pop(0)))
            return True
        return self._drop_spread()

    def _drop_heaviest(self, kind: str) -> bool:
        soft = [rule for rule in self._rules if rule.weight is not None and rule.kind == kind]
        if not soft:
            return False
        self._drop(max(soft, key=lambda rule: rule.weight or 0))
        return True

    def _drop_spread(self) -> bool:
        """Drop the first ScheduleAnyway spread. The last one takes its place, as in Karpenter, so the order changes."""
        soft = [index for index, rule in enumerate(self._rules) if rule.weight is not None and rule.kind == "spread"]
        if not soft:
            return False
        first, last = self._rules[soft[0]], self._rules[soft[-1]]
        self._drop(first)
        if last is not first:
            self._rules.remove(last)
            self._rules.insert(soft[0], last)
        return True

    def _drop(self, rule: TopologyRule) -> None:
        self._rules.remove(rule)
        self.dropped.append(str(rule))
