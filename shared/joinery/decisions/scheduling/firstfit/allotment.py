"""How many pods of a class each combination of domains should take, by the counts of topology rules alone.

A class is dealt out before anything is bought: each pod goes where the fewest are that its spreads count. Three cases:

- Where nothing but topology can stop a pod, the whole class is dealt at once.
- Where limits or the end of a capacity reservation may stop pods, one is dealt at a time. A pod that is dealt to a zone
  because others were dealt elsewhere has no place there if those others are never bought for.
- Pods that must share one host are dealt to each domain as if there were no other: a host is in one domain only.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, islice, product
from types import MappingProxyType

import numpy as np

from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.constraints.topology_rules import ALL_NODES, NodeFilter
from joinery.decisions.scheduling.firstfit.buying import Buyer
from joinery.decisions.scheduling.firstfit.demand import Dealt, Demand, Domains, present
from joinery.decisions.scheduling.firstfit.domain_offers import Sale, decides, holding
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.new_nodes import is_open_to
from joinery.decisions.scheduling.firstfit.options import Manner
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.topology.groups import UNLIMITED
from joinery.decisions.scheduling.topology.ledger import Counts
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import canonical

_COMBINATIONS = 256
"""Combinations of domains over several topology keys that one kind of node is tried in; more would take too long."""


class Allotment:
    """Deals classes out over the domains in which something can be bought for them."""

    def __init__(
        self, work: Workspace, buyer: Buyer, manner: Manner, effort: Effort, dealt: Dealt = MappingProxyType({})
    ) -> None:
        self._effort = effort
        self._dealing, self._fitting = manner.dealing, manner.fitting
        self._work = work
        self._topology: Topology = work.topology
        self._nodes, self._reserved = buyer.nodes, buyer.reserved
        self._offers: dict[tuple[Demand | str, ...], tuple[list[Domains], bool]] = {}
        self._counted: dict[tuple[Demand, tuple[tuple[str, str], ...], NodeFilter], bool] = {}
        self._given = dict(dealt)
        self._used: dict[Demand, set[tuple[tuple[str, str], ...]]] = {}
        self._is_unlimited = not any(pool.limits for pool in work.pools)
        self._counts_daemons = bool(work.topology.counting_daemons) and not manner.ignores_daemons
        self._relaxes = work.problem.options.best_effort_min_values

    @cached_property
    def _keys_of_some(self) -> frozenset[str]:
        """Keys that nodes of some pools have and nodes of others lack: there "no such label" is a domain of its own."""
        return frozenset().union(*(pool.requirements.sets.keys() | pool.market.type_keys for pool in self._work.pools))

    def of(self, demand: Demand, count: int, refused: Sequence[Domains] = ()) -> Iterator[tuple[Domains, int]]:
        """Combinations of domains, best first without the ``refused``, and how many pods each should take now.

        Pods are to be placed before the next combination is asked for: its share depends on them.
        """
        offered, is_bought = self._offered_over(demand, refused)
        combinations = [domains for domains in offered if domains not in refused]
        if combinations == [{}]:
            yield {}, count
            return
        if given := self._given.pop(demand.identity, None):
            yield from _among(combinations, given)
            return
        if self._dealing == "gathered":
            combinations = self._inhabited_first(combinations)
        if demand.gathers:
            yield from self._alone(demand, combinations, count)
        else:
            at_once = self._is_unlimited and is_bought and not self._counts_daemons
            yield from self._shares(demand, combinations, count if at_once else 1)

    def _offered_over(self, demand: Demand, refused: Sequence[Domains]) -> tuple[list[Domains], bool]:
        """``_offered`` over all keys; where nothing is left of that, over those alone that bind the class.

        To be in a known zone may be more than minValues permit, and a preference keeps nobody pending.
        """
        pods, rules = demand.pod_class, demand.variant.rules
        newcomers = {group.rule.key for group in self._topology.counting_daemons} if self._counts_daemons else set()
        found: tuple[list[Domains], bool] = [], False
        for keys in (self._topology.keys(pods, rules), self._topology.binding_keys(pods, rules)):
            wanted = tuple(sorted({*keys, *newcomers}))
            found = self._offered(demand, wanted) if wanted else ([{}], True)
            if any(domains not in refused for domains in found[0]):
                break
        return found

    def _inhabited_first(self, combinations: list[Domains]) -> list[Domains]:
        """Those in which a node is bought already before others, else in their order."""
        nodes = self._nodes.opened.nodes
        return sorted(
            combinations,
            key=lambda domains: (
                not any(
                    all(not value or node.values(key) == (value,) for key, value in domains.items()) for node in nodes
                )
            ),
        )

    def _alone(self, demand: Demand, combinations: list[Domains], count: int) -> Iterator[tuple[Domains, int]]:
        """Each combination with what it may take while the others take nothing, the most first."""
        room = [self._most(demand, domains, count) for domains in combinations]
        for index in sorted(range(len(combinations)), key=lambda i: -room[i]):
            share = self._most(demand, combinations[index], count)
            if share:
                yield combinations[index], share

    def _most(self, demand: Demand, domains: Domains, count: int) -> int:
        dealt = self._shares(demand, [domains], count)
        return dealt[0][1] if dealt else 0

    def _offered(self, demand: Demand, keys: Sequence[str]) -> tuple[list[Domains], bool]:
        """``_combinations``, remembered unless a reservation can run out meanwhile."""
        if self._work.reservations:
            return self._combinations(demand, keys)
        if (demand, *keys) not in self._offers:
            self._offers[demand, *keys] = self._combinations(demand, keys)
        return self._offers[demand, *keys]

    def _combinations(self, demand: Demand, keys: Sequence[str]) -> tuple[list[Domains], bool]:
        """Every combination of domains that some pool can offer the class, and whether each can be bought for.

        Those of heavier pools come first, then those that keep to minValues, then the cheapest.
        """
        offers: dict[tuple[tuple[str, str], ...], tuple[int, bool, float]] = {}
        bought: set[tuple[tuple[str, str], ...]] = set()
        for node in self._starts(demand, keys):
            sale: Sale | None = None
            options = [self._options(node, demand, key) for key in keys]
            for values in islice(product(*options), _COMBINATIONS):
                named = zip(keys, values, strict=True)
                domains = {key: value for key, value in named if value or key in self._keys_of_some}
                if not self._work.reservations and decides(node, domains, keys):
                    sale = sale or Sale(node, demand, fitting=self._fitting)
                    price = sale.price(domains)
                    offer = None if price is None else (-node.pool.weight, False, price)
                else:
                    offer = self._offer(node, demand, domains, keys)
                if offer is not None:
                    key = tuple(sorted(domains.items()))
                    offers[key] = min(offers.get(key, offer), offer)
                    bought |= set() if node.reservation else {key}
        listed: list[Domains] = [dict(key) for key, _ in sorted(offers.items(), key=lambda item: (item[1], item[0]))]
        return listed, len(bought) == len(offers)

    def _offer(
        self, node: NewNode, demand: Demand, domains: Domains, keys: Sequence[str]
    ) -> tuple[int, bool, float] | None:
        """How a node in these domains ranks among others; None where it is no place for the class."""
        narrowed = node.narrowed(demand, domains) if self._defined(demand, domains, keys) else None
        room = self._room(narrowed, demand) if narrowed is not None else (0, 0)
        if narrowed is None or not any(room):
            return None
        types = holding(narrowed, demand) if self._fitting else narrowed.types
        prices = narrowed.pool.market.prices[types][:, narrowed.columns]
        return -node.pool.weight, not room[0], float(prices.min())

    def _options(self, node: NewNode, demand: Demand, key: str) -> Sequence[str]:
        """The domains of the key that the node may be pinned to.

        Where its minValues ask for several, it cannot be. Then as many as they ask for, in all ways, if nothing but
        anti-affinity wants to know which it is: the pods keep apart from those in any of them.
        """
        values, least = self._values(node, key), node.min_values.get(canonical(key), 0)
        if (
            least < 2
            or self._relaxes
            or not self._topology.only_keeps_apart(demand.pod_class, demand.variant.rules, key)
        ):
            return values or ("",)
        return [",".join(chosen) for chosen in islice(combinations(values, least), _COMBINATIONS)]

    def _values(self, node: NewNode, key: str) -> tuple[str, ...]:
        """The domains of the key that the node may be in. Of a label that may have any value, one that nothing else has
        stands for all; and each that nodes of an earlier packing had.
        """
        values, allowed = node.values(key), node.requirements.get(key)
        if not allowed.complement or not values:
            return values
        opened = {it.domain for it in self._topology.unforeseen if it.key == key and allowed.has(it.domain)}
        return tuple(sorted({*values, *opened}))

    def _starts(self, demand: Demand, keys: Sequence[str]) -> Iterator[NewNode]:
        """A fresh node of each pool and reservation for the class; open nodes in reservations, which may be full."""
        suitable = self._work.pools_by_label.suitable(demand.requirements)
        for pool in (pool for pool in suitable if is_open_to(pool, demand, self._topology)):
            node = self._nodes.start(pool, demand, {})
            if node is not None:
                yield node
            if self._work.reservations:
                yield from self._reserved.starts(pool, demand, {}, keys)
        if self._work.reservations:
            yield from self._reserved.open_to(demand)

    def _defined(self, demand: Demand, domains: Domains, keys: Sequence[str]) -> bool:
        """A node without the label is no place for a spread or an affinity over it."""
        missing = [key for key in keys if not domains.get(key)]
        return not any(rule.key in missing and rule.kind != "anti-affinity" for rule in demand.variant.rules)

    def _shares(self, demand: Demand, combinations: list[Domains], count: int) -> list[tuple[Domains, int]]:
        """How ``count`` pods share out, each going where the pressure is least.

        They are counted on the way, and taken back.
        Combinations without a share are left out.
        """
        pods, rules = demand.pod_class, demand.variant.rules
        places = [present(domains) for domains in combinations]
        shares = [0] * len(combinations)
        ever_used = self._used.setdefault(demand, set())
        used = {index for index, domains in enumerate(combinations) if tuple(domains.items()) in ever_used}
        last = -1
        for cautious in (True, False):
            for _ in range(count - sum(shares)):
                best = self._least_pressed(demand, combinations, cautious, last, used)
                if best is None or self._effort.is_late():
                    break
                index, amount = best
                last = index
                is_free = amount >= UNLIMITED and self._dealing != "ahead"
                amount = count - sum(shares) if is_free else 1
                self._topology.record(pods, rules, places[index], amount, self._counting(demand, combinations[index]))
                shares[index] += amount
                used.add(index)
                if sum(shares) == count:
                    break
        for index, share in enumerate(shares):
            if share:
                self._topology.record(pods, rules, places[index], -share, self._counting(demand, combinations[index]))
        ever_used |= {tuple(combinations[index].items()) for index in used}
        return [(combinations[i], share) for i, share in enumerate(shares) if share]

    def _counting(self, demand: Demand, domains: Domains) -> Counts:
        """Whether a spread's filter admits a node that is bought for the class in these domains.

        The first node that could be started stands for all of them.
        """

        def counts(nodes: NodeFilter) -> bool:
            if nodes == ALL_NODES:
                return True
            key = demand, tuple(sorted(domains.items())), nodes
            if key not in self._counted:
                starts = (node.narrowed(demand, domains) for node in self._starts(demand, ()))
                first = next((node for node in starts if node is not None), None)
                self._counted[key] = first is None or first.counts(nodes)
            return self._counted[key]

        return counts

    def _least_pressed(
        self, demand: Demand, combinations: list[Domains], cautious: bool, last: int, used: Container[int]
    ) -> tuple[int, int] | None:
        """Of the combinations that may take one more pod the one under the least pressure, and how many it may take.

        Of several under the same pressure one that is ``used`` already: each needs a node of its own. Where pods are
        gathered, the ``last`` one as long as it may, then the first one.
        """
        best: tuple[tuple[int, bool], int, int] | None = None
        asked: dict[tuple[str, str], tuple[int, int]] = {}
        for index, domains in enumerate(combinations):
            allowed, pressure = UNLIMITED, 0
            for place in domains.items():
                if not place[1]:
                    continue
                # Hundreds of combinations share a few domains.
                if place not in asked:
                    asked[place] = self._asked(demand, *place, cautious=cautious)
                allowed = min(allowed, asked[place][0])
                pressure = int(index != last) if self._dealing == "gathered" else pressure + asked[place][1]
            rank = pressure, index not in used
            if allowed > 0 and (best is None or rank < best[0]):
                best = (rank, index, allowed)
        return None if best is None else (best[1], best[2])

    def _asked(self, demand: Demand, key: str, domain: str, *, cautious: bool) -> tuple[int, int]:
        """How many more pods of the class the domain may take by the counts as they are, and under what pressure it is.

        Where pods are gathered nobody asks for the pressure.
        """
        pods, rules, topology = demand.pod_class, demand.variant.rules, self._topology
        allowed = topology.allowance(pods, rules, key, domain, cautious=cautious)
        if allowed <= 0 or self._dealing == "gathered":
            return allowed, 0
        return allowed, topology.pressure(pods, rules, key, domain, ahead=self._dealing == "ahead")

    def _room(self, node: NewNode, demand: Demand) -> tuple[int, int]:
        """How many pods the node holds, whatever it may be, and how many with lower minValues.

        A domain without room takes no share: its share would let pods into others that must stay out without it.
        """
        most, _, counts = node.holds(demand, np.ones_like(node.types))
        return most, int(counts.max(initial=0)) if self._relaxes else most


def _among(combinations: Sequence[Domains], given: Iterable[tuple[Domains, int]]) -> Iterator[tuple[Domains, int]]:
    """The shares that are given, in the first combination each that says the same of the domains."""
    for domains, share in given:
        inside = next((one for one in combinations if domains.items() <= one.items()), None)
        if inside is not None:
            yield inside, share
