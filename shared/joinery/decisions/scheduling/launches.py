"""From planned nodes to launches: what their NodeClaims will say."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

import numpy as np

from joinery.decisions.scheduling.constraints.requirements import Requirements, one_of, written
from joinery.decisions.scheduling.constraints.resources import driver_of
from joinery.decisions.scheduling.devices.allocation import drivers_of
from joinery.decisions.scheduling.firstfit.limits import charge_of
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.packing import Launch, PlacedOffering
from joinery.decisions.scheduling.pools.market import OFFERING_KEYS, Amounts, Axis, Mask, OfferingColumn
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.pools.type_choice import choose_types
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    GPU_FRACTIONAL,
    INSTANCE_TYPE,
    NODE_POOL,
    RESERVATION_ID,
    WELL_KNOWN,
    ZONE,
    is_restricted,
)
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.snapshot.offerings import InstanceType


def launches_of(work: Workspace, nodes: Sequence[NewNode]) -> tuple[Launch, ...]:
    """A launch for every node.

    Nodes of one recipe differ in name and pods only, so most of the work is done once for all of them.
    """
    slack = Slack(work.pools, nodes)
    names = _LaunchNames(work)
    by_recipe: dict[Hashable, Launch] = {}
    launches = []
    for node in nodes:
        name = names.next(node.pool.name)
        recipe = node.recipe
        if recipe not in by_recipe:
            by_recipe[recipe] = launch_of(node, name, work.axis, slack)
        launches.append(replace(by_recipe[recipe], name=name, pods=node.pods))
    return tuple(launches)


class _LaunchNames:
    """Pools' names with numbers, past those that nodes and claims of the cluster have already."""

    def __init__(self, work: Workspace) -> None:
        self._taken = {name for view in work.views for name in (view.node, view.claim)}
        self._numbers: dict[str, Iterator[int]] = {}

    def next(self, pool: str) -> str:
        numbers = self._numbers.setdefault(pool, count(1))
        return next(name for number in numbers if (name := f"{pool}-{number}") not in self._taken)


def launch_of(node: NewNode, name: str, axis: Axis, slack: "Slack") -> Launch:
    """The launch request for a node, with every type that can hold its pods, up to the request's limit.

    ``axis``: the resources of the node's amounts.
    """
    rows, market = _rows(node, slack), node.pool.market
    columns = np.flatnonzero(node.columns)
    counted_on = int(columns[market.prices[rows[0], columns].argmin()])
    cheapest, column = market.types[rows[0]], market.columns[counted_on]
    requested = node.used + node.pool.overhead[rows[0]]
    return Launch(
        name=name,
        node_pool=node.pool.name,
        requirements=_requirements(node, rows),
        labels=_labels(node),
        taints=node.pool.taints,
        startup_taints=node.pool.startup_taints,
        requests={
            resource: int(amount)
            for resource, amount in zip(axis.names, requested, strict=True)
            if amount and not driver_of(resource)
        },
        instance_types=tuple(market.types[row].name for row in rows),
        offering=PlacedOffering(
            cheapest.name,
            column.zone,
            column.capacity_type,
            float(market.prices[rows[0], counted_on]),
            node.reservation,
            _listed(cheapest, column),
        ),
        pods=node.pods,
        min_values_relaxed=node.is_relaxed,
        drivers=drivers_of(node.pool.stocks[rows[0]], node.claimed),
    )


def _listed(kind: InstanceType, column: OfferingColumn) -> float | None:
    place = column.zone, column.capacity_type, column.reservation
    return next((o.listed for o in kind.offerings if (o.zone, o.capacity_type, o.reservation) == place), None)


