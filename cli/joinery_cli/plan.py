"""``joinery plan``: what would be bought for the pending pods, where each would run, and why some would not."""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from joinery.objects.errors import ConfigurationError, RefusedError
from joinery.objects.policies import MinValuesPolicy, PreferencePolicy
from joinery_cli.options import (
    CatalogOption,
    CommitmentsOption,
    DaemonsOption,
    DecisionFormat,
    ExplainOption,
    Files,
    MinValuesOption,
    MoreFiles,
    NodeSize,
    NowOption,
    OrdinaryOption,
    PreferenceOption,
    RatesOption,
    Recursive,
    RegionOption,
    SchedulerOption,
    TimeLimitOption,
)

if TYPE_CHECKING:
    from joinery.decisions.planning import Plan
    from joinery.decisions.scheduling.explain.explanation import Explanation
    from joinery.decisions.scheduling.problem import Options, Problem
    from joinery_cli.decision_input import DecisionInput
    from joinery_cli.notices import UserNotice
    from joinery_cli.reading.commitments import Commitments
    from joinery_cli.reading.interruption_rates import Rates
    from joinery_cli.view.plan_view import PlanView

_SHOWN_VIOLATIONS = 10


def plan(
    more_files: MoreFiles = None,
    files: Files = None,
    recursive: Recursive = False,
    daemons: DaemonsOption = None,
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
    ordinary_types: OrdinaryOption = True,
    max_launches: Annotated[
        int | None, typer.Option(min=0, help="Launch at most so many nodes, as the stack's MaxLaunches does.")
    ] = None,
    max_hourly: Annotated[
        float | None, typer.Option(metavar="DOLLARS", help="Launch for at most so many $/h, as MaxHourly does.")
    ] = None,
    interruption_rates: RatesOption = None,
    interruption_weight: Annotated[
        float,
        typer.Option(
            help="What a dollar of expected interruptions counts as beside one of price. 0: only report them."
        ),
    ] = 1.0,
    commitments: CommitmentsOption = None,
    scheduler_config: SchedulerOption = None,
    output: Annotated[
        DecisionFormat,
        typer.Option(
            "-o",
            "--output",
            help="How to print the plan; wide: all nodes with more columns; yaml: the NodeClaims to write.",
        ),
    ] = DecisionFormat.TABLE,
    with_pods: Annotated[bool, typer.Option("--pods", help="List in the table where every pod goes.")] = False,
    explained: ExplainOption = None,
) -> None:
    """Plan nodes for the pending pods of the files, or without files of the current kubeconfig's cluster (read-only).

    Exit status: 0 for a plan, even one that leaves pods pending; 2 for bad input; 1 for anything else.
    """
    from joinery.decisions.scheduling.problem import Options
    from joinery.objects.policies import Caps
    from joinery_cli.decision_input import check_time_limit, commitments_of, decision_input
    from joinery_cli.notices import working, writing
    from joinery_cli.sources import moment
    from joinery_cli.view.costs import costs as costs_of
    from joinery_cli.view.plan_groups import view
    from joinery_cli.warnings.left_out import left_out

    check_time_limit(time_limit)
    if max_hourly is not None and not 0 <= max_hourly < math.inf:
        raise ConfigurationError(f"--max-hourly {max_hourly:g}: must be a number of dollars an hour")
    if not 0 <= interruption_weight < math.inf:
        raise ConfigurationError(f"--interruption-weight {interruption_weight:g}: must be a number, 0 or more")
    paths = [*(files or ()), *(more_files or ())]
    inputs = decision_input(
        paths,
        now=moment(now),
        warnings=lambda snapshot: left_out(snapshot, only_marked=not paths),
        recursive=recursive,
        catalog_file=catalog_file,
        region=region,
        daemons=daemons,
        scheduler_config=scheduler_config,
    )
    options = Options(
        only_marked_unschedulable=not paths,
        seed=seed,
        time_limit=time_limit,
        node_size=node_size.value,
        respect_preferences=preference_policy is PreferencePolicy.RESPECT,
        best_effort_min_values=min_values_policy is MinValuesPolicy.BEST_EFFORT,
        ordinary_types=ordinary_types,
        caps=Caps(max_launches=max_launches, max_hourly=max_hourly),
    )
    rates = _rates(inputs, interruption_rates) if interruption_rates else None
    paid_for = commitments_of(inputs, commitments)
    with working("planning"):
        solution = _solve(inputs, options, explained or (), rates, interruption_weight, paid_for)
    of_files = (*(rates.notices if rates else ()), *(paid_for.notices if paid_for else ()))
    notices = (*inputs.notices, *of_files, *_notices_of_plan(inputs, solution))
    _refuse_if_wrong(solution.plan)
    if output is DecisionFormat.YAML:
        _write_claims(solution)
        return
    problem, packing = solution.problem, solution.plan.packing
    costs, seconds = costs_of(problem, packing, inputs.catalogue.sold), solution.seconds
    explanations = _explanations(solution)
    if output is DecisionFormat.JSON:
        from joinery_cli.explained import explanation_document
        from joinery_cli.output.json import plan_document, with_explanations, write

        document = plan_document(packing, costs, inputs.prices, notices, now=inputs.snapshot.now, seconds=seconds)
        write(with_explanations(document, map(explanation_document, explanations)))
    else:
        with writing():
            shown = view(problem, packing, costs, inputs.prices, notices, seconds=seconds, explanations=explanations)
            _show(shown, output, with_pods=with_pods)


