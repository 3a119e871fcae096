"""A day's workloads: who wants how many pods when, whatever nodes there are.

Consolidation has nothing left to do before the day begins, so every rule of consolidation is asked about the same day.

- **Services** are scaled by a HorizontalPodAutoscaler that follows a daily wave with noise, and are rolled out anew in
  working hours.
- **Jobs** come all day, more by day than by night, and several at once at every full hour, as cron has it.

A trace takes the place of both: its pods come when they came, and run as long as they ran.
"""

import csv
import gzip
import io
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.churn import shapes

HOUR = 3600
DAY = 24 * HOUR
#: Seconds between two looks of the autoscaler. The real one looks every fifteen; metrics come once a minute.
_SYNC = 60
#: Seconds for which the autoscaler scales down to the largest that it wanted lately (HorizontalPodAutoscaler).
_STABILIZATION = 300
#: The autoscaler lets a difference of so large a share be.
_TOLERANCE = 0.1
_CRON_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Template:
    """Pods that are alike. ``cpu`` in millicores, ``memory`` in MiB."""

    name: str
    cpu: int
    memory: int


@dataclass(frozen=True)
class Service:
    """``scale``: at these seconds, so many replicas are wanted. ``rollouts``: seconds at which a new version comes."""

    template: Template
    scale: tuple[tuple[int, int], ...]
    rollouts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """One pod that begins to be wanted at second ``arrival`` and has ``work`` seconds to run."""

    template: Template
    arrival: int
    work: int


@dataclass(frozen=True)
class Day:
    """``length``: seconds of it that are played."""

    services: tuple[Service, ...]
    jobs: tuple[Job, ...]
    length: int


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a made-up day is. ``replicas``: of all services together at the peak; ``jobs``: in 24 hours."""

    services: int = 10
    replicas: int = 150
    jobs: int = 600


def made(seed: int, size: Size, length: int = DAY) -> Day:
    """A day that is drawn from published shapes (``tools.churn.shapes``). The same seed gives the same day."""
    chance = random.Random(seed)
    services = tuple(_services(chance, size, length))
    jobs = tuple(sorted(_jobs(chance, size.jobs, length), key=lambda job: (job.arrival, job.template.name)))
    return Day(services, jobs, length)


def _services(chance: random.Random, size: Size, length: int) -> Iterator[Service]:
    weights = [chance.paretovariate(1.2) for _ in range(size.services)]
    for number, weight in enumerate(weights):
        peak = max(2, round(size.replicas * weight / sum(weights)))
        template = Template(f"service-{number:02d}", *shapes.size(chance))
        is_scaled = chance.random() < 0.7
        scale = tuple(_autoscaled(chance, peak, length)) if is_scaled else ((0, peak),)
        rollouts = tuple(sorted(chance.randrange(9 * HOUR, 18 * HOUR) for _ in range(chance.choice((0, 0, 1, 1, 2)))))
        yield Service(template, scale, tuple(second for second in rollouts if second < length))


def _autoscaled(chance: random.Random, peak: int, length: int) -> Iterator[tuple[int, int]]:
    """What a HorizontalPodAutoscaler makes of the daily wave, with noise that lasts for a quarter of an hour."""
    shift, noise = chance.uniform(-1.5, 1.5) * HOUR, 0.0
    current, wanted = 0, []
    for second in range(0, length, _SYNC):
        noise = 0.93 * noise + chance.gauss(0, 0.02)
        demand = peak * shapes.load(int(second - shift)) * (1 + noise)
        is_near = current and abs(demand / current - 1) <= _TOLERANCE
        wanted.append(current if is_near else max(2, -int(-demand // 1)))
        recently = max(wanted[-(_STABILIZATION // _SYNC) :])
        target = recently if recently < current else max(current, wanted[-1])
        if target != current:
            current = target
            yield second, current


def _jobs(chance: random.Random, count: int, length: int) -> Iterator[Job]:
    templates = [Template(f"job-{number:02d}", *shapes.size(chance)) for number in range(12)]
    for _ in range(round(count * length / DAY)):
        second = chance.randrange(length)
        while chance.random() > shapes.load(second):
            second = chance.randrange(length)
        if chance.random() < _CRON_SHARE:
            second -= second % HOUR
        yield Job(chance.choice(templates), second, shapes.lifetime(chance))


def traced(file: Path, length: int = DAY) -> Day:
    """The busiest day of a trace, by arrivals.

    ``file``: CSV, gzipped or not, with the columns ``cpu_milli``, ``memory_mib``, ``creation_time`` and
    ``deletion_time`` (seconds), as Alibaba's cluster-trace-gpu-v2023 has them. Pods that run already when the day
    begins come at its first second. Pods without an end run on.
    """
    data = file.read_bytes()
    text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    days = Counter(int(float(row["creation_time"])) // DAY for row in rows)
    begin = days.most_common(1)[0][0] * DAY
    jobs = (_traced_job(row, begin, length) for row in rows)
    return Day(
        (), tuple(sorted((job for job in jobs if job), key=lambda job: (job.arrival, job.template.name))), length
    )


def _traced_job(row: dict[str, str], begin: int, length: int) -> Job | None:
    """The row's pod, if it runs on that day."""
    created = int(float(row["creation_time"])) - begin
    ended = int(float(row["deletion_time"])) - begin if row["deletion_time"] else 2 * length
    if created >= length or ended <= 0 or ended <= created:
        return None
    cpu, memory = int(row["cpu_milli"]), int(row["memory_mib"])
    arrival = max(0, created)
    return Job(Template(f"job-{cpu}-{memory}", cpu, memory), arrival, ended - arrival)


def pods_at_most(services: Sequence[Service]) -> int:
    """How many replicas all services want together at their peaks."""
    return sum(max(count for _, count in service.scale) for service in services)
