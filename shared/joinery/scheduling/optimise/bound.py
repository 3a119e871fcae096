"""A proven lower bound on what the launches of a packing must cost.

What no packing can avoid is written down as numbers, for a program to bound: every pod's requests, where its required terms, volumes,
taints and the weights of pools let it run, which pods may not share a node, how spreads and anti-affinity over zones and capacity
types deal them out (``dealing``), and the limits of pools. Nodes that exist have the room that the packing left on them, at no price; of a
capacity reservation there are so many as it has. Whatever else forbids a node (affinity, minValues) only makes a plan dearer.

Preferences are no part of that, so where they cost something no plan that keeps them is near the bound. A second bound takes those that
the plan keeps for rules.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from joinery.apis.labels import HOSTNAME
from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.bounds.exact import MOST_PODS, is_small, least
from joinery.optimizer.bounds.lower_bound import bound
from joinery.optimizer.instance.packing_instance import Group, Lot
from joinery.optimizer.instance.side_constraints import Row, Task
from joinery.scheduling.constraints.resources import ports_clash
from joinery.scheduling.constraints.taints import first_untolerated
from joinery.scheduling.constraints.topology_rules import Rule
from joinery.scheduling.firstfit.targets import ExistingNode, NewNode
from joinery.scheduling.firstfit.workspace import Workspace
from joinery.scheduling.optimise.asks import Ask, hard_asks, keeps_preferences, kept_asks
from joinery.scheduling.optimise.dealing import Item, dealt, inside, items_of, rows_of
from joinery.scheduling.optimise.kinds import Claim, Kinds, kinds_for, stocks
from joinery.scheduling.optimise.orders import exclusive
from joinery.scheduling.optimise.weakness import WEAK, weaknesses
from joinery.scheduling.pools.pool import Pool
from joinery.scheduling.pools.reserved import is_bought

_AGREED = 1e-6
"""The price of a plan is no proof's to refute, but for what sums of floats are wrong by."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """$/h that no set of new nodes for the launched pods can undercut: under ``hard`` rules, and if preferences are ``kept`` as well.
    ``weaknesses``: why the latter is far from what the plan costs, where it is.
    """

    hard: float = 0.0
    kept: float = 0.0
    weaknesses: tuple[str, ...] = ()


def bounds(work: Workspace, nodes: Sequence[NewNode], pools: Sequence[Pool], price: float) -> Bounds:
    """Of a packing's new nodes, which cost so much; nothing is asked of one in which all is reserved. ``pools``: with all that they sell,
    also what the packing kept out of.
    """
    if all(node.reservation for node in nodes):
        return Bounds()
    proof = _Bound(work, hard_asks(work, nodes), nodes, pools)
    hard = kept = proof.price(price)
    is_small_plan = (
        sum(len(node.pods) for node in nodes) <= MOST_PODS
    )  # for others that would take as long as packing them
    if is_small_plan and hard < price * (1 - _AGREED) and keeps_preferences(nodes):
        proof = _Bound(work, kept_asks(nodes), nodes, pools)
        kept = max(hard, proof.price(price))
    is_weak = price > kept * (1 + WEAK)
    return Bounds(hard=hard, kept=kept, weaknesses=proof.weaknesses() if is_weak else ())


class _Bound:
    """One proof. ``asks``: what must hold in it."""

    def __init__(self, work: Workspace, asks: Sequence[Ask], nodes: Sequence[NewNode], pools: Sequence[Pool]) -> None:
        self._work, self._asks, self._nodes = work, asks, nodes
        # What users want of a node's size is no part of the bound.
        self._pools = [replace(pool, room=pool.market.allocatable - pool.overhead) for pool in pools]
        self._is_exact = False

    def price(self, price: float) -> float:
        """$/h; no more than ``price``, which a packing has."""
        if sum(ask.count for ask in self._asks) <= MOST_PODS:
            task = self._task()
            found = least(task, price) if is_small(task) else None
            if found and found.bound <= price * (1 + _AGREED):
                self._is_exact = found.is_exact
                return min(found.bound, price)
            # Too large; or the plan reads some rule in another way than the rows do, and what they prove is of no use.
        return bound(self._lot([Item(index, {}) for index in range(len(self._asks))], is_limited=False)[0])

    def weaknesses(self) -> tuple[str, ...]:
        """What the proof leaves out."""
        return weaknesses(self._asks, self._nodes, self._pools, is_exact=self._is_exact)

    def _task(self) -> Task:
        rules = dealt(self._work, self._asks, self._nodes)
        items = items_of(self._asks, rules, self._pools, self._work)
        lot, kinds = self._lot(items, is_limited=True)
        none, free = np.zeros(len(items)), np.zeros(len(lot.price) - len(kinds.price))
        strays: dict[tuple[object, ...], set[str]] = {}
        for stray in self._work.topology.strays:
            strays.setdefault(stray.rule, set()).add(stray.domain)
        rows = [replace(row, kinds=np.zeros(len(lot.price))) for row in rows_of(items, rules, self._asks, strays)]
        rows += [Row(none, np.concatenate([taken, free]), float(most)) for taken, most in _limits(self._pools, kinds)]
        return Task(
            lot=lot,
            of=np.array([item.ask for item in items], dtype=np.int64),
            wanted=np.array([ask.count for ask in self._asks], dtype=np.int64),
            rows=tuple(rows),
        )

    def _lot(self, items: Sequence[Item], *, is_limited: bool) -> tuple[Lot, Kinds]:
        """``is_limited``: types that take less of a limit are not the same as others."""
        work, asks = self._work, [self._asks[item.ask] for item in items]
        requests = np.array([ask.row for ask in asks], dtype=np.int64)
        places = {index: self._claims(ask) for index, ask in enumerate(self._asks)}
        claims = [
            Claim(number, claim.pool, claim.types, claim.columns & inside(self._pools[claim.pool], item))
            for number, item in enumerate(items)
            for claim in places[item.ask]
        ]
        kinds = kinds_for(self._pools, requests, claims, thrifty=is_limited)
        free, open_to = _standing(work, items, asks, requests)
        clashes = _clashes(work, asks)
        stock, pile = stocks(kinds, work.reservations)
        alone = np.arange(len(free), dtype=np.int64)
        groups = [*exclusive(clashes), *_on_hosts(work, asks, self._nodes)]
        lot = Lot(
            requests=requests,
            counts=np.array([ask.count for ask in asks], dtype=np.int64),
            price=np.concatenate([kinds.price, np.zeros(len(free))]),
            room=np.concatenate([kinds.room, free]),
            admits=np.concatenate([kinds.admits, open_to], axis=1),
            groups=tuple(Group(np.array(members, dtype=np.int64), cap) for members, cap in groups),
            clashes=clashes,
            stock=np.concatenate([stock, np.ones_like(alone)]),
            pile=np.concatenate([pile, alone + pile.max(initial=0) + 1]),
        )
        return lot, kinds

    def _claims(self, ask: Ask) -> list[Claim]:
        """Where required terms, volumes and taints let the pods run; below the first pool that takes all of them nothing else may be used."""
        claims: list[Claim] = []
        weight: int | None = None
        for index, pool in enumerate(self._pools):
            if weight is not None and pool.weight < weight:
                break
            if ask.pods.untolerated(pool.taints) is not None:
                continue
            mine = [Claim(-1, index, types, columns) for types, columns in _suits(ask, pool)]
            claims += mine
            if mine and _takes_all(self._work, ask, pool):
                weight = pool.weight
        return claims


def _suits(ask: Ask, pool: Pool) -> Iterator[tuple[Mask, Mask]]:
    """The types and offering columns of the pool that suit the pods, for each way in which their terms and volumes may be met."""
    for wanted in ask.ways:
        found = pool.fit(wanted)
        if not found.conflict and (pool.room[found.sold] >= ask.row).all(axis=1).any():
            yield found.types, found.columns


def _takes_all(work: Workspace, ask: Ask, pool: Pool) -> bool:
    """Whether nothing could send a pod to a lighter pool: no preference, no other pod, no reservation that is used
    up, and no choice of terms or volumes, each of which is tried on all pools.
    """
    pods = ask.pods
    rules = work.topology.rules[pods]
    joins_others = any(rule.kind == "affinity" for rule in rules) or bool(work.topology.keys(pods, rules))
    is_plain = not pool.limits and not pool.min_values and first_untolerated(pods.tolerations, pool.taints) is None
    if not is_plain or not ask.is_settled or joins_others or pods.ports:
        return False
    return is_bought(pool, pool.fit(ask.ways[0]), ask.row)


def _standing(work: Workspace, items: Sequence[Item], asks: Sequence[Ask], requests: Ints) -> tuple[Ints, Mask]:
    """The free room of nodes that exist and could take some pod (nodes x resources), and which items (items x nodes)."""
    nodes = [node for node in work.nodes if not node.view.is_reserved and (node.free >= 0).all()]
    free = np.array([node.free for node in nodes], dtype=np.int64).reshape(len(nodes), requests.shape[1])
    admits: Mask = np.asarray((free[None] >= requests[:, None]).all(axis=2))
    for number, (item, ask) in enumerate(zip(items, asks, strict=True)):
        for index in np.flatnonzero(admits[number]):
            view = nodes[index].view
            admits[number, index] = (
                any(way.matches(view.labels) for way in ask.ways)
                and all(view.labels.get(key) == value for key, value in item.domains.items())
                and ask.pods.untolerated(view.taints) is None
                and _may_join(work, ask, nodes[index])
            )
    useful = admits.any(axis=0)
    return free[useful], admits[:, useful]


def _may_join(work: Workspace, ask: Ask, node: ExistingNode) -> bool:
    """Whether those that are on the node already keep none of the pods away from it, by their rules over hosts or by a port."""
    for rule in (rule for rule in ask.rules if rule.key == HOSTNAME):
        there = work.topology.group(rule).counts[node.name]
        if (rule.kind == "anti-affinity" and there) or (rule.kind == "spread" and there >= rule.max_skew):
            return False
    foreign = work.topology.foreign_over(ask.pods, HOSTNAME)
    if any(group.rule.kind == "anti-affinity" and group.owners[node.name] for group in foreign):
        return False
    return not ports_clash(ask.pods.ports, node.ports)


def _clashes(work: Workspace, asks: Sequence[Ask]) -> Mask:
    """Pods that anti-affinity over hosts or a host port keeps apart, those of an ask from each other and from those of another."""
    clashes = np.zeros((len(asks), len(asks)), dtype=np.bool_)
    for index, ask in enumerate(asks):
        for rule in ask.rules:
            if rule.key == HOSTNAME and rule.kind == "anti-affinity":
                selected = _selected(work, rule, asks)
                clashes[index, selected] = clashes[selected, index] = True
    with_ports = [(index, ask.pods.ports) for index, ask in enumerate(asks) if ask.pods.ports]
    for (index, mine), (other, taken) in product(with_ports, with_ports):
        clashes[index, other] |= ports_clash(mine, taken)
    return clashes


def _on_hosts(work: Workspace, asks: Sequence[Ask], nodes: Sequence[NewNode]) -> Iterator[tuple[list[int], int]]:
    """Pods (items) of which a spread over hosts lets only so many share one: a node that could be launched is an empty host.

    As many as a node of the plan has, where every host has some.
    """
    owners: dict[int, tuple[list[int], int]] = {}
    for index, ask in enumerate(asks):
        for rule in ask.rules:
            group = work.topology.group(rule)
            if rule.key == HOSTNAME and rule.kind == "spread" and group.selects(ask.pods):
                most = max((group.counts[node.name] for node in nodes), default=0)
                owners.setdefault(id(group), ([], max(rule.max_skew, most)))[0].append(index)
    yield from owners.values()


def _selected(work: Workspace, rule: Rule, asks: Sequence[Ask]) -> list[int]:
    group = work.topology.group(rule)
    return [index for index, ask in enumerate(asks) if group.selects(ask.pods)]


def _limits(pools: Sequence[Pool], kinds: Kinds) -> Iterator[tuple[Floats, int]]:
    """What a node of each kind takes of every limit, and how much of it is left."""
    for index, pool in enumerate(pools):
        mine = kinds.pool == index
        if not mine.any() or not pool.limits:
            continue
        capacity, left = pool.limited
        for column, most in enumerate(left):
            taken = np.zeros(len(kinds.row))
            taken[mine] = capacity[kinds.row[mine], column]
            yield taken, int(most)
        if "nodes" in pool.limits:
            yield mine.astype(np.float64), pool.limits["nodes"]
