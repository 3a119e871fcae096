"""The cloud of kwok: launching an instance creates a Node object, and nothing else is remembered.

So it needs no account and no database, and whoever runs it next finds what is there. A Node cannot say by its absence
that its instance has ended, because its finalizer waits for just that; an annotation says it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.gateway import LaunchedInstance, LaunchRequest, LaunchResult, Override
from joinery.gateways.kubernetes import lists
from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from joinery.objects.commitments import Bought
from joinery.objects.errors import ConflictError, NotFoundError
from joinery.objects.karpenter import duration, labels
from joinery.objects.karpenter.conditions import READY, Observation, put, true
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass, NodeClassStatus
from joinery.objects.kubernetes.core import Node
from joinery.objects.kubernetes.quantity import Resources
from joinery.objects.snapshot.instances import Instance, InstanceStatus
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.wording import rfc3339
from simulator.clock import Clock
from simulator.kwok import machines
from simulator.kwok.nodeclass import GROUP, KWOKNodeClass

NODES = "/api/v1/nodes"
PROVIDER = "kwok"
#: By this annotation kwok's own controller knows the nodes that it plays the kubelet of.
PLAYED = "kwok.x-k8s.io/node"
_ENDED = f"{GROUP}/ended"
_TOKEN, _POOL = f"{GROUP}/launch-token", f"{GROUP}/nodepool"
_PRICE = "eks-node-viewer/instance-price"


class KwokCloud:
    """Implements ``joinery.gateways.ec2.gateway.Cloud``."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._catalog = machines.catalogue()
        self._types = {one.name: one for one in machines.instance_types(self._catalog)}
        #: Nodes that register later, by their name: when, as what, and the instance until then.
        self._booting: dict[str, tuple[datetime, dict[str, Any], Instance]] = {}

    def boot(self) -> None:
        """Register the nodes whose time has come."""
        due = [name for name, (at, *_) in self._booting.items() if at <= self._clock.now()]
        for name in due:
            self._create(self._booting.pop(name)[1])

    def catalog(self, earlier: Catalog | None = None, *, in_full: bool = False) -> Catalog:
        return self._catalog

    def bought(self) -> Bought:
        return Bought()

    def status_of(self, node_class: NodeClass) -> NodeClassStatus:
        at = Observation(now=self._clock.now(), generation=node_class.metadata.generation)
        return NodeClassStatus(conditions=put(node_class.status.conditions, true(READY, at)))

    def prepare(self, node_class: NodeClass, likely: object = None) -> NodeClassStatus:
        return self.status_of(node_class)

    def instance_types(
        self, node_classes: Sequence[NodeClass], catalog: Catalog, now: datetime, memory: object = None
    ) -> Mapping[str, tuple[InstanceType, ...]]:
        return dict.fromkeys((each.metadata.name for each in node_classes), tuple(self._types.values()))

    def launch(self, request: LaunchRequest) -> LaunchResult:
        pool = min(request.overrides, key=lambda override: (override.price, override.instance_type, override.zone))
        return LaunchResult(tuple(self._start(request, pool, number) for number in range(request.count)))

    def _start(self, request: LaunchRequest, pool: Override, number: int) -> LaunchedInstance:
        """The same names for the same token, so that a launch that is tried again makes no second Node."""
        name = f"{PROVIDER}-{sha256(request.token.encode()).hexdigest()[:10]}-{number}"
        launched = LaunchedInstance(
            name, pool.instance_type, pool.zone, request.capacity_type, image_id="", provider=PROVIDER
        )
        node = self._node(request, pool, name)
        assert isinstance(request.node_class, KWOKNodeClass)
        delay = duration.parse(request.node_class.spec.node_registration_delay) or timedelta()
        if delay > timedelta():
            now = self._clock.now()
            tags = {labels.LAUNCH_TOKEN: request.token, labels.NODE_POOL: request.node_pool}
            pending = Instance(
                name, pool.instance_type, pool.zone, request.capacity_type, "pending", now, tags=tags, provider=PROVIDER
            )
            self._booting.setdefault(name, (now + delay, node, pending))
        else:
            self._create(node)
        return launched

    def _node(self, request: LaunchRequest, pool: Override, name: str) -> dict[str, Any]:
        """As its kubelet would register it."""
        kind = self._types[pool.instance_type]
        own = {key: values[0] for key, values in kind.labels.items() if len(values) == 1}
        return {
            "metadata": {
                "name": name,
                "labels": {
                    **request.labels,
                    **own,
                    labels.ZONE: pool.zone,
                    labels.CAPACITY_TYPE: request.capacity_type,
                    labels.HOSTNAME: name,
                    _PRICE: f"{pool.price:f}",
                },
                "annotations": {
                    PLAYED: "fake",
                    _TOKEN: request.token,
                    _POOL: request.node_pool,
                },
            },
            "spec": {
                "providerID": f"{PROVIDER}:///{pool.zone}/{name}",
                "taints": [taint.model_dump(by_alias=True, exclude_none=True) for taint in request.taints],
            },
            "status": {
                "capacity": _written(kind.capacity),
                "allocatable": _written(kind.allocatable),
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        }

    def _create(self, node: dict[str, Any]) -> None:
        with suppress(ConflictError):  # an earlier attempt of the launch has created it
            self._transport.request("POST", NODES, node)

    def shifted_zones(self) -> frozenset[str]:
        return frozenset()

    def instances(self) -> tuple[Instance, ...]:
        return tuple(one for one in self._all() if one.state != "terminated")

    def look_up(self, instance_ids: Sequence[str]) -> tuple[Instance, ...]:
        return tuple(one for one in self._all() if one.instance_id in instance_ids)

    def _all(self) -> Iterator[Instance]:
        """Those that boot, and those whose Nodes are there."""
        yield from (pending for *_, pending in self._booting.values())
        for node in lists.read(self._transport, NODES, Node).objects:
            if instance := _instance(node):
                yield instance

    def impaired(self) -> tuple[InstanceStatus, ...]:
        return ()

    def terminate(self, instance_ids: Sequence[str]) -> None:
        known = [name for name in instance_ids if self._booting.pop(name, None) or self._annotate(name, _ENDED)]
        if not known:
            raise NotFoundError(f"no such node: {', '.join(instance_ids)}")

    def reboot(self, instance_id: str) -> None:
        if not self._annotate(instance_id, f"{GROUP}/rebooted"):
            raise NotFoundError(f"no such node: {instance_id}")

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        """Nobody reads a tag of a node that is an object itself."""

    def remove_unused(
        self, node_classes: Sequence[NodeClass], claims: Sequence[NodeClaim], instances: Sequence[Instance]
    ) -> None:
        """Nothing is made for launches."""

    def _annotate(self, name: str, key: str) -> bool:
        """Annotate a Node with this moment; whether it is there."""
        patch = {"metadata": {"annotations": {key: rfc3339(self._clock.now())}}}
        try:
            self._transport.request("PATCH", f"{NODES}/{name}", patch, content_type=MERGE_PATCH)
        except NotFoundError:
            return False
        return True


def price_of(node: Node) -> float | None:
    """What a Node of ours would cost, in $/h; None for any other."""
    price = node.metadata.labels.get(_PRICE)
    return float(price) if price and node.spec.provider_id.startswith(f"{PROVIDER}://") else None


def _instance(node: Node) -> Instance | None:
    """The instance that a Node of ours stands for."""
    annotations, created = node.metadata.annotations, node.metadata.creation_timestamp
    if not node.spec.provider_id.startswith(f"{PROVIDER}://") or created is None:
        return None
    kind, zone, capacity_type = (
        node.metadata.labels.get(key, "") for key in (labels.INSTANCE_TYPE, labels.ZONE, labels.CAPACITY_TYPE)
    )
    tags = {
        labels.LAUNCH_TOKEN: annotations.get(_TOKEN, ""),
        labels.NODE_POOL: annotations.get(_POOL, ""),
    }
    state = "terminated" if _ENDED in annotations else "running"
    return Instance(node.metadata.name, kind, zone, capacity_type, state, created, tags=tags, provider=PROVIDER)


def _written(resources: Resources) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in resources.items()}
