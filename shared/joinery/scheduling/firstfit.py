"""First-fit decreasing over pod classes: the start of every packing, and its fallback.

Classes go in order of priority and size. Each pod goes to existing capacity first, then to NodePools by weight: into a node
that is already being bought, or into one more. A node may grow into a larger instance type while that does not make it
poorer value than it was (``value.grown``); growing until nothing fits, the common way, ends on the one type that holds
everything and pays for it.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, product

import numpy as np

from joinery.apis.labels import HOSTNAME
from joinery.scheduling.classes import PodClass
from joinery.scheduling.limits import Limits
from joinery.scheduling.opened import OpenedNodes
from joinery.scheduling.pools import Amounts, Pool
from joinery.scheduling.relaxation import Variant, variants
from joinery.scheduling.reporter import Reporter
from joinery.scheduling.targets import Demand, Domains, ExistingNode, NewNode, empty_node
from joinery.scheduling.topology import UNLIMITED, Topology
from joinery.scheduling.value import best_start, grown, worth_of_one
from joinery.scheduling.workspace import Workspace

_COMBINATIONS = 256  # of domains over several topology keys


class FirstFit:
    """One run over a workspace. ``relaxed``: preferences dropped, by pod; ``left``: pods without a place, by class."""

    def __init__(self, work: Workspace, reporter: Reporter) -> None:
        self._work = work
        self._topology: Topology = work.topology
        self._reporter = reporter
        self._tiers = [tuple(group) for _, group in groupby(work.pools, key=lambda pool: pool.weight)]
        self._limits = {pool.name: Limits(pool) for pool in work.pools}
        self._worth: dict[tuple[int, str], float] = {}
        self.opened = OpenedNodes(len(work.axis.names))
        self.relaxed: dict[str, tuple[str, ...]] = {}
        self.left: dict[PodClass, list[str]] = {}

    def run(self) -> None:
        """Place everything that can be placed."""
        self.left = {pods: list(pods.pods) for pods in self._work.ordered()}
        self._keep_plans()
        progress = True
        while progress:
            progress = False
            for pods, names in self.left.items():
                if names:
                    self._reporter.considering(pods.name, len(names))
                    progress |= self._place_class(pods, names)
        self.left = {pods: names for pods, names in self.left.items() if names}

    def note_usage(self) -> None:
        """Tell the workspace what the new nodes take of their pools' limits, for the reasons."""
        for node in self.opened.nodes:
            limits = self._limits[node.pool.name]
            self._work.bought[node.pool.name] = self._work.bought.get(node.pool.name, 0) + 1
            self._work.charged[node.pool.name] = limits.spent

    def _keep_plans(self) -> None:
        """Pods that a claim was launched for go there, as planned, if they still fit."""
        planned = {key: node for node in self._work.nodes for key in node.view.planned}
        if not planned:
            return
        for pods, names in self.left.items():
            for name in [n for n in names if n in planned]:
                node = planned[name]
                demand = self._demand(pods, self._first_variant(pods))
                if node.view.is_reserved or (node.admits(demand) and node.holds(demand)):
                    self._put_existing(node, demand, [name])
                    names.remove(name)

    def _first_variant(self, pods: PodClass) -> Variant:
        return next(self._variants(pods))

    def _variants(self, pods: PodClass) -> Iterator[Variant]:
        return variants(
            pods,
            self._topology.rules[id(pods)],
            respect=self._work.problem.options.respect_preferences,
            prefer_taints=self._work.prefers_taints,
        )

    def _place_class(self, pods: PodClass, names: list[str]) -> bool:
        """Place as many as possible, giving up one preference after another. Whether any was placed."""
        before = len(names)
        for variant in self._variants(pods):
            for volumes in pods.volumes.alternatives:
                demand = self._demand(pods, variant)
                demand.volumes = volumes
                while names and (placed := self._sweep(demand, names)):
                    if variant.dropped:
                        self.relaxed.update(dict.fromkeys(placed, variant.dropped))
            if not names:
                break
        return len(names) < before

    def _demand(self, pods: PodClass, variant: Variant) -> Demand:
        row = self._work.axis.vector(pods.requests)
        return Demand(pods, variant, row, np.flatnonzero(row))

    def _sweep(self, demand: Demand, names: list[str]) -> list[str]:
        """One pass over all targets: existing capacity, then new nodes. The pods placed."""
        placed = self._into_existing(demand, names)
        if names:
            placed += self._into_new(demand, names)
        return placed

    # --- existing capacity ---

    def _into_existing(self, demand: Demand, names: list[str]) -> list[str]:
        keys = self._topology.keys(demand.pods, demand.variant.rules)
        placed: list[str] = []
        for cautious in (True, False):
            for node in self._work.nodes:
                if not names:
                    return placed
                if not node.admits(demand):
                    continue
                count = min(len(names), node.holds(demand), self._allowed_on(node, demand, keys, cautious))
                if count > 0 and self._may_start(demand, node.holds(demand), len(names)):
                    batch = [names.pop(0) for _ in range(count)]
                    self._put_existing(node, demand, batch)
                    placed += batch
        return placed

    def _allowed_on(self, node: ExistingNode, demand: Demand, keys: Sequence[str], cautious: bool) -> int:
        pods, rules = demand.pods, demand.variant.rules
        allowed = self._topology.allowance(pods, rules, HOSTNAME, node.name, cautious=cautious)
        for key in keys:
            domain = node.domain(key)
            if domain is not None:
                allowed = min(allowed, self._topology.allowance(pods, rules, key, domain, cautious=cautious))
            elif any(rule.key == key and rule.kind != "anti-affinity" for rule in rules):
                return 0
        return allowed

    def _put_existing(self, node: ExistingNode, demand: Demand, batch: list[str]) -> None:
        node.place(demand, batch)
        keys = self._topology.keys(demand.pods, self._topology.rules[id(demand.pods)])
        domains = {key: value for key in keys if (value := node.domain(key)) is not None}
        domains[HOSTNAME] = node.name
        self._topology.record(demand.pods, demand.variant.rules, domains, len(batch), node.counts)
        self._reporter.placing(batch[0], f"node {node.name}", len(batch))

    # --- new nodes ---

    def _into_new(self, demand: Demand, names: list[str]) -> list[str]:
        placed: list[str] = []
        for domains, quota in self._allotments(demand, len(names)):
            batch = names[:quota]
            remaining = list(batch)
            for tier in self._tiers:
                self._into_tier(tier, demand, domains, remaining)
            done = batch[: len(batch) - len(remaining)]
            names[: len(batch)] = remaining
            placed += done
            if not names:
                break
        return placed

    def _allotments(self, demand: Demand, count: int) -> list[tuple[Domains, int]]:
        """How many pods each combination of domains should take now, best first."""
        keys = self._topology.keys(demand.pods, demand.variant.rules)
        if not keys:
            return [({}, count)]
        combos = self._combinations(demand, keys)
        step = count if self._is_unlimited(demand) else 1
        return self._shares(demand, combos, step)

    def _combinations(self, demand: Demand, keys: Sequence[str]) -> list[Domains]:
        """Every combination of domains that some pool can offer the class, cheapest first."""
        found: dict[tuple[tuple[str, str], ...], float] = {}
        for pool in self._work.pools:
            node = self._start(pool, demand, {})
            if node is None:
                continue
            options = [node.values(key) or ("",) for key in keys]
            for values in list(product(*options))[:_COMBINATIONS]:
                domains = {key: value for key, value in zip(keys, values, strict=True) if value}
                narrowed = node.narrowed(demand, domains)
                if narrowed is not None and self._defined(demand, domains, keys):
                    prices = narrowed.pool.market.prices[narrowed.types][:, narrowed.columns]
                    key = tuple(sorted(domains.items()))
                    found[key] = min(found.get(key, np.inf), float(prices.min()))
        return [dict(key) for key, _ in sorted(found.items(), key=lambda item: (item[1], item[0]))]

    def _defined(self, demand: Demand, domains: Domains, keys: Sequence[str]) -> bool:
        """A node without the label is no place for a spread or an affinity over it."""
        missing = [key for key in keys if key not in domains]
        return not any(rule.key in missing and rule.kind != "anti-affinity" for rule in demand.variant.rules)

    def _is_unlimited(self, demand: Demand) -> bool:
        """Whether quotas may be planned ahead: nothing but topology can stop a pod in any of its domains."""
        return not any(pool.limits for pool in self._work.pools)

    def _shares(self, demand: Demand, combos: list[Domains], count: int) -> list[tuple[Domains, int]]:
        """Play ``count`` placements against the counts alone, each where it presses least, and take them back."""
        pods, rules = demand.pods, demand.variant.rules
        shares = [0] * len(combos)
        for cautious in (True, False):
            for _ in range(count - sum(shares)):
                best = self._least_pressed(demand, combos, cautious)
                if best is None:
                    break
                index, amount = best
                amount = min(amount, count - sum(shares)) if amount >= UNLIMITED else 1
                self._topology.record(pods, rules, combos[index], amount, lambda _: True)
                shares[index] += amount
                if sum(shares) == count:
                    break
        for index, share in enumerate(shares):
            if share:
                self._topology.record(pods, rules, combos[index], -share, lambda _: True)
        return [(combos[i], share) for i, share in enumerate(shares) if share]

    def _least_pressed(self, demand: Demand, combos: list[Domains], cautious: bool) -> tuple[int, int] | None:
        """The combination with the fewest counted pods that may take one more, and how many it may take."""
        pods, rules = demand.pods, demand.variant.rules
        best: tuple[int, int, int] | None = None
        for index, domains in enumerate(combos):
            allowed, pressure = UNLIMITED, 0
            for key, domain in domains.items():
                allowed = min(allowed, self._topology.allowance(pods, rules, key, domain, cautious=cautious))
                pressure += self._topology.pressure(pods, rules, key, domain)
            if allowed > 0 and (best is None or pressure < best[0]):
                best = (pressure, index, allowed)
        return None if best is None else (best[1], best[2])

    def _into_tier(self, tier: Sequence[Pool], demand: Demand, domains: Domains, names: list[str]) -> None:
        """Pools of one weight: nodes being bought first, then more of them."""
        pools = [pool for pool in tier if not demand.is_repelled(tuple(pool.node_pool.spec.template.spec.taints))]
        if not pools or not names:
            return
        units = {pool.name: self._unit(demand, pool) for pool in pools}
        for index in self.opened.promising(demand, len(names), units):
            if not names:
                return
            self._into_open(int(index), demand, domains, names)
        while names and self._open(pools, demand, domains, names):
            pass

    def _into_open(self, index: int, demand: Demand, domains: Domains, names: list[str]) -> None:
        allowed = self._allowed_on_host(demand, self.opened.nodes[index].name)
        node = self.opened.nodes[index].narrowed(demand, domains) if allowed > 0 else None
        if node is None:
            return
        most, rows, counts = node.holds(demand, self._limits[node.pool.name].mask(node))
        if most <= 0 or not self._may_start(demand, most, len(names)):
            return
        count = grown(
            node.least_prices[rows],
            counts,
            min(most, allowed, len(names)),
            price=self.opened.price[index],
            worth=self.opened.worth[index],
            unit=self._unit(demand, node.pool),
        )
        if count > 0:
            batch = [names.pop(0) for _ in range(count)]
            self._put_new(index, node, demand, domains, batch, rows[counts >= count])

    def _allowed_on_host(self, demand: Demand, host: str) -> int:
        return self._topology.allowance(demand.pods, demand.variant.rules, HOSTNAME, host, cautious=False)

    def _unit(self, demand: Demand, pool: Pool) -> float:
        """The worth of one pod of the class in the pool."""
        key = (id(demand.pods), pool.name)
        if key not in self._worth:
            node = self._start(pool, demand, {})
            self._worth[key] = 0.0 if node is None else worth_of_one(node, demand)
        return self._worth[key]

    def _start(self, pool: Pool, demand: Demand, domains: Domains) -> NewNode | None:
        if demand.is_repelled(tuple(pool.node_pool.spec.template.spec.taints)):
            return None
        name = f"{pool.name}-{len(self.opened.nodes) + 1}"
        return empty_node(pool, name, self._work.axis).narrowed(demand, domains)

    def _open(self, pools: Sequence[Pool], demand: Demand, domains: Domains, names: list[str]) -> bool:
        """Buy one more node for the first pods; False if no pool can."""
        for pool in pools:
            limits = self._limits[pool.name]
            node = self._start(pool, demand, domains) if limits.more_nodes() else None
            if node is None:
                continue
            most, rows, counts = node.holds(demand, limits.mask(None))
            most = min(most, self._allowed_on_host(demand, node.name), len(names))
            if most > 0:
                host_bound = self._is_host_bound(demand)
                count = most if host_bound else best_start(node.least_prices[rows], counts, most)
                batch = [names.pop(0) for _ in range(count)]
                self._put_new(self.opened.append(node), node, demand, domains, batch, rows[counts >= count])
                return True
        return False

    def _put_new(
        self, index: int, node: NewNode, demand: Demand, domains: Domains, batch: list[str], rows: Amounts
    ) -> None:
        types = np.zeros_like(node.types)
        types[rows] = True
        node.types = types
        node.used = node.used + demand.row * len(batch)
        node.ports = node.ports | demand.pods.ports
        node.placed.append((demand.pods, batch))
        self.opened.replace(index, node, self._unit(demand, node.pool) * len(batch))
        self._limits[node.pool.name].charge(node)
        where = {**domains, HOSTNAME: node.name}
        self._topology.record(demand.pods, demand.variant.rules, where, len(batch), node.counts)
        self._reporter.placing(batch[0], f"new node {node.name}", len(batch))

    # --- pods that must share one host ---

    def _is_host_bound(self, demand: Demand) -> bool:
        """Whether the class must gather on one host and none is chosen yet."""
        return any(
            rule.key == HOSTNAME
            and rule.kind == "affinity"
            and self._topology.may_begin(self._topology.group(rule), demand.pods)
            for rule in demand.variant.rules
        )

    def _may_start(self, demand: Demand, room: int, count: int) -> bool:
        """A group that must share a host starts only where all of it fits."""
        return room >= count or not self._is_host_bound(demand)
