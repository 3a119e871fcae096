"""What a plan costs, seen from several sides: who causes it, what it would be on demand, and what the nodes there are
cost.

All of it is computed from the prices that the plan was made with; nothing is decided here.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    COMPUTE_TYPE,
    INSTANCE_TYPE,
    ON_DEMAND,
    RESERVED,
    ZONE,
    canonical,
)
from joinery.objects.kubernetes.core import Node
from joinery.objects.kubernetes.quantity import Resources
from joinery.objects.snapshot.offerings import InstanceType, Offering, price_among
from joinery_cli.notices import some_of
from joinery_cli.view.commitments import CommitmentFigures, commitment_figures
from joinery_cli.view.figures import count, money
from joinery_cli.view.headroom import Headroom, buffers_in, headroom_of, shares
from joinery_cli.view.interruptions import InterruptionFigures, interruption_figures
from joinery_cli.view.pool_shares import ShareFigures, share_figures

#: AWS bills every Region but China's in US dollars, and the price list that a catalogue is read from is in them.
CURRENCY = "USD"

#: The offerings of each instance type, as the catalogue has them.
Sold = Mapping[str, Sequence[Offering]]

#: What EKS calls capacity types on the nodes of its managed node groups.
_EKS_CAPACITY_TYPE = "eks.amazonaws.com/capacityType"


@dataclass(frozen=True, kw_only=True)
class Running:
    """The nodes there are: $/h of those whose price is in the catalogue, and how many have none there.

    ``fargate``: so many of those are Fargate's, which nobody pays for by the node; ``lacking`` names the others, with
    their type.
    """

    hourly: float = 0.0
    priced: int = 0
    fargate: int = 0
    lacking: tuple[str, ...] = ()

    @property
    def unpriced(self) -> int:
        return self.fargate + len(self.lacking)

    def sentence(self) -> str:
        """``The existing nodes cost $0.1/h (1 node; not counted: 1 of Fargate,
        which is paid for by the pod)``; empty where no price is known.
        """
        if not self.priced:
            return ""
        others = [f"{self.fargate:,} of Fargate, which is paid for by the pod"] if self.fargate else []
        others += [f"{len(self.lacking):,} without a price here: {some_of(self.lacking)}"] if self.lacking else []
        beside = f"; not counted: {', and '.join(others)}" if others else ""
        return f"The existing nodes cost {money(self.hourly)}/h ({count(self.priced, 'node')}{beside})"


@dataclass(frozen=True, kw_only=True)
class Costs:
    """$/h of the launches of a plan by NodePool, capacity type and namespace of their pods, the dearest first.

    ``on_demand``: of the same nodes, were they all on demand. ``listed``: of the same nodes at the catalogue's prices,
    which a NodeOverlay may change. A node's price is shared by its pods, by the mean of what
    each takes of all that its pods request of CPU, memory and devices: daemons and free room are everybody's.
    ``interruptions``: of its spot nodes; None where no rates are known. ``commitments``: None where none are known.
    ``headroom``: what of it is room that CapacityBuffers keep free; None where nothing is. ``shares``: on demand, of
    the NodePools that are bought of; None where none has one.
    """

    by_node_pool: Mapping[str, float] = field(default_factory=dict)
    by_capacity_type: Mapping[str, float] = field(default_factory=dict)
    by_namespace: Mapping[str, float] = field(default_factory=dict)
    on_demand: float = 0.0
    listed: float | None = None
    running: Running = field(default_factory=Running)
    interruptions: InterruptionFigures | None = None
    commitments: CommitmentFigures | None = None
    headroom: Headroom | None = None
    shares: ShareFigures | None = None


def costs(problem: Problem, packing: Packing, sold: Sold) -> Costs:
    """The costs of a plan at the prices that it was made with. ``sold``: the catalogue's."""
    requests = _requests(problem, packing)
    buffers = buffers_in(problem.snapshot)
    bought = ((launch.offering.price, {name: requests[name] for name in launch.pods}) for launch in packing.launches)
    pools, capacity_types, namespaces = (defaultdict[str, float](float) for _ in range(3))
    for launch in packing.launches:
        price = launch.offering.price
        pools[launch.node_pool] += price
        capacity_types[launch.offering.capacity_type] += price
        for pod, share in shares({name: requests[name] for name in launch.pods}).items():
            namespaces[pod.partition("/")[0]] += price * share
    return Costs(
        by_node_pool=_ranked(pools),
        by_capacity_type=_ranked(capacity_types),
        by_namespace=_ranked(namespaces),
        on_demand=sum(_on_demand(launch, sold) for launch in packing.launches),
        listed=sum(_listed(launch, sold) for launch in packing.launches),
        running=_running(problem.snapshot.nodes, sold),
        headroom=headroom_of(bought, buffers) if buffers else None,
        interruptions=interruption_figures(problem.interruptions, packing, lambda launch: _on_demand(launch, sold))
        if problem.interruptions
        else None,
        commitments=commitment_figures(problem, packing) if problem.commitments else None,
        shares=share_figures(problem.snapshot, packing),
    )


