"""A stand-in for kube-scheduler: which node a pod is bound to.

It knows what these pods ask for: room, and a node that takes pods at all. Scores are kube-scheduler's: resources by
``LeastAllocated`` (the default) or ``MostAllocated`` and ``NodeResourcesBalancedAllocation``, with equal weights.
"""

from collections.abc import Iterable
from enum import StrEnum

from tools.churn.cluster import Cluster, Machine, RunningPod, demands
from tools.churn.day import Template


class Scoring(StrEnum):
    """kube-scheduler's ``NodeResourcesFitArgs.scoringStrategy``."""

    LEAST_ALLOCATED = "least"
    MOST_ALLOCATED = "most"


def schedule(cluster: Cluster, scoring: Scoring, now: int) -> list[RunningPod]:
    """Bind every waiting pod that has a place, the oldest first. Returns those that were bound."""
    bound = []
    full: set[Template] = set()
    for pod in sorted(cluster.waiting.values(), key=lambda pod: (pod.created, pod.key)):
        template = pod.work.template
        # Pods that are alike find no place where the one before them found none.
        machine = None if template in full else _place(cluster.machines.values(), template, scoring)
        if machine is None:
            full.add(template)
            continue
        if machine.kept_for is not None:
            machine.kept_for[template.name] -= 1
        cluster.bind(pod, machine, now)
        bound.append(pod)
    return bound


def _place(machines: Iterable[Machine], template: Template, scoring: Scoring) -> Machine | None:
    """The best machine for the pod; None if none has room."""
    fitting = [machine for machine in machines if _takes(machine, template) and machine.holds(template)]
    # Whoever bought a node for pods nominates it for them.
    kept = [machine for machine in fitting if machine.kept_for is not None]
    return max(kept or fitting, key=lambda machine: (_score(machine, template, scoring), machine.name), default=None)


def _takes(machine: Machine, template: Template) -> bool:
    if machine.node is None or machine.is_closed:
        return False
    return machine.kept_for is None or machine.kept_for[template.name] > 0


def _score(machine: Machine, template: Template, scoring: Scoring) -> float:
    cpu, memory, _ = (
        (used + more) / room for used, more, room in zip(machine.used, demands(template), machine.room, strict=True)
    )
    mean = (cpu + memory) / 2
    fit = mean if scoring is Scoring.MOST_ALLOCATED else 1 - mean
    return fit + 1 - abs(cpu - memory) / 2
