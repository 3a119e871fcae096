"""What Karpenter's rule makes of clusters that are there, against what Karpenter's own controller made of them.

    python -m tools.churn.settle --files FOLDER --catalog FILE [NAMES...]

Every command is carried out at once, until none is found, as ``reference.json`` in the folder says of the controller.
So it shows how near ``tools.churn.karpenter`` is to what it stands for.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.problem import DisruptionOptions, DisruptionProblem
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.offline import instance_types
from joinery_cli.reading.inputs import load
from joinery_cli.sources import load_catalog
from tools.churn.karpenter import Karpenter
from tools.churn.rules import Command
from tools.consolidation.applied import applied
from tools.consolidation.documents import Document, read, write
from tools.consolidation.running import catalogue_of

_SUFFIX = ".json.gz"
_WIDE = 160


def settle(file: Path, catalogue: Path, now: str, most: int) -> Mapping[str, float]:
    """Carry commands out until none is found, or ``most`` have been."""
    sold, began = load_catalog(str(catalogue)).catalog, time.process_time()
    with tempfile.TemporaryDirectory() as scratch:
        shop = catalogue_of(file, catalogue, Path(scratch, "types.json"))
        objects, current, evictions, rounds = read(file), Path(scratch, "current.json.gz"), 0, 0
        while True:
            write(objects, current)
            problem = _problem(current, sold, now)
            commands = Karpenter().decide(problem)
            if not commands or rounds == most:
                break
            documents = [_document(command) for command in commands]
            plan = {"now": now, "commands": documents}
            evictions += sum(len(placed["pods"]) for one in documents for placed in _placements(one))
            objects, rounds = applied(objects, plan, shop), rounds + 1
    hourly = sum(candidates(problem).prices.values())
    return {"after": hourly, "evictions": evictions, "rounds": rounds, "cpuSeconds": time.process_time() - began}


def _problem(file: Path, sold: Catalog, now: str) -> DisruptionProblem:
    snapshot = load([str(file)]).snapshot(datetime.fromisoformat(now))
    types = instance_types(snapshot.node_classes, sold, snapshot.now)
    packing = Problem(snapshot=snapshot, instance_types=types, options=Options(only_marked_unschedulable=False))
    return DisruptionProblem(packing=packing, options=DisruptionOptions())


def _document(command: Command) -> Document:
    """As ``joinery disrupt -o json`` writes it, as far as it is needed here."""
    return {
        "retire": list(command.retire),
        "existing": [
            {"node": placed.node, "nodeClaim": placed.node_claim, "pods": list(placed.pods)}
            for placed in command.existing
        ],
        "launch": [
            {
                "name": launch.name,
                "nodePool": launch.node_pool,
                "offering": {
                    "instanceType": launch.offering.instance_type,
                    "zone": launch.offering.zone,
                    "capacityType": launch.offering.capacity_type,
                    "price": launch.offering.price,
                },
                "labels": dict(launch.labels),
                "taints": [taint.model_dump(mode="json", by_alias=True) for taint in launch.taints],
                "requirements": [rule.model_dump(mode="json", by_alias=True) for rule in launch.requirements],
                "pods": list(launch.pods),
            }
            for launch in command.launches
        ],
    }


def _placements(command: Document) -> list[Document]:
    return [*command["existing"], *command["launch"]]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools.churn.settle", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--catalog", type=Path, required=True)
    parser.add_argument("--now", default="2026-01-01T12:00:00Z")
    parser.add_argument("--rounds", type=int, default=100, help="commands at most")
    parser.add_argument("names", nargs="*", metavar="NAMES")
    options = parser.parse_args(arguments)
    reference: dict[str, Any] = json.loads((options.files / "reference.json").read_text())["snapshots"]
    table = Table(box=None, header_style="dim")
    for heading in ("file", "$/h", "its own", "evictions", "its own", "rounds", "its own", "cpu s"):
        table.add_column(heading, justify="left" if heading == "file" else "right")
    for file in sorted(options.files.glob(f"*{_SUFFIX}")):
        name = file.name.removesuffix(_SUFFIX)
        if name not in reference or (options.names and name not in options.names):
            continue
        ours, its = settle(file, options.catalog, options.now, options.rounds), reference[name]
        figures = [f"{ours['after']:.2f}", f"{its['after']:.2f}", ours["evictions"], its["evictions"]]
        table.add_row(name, *map(str, (*figures, ours["rounds"], its["rounds"], round(ours["cpuSeconds"]))))
        print(f"{name}: {ours} against {its}", file=sys.stderr)
    Console(width=None if sys.stdout.isatty() else _WIDE).print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
