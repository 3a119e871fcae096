"""Amounts that are quantities and hardly what was meant: ``memory: 512m`` is half a byte, ``cpu: 500`` five hundred
cores, and a NodePool limited to ``memory: 1000`` has room for no node.

An API server takes them (of the first it warns), and a plan for them is for another pod, or buys nothing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Container, DaemonSet, Pod
from joinery.objects.kubernetes.quantity import amount
from joinery_cli.notices import Notice, warning, warnings_of
from joinery_cli.view.workloads import owner_of

#: No process lives in less than a mebibyte; no container has needed so many cores that were written without a unit.
_LEAST, _MOST_CORES = 2**20, 100
_MOST_GIBIBYTES, _MOST_MEBIBYTES = 32, 99_999
#: No instance type has less memory than half a gibibyte, or less than a core.
_SMALLEST_NODE = 2**29
_THOUSANDTHS = 1000
_BYTES = ("memory", "ephemeral-storage")
_NUMBER = re.compile(r"(\d+)(m?)")


def odd_amounts(pods: Iterable[Pod], daemon_sets: Iterable[DaemonSet]) -> Iterator[Notice]:
    """A warning for each, naming whose pods they are."""
    whose = [(owner_of(pod), (*pod.spec.containers, *pod.spec.init_containers)) for pod in pods]
    for daemon_set in daemon_sets:
        spec, metadata = daemon_set.spec.template.spec, daemon_set.metadata
        whose.append((f"{metadata.namespace}/{metadata.name}", (*spec.containers, *spec.init_containers)))
    doubts = ((owner, doubt) for owner, containers in whose for doubt in _of_containers(containers))
    yield from warnings_of(doubts, "pods of ")


def odd_limits(pools: Iterable[NodePool]) -> Iterator[Notice]:
    """The same for what a NodePool may have in all. Nothing at all is a limit that people set to stop it."""
    for pool in pools:
        for name, given in pool.spec.limits.items():
            written = _NUMBER.fullmatch(given)
            if written is None or not (value := amount(name, given)):
                continue
            number, unit = written.groups()
            where = f"NodePool {pool.metadata.name}: spec.limits.{name}"
            if name in _BYTES and value < _SMALLEST_NODE:
                question = f"; is it {number}Gi?" if int(number) <= _MOST_MEBIBYTES else ""
                yield warning(
                    f"{where}: {given} is {_bytes(int(number), unit, value)}, and no node is so small{question}"
                )
            elif name == "cpu" and unit and int(number) < _THOUSANDTHS:
                yield warning(f"{where}: {given} is less than a core, and no node is so small; is it {number}?")


def _of_containers(containers: Iterable[Container]) -> Iterator[str]:
    for container in containers:
        yield from _doubts(container.resources.requests)


def _doubts(requests: Mapping[str, object]) -> Iterator[str]:
    for name, given in requests.items():
        written = _NUMBER.fullmatch(str(given))
        if written is None:
            continue
        number, unit = written.groups()
        value = amount(name, str(given))
        if name in _BYTES and 0 < value < _LEAST:
            what = _bytes(int(number), unit, value)
            yield f"they request {name}: {given}, which is {what}{_question(int(number))}"
        elif name == "cpu" and not unit and int(number) >= _MOST_CORES:
            yield f"they request cpu: {given}, which is {int(number):,} cores; is it {number}m?"


def _bytes(number: int, unit: str, value: int) -> str:
    return "less than a byte" if unit and number < _THOUSANDTHS else f"{value:,} bytes"


def _question(number: int) -> str:
    """Few are gibibytes, some hundreds mebibytes; what is larger was meant to be something else."""
    if number > _MOST_MEBIBYTES:
        return ""
    return f"; is it {number}{'Gi' if number <= _MOST_GIBIBYTES else 'Mi'}?"
