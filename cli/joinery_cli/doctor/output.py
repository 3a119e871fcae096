"""What the doctor says: as a table for a person, as JSON for a program."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from joinery import __version__
from joinery_cli.doctor.cost import BillItem, total
from joinery_cli.doctor.findings import CheckStatus, Finding
from joinery_cli.doctor.site import Site
from joinery_cli.output.console import headed_table, print_wrapped, printing, styled

_COLOURS = {CheckStatus.OK: "green", CheckStatus.NOTE: "dim", CheckStatus.WARN: "yellow", CheckStatus.FAIL: "bold red"}
_TOPIC = 13


def document(
    site: Site, findings: Sequence[Finding], items: Sequence[BillItem] = (), *, nodes: int = 0
) -> Mapping[str, Any]:
    """The findings, the worst status of all, and the bill if there is one, with how many nodes it is for."""
    bill = [{"what": item.what, "amount": item.amount, "dollars": round(item.dollars, 4)} for item in items]
    return {
        "apiVersion": "joinery.dev/v1",
        "kind": "Diagnosis",
        "version": __version__,
        "cluster": site.cluster,
        "region": site.region,
        "stack": site.stack,
        "status": worst(findings).value,
        "findings": [
            {"topic": one.topic, "status": one.status.value, "text": one.text, "remedy": one.remedy} for one in findings
        ],
        **({"monthly": {"dollars": round(total(tuple(items)), 2), "nodes": nodes, "items": bill}} if bill else {}),
    }


def worst(findings: Iterable[Finding]) -> CheckStatus:
    """The worst status of all."""
    order = list(CheckStatus)
    return max((finding.status for finding in findings), key=order.index, default=CheckStatus.OK)


def print_findings(site: Site, findings: Sequence[Finding]) -> None:
    """A line each, its remedy below it, and how many of each kind there are."""
    with printing() as console:
        console.print(styled((f"Cluster {site.cluster}, {site.region}, stack {site.stack}", "bold")))
        for one in findings:
            colour = _COLOURS[one.status]
            console.print(styled((f"{one.status.value:<5}", colour), f" {one.topic:<{_TOPIC}} {one.text}"))
            if one.remedy:
                print_wrapped(console, one.remedy, first=" " * (_TOPIC + 7) + "→ ", further=" " * (_TOPIC + 9))
        counts = {status: sum(one.status is status for one in findings) for status in CheckStatus}
        console.print(
            "", ", ".join(f"{number} {status.value}" for status, number in counts.items() if number), sep="\n"
        )


def print_bill(items: Sequence[BillItem], *, nodes: int = 0) -> None:
    """The bill, the dearest first, with how many nodes it is for."""
    table = headed_table(f"What it costs a month, by the last week, for {nodes:,} nodes (docs/cost.md)")
    table.add_column("what")
    table.add_column("how much", justify="right")
    table.add_column("$", justify="right")
    for item in sorted(items, key=lambda item: -item.dollars):
        table.add_row(item.what, item.amount, f"{item.dollars:.2f}")
    table.add_row("together", "", f"{total(tuple(items)):.2f}", style="bold")
    with printing() as console:
        console.print("", table, sep="\n")
