"""Ordinary instance types: those that somebody means who says nothing of instance types.

A few are cheap for a reason. Burstable ones have a fraction of their CPUs for long. Generations before the third are
slow, and few images have drivers for their GPUs. Bare metal boots for ten minutes. HPC types are sold in one zone and
have little network beside their fabric. Karpenter's documentation leaves all of them out of the NodePool that one
begins with (Getting Started: instance-category In [c, m, r], instance-generation Gt 2), and its first API did so by
default. A NodePool, or a pod, that names kinds of types gets what it names.
"""

import numpy as np

from joinery.decisions.scheduling.constraints.requirements import EXISTS, Requirements, ValueSet, one_of
from joinery.decisions.scheduling.pools.market import Market, Mask
from joinery.objects.karpenter.labels import AWS_GROUP, KINDS

_CATEGORY, _GENERATION, _GPUS = (f"{AWS_GROUP}/instance-{name}" for name in ("category", "generation", "gpu-count"))
_PECULIAR = one_of(("t", "hpc"))
#: Of other categories (inf, trn, x, z, u) the first generations are of today.
_COUNTED, _OLD = one_of("acdghimpr"), ValueSet(True, lte=2)


def says_kinds(template: Requirements) -> bool:
    """Whether a NodePool's requirements are about kinds of types, in whatever way."""
    return any(key in template.sets for key in KINDS)


def names_kinds(wanted: Requirements) -> bool:
    """Whether requirements list kinds of types: to leave some out is not to ask for the others."""
    allowed = (wanted.sets.get(key) for key in KINDS)
    return any(values is not None and not values.complement and not values.is_empty for values in allowed)


def peculiar(market: Market) -> Mask:
    """bool[types]: those that are not ordinary."""
    # Bare metal may be a family's only size with so many GPUs: g4dn.metal has eight, for a quarter of what others cost.
    metal = np.array(["metal" in kind.name.partition(".")[2] for kind in market.types], dtype=np.bool_)
    metal &= ~market.type_mask(_GPUS, EXISTS)
    old = market.type_mask(_CATEGORY, _COUNTED) & market.type_mask(_GENERATION, _OLD)
    return np.asarray(metal | old | market.type_mask(_CATEGORY, _PECULIAR))
