"""Scenarios: what a simulated cluster has, and what happens to it when, as a YAML document.

::

    kind: Scenario
    metadata: {name: story}
    spec:
      title: one line for a person
      seed: 7                       # the default one
      length: 40m
      settings: SurgeSingleReplicas=true; NodeRepair=replace      # as the stack's parameter; defaults if left out
      market: {families: [m7a], zones: [us-east-1a]}          # what EC2 sells; a default if left out
      objects: [...]                # Kubernetes manifests that are there at the start
      running:                      # nodes that are there at the start, and how long already
        - {nodePool: default, instanceType: m6a.large, zone: us-east-1a, capacityType: on-demand, age: 719h50m}
      happenings:                   # in order of time; each does one thing
        - {at: 5s, apply: [...], say: why}                    # Deployments, StatefulSets, or any other manifest
        - {at: 6s, delete: [{kind: Deployment, name: web}], say: why}  # what it owns goes with it
        - {at: 5m, interrupt: {zone: us-east-1a}, say: why}    # the fullest such spot node; with "all: true" all
        - {at: 5m, deleteNode: {nodePool: default}, say: why}  # kubectl delete node; nodes are chosen alike
        - {at: 5m, recommend: {}, say: why}                    # EC2's rebalance recommendation
        - {at: 5m, stop: {}, say: why}                         # somebody stops the instance
        - {at: 5m, retire: {startsIn: 24h}, say: why}          # AWS Health: its hardware will be taken away
        - {at: 1m, runOut: {zones: [us-east-1a], capacityTypes: [spot]}, say: why}
        - {at: 1m, runOut: {instanceTypes: [m6a.large], left: 3}, say: why}   # so many in each zone
        - {at: 9m, restock: {}, say: why}

Deployments and StatefulSets are understood by the simulated workload controllers. A list stands for its items. Objects
of Karpenter's older APIs are taken as a cluster of then has them.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from joinery.objects import settings
from joinery.objects.errors import ConfigurationError
from joinery_cli.notices import RefusedFilesError, tell, warning
from joinery_cli.reading.decoding import misfit
from joinery_cli.reading.documents import read
from joinery_cli.reading.places import Place
from joinery_cli.reading.yamls import split
from simulator.cloud.market import FAMILIES, ZONES, sample
from simulator.story.manifests import doubts, problems, taken_apart, twice, unknown_kinds

_UNITS = {"h": 3600, "m": 60, "s": 1}


class Market(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    families: tuple[str, ...] = FAMILIES
    zones: tuple[str, ...] = ZONES


class Running(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A node that is there at the start."""

    instance_type: str
    zone: str
    age: str
    node_pool: str = "default"
    capacity_type: str = "on-demand"


