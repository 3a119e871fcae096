"""``joinery disrupt``: which nodes would be retired or replaced, why, and what that saves."""

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from joinery.objects.errors import ConfigurationError
from joinery.objects.policies import MinValuesPolicy, PreferencePolicy, TerminateFirst, terminate_first_of
from joinery_cli.options import (
    CatalogOption,
    CommitmentsOption,
    DaemonsOption,
    DecisionFormat,
    ExplainNodeOption,
    Files,
    MinValuesOption,
    MoreFiles,
    NowOption,
    OrdinaryOption,
    PreferenceOption,
    Recursive,
    RegionOption,
    SchedulerOption,
    TimeLimitOption,
    duration_of,
)

if TYPE_CHECKING:
    from joinery.decisions.disruption.problem import DisruptionOptions
    from joinery_cli.notices import UserNotice
    from joinery_cli.view.disruption_view import DisruptionView


def disrupt(
    more_files: MoreFiles = None,
    files: Files = None,
    recursive: Recursive = False,
    daemons: DaemonsOption = None,
    catalog_file: CatalogOption = None,
    region: RegionOption = None,
    now: NowOption = None,
    move_price: Annotated[
        float | None,
        typer.Option(
            metavar="DOLLARS",
            help="What the eviction of an ordinary pod counts as; 0 asks what the cluster could cost. Default: 0.01.",
        ),
    ] = None,
    payback: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Savings must repay the moves within this time, such as 1h30m. Default: 1h."
        ),
    ] = None,
    ignore_budgets: Annotated[
        bool,
        typer.Option("--ignore-budgets", help="As if no NodePool had budgets or a stop: what could be done at last."),
    ] = False,
    terminate_first: Annotated[
        str,
        typer.Option(
            metavar="WHERE",
            help="Where drifted nodes end before they are replaced, as the stack's TerminateFirst: off, or some of "
            "static, reserved and scarce, separated by commas.",
        ),
    ] = "off",
    preference_policy: PreferenceOption = PreferencePolicy.RESPECT,
    min_values_policy: MinValuesOption = MinValuesPolicy.STRICT,
    ordinary_types: OrdinaryOption = True,
    time_limit: TimeLimitOption = None,
    commitments: CommitmentsOption = None,
    scheduler_config: SchedulerOption = None,
    output: Annotated[
        DecisionFormat,
        typer.Option(
            "-o",
            "--output",
            help="How to print it; wide: all nodes with more columns; yaml: what a function would write.",
        ),
    ] = DecisionFormat.TABLE,
    with_pods: Annotated[
        bool,
        typer.Option("--pods", help="List in the table every command with all its nodes, and where every pod goes."),
    ] = False,
    explained: ExplainNodeOption = None,
) -> None:
    """Decide which nodes to delete, and which to replace by cheaper ones.

    Nothing is changed, neither in files nor in the current kubeconfig's cluster, which is read where no file is given.

    Exit status: 0 for a decision, also one that changes nothing; 2 for bad input; 1 for anything else.
    """
    from joinery.decisions.disruption.paid import decide_paid
    from joinery.decisions.scheduling.paid import with_paid_for
    from joinery.decisions.scheduling.problem import Options
    from joinery_cli.decision_input import (
        check_time_limit,
        commitments_of,
        decision_input,
        disruption_problem,
        tell_now,
    )
    from joinery_cli.explained_nodes import nodes_meant
    from joinery_cli.notices import working, writing
    from joinery_cli.output.disruptions_json import disruptions_document
    from joinery_cli.output.json import write
    from joinery_cli.pausing import notes_of_pauses
    from joinery_cli.sources import moment
    from joinery_cli.view.disruption_groups import view
    from joinery_cli.view.disruption_view import explain
    from joinery_cli.view.headroom import headroom_on
    from joinery_cli.view.paid_prices import paid_prices
    from joinery_cli.warnings.left_out import beside_disruptions, lost_pods

    check_time_limit(time_limit)
    options = replace(
        _options(move_price, payback, ignore_budgets=ignore_budgets, time_limit=time_limit),
        terminate_first=_places(terminate_first),
    )
    paths = [*(files or ()), *(more_files or ())]
    inputs = decision_input(
        paths,
        now=moment(now),
        warnings=lambda snapshot: beside_disruptions(snapshot, only_marked=not paths),
        recursive=recursive,
        catalog_file=catalog_file,
        region=region,
        daemons=daemons,
        scheduler_config=scheduler_config,
    )
    started = time.perf_counter()
    packing = Options(
        only_marked_unschedulable=not paths,
        respect_preferences=preference_policy is PreferencePolicy.RESPECT,
        best_effort_min_values=min_values_policy is MinValuesPolicy.BEST_EFFORT,
        ordinary_types=ordinary_types,
        time_limit=time_limit,
    )
    problem = disruption_problem(inputs, options, packing)
    names = nodes_meant(explained or (), problem)
    told: tuple[UserNotice, ...] = ()
    if paid_for := commitments_of(inputs, commitments):
        problem = replace(problem, packing=with_paid_for(problem.packing, paid_for.document, inputs.catalogue.sold))
        told = (*paid_for.notices, *tell_now(paid_prices(problem.packing)))
    told = (*told, *tell_now(*notes_of_pauses(inputs.snapshot, inputs.catalogue.sold)))
    with working("deciding"):
        disruptions = decide_paid(problem, stopwatch=lambda: time.perf_counter() - started)
    seconds = time.perf_counter() - started
    evicted = {pod for command in disruptions.commands for pod in command.pods}
    notices = (*inputs.notices, *told, *tell_now(*lost_pods(evicted, inputs.snapshot)))
    if output is DecisionFormat.JSON and not names:
        # A script is not kept waiting for what only people look at.
        kept = headroom_on(problem.packing.snapshot, disruptions.prices)
        now_read = inputs.snapshot.now
        write(disruptions_document(disruptions, inputs.prices, notices, now=now_read, seconds=seconds, headroom=kept))
        return
    if output is DecisionFormat.YAML:
        from joinery_cli.output.written import print_commands

        print_commands(disruptions.commands, inputs.snapshot)
        return
    with writing():
        seen = view(problem, disruptions, inputs.catalogue.sold, inputs.prices, notices, seconds=seconds)
        explained_nodes = tuple(explain(name, problem, seen) for name in names)
        _show(replace(seen, explanations=explained_nodes), output, with_pods=with_pods)


