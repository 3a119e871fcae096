"""Tables for a terminal, and what is wrong in a line each."""

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from rich.table import Table

from tools.consolidation.figures import Measured, Target
from tools.consolidation.running import Run

_NONE = "-"


def _ratio(number: float | None) -> str:
    return _NONE if number is None else f"{number:.3f}"


def _percent(number: float | None) -> str:
    return _NONE if number is None else f"{number:.1%}"


def _verdict(one: Measured) -> str:
    if one.verdict is None:
        return _NONE
    word = "[green]ok[/green]" if one.verdict.ok else "[red]wrong[/red]"
    return f"{word} {len(one.verdict.errors)}/{len(one.verdict.warnings)} in {one.verdict.states}"


def _again(one: Measured) -> str:
    if not one.rounds:
        return _NONE
    if one.rounds[-1].plan is None:
        return "[red]fails[/red]"
    saved = sum(command["savings"] for command in one.found_again)
    return f"[red]{len(one.found_again)}: {saved:.3f} $/h[/red]" if one.found_again else "nothing"


def _price(run: Run, key: str) -> str:
    return f"{run.plan['cost'][key]:.3f}" if run.plan else _NONE


_COLUMNS: Sequence[tuple[str, Callable[[Measured], str]]] = (
    ("before", lambda one: _price(one.run, "before")),
    ("after", lambda one: f"{one.after:.3f}"),
    ("evicted", lambda one: str(one.evictions)),
    ("objective", lambda one: f"{one.objective:.3f}"),
    ("reference", lambda one: _ratio(one.reference_objective)),
    ("ratio", lambda one: _ratio(one.ratio)),
    ("bound", lambda one: _price(one.run, "lowerBound")),
    ("gap", lambda one: _percent(one.gap)),
    ("curve", lambda one: _percent(one.share_of_evictions)),
    ("rounds", lambda one: str(len(one.decisions))),
    ("commands", lambda one: str(len(one.run.plan["commands"])) if one.run.plan else _NONE),
    ("wall s", lambda one: f"{one.run.wall.total_seconds():.1f}"),
    ("cpu s", lambda one: f"{one.run.processor.total_seconds():.1f}"),
    ("MiB", lambda one: f"{one.run.memory:.0f}"),
    ("contract", lambda one: f"[red]{len(one.violations)}[/red]" if one.violations else "[green]ok[/green]"),
    ("judge", _verdict),
    ("again", _again),
    ("free", lambda one: _NONE if one.free is None else _price(one.free, "after")),
    ("/repack", lambda one: _ratio(one.against_repacking)),
)


def files_table(results: Sequence[Measured]) -> Table:
    """A row for each file, then the median and the worst of what can be summed up."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("file")
    for heading, _ in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    for one in results:
        cells = [value(one) for _, value in _COLUMNS] if one.run.plan else ["[red]no plan[/red]"]
        table.add_row(one.name, *cells)
    for name, over_all in (("median", statistics.median), ("worst", max)):
        table.add_row(f"[dim]{name}[/dim]", *_summary(results, over_all))
    return table


def _summary(results: Sequence[Measured], over_all: Callable[[list[float]], float]) -> Iterator[str]:
    values: dict[str, tuple[Callable[[Measured], float | None], Callable[[float], str]]] = {
        "ratio": (lambda one: one.ratio, _ratio),
        "gap": (lambda one: one.gap, _percent),
        "curve": (lambda one: one.share_of_evictions, _percent),
        "wall s": (lambda one: one.run.wall.total_seconds(), "{:.1f}".format),
        "cpu s": (lambda one: one.run.processor.total_seconds(), "{:.1f}".format),
        "MiB": (lambda one: one.run.memory, "{:.0f}".format),
        "/repack": (lambda one: one.against_repacking, _ratio),
    }
    for heading, _ in _COLUMNS:
        if heading not in values:
            yield ""
            continue
        value, show = values[heading]
        numbers = [number for number in map(value, results) if number is not None]
        yield show(over_all(numbers)) if numbers else _NONE


def targets_table(targets: Sequence[Target]) -> Table:
    """What is promised, and whether it holds."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("figure", "target", "measured", ""):
        table.add_column(heading)
    words = {True: "[green]holds[/green]", False: "[red]missed[/red]", None: ""}
    for target in targets:
        table.add_row(target.figure, target.target, target.measured, words[target.holds])
    return table


_SHOWN = 20


def remarks(one: Measured) -> Iterator[str]:
    """What is wrong with a file's decision, and what the judge warns of: a line each, with an example for each kind."""
    if one.run.problem:
        yield one.run.problem
    yield from one.contradictions
    yield from (f"contract: {violation}" for violation in one.violations[:_SHOWN])
    if len(one.violations) > _SHOWN:
        yield f"contract: {len(one.violations) - _SHOWN} more"
    if one.verdict is not None:
        for severity, found in (("errors", one.verdict.errors), ("warnings", one.verdict.warnings)):
            for check, number in Counter(remark["check"] for remark in found).most_common():
                example = next(remark for remark in found if remark["check"] == check)
                where = " ".join(example[key] for key in ("pod", "node") if key in example)
                after = f"after {example['commands']} commands"
                yield f"{number} {severity} {after}: {check}: {where}: {example['reason']}"
        before, now = one.verdict.preferences
        if now < before:
            yield f"preferences of the moved pods honoured: {before} before, {now} after"
    yield from _second_decision(one)


def _second_decision(one: Measured) -> Iterator[str]:
    if one.rounds and one.rounds[-1].plan is None:
        yield f"again: {one.rounds[-1].problem}"
    for command in one.found_again[:_SHOWN]:
        bought = ", ".join(launch["offering"]["instanceType"] for launch in command["launch"])
        deed = f"retires {', '.join(command['retire'])}, buys {bought or 'nothing'}, moves {len(command['pods'])} pods"
        worth = f"saves {command['savings']:.4f} $/h for {command['movePrice']:.4f} $"
        yield f"again: {command['reason']}: {deed}, {worth}"
