"""How many more pods of a class a domain may take (kube-scheduler PodTopologySpread and InterPodAffinity).

Rules bind in both directions, because kube-scheduler may bind the pods of a plan in any order:

- a pod obeys the rules that it owns;
- a pod that a required anti-affinity of another pod selects keeps away from that pod;
- a pod that the spread of another pod counts must not push a domain where such an owner is over its skew. While owners
  are still to be placed, the pods that they count are kept balanced too, as long as that costs no placement
  (``cautious``).

Preferred rules bind their owner until it gives them up, and never bind others.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule
from joinery.decisions.scheduling.pools.market import Mask
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.topology.groups import UNLIMITED, TopologyGroup, allowed_by_others, parts
from joinery.decisions.scheduling.topology.ledger import Ledger
from joinery.objects.karpenter.labels import HOSTNAME


class Topology(Ledger):
    """What the rules of a problem allow, given the counts so far."""

    def allowance(
        self, pod_class: PodClass, rules: Sequence[TopologyRule], key: str, domain: str, *, cautious: bool
    ) -> int:
        """How many more pods of the class the domain may take under these
        rules of its own and under everybody else's. Of several that are left to a node, each must.
        """
        if "," in domain:
            return min(self.allowance(pod_class, rules, key, part, cautious=cautious) for part in parts(domain))
        allowed = UNLIMITED
        for rule in rules:
            if rule.key == key and allowed > 0:
                allowed = min(allowed, self._owned(pod_class, rule, domain))
        if allowed > 0 and self.is_kept_out(pod_class, key, domain):
            return 0
        for group in self._binding(pod_class, key):
            if allowed > 0:
                allowed = min(allowed, allowed_by_others(group, domain, cautious=cautious))
        return allowed

    def unfilled(self, pod_class: PodClass, rules: Iterable[TopologyRule], hosts: Sequence[str]) -> Sequence[int]:
        """The positions of hosts that rules of its own over hosts have not closed to the class; others' are not asked.

        Most of thousands of hosts are closed, and to see that here costs least.
        """
        left: Sequence[int] = range(len(hosts))
        for rule in rules:
            group = self.group(rule)
            if rule.key != HOSTNAME or rule.kind == "affinity":
                continue
            if rule.kind == "anti-affinity":
                left = [position for position in left if not group.counts.get(hosts[position])]
                if group.selects(pod_class):
                    left = [position for position in left if not group.owners.get(hosts[position])]
            elif group.selects(pod_class):
                most = rule.max_skew + group.least
                left = [position for position in left if group.counts.get(hosts[position], 0) < most]
        return left

    def open_hosts(self, pod_class: PodClass, rules: Sequence[TopologyRule], hosts: Sequence[str]) -> Sequence[int]:
        """The positions of the hosts that may take one more pod of the class (``allowance``).

        Where all rules keep pods apart, which counts they ask for is enough.
        """
        left = self.unfilled(pod_class, rules, hosts)
        if self.foreign_over(pod_class, HOSTNAME):
            left = [position for position in left if not self.is_kept_out(pod_class, HOSTNAME, hosts[position])]
        others = (rule for rule in rules if rule.key == HOSTNAME and rule.kind != "anti-affinity")
        if next(others, None) is None and not self._binding(pod_class, HOSTNAME):
            return left
        allowances = ((at, self.allowance(pod_class, rules, HOSTNAME, hosts[at], cautious=False)) for at in left)
        return [position for position, allowed in allowances if allowed > 0]

    def _binding(self, pod_class: PodClass, key: str) -> Sequence[TopologyGroup]:
        """The ``foreign`` groups over this key that may keep the class out, beside anti-affinity."""
        groups = self._binding_over.get((pod_class, key))
        if groups is None:
            foreign = (group for group in self.foreign_over(pod_class, key) if group.is_hard)
            groups = self._binding_over[pod_class, key] = tuple(g for g in foreign if g.rule.kind != "anti-affinity")
        return groups

    def _owned(self, pod_class: PodClass, rule: TopologyRule, domain: str) -> int:
        group = self.group(rule)
        selects_itself = group.selects(pod_class)
        if rule.kind == "spread":
            return self._spread(group, rule, pod_class, domain)
        if rule.kind == "affinity":
            is_met = group.counts[domain] or self._has_residents(group)
            return UNLIMITED if is_met or self._begins_at(group, pod_class, domain) else 0
        if group.counts[domain] or (selects_itself and group.owners[domain]):
            return 0
        return 1 if selects_itself else UNLIMITED

    def _has_residents(self, group: TopologyGroup) -> bool:
        """Whether every new node brings a DaemonSet's pod that the affinity wants, whatever domain it comes to.

        Not asked over hosts: there each new node's pods are counted when the node is opened.
        """
        return group.rule.key != HOSTNAME and 0 < len(self._residents.pools) == len(group.residents)

    def barring(self, pod_class: PodClass, rules: Iterable[TopologyRule], pool: str) -> tuple[TopologyRule, ...]:
        """The rules by which the class and the DaemonSets' pods on new nodes of the pool keep apart."""
        if not self._resident_groups and not self._residents.keeping_away:
            return ()
        own = tuple(r for r in rules if r.kind == "anti-affinity" and self.group(r).residents.get(pool))
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
        own = {self.group(rule) for rule in rules} if self.counting_daemons else set()
        for group in self.counting_daemons:
            domain = domains.get(group.rule.key, "")
            if group.ranges_over(domain) and (group in own or group.owners[domain]):
                brought = group.brought.get(pool.name, np.zeros_like(types, dtype=np.int64))
                selected = int(group.selects(pod_class))
                allowed = [n for n in np.unique(brought) if group.admits_newcomer(domain, int(n), selected)]
                types = types & np.isin(brought, allowed)
        return types

    def neighbouring(self, classes: Iterable[PodClass], key: str) -> frozenset[str]:
        """The domains of the key in which there are pods that the required
        affinity of one of these classes wants to be near.
        """
        rules = [r for c in classes for r in self.rules[c] if (r.kind, r.key, r.weight) == ("affinity", key, None)]
        return frozenset(d for rule in rules for d, count in self.group(rule).counts.items() if count)

    def _spread(self, group: TopologyGroup, rule: TopologyRule, pod_class: PodClass, domain: str) -> int:
        if not group.ranges_over(domain):
            return 0
        left = rule.max_skew + group.least - group.filled(domain)
        if group.selects(pod_class):
            return max(0, left)
        return UNLIMITED if left >= 0 else 0

    def may_begin(self, group: TopologyGroup, pod_class: PodClass) -> bool:
        """Whether the class may be first where its affinity finds nobody: it selects itself, and nobody matches
        anywhere.

        With several required terms, nobody may match any of them (kube-scheduler InterPodAffinity,
        ``satisfyPodAffinity``).
        """
        if not group.selects(pod_class) or group.residents or any(group.counts.values()):
            return False
        required = (r for r in self.rules[pod_class] if r.kind == "affinity" and r.weight is None and not r.claim)
        return not group.is_hard or not any(any(self.group(rule).counts.values()) for rule in required)

    def _begins_at(self, group: TopologyGroup, pod_class: PodClass, domain: str) -> bool:
        """Whether the class may be first in that domain.

        kube-scheduler would let it be first anywhere. But all who own the rule must follow it there, so a plan that is
        to place them all begins where all of them can go, if there is such a domain.
        """
        if not self.may_begin(group, pod_class):
            return False
        meeting = self._meeting_places(group)
        return not meeting or domain in meeting

    def _meeting_places(self, group: TopologyGroup) -> frozenset[str]:
        """The domains that every class with this hard rule can reach.

        Not sought over hosts, of which one more can always be bought.
        """
        key = group.rule.key
        if key == HOSTNAME or group.rule.weight is not None:
            return frozenset()
        if group not in self._meeting:
            reached = [self._universe(pods, key) | self._standing(pods, key) for pods in self._owning[group]]
            self._meeting[group] = frozenset.intersection(*reached) if reached else frozenset()
        return self._meeting[group]

    def _standing(self, pod_class: PodClass, key: str) -> frozenset[str]:
        """The domains of nodes that exist and that the class may run on by its own node affinity."""
        views = (view for view in self._nodes if not view.is_leaving and key in view.labels)
        return frozenset(v.labels[key] for v in views if any(term.matches(v.labels) for term in pod_class.terms))

    def pressure(
        self, pod_class: PodClass, rules: Iterable[TopologyRule], key: str, domain: str, *, ahead: bool = False
    ) -> int:
        """How many pods in the domain its own spreads count, or hard spreads of others: pods are dealt to where this is
        least.

        ``ahead``: also pods that hard affinities of others count, so that there are neighbours in every domain.
        """
        groups = [self.group(rule) for rule in rules if rule.key == key and rule.kind == "spread"]
        groups += [
            group for group in self._binding(pod_class, key) if group.rule.kind == "spread" and group not in groups
        ]
        if ahead:
            groups += [group for group in self._binding(pod_class, key) if group.rule.kind == "affinity"]
        return sum(group.filled(domain) for group in groups)
