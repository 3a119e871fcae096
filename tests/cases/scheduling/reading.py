"""A golden case, from its YAML to the problem that ``solve`` is asked.

Pods, nodes and pools have a compact form (see ``notation``); whatever else a document says is Kubernetes' own. A
``count`` makes so many pods of one description, called ``web-1``, ``web-2`` and so on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import yaml

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.solve import solve
from joinery.objects.karpenter.labels import OVERRIDES
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes import core
from joinery.objects.kubernetes.quantity import text
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.snapshot import Invalid, Snapshot
from simulator import builders
from tests.cases.scheduling import notation
from tests.cases.scheduling.notation import ZONES, Document, struct
from tests.cases.scheduling.reading_nodes import node_and_claim
from tests.cases.scheduling.reading_pods import daemon_set, pods_of
from tests.cases.scheduling.reading_types import instance_type, with_reserved
from tests.cases.scheduling.reading_volumes import (
    csi_driver,
    csi_node,
    storage_capacity,
    storage_class,
    volume,
    volume_claim,
)

HERE = Path(__file__).parent
_GIVEN_KEYS = (
    "pods nodes pools nodeClasses daemons namespaces priorityClasses volumeClaims volumes storageClasses csiNodes "
    "csiDrivers storageCapacities budgets invalid types reservations options"
)
_POOL_KEYS = (
    "name weight replicas limits nodeClass requirements taints startupTaints labels ready unready deleting overrides"
)


@dataclass(frozen=True)
class Case:
    """``given``: what its problem is made of, with what holds for all cases of the file."""

    file: str
    name: str
    given: Document
    expect: Document
    notes: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"

    @cached_property
    def problem(self) -> Problem:
        """What ``solve`` is asked. Made when it is first needed: every worker of the tests has to list all cases."""
        return _problem(self.given, [pod for _, made in self._pods for pod in made])

    @cached_property
    def packing(self) -> Packing:
        """What ``solve`` answers, solved once for all tests that look at it."""
        return solve(self.problem)

    @cached_property
    def bases(self) -> Mapping[str, str]:
        """A pod's key to the description it was made from, where that made several."""
        return {pod.key: document["name"] for document, made in self._pods if "count" in document for pod in made}

    @cached_property
    def _pods(self) -> list[tuple[Document, list[core.Pod]]]:
        return [(document, pods_of(document)) for document in self.given.get("pods", [])]


@cache
def cases() -> tuple[Case, ...]:
    """Every case of every file, in order."""
    return tuple(case for path in sorted(HERE.glob("*.yaml")) for case in read_file(path))


def read_file(path: Path) -> list[Case]:
    """The cases of one file; what it says under ``given`` holds for all that do not say otherwise."""
    document = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    shared = document.get("given", {})
    return [_case(path.stem, shared, listed) for listed in document["cases"]]


@cache
def standard_types() -> tuple[InstanceType, ...]:
    """The types of cases that bring none of their own."""
    text = (HERE / "catalogue" / "standard.yaml").read_text()
    return tuple(instance_type(document) for document in yaml.load(text, Loader=yaml.CSafeLoader))


def _case(file: str, shared: Document, listed: Document) -> Case:
    notation.only(listed, "name given expect notes")
    given = {**shared, **listed.get("given", {})}
    notation.only(given, _GIVEN_KEYS)
    return Case(file, listed["name"], given, listed.get("expect", {}), listed.get("notes", ""))


def _problem(given: Document, pods: list[core.Pod]) -> Problem:
    pairs = [node_and_claim(n) for n in given.get("nodes", [])]
    snapshot = Snapshot(
        now=builders.EPOCH,
        pods=tuple(pods),
        nodes=tuple(node for node, _ in pairs if node is not None),
        node_claims=tuple(claim for _, claim in pairs if claim is not None),
        node_pools=tuple(node_pool(p) for p in given.get("pools", [{"name": "default"}])),
        node_classes=tuple(builders.node_class(**c) for c in given.get("nodeClasses", [{"zones": ZONES}])),
        daemon_sets=tuple(daemon_set(d) for d in given.get("daemons", [])),
        namespaces=tuple(builders.namespace(**n) for n in given.get("namespaces", [])),
        priority_classes=tuple(struct(core.PriorityClass, p) for p in given.get("priorityClasses", [])),
        volume_claims=tuple(volume_claim(c) for c in given.get("volumeClaims", [])),
        volumes=tuple(volume(v) for v in given.get("volumes", [])),
        storage_classes=tuple(storage_class(s) for s in given.get("storageClasses", [])),
        csi_nodes=tuple(csi_node(n) for n in given.get("csiNodes", [])),
        csi_drivers=tuple(map(csi_driver, given.get("csiDrivers", []))),
        storage_capacities=tuple(storage_capacity(c) for c in given.get("storageCapacities", [])),
        disruption_budgets=tuple(struct(core.PodDisruptionBudget, b) for b in given.get("budgets", [])),
        invalid=tuple(Invalid(**i) for i in given.get("invalid", [])),
    )
    types = tuple(map(instance_type, given["types"])) if "types" in given else standard_types()
    by_class = {
        c.metadata.name: tuple(with_reserved(t, c.metadata.name, given) for t in types) for c in snapshot.node_classes
    }
    options = Options(**{"only_marked_unschedulable": False, **given.get("options", {})})
    return Problem(snapshot=snapshot, instance_types=by_class, options=options)


def node_pool(given: Document) -> NodePool:
    """``requirements`` as in notation, ``unready`` with a message,
    ``deleting``; the rest is ``builders.node_pool``'s.
    """
    notation.only(given, _POOL_KEYS)
    fields = {name: value for name, value in given.items() if name in ("name", "weight", "replicas", "limits")}
    fields = {**fields, "node_class": given.get("nodeClass", "default")}
    pool = builders.node_pool(
        **fields,
        requirements=notation.expressions(given.get("requirements", [])),
        taints=[notation.taint(t) for t in given.get("taints", [])],
        startup_taints=[notation.taint(t) for t in given.get("startupTaints", [])],
        labels=notation.label_map(given.get("labels", {})),
        ready=given.get("ready", True),
    )
    if given.get("unready"):
        failed = [{"type": "Ready", "status": "False", "reason": "UnhealthyDependents", "message": given["unready"]}]
        pool = NodePool.model_validate({**pool.to_wire(), "status": {"nodes": 0, "conditions": failed}})
    if given.get("overrides"):
        pool = with_metadata(pool, annotations={OVERRIDES: given["overrides"]})
    if given.get("deleting"):
        meta = pool.metadata.model_copy(update={"deletion_timestamp": builders.EPOCH})
        pool = pool.model_copy(update={"metadata": meta})
    return pool


def shown_amount(resource: str, value: int) -> str:
    """An amount as quantities are written."""
    return text(resource, value)
