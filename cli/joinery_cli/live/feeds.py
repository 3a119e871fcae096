"""Where the views of ``joinery top`` come from, one after another: a cluster, files, or the records of decisions.

A feed is an iterator. Whoever shows it asks for the next view when it is time; what is read and decided for it takes
place then, and what goes wrong is raised then.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.decisions.disruption.problem import DisruptionOptions, DisruptionProblem
from joinery.decisions.planning import plan
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.solve import Stopwatch
from joinery_cli.decision_input import DecisionInput, decision_input, disruption_problem
from joinery_cli.reading.records import Record
from joinery_cli.sources import moment
from joinery_cli.view.disruption_groups import view
from joinery_cli.view.top_groups import top_view
from joinery_cli.view.top_view import TopView
from joinery_cli.warnings.left_out import beside_nodes

if TYPE_CHECKING:
    from joinery_cli.notices import UserNotice
    from joinery_cli.options import Daemons
    from joinery_cli.prices import Prices


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be looked at: ``files``, or without any the current cluster. ``time_limit``: seconds for each of the
    two decisions. ``is_quiet``: notices are shown in the view alone.
    """

    files: Sequence[str] = ()
    recursive: bool = False
    catalog_file: str | None = None
    region: str | None = None
    now: str | None = None
    daemons: "Daemons | None" = None
    time_limit: float = 10.0
    is_quiet: bool = False


def objects_feed(asked: Asked) -> Iterator[TopView]:
    """The cluster or the files, read anew for each view. It never ends.

    Raises ``ConfigurationError`` and ``UnavailableError``; who asks again after that is answered anew.
    """
    return _Reading(asked)


class _Reading(Iterator[TopView]):
    """A generator would end with the first error."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._has_told = asked.is_quiet

    def __next__(self) -> TopView:
        asked = self._asked
        inputs = _inputs(asked, asked.files, now=asked.now, is_quiet=self._has_told)
        self._has_told = True
        problem = _problem(inputs, asked)
        return decided(
            problem, inputs.prices, inputs.notices, source=_named(asked.files), planned=_whole(problem, inputs)
        )


def _inputs(asked: Asked, files: Sequence[str], *, now: str | None, is_quiet: bool) -> DecisionInput:
    return decision_input(
        files,
        now=moment(now),
        warnings=lambda snapshot: beside_nodes(snapshot, only_marked=not files),
        recursive=asked.recursive,
        catalog_file=asked.catalog_file,
        region=asked.region,
        daemons=asked.daemons,
        is_quiet=is_quiet,
    )


def _problem(inputs: DecisionInput, asked: Asked) -> DisruptionProblem:
    options = DisruptionOptions(curve=False, time_limit=asked.time_limit)
    packing = Options(only_marked_unschedulable=not asked.files, time_limit=asked.time_limit)
    return disruption_problem(inputs, options, packing)


def _whole(problem: DisruptionProblem, inputs: DecisionInput) -> Problem:
    """What is planned: with the room of buffers that no node has, which the problem about nodes leaves out."""
    return replace(problem.packing, snapshot=inputs.snapshot)


def _named(files: Sequence[str]) -> str:
    if files:
        return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    return "the kubeconfig's cluster"


# --- records ---


def records_feed(records: Sequence[Record], asked: Asked) -> Iterator[TopView]:
    """The moments at which something was decided, in their order; the decision is the recorded one.

    What the record does not say, because another function decides it, is decided anew from the objects in it.
    """
    for number, record in enumerate(records):
        asked_now = replace(asked, files=(record.path,))
        inputs = _inputs(asked_now, asked_now.files, now=record.now.isoformat(), is_quiet=asked.is_quiet or number > 0)
        problem = _problem(inputs, asked_now)
        packing = replace(problem.packing, options=replace(record.options, time_limit=asked.time_limit))
        options = replace(record.disruption or problem.options, curve=False, time_limit=asked.time_limit)
        source = f"{record.door}, {number + 1} of {len(records)}: {Path(record.path).name}"
        yield decided(
            replace(problem, packing=packing, options=options),
            inputs.prices,
            inputs.notices,
            source=source,
            planned=_whole(problem, inputs),
            packing=record.packing,
            disruptions=record.disruptions,
        )


# --- deciding ---


def decided(
    problem: DisruptionProblem,
    prices: "Prices",
    notices: "Sequence[UserNotice]" = (),
    *,
    source: str,
    planned: Problem | None = None,
    packing: Packing | None = None,
    disruptions: DisruptionDecision | None = None,
) -> TopView:
    """The view of a problem, with the plan for its pods and the decision about its nodes that are given, or else made
    now. ``planned``: for which the plan is, where that is more than the problem about nodes has.
    """
    planned = planned or problem.packing
    started = time.perf_counter()
    if packing is None:
        packing = plan(planned, stopwatch=_stopwatch()).packing
    if disruptions is None:
        disruptions = decide(problem, stopwatch=_stopwatch())
    seen = view(problem, disruptions, problem.sold, prices, notices, seconds=time.perf_counter() - started)
    return top_view(problem, packing, seen, source=source, planned=planned.snapshot)


def _stopwatch() -> Stopwatch:
    started = time.perf_counter()
    return lambda: time.perf_counter() - started
