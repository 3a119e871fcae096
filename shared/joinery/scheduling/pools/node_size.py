"""How large a node may be: price against what is lost with it.

The cheapest plan puts 200 pods on a handful of nodes, or on one. Two things on a NodePool say otherwise:

- ``joinery.dev/node-size``: a preference. Under ``balanced``, the default, a node counts as one percent dearer for
  every doubling of its share of the pool beyond an eighth; under ``small`` as three percent beyond a thirty-second;
  under ``cheapest`` as what it costs. A share is what part of all that the pool's pods ask for has room on the node. A
  node of four cores is small anyway, and one of eight has doubled once at most.
- ``joinery.dev/max-node-share``: a rule. No new node holds more than that part of the pool's pods.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from joinery.apis.labels import MAX_NODE_SHARE, NODE_SIZE
from joinery.apis.nodepool import NodePool
from joinery.apis.sizes import SIZES, share_of
from joinery.optimizer.arrays import Floats
from joinery.scheduling.pools.pool import Amounts, Pool


@dataclass(frozen=True)
class Preference:
    """From ``share`` of the pool on, every doubling counts as so much (``premium``) dearer."""

    premium: float
    share: float


_SMALL_CORES = 4

_PREFERENCES: Mapping[str, Preference] = dict(
    zip(SIZES, (Preference(0.0, 1.0), Preference(0.01, 1 / 8), Preference(0.03, 1 / 32)), strict=True)
)


def factors(pool: Pool, demand: Amounts, default: str) -> Floats:
    """What each type's price counts as, as a multiple.

    ``demand``: all that the pods of the pool, and of others of its weight, ask for, by resource.
    """
    preference = _PREFERENCES[pool.node_pool.metadata.annotations.get(NODE_SIZE, default)]
    asked = demand > 0
    if not preference.premium or not asked.any():
        return np.ones(len(pool.types))
    share = np.clip(pool.room[:, asked] / demand[asked], 1e-9, 1.0).min(axis=1)
    cores = np.array([kind.capacity.get("cpu", 0) / 1000 for kind in pool.market.types])
    doubled = np.minimum(np.maximum(share / preference.share, 1.0), np.maximum(cores / _SMALL_CORES, 1.0))
    factor: Floats = 1.0 + preference.premium * np.log2(doubled)
    return factor


def most_pods(node_pool: NodePool, pods: int) -> int | None:
    """How many of the pool's pods one node may hold; None where nothing is said."""
    share = node_pool.metadata.annotations.get(MAX_NODE_SHARE)
    return None if share is None else max(1, int(share_of(share) * pods + 1e-9))
