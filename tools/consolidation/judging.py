"""Asks the judge, which links kube-scheduler's own plugins, about the states that a decision leads through.

The judge checks plans for pending pods. So it is given the cluster without retired nodes, with moved pods pending, and
a Plan that places them.
"""

import json
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.verified import state_after
from joinery.decisions.scheduling.packing import ExistingPlacement, Packing, placed_pods
from joinery.objects.snapshot.pods import is_reschedulable
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.output.json import existing_document, launch_document, moment_text
from tools.bench.frame import JOINERY, Document, read, write

_EVERY_PREFIX = 12
_SAMPLE = 10


@dataclass(frozen=True)
class Verdict:
    """What the judge says of the states that a decision leads through.

    states       how many were judged
    errors, warnings   its remarks, each with the number of ``commands`` carried out before
    preferences  how much of what the moved pods prefer is honoured before and after
    """

    states: int
    errors: tuple[Document, ...] = ()
    warnings: tuple[Document, ...] = ()
    preferences: tuple[int, int] = (0, 0)


class JudgeError(RuntimeError):
    """The judge could not read what it was given."""


@dataclass(frozen=True)
class Judge:
    """The judge's binary, and the catalogue that decisions were made with."""

    binary: Path
    catalogue: Path

    def verdict(self, file: Path, problem: DisruptionProblem, commands: Sequence[DecidedCommand]) -> Verdict:
        """About the final state and a sample of the states on the way there. ``file``: the cluster.

        Raises ``JudgeError``.
        """
        lengths = sample(len(commands))
        if not lengths:
            return Verdict(0)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            command = [str(JOINERY), "catalog", "-f", str(file), "--catalog", str(self.catalogue), "-o", "json"]
            (folder / "types.json").write_bytes(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            objects, snapshot = read(file), problem.packing.snapshot
            reports: dict[int, Document] = {}
            for length in lengths:
                packing = state_after(problem.packing, commands[:length]).packing
                retired = frozenset(name for command in commands[:length] for name in command.retire)
                reports[length] = self._report(objects, snapshot, packing, retired, folder)
            stayed = self._report(objects, snapshot, _homes(snapshot, commands), frozenset(), folder)
        satisfied = [report["preferences"]["satisfied"] for report in (stayed, reports[lengths[-1]])]
        errors, warnings = (
            tuple({**remark, "commands": length} for length, report in reports.items() for remark in report[severity])
            for severity in ("errors", "warnings")
        )
        return Verdict(len(lengths), errors, warnings, (satisfied[0], satisfied[1]))

    def _report(
        self, objects: Sequence[Document], snapshot: Snapshot, packing: Packing, retired: frozenset[str], folder: Path
    ) -> Document:
        write(left(objects, snapshot, packing, retired), folder / "cluster.json.gz")
        (folder / "plan.json").write_bytes(msgspec.json.encode(plan_document(snapshot, packing)))
        files = {"-f": "cluster.json.gz", "--instance-types": "types.json", "--plan": "plan.json"}
        given = [text for option, name in files.items() for text in (option, str(folder / name))]
        called = subprocess.run([str(self.binary), *given, "-o", "json"], capture_output=True, text=True, check=False)
        if called.returncode not in (0, 1):
            raise JudgeError(called.stderr.strip())
        return dict(json.loads(called.stdout))


def sample(commands: int) -> list[int]:
    """After how many commands the state is looked at: after each, or of many after ten, with the first and the last."""
    if commands <= _EVERY_PREFIX:
        return list(range(1, commands + 1))
    return sorted({1 + round(step * (commands - 1) / (_SAMPLE - 1)) for step in range(_SAMPLE)})


def _homes(snapshot: Snapshot, commands: Sequence[DecidedCommand]) -> Packing:
    """A plan that puts every pod that moves back on its own node."""
    moved = {pod for command in commands for pod in command.pods}
    homes: dict[str, list[str]] = defaultdict(list)
    for pod in snapshot.pods:
        if pod.key in moved:
            homes[pod.spec.node_name].append(pod.key)
    return Packing(existing=tuple(ExistingPlacement(node, "", tuple(pods)) for node, pods in homes.items()))


def left(
    objects: Sequence[Document], snapshot: Snapshot, packing: Packing, retired: frozenset[str]
) -> Iterator[Document]:
    """The objects without retired claims, their nodes and what goes with a node; pods that move are pending again.

    A pod that needs a new node and gets none is pending too, so that the judge misses it.
    """
    gone = {claim.status.node_name for claim in snapshot.node_claims if claim.metadata.name in retired}
    moved = set(placed_pods(packing.existing, packing.launches))
    unbound = {pod.key: pod for pod in snapshot.pods if pod.spec.node_name in gone or pod.key in moved}
    for item in objects:
        kind, name = item["kind"], item["metadata"]["name"]
        if (kind == "NodeClaim" and name in retired) or (kind in ("Node", "CSINode") and name in gone):
            continue
        pod = unbound.get(f"{item['metadata'].get('namespace', 'default')}/{name}") if kind == "Pod" else None
        if pod is None:
            yield item
        elif is_reschedulable(pod):
            spec = {key: value for key, value in item["spec"].items() if key != "nodeName"}
            unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            yield {**item, "spec": spec, "status": {"phase": "Pending", "conditions": [unschedulable]}}


def plan_document(snapshot: Snapshot, packing: Packing) -> dict[str, Any]:
    """The Plan: where the pods go that ``left`` leaves pending.

    Pods that were pending before, and that no command places, are not the plan's concern.
    """
    placed = set(placed_pods(packing.existing, packing.launches))
    pending = [pod.key for pod in snapshot.pods if not pod.spec.node_name and is_reschedulable(pod)]
    hourly = sum(launch.offering.price for launch in packing.launches)
    return {
        "apiVersion": "joinery.dev/v1",
        "kind": "Plan",
        "now": moment_text(snapshot.now),
        "existing": [existing_document(placement) for placement in packing.existing],
        "launch": [launch_document(launch) for launch in packing.launches],
        "unschedulable": [{"pod": pod, "reasons": []} for pod in pending if pod not in placed],
        "relaxed": [],
        "cost": {"hourly": hourly, "lowerBound": hourly, "gap": 0.0},
    }
