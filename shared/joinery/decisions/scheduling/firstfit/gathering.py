"""Pods that must share one host with others: a group of them starts only where all of it fits."""

from joinery.decisions.scheduling.firstfit.demand import Demand
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import HOSTNAME


def is_host_bound(topology: Topology, demand: Demand) -> bool:
    """Whether the class must gather on one host and none is chosen yet."""
    return any(
        rule.key == HOSTNAME and rule.kind == "affinity" and topology.may_begin(topology.group(rule), demand.pod_class)
        for rule in demand.variant.rules
    )


def needs_neighbours(demand: Demand) -> bool:
    """Whether the class must share a host with other pods."""
    return any(
        rule.key == HOSTNAME and rule.kind == "affinity" and rule.weight is None for rule in demand.variant.rules
    )


def may_start(topology: Topology, demand: Demand, room: int, count: int) -> bool:
    """A group that must share a host starts only where all of it fits."""
    return room >= count or not is_host_bound(topology, demand)
