"""Decide about a folder of clusters, and say whether each decision is right and how good it is.

    python -m tools.consolidation --files FOLDER --catalog FILE [--judge BINARY] [--again] [--free] [NAMES...]
    python -m tools.consolidation make --seed 1 --nodes 60 --kind services --catalog FILE -o FILE.json.gz

Exit status 1 if any decision is wrong.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from tools.consolidation.documents import write
from tools.consolidation.figures import targets
from tools.consolidation.making.kinds import KINDS, make
from tools.consolidation.making.objects import node_class
from tools.consolidation.measuring import Measurement
from tools.consolidation.report import files_table, remarks, targets_table
from tools.consolidation.running import JOINERY, Asked, catalogue_of

_SUFFIX = ".json.gz"
_WIDE = 220


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools.consolidation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=Path, required=True, metavar="FOLDER", help="a folder of NAME.json.gz")
    parser.add_argument("--catalog", type=Path, required=True, help="what can be bought")
    parser.add_argument("--judge", type=Path, metavar="BINARY", help="have the judge look at the states")
    parser.add_argument("--reference", type=Path, metavar="FILE", help="default: the folder's reference.json")
    parser.add_argument("--now", help="the moment of all files; default: what the reference says")
    parser.add_argument("--again", action="store_true", help="decide again about the result, which must find nothing")
    parser.add_argument("--free", action="store_true", help="decide also with free moves and without budgets")
    parser.add_argument("--move-price", type=float, metavar="DOLLARS")
    parser.add_argument("--payback", metavar="DURATION")
    parser.add_argument("--ignore-budgets", action="store_true")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write plans and final states there")
    parser.add_argument("--joinery", type=Path, default=JOINERY, metavar="BINARY", help="another one that decides")
    parser.add_argument("names", nargs="*", metavar="NAMES", help="only these files")
    return parser.parse_args(arguments)


def measure(arguments: Sequence[str]) -> int:
    """Decide about each file, print what comes of it."""
    options = _options(arguments)
    reference = _reference(options.reference or options.files / "reference.json")
    files = sorted(options.files.glob(f"*{_SUFFIX}"), key=lambda file: file.stat().st_size)
    measurement = Measurement(
        catalogue=options.catalog,
        asked=Asked(
            move_price=options.move_price,
            payback=options.payback,
            ignore_budgets=options.ignore_budgets,
            time_limit=options.time_limit,
        ),
        **{name: getattr(options, name) for name in ("now", "judge", "again", "free", "keep", "joinery")},
    )
    results = []
    for file in files:
        if not options.names or file.name.removesuffix(_SUFFIX) in options.names:
            results.append(measurement.of(file, reference))
            print(f"{results[-1].name}: {'ok' if results[-1].ok else 'wrong'}", file=sys.stderr)
    console = Console(width=None if sys.stdout.isatty() else _WIDE)
    console.print(files_table(results))
    console.print()
    console.print(targets_table(targets(results)))
    for result in results:
        for remark in remarks(result):
            print(f"{result.name}: {remark}")
    return 0 if results and all(result.ok for result in results) else 1


def _reference(file: Path) -> Mapping[str, Any]:
    """What another controller makes of each file; ``now`` is the moment that it was asked about."""
    return json.loads(file.read_text()) if file.exists() else {"snapshots": {}}


def make_up(arguments: Sequence[str]) -> int:
    """Write a cluster that was made up."""
    parser = argparse.ArgumentParser(prog="tools.consolidation make", description="Make a cluster up.")
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--catalog", type=Path, required=True, help="what its nodes were bought from")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="a .json.gz")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        alone = Path(scratch, "class.json.gz")
        write([node_class()], alone)
        catalogue = catalogue_of(alone, options.catalog, Path(scratch, "types.json"))
    write(make(options.kind, options.seed, options.nodes, catalogue), options.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(make_up(sys.argv[2:]) if sys.argv[1:2] == ["make"] else measure(sys.argv[1:]))
