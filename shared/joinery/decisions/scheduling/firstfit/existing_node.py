"""A node that exists, or is on its way, and what it has left for pods."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from joinery.decisions.scheduling.constraints.node_pods import (
    claims_in_use,
    host_ports,
    of_daemon_sets,
    ports_to_come,
    running_daemon_sets,
    taken,
    taken_in_transit,
    with_volumes,
)
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.resources import NO_LIMIT, host_ports_of, ports_clash
from joinery.decisions.scheduling.constraints.topology_rules import NodeFilter
from joinery.decisions.scheduling.constraints.volumes import Volumes
from joinery.decisions.scheduling.devices.allocation import beside_daemons, taken_after
from joinery.decisions.scheduling.devices.allocation import room as device_room
from joinery.decisions.scheduling.devices.needs import Needs
from joinery.decisions.scheduling.devices.stock import NOTHING as NO_DEVICES
from joinery.decisions.scheduling.devices.stock import History, Stock, Taken
from joinery.decisions.scheduling.firstfit.demand import Demand
from joinery.decisions.scheduling.firstfit.new_node import MOST_PODS, names_of
from joinery.decisions.scheduling.pools.daemonsets import Daemon
from joinery.decisions.scheduling.pools.market import Amounts, Axis
from joinery.decisions.scheduling.pools.node_size import own_pods
from joinery.decisions.scheduling.topology.groups import UNLIMITED
from joinery.objects.karpenter.labels import HOSTNAME, INSTANCE_TYPE
from joinery.objects.kubernetes.core import CSINode
from joinery.objects.kubernetes.quantity import Resources, fits, total
from joinery.objects.snapshot.nodes import NodeView


@dataclass(eq=False)
class ExistingNode:
    """A node that exists, or that is on its way, with the room that it has left.

    free          what is allocatable and not taken, by resource; negative where the node is overcommitted
    attachments   how many more volumes it takes, by CSI driver that has a limit
    attached      the volume claims whose volumes it has attached
    ports         host ports in use: (protocol, host IP, port)
    stock         its devices
    placed        the pods of the plan that it takes, by class
    """

    view: NodeView
    free: Amounts
    attachments: dict[str, int]
    attached: set[str]
    ports: set[tuple[str, str, int]]
    stock: Stock = NO_DEVICES
    placed: list[tuple[PodClass, Sequence[str]]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def host(self) -> str:
        """What its label says, which need not be its name: kubelets go by the machine,
        API objects by the cloud's DNS.
        """
        return self.view.labels.get(HOSTNAME, self.name)

    def admits(self, demand: Demand) -> bool:
        """Whether labels, taints and ports let the class in at all."""
        view = self.view
        if view.is_unlaunched or demand.is_repelled(view.taints) or (self.free < 0).any():
            return False
        if demand.pod_class.ports and ports_clash(demand.pod_class.ports, self.ports):
            return False
        return demand.requirements.matches(view.labels)

    def domain(self, key: str) -> str | None:
        """The node's domain of that topology key; None without the label."""
        return self.view.labels.get(key)

    def holds(self, demand: Demand) -> int:
        """How many more pods of the class there is room for."""
        asked = demand.asked
        room = int((self.free[asked] // demand.requests[asked]).min()) if len(asked) else UNLIMITED
        for driver, (shared, own) in demand.pod_class.volumes.taken(self.attachments, self.attached).items():
            left = self.attachments[driver] - shared
            room = min(room, left // own if own else room) if left >= 0 else 0
        room = min(room, 1) if demand.pod_class.ports else max(room, 0)
        if demand.pod_class.devices:
            return self.serves(demand.pod_class.devices, min(room, MOST_PODS))
        return room

    def serves(self, needs: Needs, most: int) -> int:
        """For how many more pods with such claims there are devices; ``most`` at the most."""
        return device_room(self.stock, self._claimed, needs, most)

    @property
    def pods(self) -> tuple[str, ...]:
        """The names of the pods of the plan (``names_of``)."""
        return names_of(self.placed)

    @property
    def _claimed(self) -> History:
        return tuple((pods.devices, len(names)) for pods, names in self.placed if pods.devices)

    @property
    def taken(self) -> Taken:
        """What claims have of its devices, with those of the pods that were placed."""
        return taken_after(self.stock, self._claimed) or self.stock.taken

    def place(self, demand: Demand, names: Sequence[str]) -> None:
        """Take what the pods need from the room that is left."""
        self.free -= demand.requests * len(names)
        self.ports |= demand.pod_class.ports
        for driver, (shared, own) in demand.pod_class.volumes.taken(self.attachments, self.attached).items():
            self.attachments[driver] -= shared + own * len(names)
        self.attached |= {name for name, _ in demand.pod_class.volumes.shared}
        self.placed.append((demand.pod_class, names))

    def counts(self, nodes: NodeFilter) -> bool:
        """Whether the node counts for a spread with that filter."""
        return nodes.admits(self.view)


@dataclass(frozen=True)
class NodeRoom:
    """What is left of nodes.

    axis      the resources, in the order of the rows that it gives
    daemons   the DaemonSets' pods
    volumes   what the volumes of pods demand
    csi       by node: how many volumes each CSI driver attaches there
    usual     by NodePool and instance type: the same of nodes whose drivers have not said it yet
    most      by NodePool: how many pods a node may hold, DaemonSets' apart, where pods are moved by choice
    stock_of  what devices a node has
    """

    axis: Axis
    daemons: Sequence[Daemon]
    volumes: Volumes
    csi: Mapping[str, CSINode]
    usual: Mapping[str, Mapping[str, Mapping[str, int]]]
    most: Mapping[str, int]
    stock_of: Callable[[NodeView], Stock] = lambda view: NO_DEVICES
    _daemons: dict[int, tuple[NodeView, Sequence[Daemon]]] = field(default_factory=dict)

    def existing(self, views: Sequence[NodeView]) -> list[ExistingNode]:
        """The nodes as targets, with what is left of each."""
        return [self._existing(view, free) for view, free in zip(views, self.free(views), strict=True)]

    def _existing(self, view: NodeView, free: Amounts) -> ExistingNode:
        if view.pool in self.most:
            pods = self.axis.index["pods"]
            left = max(0, self.most[view.pool] - own_pods(view) - len(view.in_transit))
            free[pods] = min(int(free[pods]), left)
        ports = {*view.derived(host_ports), *view.derived(ports_to_come)}
        ports |= {port for daemon in self._daemons_of(view) for port in host_ports_of(daemon.pod)}
        in_use = set(view.derived(claims_in_use))
        return ExistingNode(view, free, self._attachments(view), in_use, ports, self._stock(view))

    def _stock(self, view: NodeView) -> Stock:
        """What DaemonSets' pods that will still come leave of its devices."""
        stock = self.stock_of(view)
        if not stock.devices:
            return stock
        return beside_daemons(stock, tuple(daemon.devices for daemon in self._missing(view) if daemon.devices))

    def free(self, views: Sequence[NodeView]) -> Amounts:
        """int64[nodes, resources]: what is left of the nodes, however many pods they may hold."""
        free = self.axis.matrix([view.allocatable for view in views])
        free[:, list(self.axis.drivers.values())] = NO_LIMIT
        free -= self.axis.matrix([view.derived(taken) for view in views])
        free -= self._missing_daemons(views)
        # Where less is left than they had, what is left is for them.
        free -= np.minimum(self.axis.matrix([view.derived(taken_in_transit) for view in views]), np.maximum(free, 0))
        return free

    def empty(self, view: NodeView) -> Amounts:
        """What the node would have for pods if only its DaemonSets' pods ran there."""
        expected = total(daemon.requests for daemon in self._daemons_of(view))
        room: Amounts = self._allocatable(view) - self.axis.vector(expected)
        return room

    def _allocatable(self, view: NodeView) -> Amounts:
        """Attachments are counted by claims here (``ExistingNode.attachments``), so as a resource they are no limit."""
        row = self.axis.vector(view.allocatable)
        row[list(self.axis.drivers.values())] = NO_LIMIT
        return row

    def with_daemons(self, view: NodeView) -> NodeView:
        """The node with the DaemonSets' pods that will still come to it: rules about pods count them."""
        missing = tuple(daemon.pod for daemon in self._missing(view))
        return replace(view, pods=(*view.pods, *missing)) if missing else view

    def _missing(self, view: NodeView) -> Sequence[Daemon]:
        """Those that will still come to the node."""
        running = view.derived(running_daemon_sets)
        return [daemon for daemon in self._daemons_of(view) if daemon.name not in running]

    def _daemons_of(self, view: NodeView) -> Sequence[Daemon]:
        """Those that run on the node. One that asks for more than all of it waits there for ever, and takes nothing."""
        known = self._daemons.get(id(view))
        if known is None:
            running = [d for d in self.daemons if d.runs_on(view) and fits(d.requests, view.allocatable)]
            known = self._daemons[id(view)] = view, running
        return known[1]

    def _missing_daemons(self, views: Sequence[NodeView]) -> Amounts:
        """What DaemonSets will still take: all that belong there, less those that already run."""
        expected, present = [], []
        # Nodes are of a few kinds, by the DaemonSets that run there.
        known: dict[tuple[int, ...], Resources] = {}
        for view in views:
            daemons = self._daemons_of(view)
            names, kind = [daemon.name for daemon in daemons], tuple(map(id, daemons))
            if kind not in known:
                known[kind] = total(daemon.requests for daemon in daemons)
            expected.append(known[kind])
            running = view.derived(of_daemon_sets) if names else ()
            there = [requests for owners, requests in running if not owners.isdisjoint(names)]
            present.append(there[0] if len(there) == 1 else total(there))
        missing: Amounts = np.maximum(self.axis.matrix(expected) - self.axis.matrix(present), 0)
        return missing

    def _attachments(self, view: NodeView) -> dict[str, int]:
        """How many more volumes the node attaches, by CSI driver, where the driver reports a limit."""
        limits = self._limits(view)
        attached: dict[str, set[str]] = {driver: set() for driver in limits}
        for pod in view.derived(with_volumes):
            for driver, claims in self.volumes.by_driver(pod).items():
                if driver in attached:
                    attached[driver] |= claims
        return {driver: limit - len(attached[driver]) for driver, limit in limits.items()}

    def _limits(self, view: NodeView) -> Mapping[str, int]:
        """What the node's CSI drivers say; of those that have not said anything, what its instance type attaches."""
        csi = self.csi.get(view.node)
        usual = self.usual.get(view.pool, {}).get(view.labels.get(INSTANCE_TYPE, ""), {})
        if csi is None:
            return usual
        said = {driver.name for driver in csi.spec.drivers}
        limits = {driver: limit for driver, limit in usual.items() if driver not in said}
        for driver in csi.spec.drivers:
            if driver.allocatable is not None and driver.allocatable.count is not None:
                limits[driver.name] = driver.allocatable.count
        return limits