class Pools(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Capacity pools by what they have in common; what is left out is anything."""

    instance_types: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    capacity_types: tuple[str, ...] = ()


class SoldOut(Pools, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Capacity pools that have only so many instances left, each."""

    left: int = 0


class Nodes(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Nodes to do something to: the one with most pods, or all. What is left out is anything."""

    capacity_type: str = ""
    zone: str = ""
    node_pool: str = ""
    all: bool = False


class Retirement(Nodes, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Nodes whose hardware AWS will take away: so long after it has said so."""

    starts_in: str = "24h"


class Named(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """An object by kind and name."""

    kind: str
    name: str
    namespace: str = "default"


class Happening(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    at: str
    say: str = ""
    apply: tuple[dict[str, Any], ...] = ()
    delete: tuple[Named, ...] = ()
    delete_node: Nodes | None = None
    interrupt: Nodes | None = None
    recommend: Nodes | None = None
    stop: Nodes | None = None
    retire: Retirement | None = None
    run_out: SoldOut | None = None
    restock: Pools | None = None

    @property
    def after(self) -> timedelta:
        return duration(self.at)


class Spec(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    title: str
    length: str
    seed: int = 0
    settings: str = ""
    market: Market = Market()
    objects: tuple[dict[str, Any], ...] = ()
    running: tuple[Running, ...] = ()
    happenings: tuple[Happening, ...] = ()


class Scenario(msgspec.Struct, frozen=True):
    metadata: dict[str, Any]
    spec: Spec
    kind: str = "Scenario"

    @property
    def name(self) -> str:
        return str(self.metadata.get("name", ""))


def find(path: Path | None) -> Path | None:
    """A file as it is, or one of ours by its name: ``spot-storm``."""
    if path is None or path.exists():
        return path
    folder = Path(str(resources.files("simulator"))) / "scenarios"
    ours = {file.stem: file for file in sorted(folder.glob("*.yaml"))}
    found = ours.get(path.name.removesuffix(".yaml"))
    if found is None and path.parent == Path():
        raise ConfigurationError(f"{path}: no such file, nor is it one of ours: {', '.join(ours)}")
    return found or path


def load(path: Path | None = None) -> Scenario:
    """Read a scenario file, or the story without one. Raises ``ConfigurationError`` naming file and field."""
    source = str(path or resources.files("simulator").joinpath("scenarios", "story.yaml"))
    text = read(source)
    documents = list(split(source, text))
    if any(_is_manifest(document) for _, document in documents):
        raise ConfigurationError(
            f"{source}: has manifests, and a scenario has them in its spec.objects: begin with a copy of "
            "simulator/scenarios/surge.yaml; joinery plan takes them as they are"
        )
    if len(documents) != 1:
        raise ConfigurationError(f"{source}: a scenario is one document, not {len(documents)}")
    ((begins, document),) = documents
    try:
        scenario = msgspec.json.decode(document, type=Scenario)
    except msgspec.ValidationError as error:
        problem = misfit(msgspec.json.decode(document), error)
        line = Place(text, begins).line(problem.partition(": ")[0])
        raise ConfigurationError(f"{source}:{line}: {problem}") from error
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{source}: {error}") from error
    scenario = replace(scenario, spec=_with_single_objects(scenario.spec))
    _check(scenario.spec, source)
    return scenario


def _is_manifest(document: bytes) -> bool:
    given = msgspec.json.decode(document)
    return isinstance(given, dict) and "apiVersion" in given and given.get("kind") != "Scenario"


def _with_single_objects(spec: Spec) -> Spec:
    happenings = (replace(one, apply=tuple(taken_apart(one.apply))) for one in spec.happenings)
    return replace(spec, objects=tuple(taken_apart(spec.objects)), happenings=tuple(happenings))


def _check(spec: Spec, source: str) -> None:
    """Raises ``ConfigurationError`` with everything that is wrong."""
    try:
        retirements = (one.retire.starts_in for one in spec.happenings if one.retire)
        lengths = (spec.length, *(running.age for running in spec.running), *retirements)
        length, *_ = [duration(text) for text in lengths]
        settings.read(settings.environment({"cluster": "any", "settings": spec.settings}))
        late = [happening.at for happening in spec.happenings if happening.after > length]
    except (ValueError, ConfigurationError) as error:
        raise ConfigurationError(f"{source}: {error}") from error
    lists = [spec.objects, *(happening.apply for happening in spec.happenings)]
    wrong = [*(f"happenings: {at} is after the end, {spec.length}" for at in late), *_unsold(spec.market)]
    wrong += problems(chain(*lists))
    wrong += unknown_kinds(one.kind for happening in spec.happenings for one in happening.delete)
    # What is applied again is changed by it; a pod cannot be.
    pods = (one for one in chain(*lists) if one.get("kind") == "Pod") if not wrong else ()
    if wrong := wrong or [*chain.from_iterable(map(twice, (*lists, pods)))]:
        raise RefusedFilesError([f"{source}: {problem}" for problem in wrong])
    tell(warning(f"{source}: {doubt}") for doubt in doubts(chain(*lists)))


def _unsold(wanted: Market) -> Iterator[str]:
    """A line for what the recorded region does not sell."""
    sold = sample()
    families = {described.instance_type.partition(".")[0] for described in sold.described}
    zones = {zone.name for zone in sold.zones}
    yield from (f"market: there is no family {name}" for name in wanted.families if name not in families)
    yield from (f"market: there is no zone {name} in {sold.region}" for name in wanted.zones if name not in zones)


def duration(text: str) -> timedelta:
    """``719h50m`` and the like. Raises ``ValueError``."""
    if not re.fullmatch(r"(\d+(\.\d+)?[hms])+", text):
        raise ValueError(f"{text!r} is not a duration: expected something like 1h30m")
    return timedelta(
        seconds=sum(float(number) * _UNITS[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)([hms])", text))
    )
