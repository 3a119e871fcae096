"""``joinery simulate`` and ``joinery replay``: the simulator's commands, offered to the command line by entry point.

The functions are the commands; what they need is imported when they run, so that ``joinery plan`` starts without it.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Optional

import typer

_OURS = ", ".join(sorted(file.stem for file in (Path(__file__).parents[1] / "scenarios").glob("*.yaml")))
WHICH = f"A scenario file, or one of ours by its name: {_OURS}. Default: story."


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"


def simulate(
    scenario: Annotated[Optional[Path], typer.Argument(help=WHICH)] = None,  # noqa: UP045
    seed: Annotated[Optional[int], typer.Option(help="Chance; the scenario's own without it.")] = None,  # noqa: UP045
    output: Annotated[Output, typer.Option("--output", "-o", help="What to print.")] = Output.TEXT,
    top: Annotated[
        bool, typer.Option("--top", help="Look at its cluster as joinery top does, instead of the timeline.")
    ] = False,
    records: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Keep the records of its decisions in this folder, for joinery history and plan -f."),
    ] = None,
) -> None:
    """Run a scenario through the real handlers: a timeline, the bill, and what leaked.

    Exit status 1 if anything did.
    """
    from simulator.story.scenario import find, load

    if top:
        from simulator.story.top import show

        show(load(find(scenario)), seed, is_json=output is Output.JSON)
        return
    from simulator.story.show import as_json, as_text

    loaded = load(find(scenario))
    leaked = (as_json if output is Output.JSON else as_text)(loaded, seed, records)
    raise typer.Exit(1 if leaked else 0)


def replay(
    event: Annotated[
        Path,
        typer.Argument(
            help="An event of EventBridge, or what Lambda is given: a file of events/; - is standard input."
        ),
    ],
    seed: Annotated[int, typer.Option(help="Chance.")] = 7,
) -> None:
    """Put one event through its real handler, against the simulated cluster: what was decided, said and changed."""
    from simulator.story.replay_text import replay_as_text

    raise typer.Exit(1 if replay_as_text(event, seed) else 0)
