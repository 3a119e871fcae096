"""Plan a folder of scenarios and let the judge, which links kube-scheduler's own plugins, say whether each plan is
right.

    make judge SCENARIOS=FOLDER JUDGE=BINARY [NAMES="NAME..."]

Prints a table: errors and warnings of the judge, the price against the folder's ``reference.json`` where it has one,
and seconds. Exit status 1 if any plan is wrong. The judge lives outside the repository; its path is an argument.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

JOINERY = Path(sys.executable).with_name("joinery")

INSTANCE_TYPES = "instance-types.json.gz"
"""What the judge is given, where the folder has it: a mistake of our own catalogue is no excuse for a plan."""


@dataclass(frozen=True)
class Result:
    """What became of one scenario. ``verdict`` is the judge's report; None where there is no plan to judge."""

    name: str
    problem: str = ""
    plan: dict[str, Any] | None = None
    verdict: dict[str, Any] | None = None
    reference: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        return self.verdict is not None and bool(self.verdict["ok"])

    @property
    def against_reference(self) -> float | None:
        """The plan's price over the reference's, less one; None where they do not place the same number of pods."""
        if self.plan is None or not self.reference or not self.reference.get("hourly"):
            return None
        same = len(self.plan["unschedulable"]) == self.reference["unschedulable"]
        return float(self.plan["cost"]["hourly"] / self.reference["hourly"] - 1) if same else None


def run(arguments: list[str]) -> int:
    options = _options(arguments)
    reference = references(options.scenarios)
    files = sorted(options.scenarios.glob("*.json.gz"))
    names = [file for file in files if not options.names or file.name.removesuffix(".json.gz") in options.names]
    with tempfile.TemporaryDirectory() as folder:
        results = [_judge(file, options, Path(folder), reference) for file in names if not _is_catalogue(file)]
    Console(width=None if sys.stdout.isatty() else 140).print(_table(results))
    for result in results:
        _explain(result)
    return 0 if results and all(result.ok for result in results) else 1


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--judge", type=Path, required=True, help="the judge's binary")
    parser.add_argument("--scenarios", type=Path, required=True, help="a folder of NAME.json.gz")
    parser.add_argument("--catalog", type=Path, help="a catalogue; default: joinery's own")
    parser.add_argument("--now", default="2026-01-01T00:00:00Z")
    parser.add_argument("names", nargs="*", help="only these scenarios")
    return parser.parse_args(arguments)


def _is_catalogue(file: Path) -> bool:
    return file.name == INSTANCE_TYPES


def references(folder: Path) -> dict[str, Any]:
    """What another planner answers for each scenario, where the folder says so."""
    file = folder / "reference.json"
    return dict(json.loads(file.read_text())["scenarios"]) if file.exists() else {}


def _judge(file: Path, options: argparse.Namespace, folder: Path, reference: dict[str, Any]) -> Result:
    name = file.name.removesuffix(".json.gz")
    catalogue = str(options.catalog) if options.catalog else None
    path = folder / f"{name}-plan.json"
    done = _call([str(JOINERY), "plan", "--now", options.now, "-f", str(file), *_given(catalogue), "-o", "json"])
    if done.returncode:
        return Result(name, problem=done.stderr.strip() or f"exit status {done.returncode}")
    path.write_text(done.stdout)
    verdict, problem = judged(options.judge, file, path, catalogue)
    return Result(name, problem, json.loads(done.stdout) if verdict else None, verdict, reference.get(name))


def judged(judge: Path, scenario: Path, plan: Path, catalogue: str | None) -> tuple[dict[str, Any] | None, str]:
    """The judge's report on a plan; or None, and why there is no report."""
    types = scenario.with_name(INSTANCE_TYPES)
    if not types.exists():
        types = plan.with_suffix(".types")
        done = _call([str(JOINERY), "catalog", "-f", str(scenario), *_given(catalogue), "-o", "json"])
        if done.returncode:
            return None, done.stderr.strip()
        types.write_text(done.stdout)
    called = _call([str(judge), "-f", str(scenario), "--instance-types", str(types), "--plan", str(plan), "-o", "json"])
    if called.returncode not in (0, 1):
        return None, called.stderr.strip()
    return json.loads(called.stdout), ""


def _given(catalogue: str | None) -> list[str]:
    return ["--catalog", catalogue] if catalogue else []


def _call(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))


def _table(results: list[Result]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("scenario")
    for heading in ("", "errors", "warnings", "placed", "pending", "nodes", "$/h", "vs reference", "gap", "seconds"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(*_row(result))
    return table


def _row(result: Result) -> list[str]:
    if result.plan is None or result.verdict is None:
        return [result.name, "[red]no plan[/red]"]
    plan, verdict = result.plan, result.verdict
    versus = result.against_reference
    return [
        result.name,
        "[green]ok[/green]" if result.ok else "[red]wrong[/red]",
        str(len(verdict["errors"])), str(len(verdict["warnings"])),
        str(verdict["counts"]["pods"]), str(len(plan["unschedulable"])), str(len(plan["launch"])),
        f"{plan['cost']['hourly']:.4f}", "-" if versus is None else f"{versus:+.1%}",
        f"{plan['cost']['gap']:.1%}", f"{plan['solver']['seconds']:.2f}",
    ]  # fmt: skip


def _explain(result: Result) -> None:
    """One line a kind of finding, with an example."""
    if result.problem:
        print(f"{result.name}: {result.problem}")
    for severity in ("errors", "warnings"):
        remarks = result.verdict[severity] if result.verdict else []
        for check, number in Counter(one["check"] for one in remarks).most_common():
            example = next(one for one in remarks if one["check"] == check)
            where = " ".join(example[key] for key in ("pod", "node") if key in example)
            print(f"{result.name}: {number} {severity}: {check}: {where}: {example['reason']}")


if __name__ == "__main__":
    raise SystemExit(run(sys.argv[1:]))
