"""``joinery plan``: what would be bought for the pending pods, where each would run, and why some would not."""

import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from joinery.cli.options import CatalogOption, Files, NodeSize, PlanFormat, RegionOption
from joinery.cli.visible import warn
from joinery.errors import ConfigurationError, RefusedError

if TYPE_CHECKING:
    from datetime import datetime

    from joinery.cli.plan_view import PlanView
    from joinery.cloudprovider.catalog import Catalog
    from joinery.scheduling.packing import Packing
    from joinery.scheduling.planning import Plan
    from joinery.scheduling.problem import Options, Problem
    from joinery.state.snapshot import Snapshot

_SHOWN_VIOLATIONS = 10
_SHOWN_NAMES = 3


def plan(
    files: Files = None,
    catalog_file: CatalogOption = None,
    region: RegionOption = None,
    now: Annotated[str | None, typer.Option(metavar="RFC3339", help="The moment to plan for. Default: now.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="One seed and one input give one plan.")] = 0,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop improving the plan after that long.")
    ] = None,
    node_size: Annotated[
        NodeSize,
        typer.Option(help="For NodePools that say nothing: how to weigh price against how much one node carries."),
    ] = NodeSize.BALANCED,
    output: Annotated[PlanFormat, typer.Option("-o", "--output", help="How to print it.")] = PlanFormat.TABLE,
    with_pods: Annotated[bool, typer.Option("--pods", help="In the table: where every single pod goes.")] = False,
) -> None:
    """Plan nodes for the pending pods of the files, or without files of the current kubeconfig's cluster, read-only.

    Exit status: 0 for a plan, also one that leaves pods pending; 2 for bad input; 1 for anything else.
    """
    from joinery.cli.costs import costs as costs_of
    from joinery.cli.output_json import plan_document, write
    from joinery.cli.plan_groups import view
    from joinery.cli.regions import cluster_region
    from joinery.cli.sources import checked_region, load_catalog, moment, prices_of
    from joinery.scheduling.problem import Options

    if time_limit is not None and not 0 < time_limit < math.inf:
        raise ConfigurationError(f"--time-limit {time_limit:g}: must be more than 0 seconds")
    snapshot = _snapshot(files, moment(now))
    options = Options(only_marked_unschedulable=not files, seed=seed, time_limit=time_limit, node_size=node_size.value)
    place = checked_region(region)
    catalogue, prices = prices_of(load_catalog(catalog_file, place or cluster_region(snapshot)), snapshot, place)
    for warning in (*prices.warnings(), *_not_counted(snapshot, catalogue)):
        warn(warning)
    problem, packing, seconds = _solve(snapshot, catalogue, options)
    for reason in packing.pool_reasons:
        warn(reason)
    costs = costs_of(problem, packing, catalogue.sold)
    if output is PlanFormat.JSON:
        write(plan_document(packing, costs, prices, now=snapshot.now, seconds=seconds))
    else:
        _show(view(problem, packing, costs, prices, seconds=seconds), output, with_pods=with_pods)


def _snapshot(files: Sequence[str] | None, now: "datetime") -> "Snapshot":
    from joinery.cli.inputs import load
    from joinery.cli.sources import live_snapshot

    inputs = load(files or ())
    snapshot = inputs.snapshot(now) if files else live_snapshot(now)
    for warning in (*inputs.all_warnings(), *_not_used(snapshot)):
        warn(warning)
    return snapshot


def _not_used(snapshot: "Snapshot") -> Iterator[str]:
    """What takes no part; NodePools and what they need are in the packing, with their reasons."""
    from joinery.state.pods import FARGATE_SCHEDULER, waits_for_fargate

    for bad in snapshot.invalid:
        if bad.kind != "NodePool":
            yield f"{bad.kind} {bad.name} takes no part: {bad.reason}"
    yield from _in_vain(snapshot)
    yield from _gated(snapshot)
    waiting = sum(waits_for_fargate(pod) for pod in snapshot.pods)
    if waiting:
        pods = "1 pod waits" if waiting == 1 else f"{waiting} pods wait"
        yield f"{pods} for Fargate (schedulerName {FARGATE_SCHEDULER}): no EC2 node is planned"


def _gated(snapshot: "Snapshot") -> Iterator[str]:
    """Pods that nobody schedules yet (Kubernetes, "Pod Scheduling Readiness"), with who holds them."""
    from joinery.state.pods import is_active

    gated = [one for one in snapshot.pods if one.spec.scheduling_gates and not one.spec.node_name and is_active(one)]
    if gated:
        names = ", ".join(pod.key for pod in gated[:_SHOWN_NAMES]) + (", ..." if len(gated) > _SHOWN_NAMES else "")
        gates = sorted({gate.name for pod in gated for gate in pod.spec.scheduling_gates})
        pods = "1 pod is" if len(gated) == 1 else f"{len(gated)} pods are"
        yield f"{pods} gated ({names}; schedulingGates {', '.join(gates)}): not planned"


def _in_vain(snapshot: "Snapshot") -> Iterator[str]:
    """What NodePools ask for and do not get yet, in a line for all."""
    from joinery.apis.support import UNTIL_THEN, disruption_in_vain

    found = [pool.metadata.name for pool in snapshot.node_pools if disruption_in_vain(pool)]
    if found:
        more = f" and {len(found) - _SHOWN_NAMES} more" if len(found) > _SHOWN_NAMES else ""
        ask = "asks" if len(found) == 1 else "ask"
        yield f"not supported yet: spec.disruption, which NodePool {', '.join(found[:_SHOWN_NAMES])}{more} {ask} for: {UNTIL_THEN}"


def _not_counted(snapshot: "Snapshot", catalogue: "Catalog") -> Iterator[str]:
    """Capacity reservations that are asked for and not used, because the catalogue does not say what is left of them."""
    from joinery.cloudprovider.reservations import reservations_of, uncounted

    known = catalogue.capacity_reservations
    for node_class in snapshot.node_classes:
        subject = f"EC2NodeClass {node_class.metadata.name}"
        for name in uncounted(node_class, known, snapshot.now):
            yield f"{subject}: capacity reservation {name} is not used: the catalogue does not say how much is left of it"
        wanted = node_class.spec.capacity_reservation_selector_terms
        if wanted and not reservations_of(node_class, known, snapshot.now):
            yield f"{subject}: capacityReservationSelectorTerms select no capacity reservation of the catalogue"


def _solve(snapshot: "Snapshot", catalogue: "Catalog", options: "Options") -> tuple["Problem", "Packing", float]:
    """The problem, its verified plan, and how long it took from parsed objects. Raises ``RefusedError`` for a wrong one."""
    from joinery.cloudprovider.instancetypes import resolve
    from joinery.scheduling.planning import plan as planned
    from joinery.scheduling.problem import Problem

    started = time.perf_counter()
    types = {one.metadata.name: resolve(catalogue, one, now=snapshot.now) for one in snapshot.node_classes}
    problem = Problem(snapshot=snapshot, instance_types=types, options=options)
    made = planned(problem, stopwatch=lambda: time.perf_counter() - started)
    for warning in made.warnings:
        warn(warning)
    check(made)
    return problem, made.packing, time.perf_counter() - started


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
        from joinery.cli.output_html import print_page

        print_page(plan)
    else:
        from joinery.cli.output_table import print_plan

        print_plan(plan, with_pods=with_pods)
