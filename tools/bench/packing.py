"""What plans cost, how near the bound they are, and how fast they are found, over a folder of scenarios.

    make bench SCENARIOS=FOLDER
    make judge SCENARIOS=FOLDER JUDGE=BINARY [NAMES="NAME..."]
    python -m tools.bench.packing [FOLDER] [--runs 3] [--seed 0] [--wide] [--judge PATH] [--markdown FILE] [NAME...]

Every run is the command line in a process of its own, on one core, and says itself how long it took from parsed objects
to verified plan. The table shows medians. ``reference.json`` in the folder is what another planner answers. Without a
folder the small scenarios of the repository are planned. Exit status 1 if a scenario has no plan, or a wrong one
(``--judge``).
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.bench.frame import JOINERY, TARGET_HEADINGS, Target, markdown, read, remarks, show
from tools.bench.packing_targets import Measured, targets
from tools.bench.wide_scenarios import write as write_wide
from tools.template import ROOT

SMALL = ROOT / "tests" / "data" / "scenarios"
SUFFIX = ".json.gz"
#: What the judge is given, where the folder has it: a mistake of our own catalogue is no excuse for a plan.
_INSTANCE_TYPES = "instance-types.json.gz"
#: What a pod may say and still go wherever its requests fit.
_PLAIN = frozenset({"containers", "schedulerName", "priority"})


class NoPlanError(Exception):
    """The command line refused a scenario. The message is what it said."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    results, failed = [], []
    with tempfile.TemporaryDirectory() as wide:
        if options.wide:
            write_wide(Path(wide))
        for file in (*_files(options.folder, options.names), *_files(Path(wide), options.names)):
            try:
                result = _measured(file, options)
            except NoPlanError as error:
                failed.append(f"{file.name}: {error}")
                continue
            if result:
                print(f"{result.name}: {result.median:.2f} s", file=sys.stderr)
                results.append(result)
    promised = targets(results)
    _print(results, promised, failed)
    if options.markdown:
        options.markdown.write_text(_markdown(options, results, promised))
    wrong = [one.name for one in results if one.verdict and not one.verdict["ok"]]
    return 1 if failed or wrong or not results else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=SMALL, help="NAME.json.gz files, and reference.json")
    parser.add_argument("names", nargs="*", help="only these scenarios")
    parser.add_argument("--runs", type=int, default=3, help="how often each is planned")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--wide", action="store_true", help="those with many NodePools and reservations too (wide_scenarios)"
    )
    parser.add_argument("--catalog", help="a catalogue; default: joinery's own")
    parser.add_argument("--judge", type=Path, help="a judge's binary, which says whether each plan is right")
    parser.add_argument("--markdown", type=Path, help="write the tables there, for docs/")
    parser.add_argument("--now", default="2026-01-01T00:00:00Z")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is not a folder")
    known = options.folder / "reference.json"
    options.references = json.loads(known.read_text())["scenarios"] if known.exists() else {}
    return options


@contextmanager
def _one_core() -> Iterator[None]:
    """What is started in the block has one core, where the system lets a process choose."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _files(folder: Path, names: Sequence[str]) -> list[Path]:
    files = sorted(folder.glob(f"*{SUFFIX}"))
    return [file for file in files if not names or file.name.removesuffix(SUFFIX) in names]


# --- measuring ---


def _measured(file: Path, options: argparse.Namespace) -> Measured | None:
    """One scenario, planned several times; None for a file without pending pods. Raises ``NoPlanError``."""
    objects = read(file)
    pending = [one for one in objects if one["kind"] == "Pod" and not one["spec"].get("nodeName")]
    if not pending:
        return None
    with _one_core():
        plans = [_plan(file, options) for _ in range(options.runs)]
    seconds = tuple(float(plan["solver"].pop("seconds")) for plan in plans)
    name = file.name.removesuffix(SUFFIX)
    return Measured(
        name=name,
        pods=len(pending),
        classes=len({json.dumps(pod["spec"], sort_keys=True) for pod in pending}),
        resource_only=_is_resource_only(objects, pending),
        plan=plans[0],
        seconds=seconds,
        alike=all(plan == plans[0] for plan in plans),
        reference=options.references.get(name),
        verdict=_verdict_of(file, plans[0], options) if options.judge else None,
    )


def _is_resource_only(objects: Sequence[Mapping[str, Any]], pending: Sequence[Mapping[str, Any]]) -> bool:
    kinds = [one["kind"] for one in objects]
    return (
        kinds.count("NodePool") == 1 and "Node" not in kinds and all(_PLAIN.issuperset(pod["spec"]) for pod in pending)
    )


def _plan(file: Path, options: argparse.Namespace) -> dict[str, Any]:
    catalogue = ["--catalog", chosen] if (chosen := _catalogue(file, options)) else []
    command = [str(JOINERY), "plan", "-f", str(file), "--now", options.now, "--seed", str(options.seed), *catalogue]
    return dict(json.loads(_said([*command, "-o", "json"])))


def _catalogue(file: Path, options: argparse.Namespace) -> str | None:
    """The scenario's own, if there is one beside it."""
    own = file.with_name(file.name.replace(SUFFIX, ".catalog.json"))
    return str(own) if own.exists() else options.catalog


