"""How large a node may be: its price against what is lost when it fails.

The cheapest plan puts 200 pods on a handful of nodes, or on one. Two annotations of a NodePool change that:

- ``joinery.dev/node-size`` is a preference. A node's **share** is the part of all that the pool's pods ask for that has
  room on it. From a certain share on, the node's price counts as a little more for every doubling of the share: 1 %
  beyond an eighth under ``balanced``, the default; 3 % beyond a thirty-second under ``small``; nothing under
  ``cheapest``. A node of four cores is small whatever its share, so one of eight has doubled once at most.
- ``joinery.dev/max-node-share`` is a rule. No new node holds more than that part of the pool's pods, and no pod that
  could stay is moved onto a node that would then hold more. Pods that wait go to existing nodes whatever these hold:
  kube-scheduler, which binds them, knows no such rule.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer.arrays import Floats
from joinery.decisions.scheduling.constraints.node_pods import number_of_own
from joinery.decisions.scheduling.pools.market import Amounts
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.objects.karpenter.labels import MAX_NODE_SHARE, NODE_SIZE
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.policies import SIZES, share_of
from joinery.objects.snapshot.nodes import NodeView


@dataclass(frozen=True)
class Preference:
    """Beyond ``share`` of the pool (0 to 1),
    every doubling of the share adds ``premium`` (0.01 is 1 %) to the price.
    """

    premium: float
    share: float


#: A node with so many cores is small, however few pods there are.
_SMALL_CORES = 4

_PREFERENCES: Mapping[str, Preference] = dict(
    zip(SIZES, (Preference(0.0, 1.0), Preference(0.01, 1 / 8), Preference(0.03, 1 / 32)), strict=True)
)


def factors(pool: Pool, demand: Amounts, default: str) -> Floats:
    """float64[types]: by what the price of each type is multiplied when plans are compared; 1 or more.

    ``demand``: int64[resources], what all pods ask for that the pool, or others of its weight, may take. ``default``:
    the node size of pools without the annotation.
    """
    preference = _PREFERENCES[pool.node_pool.metadata.annotations.get(NODE_SIZE, default)]
    asked = demand > 0
    if not preference.premium or not asked.any():
        return np.ones(len(pool.types))
    share = np.clip(pool.room[:, asked] / demand[asked], 1e-9, 1.0).min(axis=1)
    cores = np.array([instance_type.capacity.get("cpu", 0) / 1000 for instance_type in pool.market.types])
    doubled = np.minimum(np.maximum(share / preference.share, 1.0), np.maximum(cores / _SMALL_CORES, 1.0))
    factor: Floats = 1.0 + preference.premium * np.log2(doubled)
    return factor


def most_pods(node_pools: Iterable[NodePool], nodes: Iterable[NodeView], pending: int) -> Mapping[str, int]:
    """By NodePool with ``joinery.dev/max-node-share``, how many of its pods one node may hold.

    The share is of all pods that the pool may come to hold: those that run on its ``nodes``, and all that are placed
    now (``pending`` many).
    """
    shares = {
        pool.metadata.name: share
        for pool in node_pools
        if (share := _share_of(pool.metadata.annotations.get(MAX_NODE_SHARE, ""))) is not None
    }
    pods = dict.fromkeys(shares, pending)
    for view in nodes:
        if view.pool in shares:
            pods[view.pool] += own_pods(view)
    # The small addition makes up for shares like 0.1 that have no exact binary form: a tenth of 30 pods is 3.
    return {name: max(1, int(share * pods[name] + 1e-9)) for name, share in shares.items()}


def _share_of(text: str) -> float | None:
    """None for what is no share: its NodePool takes no part (``objects.karpenter.validation``), and others are planned
    for."""
    try:
        return share_of(text)
    except ValueError:
        return None


def own_pods(view: NodeView) -> int:
    """How many pods the node holds that did not come with it."""
    return view.derived(number_of_own)
