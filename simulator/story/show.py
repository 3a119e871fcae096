"""A simulation run for a person or for a program, from the first line to the last."""

import json
from contextlib import nullcontext
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from joinery_cli.notices import working
from simulator.story import render
from simulator.story.bill import Item, bill
from simulator.story.leaks import causes, leaks
from simulator.story.scenario import Scenario
from simulator.story.simulation import Simulation
from simulator.story.timeline import Entry, Narrator

STEP = timedelta(seconds=30)


def run(simulation: Simulation) -> list[Entry]:
    """The whole scenario, without a word. Returns its timeline."""
    narrator = Narrator(simulation)
    with simulation.running():
        simulation.engine.run_until(simulation.end)
    return narrator.entries


def as_text(scenario: Scenario, seed: int | None, records: Path | None = None) -> tuple[str, ...]:
    """Print the timeline as it happens, then the bill and what leaked. Returns what leaked.

    ``records``: a folder that gets the records of decisions.
    """
    out, simulation = render.console(), _set_up(scenario, seed)
    render.title(out, scenario.spec.title, simulation.seed, simulation.start)
    Narrator(simulation).when_said.append(lambda entry: render.line(out, entry))
    with simulation.running(), _progress(out) as progress:
        _run_showing(simulation, progress)
    render.invoice(out, bill(simulation.world.cloud, simulation.instances, simulation.start))
    leaked = leaks(simulation)
    render.leaked(out, leaked, causes(simulation))
    keep_records(simulation, records)
    return leaked


def as_json(scenario: Scenario, seed: int | None, records: Path | None = None) -> tuple[str, ...]:
    """Print the same as one document. Returns what leaked."""
    simulation = _set_up(scenario, seed)
    narrator = Narrator(simulation)
    with simulation.running(), _progress(Console()) as progress:
        _run_showing(simulation, progress)
    entries = narrator.entries
    items, leaked = bill(simulation.world.cloud, simulation.instances, simulation.start), leaks(simulation)
    document = {
        "scenario": scenario.name,
        "seed": simulation.seed,
        "timeline": [_entry(entry) for entry in entries],
        "bill": [_item(item) for item in items],
        "total": round(sum(item.cost for item in items), 6),
        "leaks": list(leaked),
        "causes": list(causes(simulation)) if leaked else [],
    }
    print(json.dumps(document, indent=2))
    keep_records(simulation, records)
    return leaked


def _set_up(scenario: Scenario, seed: int | None) -> Simulation:
    """Its running nodes have an age, which passes first."""
    with working("setting the scene"):
        return Simulation(scenario, seed=seed)


def keep_records(simulation: Simulation, folder: Path | None) -> None:
    """Write the records of all decisions as the stack's bucket has them, in place of what the folder had of them."""
    if folder is None:
        return
    for old in folder.glob("decisions/**/*.json.gz"):
        old.unlink()
    for key, document in simulation.world.store.documents.items():
        file = folder / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(document)


def _entry(entry: Entry) -> dict[str, Any]:
    return asdict(entry) | {"at": entry.at.isoformat(), "hourly": round(entry.hourly, 6)}


def _item(item: Item) -> dict[str, Any]:
    return asdict(item) | {"hours": round(item.hours, 6), "cost": round(item.cost, 6)}


def _progress(out: Console) -> Any:
    """A bar on standard error, on a terminal only; below the timeline where that is on the terminal too."""
    errors = Console(stderr=True)
    if not errors.is_terminal:
        return nullcontext()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=40))
    # Rich moves what is printed meanwhile above the bar; what goes into a file or a pipe must go on to go there.
    return Progress(
        *columns,
        console=out if out.is_terminal else errors,
        transient=True,
        redirect_stdout=out.is_terminal,
        redirect_stderr=out.is_terminal,
    )


def _run_showing(simulation: Simulation, progress: Progress | None) -> None:
    if progress is None:
        simulation.engine.run_until(simulation.end)
        return
    total = (simulation.end - simulation.start).total_seconds()
    task = progress.add_task("", total=total)
    while simulation.world.clock.now() < simulation.end:
        simulation.engine.run_until(min(simulation.world.clock.now() + STEP, simulation.end))
        now = simulation.world.clock.now()
        progress.update(task, completed=(now - simulation.start).total_seconds(), description=f"{now:%H:%M:%S}")
