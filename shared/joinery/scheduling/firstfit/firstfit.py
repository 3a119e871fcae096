"""First-fit decreasing over pod classes: the start of every packing, and its fallback.

Classes go in order of priority and size. Each pod goes to existing capacity first, then to NodePools by weight: into a node
that is already being bought, or into one more.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from joinery.apis.labels import HOSTNAME
from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.constraints.relaxation import Variant, variants
from joinery.scheduling.constraints.topology_rules import NodeFilter
from joinery.scheduling.firstfit.allotment import Allotment
from joinery.scheduling.firstfit.groups import admits
from joinery.scheduling.firstfit.manners import USUAL, Manner
from joinery.scheduling.firstfit.new_nodes import Purchase, may_start
from joinery.scheduling.firstfit.targets import Demand, Domains, ExistingNode
from joinery.scheduling.firstfit.topology import Topology
from joinery.scheduling.firstfit.workspace import Workspace
from joinery.scheduling.pools.reserved import needed


class FirstFit:
    """One run over a workspace. ``relaxed``: preferences dropped, by pod; ``left``: pods without a place, by class."""

    def __init__(self, work: Workspace, manner: Manner = USUAL) -> None:
        self._manner = manner
        self._work = work
        self._topology: Topology = work.topology
        self._takes_more_hosts = True
        self.purchase = Purchase(work, manner)
        self._allotment = Allotment(work, self.purchase, manner)
        self._needed: dict[PodClass, frozenset[str]] = {}
        self._tries: dict[tuple[PodClass, int], tuple[Demand, ...]] = {}
        self.relaxed: dict[str, tuple[str, ...]] = {}
        self.left: dict[PodClass, list[str]] = {}
        self.classes: tuple[PodClass, ...] = ()

    def run(self) -> None:
        """Place everything that can be placed."""
        self.classes = tuple(self._work.ordered(self._manner))
        self.left = {pods: list(pods.pods) for pods in self.classes}
        if self._work.reservations:
            found = ((c, needed(self._work.pools, c, self._work.axis.vector(c.requests))) for c in self.classes)
            self._needed = {pods: names for pods, names in found if names}
        self._keep_plans()
        self._fill()

    def go_on(self, purchase: Purchase) -> None:
        """Try again for what is left, now that other nodes carry the pods that were placed: they may leave some of a limit."""
        self.purchase = purchase
        self._allotment = Allotment(self._work, purchase, self._manner)
        self._fill()

    def fill_up(self) -> None:
        """Last of all, put what is left on nodes that there will be anyway: once those are settled, spreads over hosts let more in."""
        if self.left and self._topology.settle_hosts(self._hosts):
            self._takes_more_hosts = False
            self._fill()
            self._topology.unsettle_hosts()

    def _hosts(self, nodes: NodeFilter) -> Iterator[str]:
        """The hosts of the plan that count for such a spread."""
        yield from (view.labels.get(HOSTNAME, view.name) for view in self._work.views if admits(nodes, view))
        yield from (node.name for node in self.purchase.opened.nodes if node.counts(nodes))

    def _fill(self) -> None:
        """Class after class for as long as that places something."""
        progress = True
        while progress:
            progress = False
            for pods, names in self.left.items():
                if names:
                    progress |= self._place_class(pods, names)
        self.left = {pods: names for pods, names in self.left.items() if names}

    def _keep_plans(self) -> None:
        """Pods that a claim was launched for go there, as planned, if that is still right.

        Once its node is complete the plan is history: only pods that still wait are held to it.
        """
        planned = {
            key: node
            for node in self._work.nodes
            for key in node.view.planned
            if not node.view.is_initialized or key in self._work.waiting
        }
        if not planned:
            return
        for pods, names in self.left.items():
            waiting: dict[ExistingNode, list[str]] = {}
            for name in (n for n in names if n in planned):
                waiting.setdefault(planned[name], []).append(name)
            demands = self._demands(pods, 0, self._first_variant(pods)) if waiting else ()
            # Round after round: a spread lets few pods into a domain until the others have as many.
            while kept := {
                name
                for node, listed in waiting.items()
                for demand in demands
                for name in self._keep(node, demand, listed)
            }:
                names[:] = [name for name in names if name not in kept]

    def _keep(self, node: ExistingNode, demand: Demand, listed: list[str]) -> list[str]:
        """Put as many of the pods planned for a node there as it may have by now, and return them."""
        count = len(listed) if node.view.is_reserved else min(len(listed), self._takes(node, demand))
        batch, listed[:] = listed[:count], listed[count:]
        if batch:
            self._put_existing(node, demand, batch)
        return batch

    def _takes(self, node: ExistingNode, demand: Demand) -> int:
        if not node.admits(demand):
            return 0
        keys = self._topology.keys(demand.pods, demand.variant.rules)
        return min(node.holds(demand), self._allowed_on(node, demand, keys, False))

    def _first_variant(self, pods: PodClass) -> Variant:
        return next(self._variants(pods))

    def _variants(self, pods: PodClass) -> Iterator[Variant]:
        return variants(
            pods,
            self._topology.rules[pods],
            respect=self._work.problem.options.respect_preferences,
            prefer_taints=self._work.prefers_taints,
        )

    def _place_class(self, pods: PodClass, names: list[str]) -> bool:
        """Place as many as possible, giving up one preference after another. Whether any was placed."""
        before = len(names)
        self.purchase.kept_back = self._kept_back(pods)
        self._work.dealt.discard(pods)
        for number, variant in enumerate(self._variants(pods)):
            for demand in self._demands(pods, number, variant):
                while names and (placed := self._sweep(demand, names)):
                    if variant.dropped:
                        self.relaxed.update(dict.fromkeys(placed, variant.dropped))
            if not names:
                break
        return len(names) < before

    def _kept_back(self, pods: PodClass) -> frozenset[str]:
        """The reservations without which other classes that still wait would have nothing: who may be elsewhere goes there."""
        if pods in self._needed:
            return frozenset()
        return frozenset(name for other, names in self._needed.items() if self.left.get(other) for name in names)

    def _demands(self, pods: PodClass, number: int, variant: Variant) -> tuple[Demand, ...]:
        """One try each for what the volumes of the class allow; the same objects however often the class is tried."""
        key = (pods, number)
        if key not in self._tries:
            found = [self._demand(pods, variant) for _ in pods.volumes.alternatives]
            for demand, volumes in zip(found, pods.volumes.alternatives, strict=True):
                demand.volumes = volumes
            self._tries[key] = tuple(found)
        return self._tries[key]

    def _demand(self, pods: PodClass, variant: Variant) -> Demand:
        row = self._work.axis.vector(pods.requests)
        return Demand(pods, variant, row, np.flatnonzero(row))

    def _sweep(self, demand: Demand, names: list[str]) -> list[str]:
        """One pass over all targets: existing capacity, then new nodes. The pods placed."""
        placed = self._into_existing(demand, names)
        if names and demand.pods not in self._work.held:
            placed += self._into_new(demand, names)
        return placed

    # --- existing capacity ---

    def _into_existing(self, demand: Demand, names: list[str]) -> list[str]:
        keys = self._topology.keys(demand.pods, demand.variant.rules)
        placed: list[str] = []
        for cautious in (True, False):
            # A spread may let a pod in only once another has gone elsewhere, or one more each time: ask before buying.
            while names and (batch := self._one_round(demand, names, keys, cautious)):
                placed += batch
                if not demand.variant.rules:
                    break
        return placed

    def _one_round(self, demand: Demand, names: list[str], keys: Sequence[str], cautious: bool) -> list[str]:
        placed: list[str] = []
        for node in self._work.nodes:
            if not names:
                break
            if not node.admits(demand):
                continue
            count = min(len(names), node.holds(demand), self._allowed_on(node, demand, keys, cautious))
            if count > 0 and may_start(self._topology, demand, node.holds(demand), len(names)):
                batch = [names.pop(0) for _ in range(count)]
                self._put_existing(node, demand, batch)
                placed += batch
        return placed

    def _allowed_on(self, node: ExistingNode, demand: Demand, keys: Sequence[str], cautious: bool) -> int:
        pods, rules = demand.pods, demand.variant.rules
        is_careful = cautious or self._manner.cautious
        allowed = self._topology.allowance(pods, rules, HOSTNAME, node.host, cautious=is_careful)
        for key in keys:
            domain = node.domain(key)
            if domain is not None:
                allowed = min(allowed, self._topology.allowance(pods, rules, key, domain, cautious=cautious))
            elif any(rule.key == key and rule.kind != "anti-affinity" for rule in rules):
                return 0
        return allowed

    def _put_existing(self, node: ExistingNode, demand: Demand, batch: list[str]) -> None:
        node.place(demand, batch)
        keys = self._topology.keys(demand.pods, self._topology.rules[demand.pods])
        domains = {key: value for key in keys if (value := node.domain(key)) is not None}
        domains[HOSTNAME] = node.host
        self._topology.record(demand.pods, demand.variant.rules, domains, len(batch), node.counts)

    # --- new nodes ---

    def _into_new(self, demand: Demand, names: list[str]) -> list[str]:
        """Deal the pods out once more wherever nothing could be bought in any of the domains that they were dealt to."""
        refused: list[Domains] = []
        while True:
            known = len(refused)
            placed = self._deal(demand, names, refused)
            if placed or len(refused) == known:
                return placed

    def _deal(self, demand: Demand, names: list[str], refused: list[Domains]) -> list[str]:
        """Buy where the pods are dealt to, and note the domains in which that could not be done.

        Domains with room on existing nodes come last: a spread may let more pods in there once others are elsewhere.
        """
        placed: list[str] = []
        roomy = self._domains_with_room(demand)
        waiting: list[tuple[Domains, int]] = []
        for domains, quota in self._allotment.of(demand, len(names), refused):
            self._work.dealt.add(demand.pods)
            if any(domains.items() <= there for there in roomy):
                waiting.append((domains, quota))
            else:
                bought = self._buy(demand, domains, names, quota)
                placed += bought
                refused += [] if bought else [domains]
            if not names:
                break
        for domains, quota in waiting if not placed else ():
            bought = self._buy(demand, domains, names, quota)
            placed += bought
            refused += [] if bought else [domains]
        return placed

    def _domains_with_room(self, demand: Demand) -> list[set[tuple[str, str]]]:
        """The domains of existing nodes that could take a pod, were it for rules over those domains; for a class without such rules none."""
        keys = [rule.key for rule in demand.variant.rules if rule.kind == "spread" and rule.key != HOSTNAME]
        if not keys:
            return []
        pods, rules = demand.pods, demand.variant.rules
        return [
            {(key, value) for key in self._topology.keys(pods, rules) if (value := node.domain(key)) is not None}
            for node in self._work.nodes
            if node.admits(demand)
            and node.holds(demand) > 0
            and self._topology.allowance(pods, rules, HOSTNAME, node.host, cautious=False) > 0
        ]

    def _buy(self, demand: Demand, domains: Domains, names: list[str], quota: int) -> list[str]:
        """Put so many of the pods on new nodes in those domains. The pods placed."""
        batch = names[:quota]
        remaining = list(batch)
        into = self.purchase.into_tier if self._takes_more_hosts else self.purchase.into_opened
        for tier in self.purchase.tiers:
            into(tier, demand, domains, remaining)
        names[: len(batch)] = remaining
        return batch[: len(batch) - len(remaining)]
