"""How many pods of a class each combination of domains should take, by the counts of topology rules alone, and buying
there.

A class is dealt out before anything is bought: each pod goes where the fewest are that its spreads count. Three cases:

- Where nothing but topology can stop a pod, the whole class is dealt at once.
- Where limits or the end of a capacity reservation may stop pods, one is dealt at a time. A pod that is dealt to a zone
  because others were dealt elsewhere has no place there if those others are never bought for.
- Pods that must share one host are dealt to each domain as if there were no other: a host is in one domain only.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from types import MappingProxyType

from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.topology_rules import ALL_NODES, NodeFilter
from joinery.decisions.scheduling.firstfit.buying import Buyer
from joinery.decisions.scheduling.firstfit.demand import Dealt, Demand, Domains, present
from joinery.decisions.scheduling.firstfit.domain_offers import DomainOffers, Offered
from joinery.decisions.scheduling.firstfit.options import FirstFitOptions
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.topology.daemons import Counts
from joinery.decisions.scheduling.topology.groups import UNLIMITED
from joinery.decisions.scheduling.topology.topology import Topology


class Allotment:
    """Deals classes out over the domains in which something can be bought for them, and buys it.

    may_open_nodes   more nodes may be bought; else those that are bought may only grow
    found_domains    the classes for which there was a domain to buy in when they were last tried, limits apart
    """

    def __init__(
        self,
        work: Workspace,
        buyer: Buyer,
        options: FirstFitOptions,
        effort: Effort,
        dealt: Dealt = MappingProxyType({}),
    ) -> None:
        self._effort = effort
        self._dealing = options.dealing
        self.may_open_nodes = True
        self.found_domains: set[PodClass] = set()
        self._topology: Topology = work.topology
        self._tiers = work.tiers
        self._buyer, self._nodes = buyer, buyer.nodes
        self._offers = DomainOffers(work, buyer, options)
        self._counted: dict[tuple[Demand, tuple[tuple[str, str], ...], NodeFilter], bool] = {}
        self._given = dict(dealt)
        self._used: dict[Demand, set[tuple[tuple[str, str], ...]]] = {}
        self._is_unlimited = not any(pool.limits for pool in work.pools)

    def buy(self, demand: Demand, names: Sequence[str], with_room: Sequence[AbstractSet[tuple[str, str]]]) -> int:
        """Deal the pods out over domains and buy there.

        Where nothing can be bought in any of these domains, the pods are dealt out over the others. Domains that are
        ``with_room`` on existing nodes come last: a spread may let more pods in there once others are elsewhere.
        """
        refused: list[Domains] = []
        is_bound = bool(self._topology.binding(demand.pod_class).keys(demand.variant.rules))
        while True:
            # A spread lets pods into one domain because of those that come to the next.
            with self._effort.undivided() if is_bound else nullcontext():
                placed, newly_refused = self._buy_where_dealt(demand, names, with_room, refused)
            if placed or not newly_refused or self._effort.is_late():
                return placed
            refused += newly_refused

    def _buy_where_dealt(
        self,
        demand: Demand,
        names: Sequence[str],
        with_room: Sequence[AbstractSet[tuple[str, str]]],
        refused: Sequence[Domains],
    ) -> tuple[int, list[Domains]]:
        """Buy where the pods are dealt to. How many were placed, and the domains in which nothing could be bought."""
        placed, newly_refused, postponed = 0, list[Domains](), list[tuple[Domains, int]]()
        for domains, quota in self._dealt(demand, len(names), refused):
            self.found_domains.add(demand.pod_class)
            if any(domains.items() <= there for there in with_room):
                postponed.append((domains, quota))
            elif bought := self._buy(demand, domains, names[placed : placed + quota]):
                placed += bought
            else:
                newly_refused.append(domains)
            if placed == len(names) or self._effort.is_late():
                break
        for domains, quota in postponed if not placed else ():
            if bought := self._buy(demand, domains, names[placed : placed + quota]):
                placed += bought
            else:
                newly_refused.append(domains)
        return placed, newly_refused

    def _buy(self, demand: Demand, domains: Domains, names: Sequence[str]) -> int:
        """Put pods on new nodes in those domains, in heavier pools first."""
        put = self._buyer.buy if self.may_open_nodes else self._buyer.grow
        placed = 0
        for pools in self._tiers:
            placed += put(pools, demand, domains, names[placed:])
        return placed

    def _dealt(self, demand: Demand, count: int, refused: Sequence[Domains]) -> Iterator[tuple[Domains, int]]:
        """Combinations of domains, best first without the ``refused``, and how many pods each should take now.

        Pods are to be placed before the next combination is asked for: its share depends on them.
        """
        offered = self._offered(demand, refused)
        combinations = [domains for domains in offered.combinations if domains not in refused]
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
            at_once = self._is_unlimited and offered.are_bought and not self._nodes.counts_daemons
            yield from self._shares(demand, combinations, count if at_once else 1)

    def _offered(self, demand: Demand, refused: Sequence[Domains]) -> Offered:
        """What is offered over all keys; where nothing is left of that, over those alone that bind the class.

        To be in a known zone may be more than minValues permit, and a preference keeps nobody pending.
        """
        rules = demand.variant.rules
        spreads = self._topology.daemons.spreads if self._nodes.counts_daemons else ()
        bound = self._topology.binding(demand.pod_class)
        for keys in (bound.keys(rules), bound.binding_keys(rules)):
            wanted = tuple(sorted({*keys, *(spread.rule.key for spread in spreads)}))
            found = self._offers.over(demand, wanted) if wanted else Offered([{}], are_bought=True)
            if any(domains not in refused for domains in found.combinations):
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
                starts = (node.narrowed(demand, domains) for node in self._offers.starts(demand, ()))
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


def _among(combinations: Sequence[Domains], given: Iterable[tuple[Domains, int]]) -> Iterator[tuple[Domains, int]]:
    """The shares that are given, in the first combination each that says the same of the domains."""
    for domains, share in given:
        inside = next((one for one in combinations if domains.items() <= one.items()), None)
        if inside is not None:
            yield inside, share
