"""What runs on a cluster: services, jobs, databases, and what they ask of their nodes."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from joinery.objects.karpenter.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, ZONE

ZONES = tuple(f"us-east-1{letter}" for letter in "abcdf")
_MEBIBYTES_A_GIBIBYTE = 1024
_SIZES = (50, 100, 200, 250, 500, 750, 1000, 1500, 2000, 3000, 4000)
SMALL_SIZES = (50, 100, 150, 200, 250, 300, 400, 500, 750, 1000)
#: Millicores and MiB of jobs, with how often they come: large ones, as in traces of batch clusters.
_JOBS = (
    ((12500, 57344), 18), ((32000, 49152), 14), ((8000, 30517), 9), ((15400, 51200), 6), ((16500, 51200), 5),
    ((11400, 57344), 2), ((8000, 15625), 2), ((16000, 31250), 2), ((20000, 65536), 1), ((24000, 49152), 1),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Pods that are alike.

    cpu, memory   of one pod, in millicores and MiB
    spec          what its pods say besides, as ``simulator.builders.pod`` takes it
    is_spread     its pods are spread evenly over zones
    is_apart      no two of its pods share a node
    has_volumes   each of its pods has a volume, in a zone
    on_demand     its pods must not run on spot nodes
    """

    app: str
    count: int
    cpu: int
    memory: int
    spec: dict[str, Any] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    is_spread: bool = False
    is_apart: bool = False
    has_volumes: bool = False
    on_demand: bool = False


def _shape(chance: random.Random, sizes: Sequence[int]) -> tuple[int, int]:
    """Small services are common, large ones rare; memory for a core varies as between c, m and r types."""
    cpu = chance.choices(sizes, weights=[1 / (1 + index) ** 0.5 for index in range(len(sizes))])[0]
    memory = cpu / 1000 * chance.choice((1, 2, 4, 8)) * _MEBIBYTES_A_GIBIBYTE * chance.uniform(0.8, 1.1)
    return cpu, max(64, int(memory) // 16 * 16)


def services(
    chance: random.Random, prefix: str, *, kinds: int, total: int, sizes: Sequence[int] = _SIZES, **options: Any
) -> Iterator[Workload]:
    """So many pods shared among so many workloads, a few of them large."""
    weights = [chance.paretovariate(1.2) for _ in range(kinds)]
    for number, weight in enumerate(weights):
        cpu, memory = _shape(chance, sizes)
        count = max(1, int(total * weight / sum(weights)))
        yield Workload(app=f"{prefix}svc-{number:03d}", count=count, cpu=cpu, memory=memory, **options)


def jobs(chance: random.Random, prefix: str, *, total: int) -> Iterator[Workload]:
    """So many large pods of few kinds."""
    chosen = chance.choices([size for size, _ in _JOBS], weights=[often for _, often in _JOBS], k=total)
    for cpu, memory in sorted(set(chosen)):
        yield Workload(app=f"{prefix}job-{cpu}-{memory}", count=chosen.count((cpu, memory)), cpu=cpu, memory=memory)


def either_capacity(chance: random.Random, prefix: str, *, total: int) -> Iterator[Workload]:
    """Services, of which some must not run on spot nodes."""
    for workload in services(chance, prefix, kinds=18, total=total):
        steady = chance.random() < 0.4
        spec = {"node_selector": {CAPACITY_TYPE: ON_DEMAND}} if steady else {}
        yield replace(workload, spec=spec, on_demand=steady)


def mixed(chance: random.Random, prefix: str, *, total: int) -> Iterator[Workload]:
    """Services with spreads and anti-affinity, databases with volumes, and a few that must not be disturbed."""
    for number in range(3):
        app = f"{prefix}store-{number}"
        spec = {"affinity": _apart(app)}
        annotations = {"karpenter.sh/do-not-disrupt": "true"} if chance.random() < 0.2 else {}
        count, cpu = chance.choice((3, 5)), chance.choice((500, 1000, 2000))
        yield Workload(
            app=app, count=count, cpu=cpu, memory=cpu * 4, spec=spec, annotations=annotations, is_spread=True,
            is_apart=True, has_volumes=True,
        )  # fmt: skip
    for workload in services(chance, prefix, kinds=16, total=total):
        draw = chance.random()
        if draw < 0.2 and workload.count <= 40:
            yield replace(workload, spec={"affinity": _apart(workload.app)}, is_apart=True)
        elif draw < 0.6:
            rules = [_spread(workload.app, ZONE, "DoNotSchedule")]
            rules += [_spread(workload.app, HOSTNAME, "ScheduleAnyway")] if chance.random() < 0.5 else []
            yield replace(workload, spec={"spread": rules}, is_spread=True)
        else:
            yield workload


def _spread(app: str, key: str, unsatisfiable: str) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": unsatisfiable, "labelSelector": selector}


def _apart(app: str) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
