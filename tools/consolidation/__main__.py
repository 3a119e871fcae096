"""Decide about a folder of clusters, and say whether each decision is right and how good it is.

    python -m tools.consolidation --files FOLDER --catalog FILE [--judge BINARY] [--again] [--free] [NAMES...]
    python -m tools.consolidation make --seed 1 --nodes 60 --kind services --catalog FILE -o FILE.json.gz

Exit status 1 if any decision is wrong.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from joinery.decisions.disruption.problem import DisruptionOptions
from joinery_cli.sources import load_catalog
from tools.bench.frame import TARGET_HEADINGS, show, write
from tools.bench.frame import remarks as judged
from tools.consolidation.figures import Measured, targets
from tools.consolidation.making.kinds import KINDS, make
from tools.consolidation.measuring import Measurement

_SHOWN = 20


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools.consolidation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=Path, required=True, metavar="FOLDER", help="NAME.json.gz, and reference.json")
    parser.add_argument("--catalog", type=Path, required=True, help="what can be bought")
    parser.add_argument("--judge", type=Path, metavar="BINARY", help="have the judge look at the states")
    parser.add_argument("--again", action="store_true", help="decide again about the result, which must find nothing")
    parser.add_argument("--free", action="store_true", help="decide also with free moves and without budgets")
    parser.add_argument("--move-price", type=float, default=DisruptionOptions().move_price, metavar="DOLLARS")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS")
    parser.add_argument("names", nargs="*", metavar="NAMES", help="only these files")
    return parser.parse_args(arguments)


def measure(arguments: Sequence[str]) -> int:
    """Decide about each file, print what comes of it."""
    options = _options(arguments)
    known = options.files / "reference.json"
    reference = json.loads(known.read_text()) if known.exists() else {"snapshots": {}}
    measurement = Measurement(
        catalogue=options.catalog,
        options=DisruptionOptions(move_price=options.move_price, time_limit=options.time_limit),
        judge=options.judge,
        again=options.again,
        free=options.free,
    )
    results = []
    for file in sorted(options.files.glob("*.json.gz"), key=lambda file: file.stat().st_size):
        if not options.names or file.name.removesuffix(".json.gz") in options.names:
            results.append(measurement.of(file, reference))
            print(f"{results[-1].name}: {'ok' if results[-1].ok else 'wrong'}", file=sys.stderr)
    show(("file", *(heading for heading, _ in _COLUMNS)), _rows(results))
    print()
    show(TARGET_HEADINGS, [target.row for target in targets(results)])
    for result in results:
        for remark in remarks(result):
            print(f"{result.name}: {remark}")
    return 0 if results and all(result.ok for result in results) else 1


# --- showing ---


def _ratio(number: float | None) -> str:
    return "-" if number is None else f"{number:.3f}"


def _percent(number: float | None) -> str:
    return "-" if number is None else f"{number:.1%}"


def _verdict(one: Measured) -> str:
    if one.verdict is None:
        return "-"
    word = "[red]wrong[/red]" if one.verdict.errors else "[green]ok[/green]"
    return f"{word} {len(one.verdict.errors)}/{len(one.verdict.warnings)} in {one.verdict.states}"


def _again(one: Measured) -> str:
    saved = sum(command.savings for command in one.found_again)
    found = f"[red]{len(one.found_again)}: {saved:.3f} $/h[/red]" if one.found_again else "nothing"
    return found if one.rounds else "-"


_COLUMNS: Sequence[tuple[str, Callable[[Measured], str]]] = (
    ("before", lambda one: f"{one.decision.disruptions.before:.3f}"),
    ("after", lambda one: f"{one.after:.3f}"),
    ("evicted", lambda one: str(one.evictions)),
    ("objective", lambda one: f"{one.objective:.3f}"),
    ("reference", lambda one: _ratio(one.reference_objective)),
    ("ratio", lambda one: _ratio(one.ratio)),
    ("bound", lambda one: f"{one.decision.disruptions.lower_bound:.3f}"),
    ("gap", lambda one: _percent(one.decision.disruptions.gap)),
    ("allowed", lambda one: _percent(one.decision.disruptions.gap_within_budgets)),
    ("curve", lambda one: _percent(one.share_of_evictions)),
    ("rounds", lambda one: str(len(one.decisions))),
    ("commands", lambda one: str(len(one.decision.commands))),
    ("wall s", lambda one: f"{one.decision.wall:.1f}"),
    ("cpu s", lambda one: f"{one.decision.processor:.1f}"),
    ("verified", lambda one: f"[red]{len(one.violations)}[/red]" if one.violations else "[green]ok[/green]"),
    ("judge", _verdict),
    ("again", _again),
    ("/repack", lambda one: _ratio(one.against_repacking)),
)
_SUMMED_UP: dict[str, tuple[Callable[[Measured], float | None], Callable[[float], str]]] = {
    "ratio": (lambda one: one.ratio, _ratio),
    "gap": (lambda one: one.decision.disruptions.gap, _percent),
    "allowed": (lambda one: one.decision.disruptions.gap_within_budgets, _percent),
    "curve": (lambda one: one.share_of_evictions, _percent),
    "cpu s": (lambda one: one.decision.processor, "{:.1f}".format),
    "/repack": (lambda one: one.against_repacking, _ratio),
}


def _rows(results: Sequence[Measured]) -> Iterator[list[str]]:
    """A row for each file, then the median and the worst of what can be summed up."""
    for one in results:
        yield [one.name, *(value(one) for _, value in _COLUMNS)]
    for name, over_all in (("median", statistics.median), ("worst", max)):
        cells = dict.fromkeys((heading for heading, _ in _COLUMNS), "")
        for heading, (value, shown) in _SUMMED_UP.items():
            numbers = [number for number in map(value, results) if number is not None]
            cells[heading] = shown(over_all(numbers)) if numbers else "-"
        yield [f"[dim]{name}[/dim]", *cells.values()]


def remarks(one: Measured) -> Iterator[str]:
    """What is wrong with a file's decision, and what the judge warns of: a line each, with an example for each kind."""
    yield from one.contradictions
    yield from (f"verification: {violation}" for violation in one.violations[:_SHOWN])
    if one.verdict is not None:
        yield from judged({"errors": one.verdict.errors, "warnings": one.verdict.warnings})
        before, now = one.verdict.preferences
        if now < before:
            yield f"preferences of the moved pods honoured: {before} before, {now} after"
    for command in one.found_again[:_SHOWN]:
        bought = ", ".join(launch.offering.instance_type for launch in command.launches)
        deed = f"retires {', '.join(command.retire)}, buys {bought or 'nothing'}, moves {len(command.pods)} pods"
        worth = f"saves {command.savings:.4f} $/h for {command.move_price:.4f} $"
        yield f"again: {command.reason}: {deed}, {worth}"


def make_up(arguments: Sequence[str]) -> int:
    """Write a cluster that was made up."""
    parser = argparse.ArgumentParser(prog="tools.consolidation make", description="Make a cluster up.")
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--catalog", required=True, help="what its nodes were bought from")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="a .json.gz")
    options = parser.parse_args(arguments)
    write(make(options.kind, options.seed, options.nodes, load_catalog(options.catalog).catalog), options.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(make_up(sys.argv[2:]) if sys.argv[1:2] == ["make"] else measure(sys.argv[1:]))