def _options(
    move_price: float | None, payback: str | None, *, ignore_budgets: bool, time_limit: float | None
) -> "DisruptionOptions":
    from joinery.decisions.disruption.problem import DisruptionOptions

    if move_price is not None and not 0 <= move_price < math.inf:
        raise ConfigurationError(f"--move-price {move_price:g}: must be a number of dollars, 0 or more")
    default = DisruptionOptions()
    return DisruptionOptions(
        move_price=default.move_price if move_price is None else move_price,
        payback=default.payback if payback is None else duration_of("--payback", payback),
        ignore_budgets=ignore_budgets,
        time_limit=time_limit,
    )


def _places(text: str) -> frozenset[TerminateFirst]:
    """``--terminate-first`` as a set. Raises ``ConfigurationError``."""
    try:
        return terminate_first_of(text)
    except ValueError as error:
        raise ConfigurationError(f"--terminate-first {text}: {error}") from None


def _show(view: "DisruptionView", output: DecisionFormat, *, with_pods: bool) -> None:
    if output is DecisionFormat.JSON:
        from joinery_cli.explained_nodes import explanation_document
        from joinery_cli.output.disruptions_json import disruptions_document
        from joinery_cli.output.json import with_explanations, write

        document = disruptions_document(
            view.disruptions, view.prices, view.notices, now=view.now, seconds=view.seconds, headroom=view.headroom
        )
        write(with_explanations(document, map(explanation_document, view.explanations)))
    elif output is DecisionFormat.HTML:
        from joinery_cli.page.disruptions import print_page

        print_page(view)
    else:
        from joinery_cli.output.disruptions_table import print_disruptions

        print_disruptions(view, with_pods=with_pods, is_wide=output is DecisionFormat.WIDE)