class Slack:
    """Which types a launch may carry beside the cheapest, under the limits of its pool.

    EC2 may choose any type that a launch carries, and the plan charged the limits with the cheapest one. So types are
    left out that take so much more of a limited resource that the limit could be exceeded: what all ``nodes`` leave of
    it is shared evenly among those of the pool. Where minValues need others too, the plan charged the limits with the
    largest type already (``firstfit.limits``), and all types may stay.
    """

    def __init__(self, pools: Sequence[Pool], nodes: Sequence[NewNode]) -> None:
        self._limited = {pool.name: pool.limited[0] for pool in pools if pool.limits}
        self._share: dict[str, Amounts] = {}
        for pool in (pool for pool in pools if pool.limits):
            capacity, left = pool.limited
            charges = [charge_of(node, capacity) for node in nodes if node.pool.name == pool.name]
            self._share[pool.name] = np.maximum(left - sum(charges), 0) // max(len(charges), 1)

    def types(self, node: NewNode, cheapest: int) -> Mask:
        """bool[types]: those that take of no limited resource more than the type in row ``cheapest`` and a share."""
        capacity = self._limited.get(node.pool.name)
        if capacity is None or not capacity.shape[1] or node.needs_more_than(cheapest):
            return np.ones_like(node.types)
        within: Mask = np.asarray((capacity <= capacity[cheapest] + self._share[node.pool.name]).all(axis=1))
        return within


def _rows(node: NewNode, slack: Slack) -> tuple[int, ...]:
    """The types that the launch carries, cheapest first."""
    least = np.where(node.types, node.pool.market.prices[:, node.columns].min(axis=1), np.inf)
    types = node.types & slack.types(node, int(least.argmin()))
    return choose_types(node.pool, types, node.columns, node.min_values)


def _requirements(node: NewNode, rows: Sequence[int]) -> tuple[Requirement, ...]:
    """What the NodeClaim requires: what all its pods and the template leave, with the instance types spelled out.

    Zones and capacity types are those of the offerings that are left and available: where the class has no subnet, or
    EC2 has run out of all these types, no node comes. A node in a capacity reservation names it, so
    that no two launches count on the same place in it. A label that no such node has, and that pods do not want, is
    left out: older definitions refuse claims that name labels such as ``node-role.kubernetes.io/control-plane``. So is
    that of parts of GPUs, which Karpenter's definitions do not know.
    """
    market, of_class = node.pool.market, node.pool.node_pool.spec.template.spec.node_class_ref.of_kind.label
    is_sold = np.isfinite(market.prices[list(rows)]).any(axis=0)
    columns = [market.columns[i] for i in np.flatnonzero(node.columns & is_sold)]
    known = node.pool.requirements.sets.keys() | market.type_keys
    sets = {
        key: allowed
        for key, allowed in node.requirements.sets.items()
        if key not in (NODE_POOL, of_class, GPU_FRACTIONAL, *OFFERING_KEYS)
        and not is_restricted(key)
        and (key in known or not allowed.absent)
    }
    sets[INSTANCE_TYPE] = one_of(market.types[row].name for row in rows)
    sets[ZONE] = one_of(column.zone for column in columns)
    sets[CAPACITY_TYPE] = one_of(column.capacity_type for column in columns)
    if node.reservation and columns[0].value(RESERVATION_ID):
        sets[RESERVATION_ID] = one_of((node.reservation,))
    return tuple(entry for key in sorted(sets) for entry in written(key, sets[key], node.min_values.get(key)))


def _labels(node: NewNode) -> Mapping[str, str]:
    """The template's labels, the names of pool and class, and one value for every custom label.

    (Karpenter `NodeClaimTemplate.ToNodeClaim`.)
    """
    template = node.pool.node_pool.spec.template
    labels = dict(template.metadata.labels)
    labels[NODE_POOL] = node.pool.name
    labels[template.spec.node_class_ref.of_kind.label] = template.spec.node_class_ref.name
    custom = _custom(node.requirements, node.pool)
    labels.update({key: custom.sets[key].pick() for key in custom if key not in labels})
    return dict(sorted(labels.items()))


def _custom(requirements: Requirements, pool: Pool) -> Requirements:
    """The labels that only the NodePool gives: its requirements name them, and no instance type has them."""
    return Requirements(
        {
            key: allowed
            for key, allowed in requirements.sets.items()
            if key in pool.requirements.sets
            and key not in WELL_KNOWN
            and not is_restricted(key)
            and not allowed.is_empty
        }
    )
