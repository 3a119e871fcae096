"""Requests that are quantities and hardly what was meant: ``memory: 512m`` is half a byte, ``cpu: 500`` five hundred
cores.

An API server takes them (of the first it warns), and a plan for them is for another pod.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from joinery.apis.core import Pod
from joinery.apis.quantity import amount
from joinery.cli.notices import Notice, some_of, warning
from joinery.cli.view.workloads import owner_of

#: No process lives in less than a mebibyte; no container has needed so many cores that were written without a unit.
_LEAST, _MOST_CORES = 2**20, 100
_MOST_GIBIBYTES, _MOST_MEBIBYTES = 32, 99_999
_BYTES = ("memory", "ephemeral-storage")
_NUMBER = re.compile(r"(\d+)(m?)")


def odd_amounts(pods: Iterable[Pod]) -> Iterator[Notice]:
    """A warning for each, naming whose pods they are."""
    owners: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        for container in (*pod.spec.containers, *pod.spec.init_containers):
            for doubt in _doubts(container.resources.requests):
                owner = owner_of(pod)
                owners[doubt] += [owner] if owner not in owners[doubt] else []
    for doubt, listed in owners.items():
        yield warning(f"pods of {some_of(listed)}: {doubt}")


def _doubts(requests: Mapping[str, object]) -> Iterator[str]:
    for name, given in requests.items():
        written = _NUMBER.fullmatch(str(given))
        if written is None:
            continue
        number, unit = written.groups()
        value = amount(name, str(given))
        if name in _BYTES and 0 < value < _LEAST:
            what = "less than a byte" if unit and int(number) < 1000 else f"{value:,} bytes"
            yield f"they request {name}: {given}, which is {what}{_question(int(number))}"
        elif name == "cpu" and not unit and int(number) >= _MOST_CORES:
            yield f"they request cpu: {given}, which is {int(number):,} cores; is it {number}m?"


def _question(number: int) -> str:
    """Few are gibibytes, some hundreds mebibytes; what is larger was meant to be something else."""
    if number > _MOST_MEBIBYTES:
        return ""
    return f"; is it {number}{'Gi' if number <= _MOST_GIBIBYTES else 'Mi'}?"
