"""What Karpenter's rule makes of clusters that are there, against what Karpenter's own controller made of them.

    python -m tools.churn.settle --files FOLDER --catalog FILE [NAMES...]

Every command is carried out at once, until none is found, as ``reference.json`` in the folder says of the controller.
So it shows how near ``tools.churn.karpenter`` is to what it stands for.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.scheduling.packing import placed_pods
from simulator.disrupted import carried_out
from tools.bench.frame import show
from tools.churn.karpenter import Karpenter
from tools.consolidation.measuring import problem_of


def settle(problem: DisruptionProblem, most: int) -> Mapping[str, float]:
    """Carry commands out until none is found, or ``most`` have been."""
    began, evictions, rounds = time.process_time(), 0, 0
    while rounds < most and (commands := Karpenter().decide(problem)):
        evictions += sum(1 for one in commands for _ in placed_pods(one.existing, one.launches))
        problem, rounds = carried_out(problem, commands), rounds + 1
    hourly = sum(candidates(problem).prices.values())
    return {"after": hourly, "evictions": evictions, "rounds": rounds, "cpuSeconds": time.process_time() - began}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools.churn.settle", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--catalog", type=Path, required=True)
    parser.add_argument("--now", type=datetime.fromisoformat, default="2026-01-01T12:00:00Z")
    parser.add_argument("--rounds", type=int, default=100, help="commands at most")
    parser.add_argument("names", nargs="*", metavar="NAMES")
    options = parser.parse_args(arguments)
    reference: dict[str, Any] = json.loads((options.files / "reference.json").read_text())["snapshots"]
    rows = []
    for name in options.names or reference:
        file, its = options.files / f"{name}.json.gz", reference[name]
        if not file.exists():
            continue
        ours = settle(problem_of(file, options.catalog, options.now), options.rounds)
        figures = [f"{ours['after']:.2f}", f"{its['after']:.2f}", ours["evictions"], its["evictions"]]
        rows.append([name, *map(str, (*figures, ours["rounds"], its["rounds"], round(ours["cpuSeconds"])))])
        print(f"{name}: {ours} against {its}", file=sys.stderr)
    show(("file", "$/h", "its own", "evictions", "its own", "rounds", "its own", "cpu s"), rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
