"""``joinery simulate --top``: a scenario as ``joinery top`` shows a cluster. It looks on and changes nothing."""

from collections.abc import Iterator
from datetime import timedelta

from joinery.controllers.launching.headroom import with_headroom
from joinery.controllers.launching.supply import read_supply
from joinery.decisions.disruption.headroom import with_chunks_bound
from joinery.decisions.disruption.moves import replicas_of
from joinery.decisions.disruption.problem import DisruptionOptions, DisruptionProblem
from joinery.decisions.scheduling.problem import Options, Problem
from joinery_cli.live.feeds import decided
from joinery_cli.options import ListFormat
from joinery_cli.prices import Prices
from joinery_cli.top import show as show_feed
from joinery_cli.view.top_view import TopView
from simulator.story.scenario import Scenario
from simulator.story.simulation import Simulation

#: How far the story goes from one view to the next.
STEP = timedelta(seconds=15)


def show(scenario: Scenario, seed: int | None, *, is_json: bool) -> None:
    """On the screen, a second for each step; or as lines of JSON, without waiting."""
    show_feed(feed(scenario, seed), ListFormat.JSON if is_json else ListFormat.TABLE, every=0.0 if is_json else 1.0)


def feed(scenario: Scenario, seed: int | None = None, step: timedelta = STEP) -> Iterator[TopView]:
    """A view of the simulated cluster for each step of the story, until it ends."""
    simulation = Simulation(scenario, seed=seed)
    with simulation.running():
        while simulation.world.clock.now() < simulation.end:
            simulation.engine.run_until(min(simulation.world.clock.now() + step, simulation.end))
            yield view_of(simulation)


def view_of(simulation: Simulation) -> TopView:
    """The cluster as it is now, with what its own doors would decide about it."""
    world = simulation.world
    snapshot, _ = with_headroom(world.gateways.cluster, world.cluster.snapshot())
    catalog = world.cloud.catalog()
    planned = Problem(snapshot=snapshot, instance_types=read_supply(world.gateways, snapshot).types, options=Options())
    problem = DisruptionProblem(
        packing=planned,
        options=DisruptionOptions(curve=False),
        replicas=replicas_of(snapshot.pods),
        sold=catalog.sold,
    )
    prices = Prices(region=catalog.region, source="the simulated market", priced=catalog.priced)
    return decided(with_chunks_bound(problem), prices, source=simulation.scenario.spec.title, planned=planned)
