"""Parts of GPUs: a node of some types (g6f, gr6f) shows a part of a GPU as the resource that others show a GPU as.

A pod that asks for a GPU means a whole one. It gets a part only where it or the NodePool asks for the type by its name,
its family or ``instance-gpu-fractional``. Karpenter buys no such type for it at all: parts came up in production for
pods that asked for GPUs (karpenter-provider-aws issue 8324). kube-scheduler knows no such rule: a node that exists
takes any pod.
"""

from collections.abc import Container

from joinery.decisions.scheduling.constraints.requirements import Requirements
from joinery.objects.karpenter.labels import GPU_FRACTIONAL, GPU_RESOURCES, INSTANCE_FAMILY, INSTANCE_TYPE

_NAMING = (INSTANCE_TYPE, INSTANCE_FAMILY, GPU_FRACTIONAL)


def wants_gpus(requests: Container[str]) -> bool:
    """Whether some resource that is asked for is a GPU."""
    return any(name in requests for name in GPU_RESOURCES)


def names_types(requirements: Requirements) -> bool:
    """Whether they list the types, their families, or whether parts will do: what they allow is then meant."""
    allowed = (requirements.sets.get(key) for key in _NAMING)
    return any(values is not None and not values.complement and not values.is_empty for values in allowed)
