"""What decisions about nodes take as clusters grow, and how good they are: clusters that are made up, by seed.

    python -m tools.bench.consolidation [--nodes 300 1000 3000 5000] [--seeds 1 2 3] [--kinds large tight]

``large``: nodes 20 to 70 % used, twenty pods on each. ``tight``: nothing can be gained. Each case is a process of its
own, `joinery disrupt` on a file. ``decision`` are the seconds of the clock from parsed objects to the decision; ``CPU``
and ``MB`` are all that the process took, reading the file among it. The last line of a size has the median of its
seeds, and from the least to the most of them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from joinery_cli.sources import SAMPLE, load_catalog
from tools.bench.frame import JOINERY, show, spread, write
from tools.consolidation.making.kinds import KINDS, make

NOW = "2026-01-01T12:00:00Z"
_MEBI = 1024  # getrusage counts KiB
_HEADINGS = ("cluster", "seed", "pods", "$/h before", "after", "gap %", "decision s", "CPU s", "MB")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One case. ``before``, ``after``: $/h. ``gap``: how far the decision may be from the best, as a share.

    ``seconds``: of the decision; ``cpu``: of the whole process; ``megabytes``: its peak.
    """

    pods: int
    before: float
    after: float
    gap: float
    seconds: float
    cpu: float
    megabytes: float


def run(arguments: Sequence[str]) -> None:
    """Measure all cases, and print a table."""
    options = _options(arguments)
    rows = list[list[str]]()
    for kind in options.kinds:
        for nodes in options.nodes:
            rows += _rows(f"{kind}, {nodes:,} nodes", options.seeds, list(_outcomes(kind, nodes, options)))
    show(_HEADINGS, rows)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[300, 1000, 3000, 5000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=["large", "tight"], metavar="KIND")
    parser.add_argument("--catalog", default=str(SAMPLE), help="what nodes are bought from; default: the sample")
    return parser.parse_args(arguments)


def _outcomes(kind: str, nodes: int, options: argparse.Namespace) -> Iterator[Outcome]:
    catalogue = load_catalog(options.catalog).catalog
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.json.gz"
        for seed in options.seeds:
            documents = make(kind, seed, nodes, catalogue)
            write(documents, file)
            yield _measured(file, options.catalog, sum(document["kind"] == "Pod" for document in documents))


def _measured(file: Path, catalogue: str, pods: int) -> Outcome:
    command = [str(JOINERY), "disrupt", "-f", str(file), "--catalog", catalogue, "--now", NOW, "-o", "json"]
    with file.with_suffix(".out").open("w+b") as stdout:
        process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        stdout.seek(0)
        answer = json.load(stdout)
    return Outcome(
        pods=pods,
        before=float(answer["cost"]["before"]),
        after=float(answer["cost"]["after"]),
        gap=float(answer["cost"]["gap"]),
        seconds=float(answer["solver"]["seconds"]),
        cpu=used.ru_utime + used.ru_stime,
        megabytes=used.ru_maxrss / _MEBI,
    )


def _rows(name: str, seeds: Sequence[int], outcomes: Sequence[Outcome]) -> Iterator[list[str]]:
    for seed, one in zip(seeds, outcomes, strict=True):
        prices = f"{one.before:.2f}", f"{one.after:.2f}", f"{one.gap:.2%}"
        yield [
            name,
            str(seed),
            f"{one.pods:,}",
            *prices,
            f"{one.seconds:.1f}",
            f"{one.cpu:.1f}",
            f"{one.megabytes:.0f}",
        ]
    gaps = spread([100 * one.gap for one in outcomes])
    times = (spread([value(one) for one in outcomes], "{:.1f}") for value in (_seconds, _cpu))
    yield [name, "all", "", "", "", gaps, *times, f"{max(one.megabytes for one in outcomes):.0f}"]


def _seconds(one: Outcome) -> float:
    return one.seconds


def _cpu(one: Outcome) -> float:
    return one.cpu


if __name__ == "__main__":
    run(sys.argv[1:])
