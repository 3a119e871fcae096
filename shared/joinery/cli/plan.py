"""``joinery plan``: what would be bought for the pending pods, where each would run, and why some would not."""

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from joinery.apis.policies import MinValuesPolicy, PreferencePolicy
from joinery.cli.options import (
    CatalogOption,
    DecisionFormat,
    ExplainOption,
    Files,
    MinValuesOption,
    MoreFiles,
    NodeSize,
    NowOption,
    PreferenceOption,
    Recursive,
    RegionOption,
    TimeLimitOption,
)
from joinery.errors import ConfigurationError, RefusedError

if TYPE_CHECKING:
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
    now: NowOption = None,
    seed: Annotated[int, typer.Option(min=0, help="The same input and seed give the same plan.")] = 0,
    time_limit: TimeLimitOption = None,
    node_size: Annotated[
        NodeSize,
        typer.Option(help="Prefer the cheapest nodes or smaller ones, for NodePools without the annotation node-size."),
    ] = NodeSize.BALANCED,
    preference_policy: PreferenceOption = PreferencePolicy.RESPECT,
    min_values_policy: MinValuesOption = MinValuesPolicy.STRICT,
    max_launches: Annotated[
        int | None, typer.Option(min=0, help="Launch at most so many nodes, as the stack's MaxLaunches does.")
    ] = None,
    max_hourly: Annotated[
        float | None, typer.Option(metavar="DOLLARS", help="Launch for at most so many $/h, as MaxHourly does.")
    ] = None,
    output: Annotated[
        DecisionFormat, typer.Option("-o", "--output", help="How to print the plan.")
    ] = DecisionFormat.TABLE,
    with_pods: Annotated[bool, typer.Option("--pods", help="List in the table where every pod goes.")] = False,
    explained: ExplainOption = None,
) -> None:
    """Plan nodes for the pending pods of the files, or without files of the current kubeconfig's cluster (read-only).

    Exit status: 0 for a plan, even one that leaves pods pending; 2 for bad input; 1 for anything else.
    """
    from joinery.apis.caps import Caps
    from joinery.cli.decision_input import check_time_limit, decision_input, told
    from joinery.cli.doubts.left_out import left_out, without_pools
    from joinery.cli.doubts.misnamed import misnamed
    from joinery.cli.doubts.others import others
    from joinery.cli.explained import explanation_document
    from joinery.cli.notices import warning
    from joinery.cli.output_json import plan_document, with_explanations, write
    from joinery.cli.sources import moment
    from joinery.cli.view.costs import costs as costs_of
    from joinery.cli.view.plan_groups import view
    from joinery.scheduling.problem import Options
    from joinery.scheduling.reason import ReasonCode

    check_time_limit(time_limit)
    if max_hourly is not None and not 0 <= max_hourly < math.inf:
        raise ConfigurationError(f"--max-hourly {max_hourly:g}: must be a number of dollars an hour")
    given = [*(files or ()), *(more_files or ())]
    asked = decision_input(
        given,
        now=moment(now),
        doubts=lambda snapshot: left_out(snapshot, only_marked=not given),
        recursive=recursive,
        catalog_file=catalog_file,
        region=region,
    )
    snapshot, catalogue, prices, notices = asked.snapshot, asked.catalogue, asked.prices, asked.notices
    options = Options(
        only_marked_unschedulable=not given,
        seed=seed,
        time_limit=time_limit,
        node_size=node_size.value,
        respect_preferences=preference_policy is PreferencePolicy.RESPECT,
        best_effort_min_values=min_values_policy is MinValuesPolicy.BEST_EFFORT,
        caps=Caps(max_launches=max_launches, max_hourly=max_hourly),
    )
    problem, pods, made, seconds = _solve(snapshot, catalogue, options, explained or ())
    packing = made.packing
    notices += told(*misnamed(snapshot, problem.instance_types), *without_pools(snapshot, packing))
    # What a static NodePool gets is told already, and that it launches none for pods is how it should be.
    why_not = [reason for reason in packing.pool_reasons if reason.code is not ReasonCode.STATIC]
    notices += told(*map(warning, (*made.warnings, *why_not)), *others(packing, snapshot))
    check(made)
    costs = costs_of(problem, packing, catalogue.sold)
    explanations = _explanations(problem, packing, pods)
    if output is DecisionFormat.JSON:
        document = plan_document(packing, costs, prices, notices, now=snapshot.now, seconds=seconds)
        write(with_explanations(document, map(explanation_document, explanations)))
    else:
        shown = view(problem, packing, costs, prices, notices, seconds=seconds, explanations=explanations)
        _show(shown, output, with_pods=with_pods)


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


def _show(plan: "PlanView", output: DecisionFormat, *, with_pods: bool) -> None:
    if output is DecisionFormat.HTML:
        from joinery.cli.page.document import print_page

        print_page(plan)
    else:
        from joinery.cli.output_table import print_plan

        print_plan(plan, with_pods=with_pods)