def _requests(problem: Problem, packing: Packing) -> Mapping[str, Resources]:
    bought = {pod for launch in packing.launches for pod in launch.pods}
    return {pod.key: requests_of(problem.snapshot.successor(pod)) for pod in problem.snapshot.pods if pod.key in bought}


def _ranked(hourly: Mapping[str, float]) -> Mapping[str, float]:
    return dict(sorted(hourly.items(), key=lambda item: (-item[1], item[0])))


def _on_demand(launch: Launch, sold: Sold) -> float:
    """In the zone of the launch, or where it is sold on demand; its own price where that is nowhere."""
    offering = launch.offering
    prices = {o.zone: o.price for o in sold.get(offering.instance_type, ()) if o.capacity_type == ON_DEMAND}
    return prices.get(offering.zone, min(prices.values(), default=offering.price))


def _listed(launch: Launch, sold: Sold) -> float:
    """By the catalogue; its own price in a reservation, and where the catalogue has none."""
    offering = launch.offering
    price = price_among(sold.get(offering.instance_type, ()), offering.zone, offering.capacity_type)
    return offering.price if offering.reservation or price is None else price


def _running(nodes: Iterable[Node], sold: Sold) -> Running:
    hourly, priced, fargate, lacking = 0.0, 0, 0, []
    for node in nodes:
        price = node_price(node, sold)
        if price is not None:
            hourly, priced = hourly + price, priced + 1
        elif node.metadata.labels.get(COMPUTE_TYPE) == "fargate":
            fargate += 1
        else:
            lacking.append(f"{node.metadata.name} ({_labels(node).get(INSTANCE_TYPE) or 'of no known type'})")
    return Running(hourly=hourly, priced=priced, fargate=fargate, lacking=tuple(lacking))


def _labels(node: Node) -> Mapping[str, str]:
    return {canonical(key): value for key, value in node.metadata.labels.items()}


def capacity_type_of(labels: Mapping[str, str]) -> str:
    """Karpenter's word for it, also of a node of a managed node group; empty where nothing says it."""
    return labels.get(CAPACITY_TYPE) or labels.get(_EKS_CAPACITY_TYPE, "").lower().replace("_", "-")


def cheapest(kind: InstanceType, capacity_type: str) -> float | None:
    """$/h of the type where it can be had for the least; None where it cannot be had so."""
    sold = (one.price for one in kind.offerings if one.available and one.capacity_type == capacity_type)
    return min(sold, default=None)


def node_price(node: Node, sold: Sold) -> float | None:
    """$/h of a node that there is; None where the catalogue does not sell its type there.

    What a reserved node costs is paid whether it is used or not, so it costs nothing here, as in a plan."""
    labels = _labels(node)
    capacity_type = capacity_type_of(labels) or ON_DEMAND
    offerings = sold.get(labels.get(INSTANCE_TYPE, ""), ())
    if capacity_type == RESERVED:
        return 0.0 if offerings else None
    return price_among(offerings, labels.get(ZONE, ""), capacity_type)