def _verdict_of(file: Path, plan: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """The judge's report. Raises ``NoPlanError`` where there is none."""
    types = file.with_name(_INSTANCE_TYPES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        path.write_text(json.dumps({**plan, "solver": {**plan["solver"], "seconds": 0}}))
        if not types.exists():
            types = Path(folder) / "types.json"
            catalogue = ["--catalog", chosen] if (chosen := _catalogue(file, options)) else []
            types.write_text(_said([str(JOINERY), "catalog", "-f", str(file), *catalogue, "-o", "json"]))
        command = [str(options.judge), "-f", str(file), "--instance-types", str(types), "--plan", str(path)]
        return dict(json.loads(_said([*command, "-o", "json"], (0, 1))))


def _said(command: Sequence[str], expected: Sequence[int] = (0,)) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in expected:
        raise NoPlanError(done.stderr.strip() or f"{command[0]}: exit status {done.returncode}")
    return done.stdout


# --- showing ---

_HEADINGS = (
    "scenario", "pods", "classes", "nodes", "pending", "$/h", "reference", "cost", "bound", "gap", "s", "spread",
    "pods/s", "speed", "judge",
)  # fmt: skip


def _row(one: Measured) -> list[str]:
    reference, spread = one.reference or {}, max(one.seconds) - min(one.seconds)
    return [
        one.name,
        f"{one.pods:,}",
        f"{one.classes:,}",
        f"{len(one.plan['launch']):,}",
        f"{len(one.plan['unschedulable']):,}",
        f"{one.hourly:,.2f}",
        f"{reference['hourly']:,.2f}" if reference else "-",
        "-" if one.ratio is None else f"{one.ratio - 1:+.1%}",
        f"{one.plan['cost']['lowerBound']:,.2f}",
        f"{one.gap:.2%}",
        f"{one.median:.2f}",
        f"{spread:.2f}",
        f"{one.rate:,.0f}",
        "-" if one.faster is None else f"{one.faster:.1f}x",
        "-" if one.verdict is None else "ok" if one.verdict["ok"] else f"{len(one.verdict['errors'])} wrong",
    ]


def _print(results: Sequence[Measured], promised: Sequence[Target], failed: Sequence[str]) -> None:
    show(_HEADINGS, map(_row, results))
    print()
    show(TARGET_HEADINGS, [target.row for target in promised])
    for one in results:
        for line in remarks(one.verdict or {}):
            print(f"{one.name}: {line}")
    for problem in failed:
        print(f"NO PLAN: {problem}")


def _markdown(options: argparse.Namespace, results: Sequence[Measured], promised: Sequence[Target]) -> str:
    command = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    # Seconds on a busy machine say little.
    machine = f"{platform.machine()}, one core (load {os.getloadavg()[0]:.2f})"
    return "\n".join([
        "# Measured packing", "",
        f"Commit {commit}, Python {platform.python_version()}, {machine}, seed {options.seed}; medians of "
        f"{options.runs} runs, spread is the slowest less the fastest. `make bench SCENARIOS=FOLDER` prints this "
        "table.", "",
        *markdown(_HEADINGS, map(_row, results)), "",
        *markdown(TARGET_HEADINGS, [target.row for target in promised]), "",
    ])  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
