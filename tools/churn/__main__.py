"""Play a day of a cluster under several rules of consolidation, and say what each costs and how many pods it evicts.

    python -m tools.churn [FILE] [--seed 1 2 3] [--hours 24] [--rule never empty karpenter joinery] [-o json|table]

Without a trace (FILE) the days are made up, one for each seed.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from joinery.objects.karpenter import duration
from tools.bench.frame import show
from tools.churn.day import HOUR, Day, Size, made, traced
from tools.churn.karpenter import Karpenter
from tools.churn.market import Terms, market
from tools.churn.rules import Joinery, Never, Rule, WhenEmpty
from tools.churn.scheduler import Scoring
from tools.churn.simulation import Setup, Simulation

_RULES: dict[str, Callable[[], Rule]] = {
    "never": Never, "empty": WhenEmpty, "karpenter": Karpenter, "joinery": Joinery,
}  # fmt: skip
#: Pods of traces are large.
_TRACE_CPUS = (2, 64)


_COLUMNS = (
    ("$", "dollars", ".2f"),
    ("evictions", "evictions", ".0f"),
    ("a pod-day", "evictionsAPodDay", ".2f"),
    ("again in 1 h", "evictedAgainWithinAnHour", ".0f"),
    ("job hours lost", "lostJobHours", ".1f"),
    ("pod hours waited", "waitingPodHours", ".1f"),
    ("nodes bought", "launched", ".0f"),
    ("gone in 1 h", "retiredWithinAnHour", ".0f"),
    ("before they paid", "retiredBeforeTheyPaid", ".0f"),
)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools.churn", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="a trace, see tools/churn/day.py")
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="of made-up days, one for each")
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--rule", nargs="+", choices=_RULES, default=list(_RULES))
    size = Size()
    parser.add_argument("--services", type=int, default=size.services)
    parser.add_argument("--replicas", type=int, default=size.replicas, help="of all services at their peaks")
    parser.add_argument("--jobs", type=int, default=size.jobs, help="in 24 hours")
    parser.add_argument("--every", type=int, default=300, metavar="SECONDS", help="between two decisions")
    parser.add_argument("--scoring", type=Scoring, choices=Scoring, default=Scoring.LEAST_ALLOCATED)
    parser.add_argument("--move-price", type=float, default=0.01, metavar="DOLLARS")
    parser.add_argument("--payback", type=_duration, default=timedelta(hours=1), metavar="DURATION")
    parser.add_argument("--new-nodes-repay", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--consolidate-after", default="1m", metavar="DURATION")
    parser.add_argument("--budget", default="10%", help="of the NodePool: nodes, or a percentage")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return parser.parse_args(arguments)


def _duration(text: str) -> timedelta:
    length = duration.parse(text)
    if not length:
        raise ValueError(text)
    return length


def results(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One for each day and rule."""
    terms = Terms(consolidate_after=options.consolidate_after, budget=options.budget)
    if options.file:
        terms = Terms(consolidate_after=options.consolidate_after, budget=options.budget, cpus=_TRACE_CPUS)
    sold = market(terms)
    setup = Setup(
        scoring=options.scoring,
        every=options.every,
        move_price=options.move_price,
        payback=options.payback,
        new_nodes_repay=options.new_nodes_repay,
    )
    for name, day in _days(options):
        for rule in options.rule:
            began = time.process_time()
            figures = Simulation(day, sold, _RULES[rule](), setup).play()
            result = {"day": name, "rule": rule, **figures.document()}
            print(f"{time.process_time() - began:.0f} s of a processor: {json.dumps(result)}", file=sys.stderr)
            yield result


def _days(options: argparse.Namespace) -> Iterator[tuple[str, Day]]:
    length = round(options.hours * HOUR)
    if options.file:
        yield options.file.name.partition(".")[0], traced(options.file, length)
        return
    size = Size(services=options.services, replicas=options.replicas, jobs=options.jobs)
    for seed in options.seed:
        yield f"seed {seed}", made(seed, size, length)


def _rows(played: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """One for each day and rule; with several days, also the mean and the least and most of each rule."""
    for result in played:
        yield [result["day"], result["rule"], *(format(result[key], shape) for _, key, shape in _COLUMNS)]
    rules = list(dict.fromkeys(result["rule"] for result in played))
    for rule in rules if len(played) > len(rules) else ():
        mine = [result for result in played if result["rule"] == rule]
        yield ["mean (least to most)", rule, *(_between(mine, key, shape) for _, key, shape in _COLUMNS)]


def _between(results: Sequence[dict[str, Any]], key: str, shape: str) -> str:
    values = [result[key] for result in results]
    mean, least, most = (format(of(values), shape) for of in (statistics.mean, min, max))
    return f"{mean} ({least}-{most})"


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    played = list(results(options))
    if options.output == "json":
        print(json.dumps(played, indent=1))
    else:
        show(("day", "rule", *(heading for heading, *_ in _COLUMNS)), _rows(played))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
