"""Worlds of static NodePools: what their tests share."""

from datetime import timedelta
from typing import Any

from joinery.decisions.lifecycle.step import LAUNCHING
from joinery.objects.errors import ConflictError, UnavailableError
from joinery.objects.karpenter.nodepool import NodePool
from simulator import builders
from simulator.latency import Killed
from simulator.world import World
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand

XLARGE = "karpenter.k8s.aws/instance-size=xlarge"


def static_stand(world: World, *pools: NodePool, **settings: Any) -> Stand:
    """A stand with these NodePools, whose NodeClass is ready."""
    stand = Stand(world, **settings)
    world.cluster.add(builders.node_class(), *pools)
    stand.live()
    return stand


def static_pool(name: str = "base", replicas: int = 3, **given: Any) -> NodePool:
    """A static NodePool of nodes of one size."""
    return builders.node_pool(name, **{"replicas": replicas, "requirements": [XLARGE], **given})


def scaled(stand: Stand, replicas: int, name: str = "base") -> None:
    """A person changes ``replicas``."""
    pool = stand.world.cluster.node_pools[name]
    stand.world.cluster.api.update(
        pool.model_copy(update={"spec": pool.spec.model_copy(update={"replicas": replicas})})
    )


def relabelled(stand: Stand, name: str = "base", **labels: str) -> None:
    """A person changes the labels of the template, so that every node has drifted."""
    pool = stand.world.cluster.node_pools[name]
    metadata = pool.spec.template.metadata.model_copy(update={"labels": labels})
    template = pool.spec.template.model_copy(update={"metadata": metadata})
    spec = pool.spec.model_copy(update={"template": template})
    stand.world.cluster.api.update(pool.model_copy(update={"spec": spec}))


def settled(stand: Stand) -> None:
    """Until nothing moves any more."""
    for _ in range(4):
        stand.provision()
        stand.boot()
        stand.live()


def after_drains(stand: Stand) -> None:
    """Long enough for drains without pods, and for their instances to end."""
    for _ in range(8):
        stand.wait(10)
        stand.live()


def rung_until_still(stand: Stand, fuse: Fuse) -> None:
    """The schedule rings for as long as anything moves. A run that is killed is followed by a new process."""
    for _ in range(12):
        for door in (stand.provision, stand.live):
            try:
                door()
            except Killed:
                fuse.replace()
                stand.wait(LAUNCHING / timedelta(seconds=1) + 30)
            except (ConflictError, UnavailableError):
                pass
        stand.boot()
