"""``joinery plan``: what would be bought for the pending pods, where each would run, and why some would not."""

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from joinery.cli.options import (
    CatalogOption,
    ExplainOption,
    Files,
    MoreFiles,
    NodeSize,
    PlanFormat,
    Recursive,
    RegionOption,
)
from joinery.errors import ConfigurationError, RefusedError

if TYPE_CHECKING:
    from datetime import datetime

    from joinery.cli.notices import Notice
    from joinery.cli.view.plan_view import PlanView
    from joinery.cloudprovider.catalog.document import Catalog
    from joinery.planning import Plan
    from joinery.scheduling.explain.explanation import Explanation
    from joinery.scheduling.packing import Packing
    from joinery.scheduling.problem import Options, Problem
    from joinery.state.snapshot import Snapshot

_SHOWN_VIOLATIONS = 10


def plan(
    more_files: MoreFiles = None,
    files: Files = None,
    recursive: Recursive = False,
    catalog_file: CatalogOption = None,
    region: RegionOption = None,
    now: Annotated[str | None, typer.Option(metavar="RFC3339", help="The moment to plan for. Default: now.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same input and seed give the same plan.")] = 0,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop improving the plan after so many seconds.")
    ] = None,
    node_size: Annotated[
        NodeSize,
        typer.Option(help="Prefer the cheapest nodes or smaller ones, for NodePools without the annotation node-size."),
    ] = NodeSize.BALANCED,
    max_launches: Annotated[
        int | None, typer.Option(min=0, help="Launch at most so many nodes, as the stack's MaxLaunches does.")
    ] = None,
    max_hourly: Annotated[
        float | None, typer.Option(metavar="DOLLARS", help="Launch for at most so many $/h, as MaxHourly does.")
    ] = None,
    output: Annotated[PlanFormat, typer.Option("-o", "--output", help="How to print the plan.")] = PlanFormat.TABLE,
    with_pods: Annotated[bool, typer.Option("--pods", help="List in the table where every pod goes.")] = False,
    explained: ExplainOption = None,
) -> None:
    """Plan nodes for the pending pods of the files, or without files of the current kubeconfig's cluster (read-only).

    Exit status: 0 for a plan, even one that leaves pods pending; 2 for bad input; 1 for anything else.
    """
    from joinery.apis.caps import Caps
    from joinery.cli.doubts.left_out import not_counted, without_pools
    from joinery.cli.doubts.misnamed import misnamed
    from joinery.cli.doubts.others import others
    from joinery.cli.notices import warning
    from joinery.cli.output_json import plan_document, with_explanations, write
    from joinery.cli.regions import cluster_region
    from joinery.cli.sources import checked_region, load_catalog, moment, prices_of
    from joinery.cli.view.costs import costs as costs_of
    from joinery.cli.view.plan_groups import view
    from joinery.scheduling.problem import Options
    from joinery.scheduling.reason import ReasonCode

    if time_limit is not None and not 0 < time_limit < math.inf:
        raise ConfigurationError(f"--time-limit {time_limit:g}: must be more than 0 seconds")
    if max_hourly is not None and not 0 <= max_hourly < math.inf:
        raise ConfigurationError(f"--max-hourly {max_hourly:g}: must be a number of dollars an hour")
    given = [*(files or ()), *(more_files or ())]
    snapshot, notices = _snapshot(given, moment(now), recursive=recursive)
    options = Options(
        only_marked_unschedulable=not given,
        seed=seed,
        time_limit=time_limit,
        node_size=node_size.value,
        caps=Caps(max_launches=max_launches, max_hourly=max_hourly),
    )
    place = checked_region(region)
    catalogue, prices = prices_of(load_catalog(catalog_file, place or cluster_region(snapshot)), snapshot, place)
    notices += _told(*prices.notices(), *not_counted(snapshot, catalogue))
    problem, pods, made, seconds = _solve(snapshot, catalogue, options, explained or ())
    packing = made.packing
    notices += _told(*misnamed(snapshot, problem.instance_types), *without_pools(snapshot, packing))
    # What a static NodePool gets is told already, and that it launches none for pods is how it should be.
    why_not = [reason for reason in packing.pool_reasons if reason.code is not ReasonCode.STATIC]
    notices += _told(*map(warning, (*made.warnings, *why_not)), *others(packing, snapshot))
    check(made)
    costs = costs_of(problem, packing, catalogue.sold)
    explanations = _explanations(problem, packing, pods)
    if output is PlanFormat.JSON:
        document = plan_document(packing, costs, prices, notices, now=snapshot.now, seconds=seconds)
        write(with_explanations(document, explanations))
    else:
        shown = view(problem, packing, costs, prices, notices, seconds=seconds, explanations=explanations)
        _show(shown, output, with_pods=with_pods)


def _snapshot(files: Sequence[str], now: "datetime", *, recursive: bool) -> tuple["Snapshot", tuple["Notice", ...]]:
    from joinery.cli.doubts.annotations import annotated_in_vain
    from joinery.cli.doubts.left_out import left_out
    from joinery.cli.reading.inputs import load
    from joinery.cli.sources import live_snapshot

    inputs = load(files, recursive=recursive)
    snapshot = inputs.snapshot(now) if files else live_snapshot(now)
    doubts = (*annotated_in_vain(snapshot), *left_out(snapshot, only_marked=not files))
    return snapshot, _told(*inputs.all_notices(), *doubts)


def _told(*notices: "Notice") -> tuple["Notice", ...]:
    """The same notices, which a person has seen by now: to plan may take a while."""
    from joinery.cli.notices import tell

    tell(notices)
    return notices


def _solve(
    snapshot: "Snapshot", catalogue: "Catalog", options: "Options", explained: Sequence[str]
) -> tuple["Problem", tuple[str, ...], "Plan", float]:
    """The problem, the pods to explain, the plan, and how long it took from parsed objects.

    A name that is none is told before solving.
    """
    from joinery.capping import plan_within_caps
    from joinery.cli.explained import pods_meant
    from joinery.cloudprovider.offline import instance_types
    from joinery.scheduling.problem import Problem

    started = time.perf_counter()
    types = instance_types(snapshot.node_classes, catalogue, snapshot.now)
    problem = Problem(snapshot=snapshot, instance_types=types, options=options)
    pods = pods_meant(explained, problem) if explained else ()
    made = plan_within_caps(problem, stopwatch=lambda: time.perf_counter() - started)
    return problem, pods, made, time.perf_counter() - started


def _explanations(problem: "Problem", packing: "Packing", pods: Sequence[str]) -> tuple["Explanation", ...]:
    """Nothing is computed, or imported, for nobody."""
    if not pods:
        return ()
    from joinery.scheduling.explain.explain import explain

    return tuple(explain(problem, packing, pod) for pod in pods)


def check(made: "Plan") -> None:
    """Nobody sees a wrong plan: it is an error of ours, with what is wrong. Raises ``RefusedError``."""
    wrong = made.violations
    if wrong:
        listed = [f"  {reason}" for reason in wrong[:_SHOWN_VIOLATIONS]]
        if len(wrong) > _SHOWN_VIOLATIONS:
            listed.append(f"  and {len(wrong) - _SHOWN_VIOLATIONS} more")
        raise RefusedError("\n".join(["internal error: the plan fails verification", *listed]))


def _show(plan: "PlanView", output: PlanFormat, *, with_pods: bool) -> None:
    if output is PlanFormat.HTML:
        from joinery.cli.page.document import print_page

        print_page(plan)
    else:
        from joinery.cli.output_table import print_plan

        print_plan(plan, with_pods=with_pods)
