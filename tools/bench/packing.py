"""What plans cost, how near the bound they are, and how fast they are found, over a folder of scenarios.

    make bench SCENARIOS=FOLDER python -m tools.bench.packing [FOLDER] [--runs 3] [--seed 0] [--wide] [--judge PATH]
    [--json FILE] [--markdown FILE] [NAME...]

Every run is the command line in a process of its own, on one core, and says itself how long it took from parsed objects
to verified plan. The table shows medians. ``reference.json`` in the folder is what another planner answers. Without a
folder the small scenarios of the repository are planned. Exit status 1 if a scenario has no plan, or a wrong one
(``--judge``).
"""

import argparse
import gzip
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tools.bench.packing_targets import Measured, Verdict, verdicts
from tools.bench.wide_scenarios import write as write_wide
from tools.scenarios import judged, references
from tools.template import ROOT

SMALL = ROOT / "tests" / "data" / "scenarios"
JOINERY = Path(sys.executable).with_name("joinery")
SUFFIX = ".json.gz"
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
    promised = verdicts(results)
    _print(results, promised, failed)
    _write(options, results, promised)
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
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--markdown", type=Path, help="write the tables there, for docs/")
    parser.add_argument("--now", default="2026-01-01T00:00:00Z")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is not a folder")
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
    objects = _objects(file)
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
        reference=references(options.folder).get(name),
        verdict=_verdict_of(file, plans[0], options) if options.judge else None,
    )


def _objects(file: Path) -> list[dict[str, Any]]:
    """The scenario's objects; none for a file that holds something else, such as a catalogue."""
    document = json.loads(gzip.decompress(file.read_bytes()))
    return list(document.get("items", [])) if isinstance(document, dict) else []


def _is_resource_only(objects: Sequence[Mapping[str, Any]], pending: Sequence[Mapping[str, Any]]) -> bool:
    kinds = [one["kind"] for one in objects]
    return (
        kinds.count("NodePool") == 1 and "Node" not in kinds and all(_PLAIN.issuperset(pod["spec"]) for pod in pending)
    )


def _plan(file: Path, options: argparse.Namespace) -> dict[str, Any]:
    catalogue = ["--catalog", chosen] if (chosen := _catalogue(file, options)) else []
    command = [str(JOINERY), "plan", "-f", str(file), "--now", options.now, "--seed", str(options.seed), *catalogue]
    done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoPlanError(done.stderr.strip() or f"exit status {done.returncode}")
    return dict(json.loads(done.stdout))


def _catalogue(file: Path, options: argparse.Namespace) -> str | None:
    """The scenario's own, if there is one beside it."""
    own = file.with_name(file.name.replace(SUFFIX, ".catalog.json"))
    return str(own) if own.exists() else options.catalog


def _verdict_of(file: Path, plan: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        path.write_text(json.dumps({**plan, "solver": {**plan["solver"], "seconds": 0}}))
        verdict, problem = judged(options.judge, file, path, _catalogue(file, options))
    if verdict is None:
        raise NoPlanError(f"the judge: {problem}")
    return verdict


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
        _judgement(one),
    ]


def _judgement(one: Measured) -> str:
    if one.verdict is None:
        return "-"
    return "ok" if one.verdict["ok"] else f"{len(one.verdict['errors'])} wrong"


def _target_row(verdict: Verdict) -> list[str]:
    said = {True: "ok", False: "MISSED", None: "-"}[verdict.holds]
    return [verdict.figure, verdict.target, verdict.measured, said]


def _print(results: Sequence[Measured], promised: Sequence[Verdict], failed: Sequence[str]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    console.print(_table(_HEADINGS, [_row(one) for one in results]), "")
    console.print(_table(("figure", "target", "measured", ""), [_target_row(one) for one in promised]))
    for one in results:
        if one.verdict and not one.verdict["ok"]:
            console.print(f"WRONG: {one.name}: {one.verdict['errors'][0]}", markup=False)
    for problem in failed:
        console.print(f"NO PLAN: {problem}", markup=False)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _write(options: argparse.Namespace, results: Sequence[Measured], promised: Sequence[Verdict]) -> None:
    if options.json:
        options.json.write_text(json.dumps(_document(options, results, promised), indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(_markdown(options, results, promised))


def _circumstances(options: argparse.Namespace) -> dict[str, Any]:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "commit": described.stdout.strip(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": 1,
        "load": round(os.getloadavg()[0], 2),  # seconds on a busy machine say little
        "seed": options.seed,
        "runs": options.runs,
    }


def _document(
    options: argparse.Namespace, results: Sequence[Measured], promised: Sequence[Verdict]
) -> dict[str, Any]:  # fmt: skip
    scenarios = {
        one.name: {
            "pods": one.pods,
            "classes": one.classes,
            "resourceOnly": one.resource_only,
            "nodes": len(one.plan["launch"]),
            "unschedulable": len(one.plan["unschedulable"]),
            **one.plan["cost"],
            "referenceHourly": (one.reference or {}).get("hourly"),
            "costRatio": one.ratio,
            "method": one.plan["solver"]["method"],
            "limit": one.plan["solver"].get("limit"),
            "seconds": {"median": one.median, "runs": list(one.seconds)},
            "podsPerSecond": one.rate,
            "referencePodsPerSecond": one.reference_rate,
            "runsAlike": one.alike,
            "judge": one.verdict
            and {
                "ok": one.verdict["ok"],
                "errors": len(one.verdict["errors"]),
                "preferences": one.verdict["preferences"],
            },
        }
        for one in results
    }
    return {**_circumstances(options), "scenarios": scenarios, "targets": [asdict(verdict) for verdict in promised]}


def _markdown(options: argparse.Namespace, results: Sequence[Measured], promised: Sequence[Verdict]) -> str:
    about = _circumstances(options)
    lines = [
        "# Measured packing", "",
        f"Commit {about['commit']}, Python {about['python']}, {about['machine']}, one core (load {about['load']}), "
        f"seed {about['seed']}; medians of {about['runs']} runs, spread is the slowest less the fastest. `make bench "
        "SCENARIOS=FOLDER` prints this table.", "",
        *_markdown_table(_HEADINGS, [_row(one) for one in results]), "",
        *_markdown_table(("figure", "target", "measured", ""), [_target_row(one) for one in promised]),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    ruler = "|".join(["---", *["--:"] * (len(headings) - 1)])
    return [f"| {' | '.join(headings)} |", f"|{ruler}|", *(f"| {' | '.join(row)} |" for row in rows)]


if __name__ == "__main__":
    raise SystemExit(main())
