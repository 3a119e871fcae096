"""A large cluster under way, put there at once: what takes a run of lifecycle longest."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from joinery.objects.karpenter.labels import LAUNCH_TOKEN, NO_EXECUTE, SPOT, UNREGISTERED_TAINT
from joinery.objects.kubernetes.core import Taint
from simulator import builders
from simulator.world import World

#: Old enough that nobody else is launching a claim any more, and young enough that none is given up.
_OLD = timedelta(minutes=2)
_SHAPE = "karpenter.k8s.aws/instance-size=xlarge"


def fill(
    world: World,
    *,
    nodes: int = 0,
    pods: int = 10,
    cpu: str = "100m",
    stalled: int = 0,
    joining: int = 0,
    waiting: int = 0,
    **node_pool: Any,
) -> None:
    """Add a NodePool with so many nodes of so many pods each.

    ``cpu``: of each pod; a node has four. ``stalled``: how many of the nodes are being deleted. ``joining``: Nodes that
    wait to be registered. ``waiting``: claims that nobody has launched, each with a launch of its own. ``node_pool``:
    as ``builders.node_pool`` takes it.
    """
    world.cluster.add(builders.node_class(), builders.node_pool(requirements=[_SHAPE], **node_pool))
    for number in range(nodes):
        world.cluster.add(*_running(world, number, pods, cpu))
    for claim in list(world.cluster.node_claims.values())[:stalled]:
        world.cluster.delete_node_claim(claim)
    for number in range(nodes, nodes + joining):
        world.cluster.add(*_joining(world, number))
    for number in range(waiting):
        world.cluster.add(
            _claim(world, f"waiting-{number:04}", conditions=(), annotations={LAUNCH_TOKEN: f"token-{number}"})
        )


def instance(number: int) -> str:
    """The id of the instance behind a node of ``fill``."""
    return f"i-{number + (1 << 40):017x}"


def _running(world: World, number: int, pods: int, cpu: str) -> Iterator[Any]:
    name, provider_id = f"node-{number:04}", f"aws:///us-east-1a/{instance(number)}"
    yield _claim(
        world, f"claim-{number:04}", provider_id=provider_id, node=name, capacity_type=SPOT,
        conditions=("Launched", "Registered", "Initialized"),
    )  # fmt: skip
    yield builders.node(name, provider_id=provider_id)
    for pod in range(pods):
        yield builders.pod(f"pod-{number:04}-{pod}", cpu=cpu, node=name, phase="Running", owner=f"set-{number:04}")


def _joining(world: World, number: int) -> Iterator[Any]:
    provider_id = f"aws:///us-east-1a/{instance(number)}"
    yield _claim(world, f"joining-{number:04}", provider_id=provider_id, conditions=("Launched",))
    unregistered = Taint(key=UNREGISTERED_TAINT, effect=NO_EXECUTE)
    yield builders.node(f"node-{number:04}", provider_id=provider_id, taints=[unregistered], initialized=False)


def _claim(world: World, name: str, **given: Any) -> Any:
    return builders.node_claim(name, created=world.clock.now() - _OLD, **given)
