"""What first-fit promised: which pods need a new node, in which domains, from pools of which weight.

First-fit settles everything about a packing but the nodes themselves: what goes to existing capacity, which preferences are
kept, how a class is domain_rules out over zones, which tier of pools serves it. An **order** is what is left to decide: so many pods
of one class, with those domains, on nodes of that tier. Any nodes that carry out all orders and keep the rules over hosts make a
packing as right as first-fit's, so the optimiser is free to look for cheaper ones.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from joinery.apis.labels import HOSTNAME
from joinery.scheduling.constraints.resources import ports_clash
from joinery.scheduling.firstfit.targets import Demand, Domains, NewNode
from joinery.scheduling.firstfit.topology import Topology
from joinery.scheduling.pools.pool import Amounts


@dataclass(eq=False)
class Order:
    """Pods of a class, as they are asked for, wanted in these domains on nodes of pools of this weight."""

    demand: Demand
    domains: Domains
    weight: int
    pods: list[str] = field(default_factory=list)

    @property
    def row(self) -> Amounts:
        return self.demand.row


@dataclass(frozen=True, eq=False)
class HostRules:
    """What may not share a node. ``groups``: orders (indices) with how many of their pods together may; ``clashes``: orders x
    orders, pods of both never.
    """

    groups: tuple[tuple[tuple[int, ...], int], ...]
    clashes: NDArray[np.bool_]


def orders_of(nodes: Iterable[NewNode]) -> tuple[Order, ...]:
    """What the nodes carry out, the same asked for in the same place together."""
    found: dict[tuple[int, tuple[tuple[str, str], ...], int], Order] = {}
    for node in nodes:
        for batch in node.placed:
            key = (id(batch.demand), tuple(sorted(batch.domains.items())), node.pool.weight)
            order = found.setdefault(key, Order(batch.demand, batch.domains, node.pool.weight))
            order.pods += batch.pods
    return tuple(found.values())


def gathers(node: NewNode) -> bool:
    """Whether pods of the node must share their host with others: such a node stays as first-fit made it."""
    return any(batch.demand.gathers for batch in node.placed)


def host_rules(orders: Sequence[Order], topology: Topology) -> HostRules:
    """From spreads and anti-affinities over hosts, and from host ports.

    A spread is taken as binding everyone it counts, whoever owns it: a little stricter than the scheduler.
    """
    groups: dict[tuple[tuple[int, ...], int], None] = {}
    clashes = np.zeros((len(orders), len(orders)), dtype=np.bool_)
    for index, order in enumerate(orders):
        for rule in order.demand.variant.rules:
            if rule.key != HOSTNAME or rule.kind == "affinity":
                continue
            selected = tuple(i for i, o in enumerate(orders) if topology.group(rule).selects(o.demand.pods))
            if rule.kind == "spread":
                residents = max(topology.group(rule).residents.values(), default=0)
                groups[selected, rule.max_skew - residents] = None
            else:
                clashes[index, list(selected)] = clashes[list(selected), index] = True
    ports = [(index, order.demand.pods.ports) for index, order in enumerate(orders) if order.demand.pods.ports]
    for (index, mine), (other, taken) in product(ports, ports):
        clashes[index, other] |= ports_clash(mine, taken)
    return HostRules((*groups, *exclusive(clashes)), clashes)


def exclusive(clashes: NDArray[np.bool_]) -> Iterable[tuple[tuple[int, ...], int]]:
    """Sets of orders that all clash with each other and themselves: one pod of such a set on a node."""
    seen: set[int] = set()
    for index in np.flatnonzero(clashes.diagonal()):
        if int(index) not in seen:
            members = [int(index)]
            for other in np.flatnonzero(clashes[index] & clashes.diagonal()):
                if int(other) not in seen and int(other) != index and clashes[other, members].all():
                    members.append(int(other))
            seen.update(members)
            yield tuple(sorted(members)), 1
