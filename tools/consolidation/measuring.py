"""Measures one file: decides, has the decision checked and judged, carries it out, and decides again."""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.problem import DisruptionOptions, DisruptionProblem
from joinery.decisions.disruption.validation.verified import violations_of
from joinery.decisions.scheduling.problem import Options
from joinery_cli.decision_input import decision_input, disruption_problem
from simulator.disrupted import carried_out
from tools.consolidation.figures import Decision, Measured, waiting_for_budgets
from tools.consolidation.judging import Judge, sample

_NOW = "2026-01-01T12:00:00Z"
#: A NodePool of ten nodes whose budget is one node, and some more; and what a round takes, with its drains.
_ROUNDS = 20
_ROUND = timedelta(minutes=15)


def problem_of(
    file: Path, catalogue: Path, now: datetime, options: DisruptionOptions | None = None
) -> DisruptionProblem:
    """What ``joinery disrupt -f FILE --catalog CATALOGUE`` decides about."""
    inputs = decision_input([str(file)], now=now, warnings=lambda _: (), catalog_file=str(catalogue))
    options = options or DisruptionOptions()
    packing = Options(only_marked_unschedulable=False, time_limit=options.time_limit)
    return disruption_problem(inputs, options, packing)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """How files are measured.

    catalogue   the file with what can be bought
    options     what decisions are asked with
    judge       the judge's binary; None for doing without
    again       whether to decide again about what a decision leads to, and on while budgets kept nodes
    free        whether to decide also with free moves and without budgets
    """

    catalogue: Path
    options: DisruptionOptions
    judge: Path | None = None
    again: bool = False
    free: bool = False

    def of(self, file: Path, reference: Mapping[str, Any]) -> Measured:
        """One file. ``reference``: a reference.json; its ``now`` is the moment that another controller was asked at."""
        name = file.name.removesuffix(".json.gz")
        known = reference["snapshots"].get(name, {})
        stated = re.match(r"\S+", known.get("now") or reference.get("now") or _NOW)
        now = datetime.fromisoformat(stated[0] if stated else _NOW)
        problem = problem_of(file, self.catalogue, now, self.options)
        decision = _decided(problem)
        commands = decision.commands
        violations = {
            str(violation): length
            for length in sample(len(commands))
            for violation in violations_of(problem.packing, commands[:length])
        }
        free = replace(self.options, move_price=0.0, ignore_budgets=True)
        return Measured(
            name=name,
            decision=decision,
            reference=known,
            violations=(
                *(f"rejected: {mistake.objection}" for mistake in decision.disruptions.mistakes),
                *(f"after {length} commands: {violation}" for violation, length in violations.items()),
            ),
            verdict=Judge(self.judge, self.catalogue).verdict(file, problem, commands) if self.judge else None,
            rounds=tuple(_rounds(problem, decision)) if self.again else (),
            free=_decided(replace(problem, options=free)) if self.free else None,
        )


def _decided(problem: DisruptionProblem) -> Decision:
    begun, worked = time.perf_counter(), time.process_time()
    disruptions = decide(problem, stopwatch=lambda: time.perf_counter() - begun)
    return Decision(disruptions, time.perf_counter() - begun, time.process_time() - worked)


def _rounds(problem: DisruptionProblem, decision: Decision) -> Iterator[Decision]:
    """Decisions about what decisions lead to, until one waits for no budget.

    The second is asked as soon as new nodes are there, when every reason to take something back is freshest. That they
    have yet to pay for themselves would hold them, so nobody asks about it.
    """
    problem = replace(problem, options=replace(problem.options, new_nodes_repay=False))
    for number in range(_ROUNDS):
        problem = carried_out(problem, decision.commands)
        if number:
            later = replace(problem.packing.snapshot, now=problem.packing.snapshot.now + _ROUND)
            problem = replace(problem, packing=replace(problem.packing, snapshot=later))
        was_waiting = waiting_for_budgets(decision.disruptions)
        decision = _decided(problem)
        yield decision
        if not decision.commands or not was_waiting:
            return