@dataclass(frozen=True)
class _Solution:
    """``explained_pods``: those to explain. ``seconds``: how long it took, from parsed objects."""

    problem: "Problem"
    plan: "Plan"
    explained_pods: tuple[str, ...]
    seconds: float


def _rates(inputs: "DecisionInput", path: str) -> "Rates":
    """The rates of the file, for the cluster's region. Whatever a person should know of them is printed at once."""
    from joinery.objects.karpenter.labels import SPOT
    from joinery_cli.decision_input import tell_now
    from joinery_cli.reading.interruption_rates import read_rates

    prices, sold = inputs.prices, inputs.catalogue.sold
    on_spot = [name for name in sorted(sold) if any(offering.capacity_type == SPOT for offering in sold[name])]
    rates = read_rates(path, prices.cluster_region or prices.region, on_spot)
    tell_now(*rates.notices)
    return rates


def _with_interruptions(problem: "Problem", inputs: "DecisionInput", rates: "Rates", weight: float) -> "Problem":
    from joinery.decisions.disruption.moves import eviction_prices
    from joinery.decisions.disruption.problem import DisruptionProblem
    from joinery.decisions.scheduling.problem import Interruptions

    evictions = eviction_prices(DisruptionProblem(packing=problem, replicas=inputs.replicas))
    interruptions = Interruptions(rates=rates.by_type, unrated=rates.unrated, evictions=evictions, weight=weight)
    return replace(problem, interruptions=interruptions)


def _solve(
    inputs: "DecisionInput",
    options: "Options",
    explained: Sequence[str],
    rates: "Rates | None",
    weight: float,
    paid_for: "Commitments | None",
) -> _Solution:
    """Make the plan. Raises ``ConfigurationError`` before that where ``explained`` names no pod.

    ``weight``: what a dollar of expected interruptions counts as.
    """
    from joinery.decisions.capping import plan_within_caps
    from joinery.decisions.scheduling.problem import Problem
    from joinery_cli.explained import pods_meant

    started = time.perf_counter()
    snapshot = inputs.snapshot
    problem = Problem(snapshot=snapshot, instance_types=inputs.types, options=options)
    if paid_for:
        from joinery.decisions.scheduling.paid import with_paid_for

        problem = with_paid_for(problem, paid_for.document, inputs.catalogue.sold)
    if rates:
        problem = _with_interruptions(problem, inputs, rates, weight)
    pods = pods_meant(explained, problem) if explained else ()
    plan = plan_within_caps(problem, stopwatch=lambda: time.perf_counter() - started).proven()
    return _Solution(problem, plan, pods, time.perf_counter() - started)


def _explanations(solution: _Solution) -> tuple["Explanation", ...]:
    if not solution.explained_pods:
        # Then what explains is not imported either.
        return ()
    from joinery.decisions.scheduling.explain.explain import explain

    return tuple(explain(solution.problem, solution.plan.packing, pod) for pod in solution.explained_pods)


def _notices_of_plan(inputs: "DecisionInput", solution: _Solution) -> tuple["UserNotice", ...]:
    """Print at once what a person should know about the plan."""
    from joinery.decisions.scheduling.pool_shares import not_kept
    from joinery.decisions.scheduling.reason import ReasonCode
    from joinery_cli.decision_input import tell_now
    from joinery_cli.notices import warning
    from joinery_cli.warnings.labels import misspelt_labels
    from joinery_cli.warnings.left_out import others, without_pools

    snapshot, plan, packing = inputs.snapshot, solution.plan, solution.plan.packing
    short = not_kept(snapshot.pool_shares, packing.launches)
    # What a static NodePool gets is reported already, and that it launches none for pods is how it should be.
    pool_reasons = [reason for reason in packing.pool_reasons if reason.code is not ReasonCode.STATIC]
    return tell_now(
        *misspelt_labels(snapshot, solution.problem.instance_types),
        *without_pools(snapshot, packing),
        *map(warning, (*plan.warnings, *pool_reasons)),
        *(warning(f"NodePool {name}: {why}") for name, why in short.items()),
        *others(packing, snapshot),
        *_room_for_requests(inputs, solution.problem),
    )


def _room_for_requests(inputs: "DecisionInput", problem: "Problem") -> Iterable["UserNotice"]:
    """What is to be said of the ProvisioningRequests that only ask whether there is room."""
    if not inputs.requests:
        return ()
    from joinery_cli.reading.buffers import room

    return room(problem, inputs.requests)


def _refuse_if_wrong(plan: "Plan") -> None:
    """Raise ``RefusedError`` for a plan that fails verification, with what is wrong: nobody should see it as a plan."""
    if plan.violations:
        lines = [f"  {violation}" for violation in plan.violations[:_SHOWN_VIOLATIONS]]
        if len(plan.violations) > _SHOWN_VIOLATIONS:
            lines.append(f"  and {len(plan.violations) - _SHOWN_VIOLATIONS} more")
        raise RefusedError("\n".join(["internal error: the plan fails verification", *lines]))


def _write_claims(solution: _Solution) -> None:
    """The NodeClaims of the plan, as ``kubectl create -f`` takes them."""
    from joinery.decisions.lifecycle.launching.new_claims import claims_of
    from joinery_cli.output.written import print_claims

    print_claims(claims_of(solution.plan.packing, solution.problem.snapshot))


def _show(plan: "PlanView", output: DecisionFormat, *, with_pods: bool) -> None:
    if output is DecisionFormat.HTML:
        from joinery_cli.page.document import print_page

        print_page(plan)
    else:
        from joinery_cli.output.table import print_plan

        print_plan(plan, with_pods=with_pods, is_wide=output is DecisionFormat.WIDE)
