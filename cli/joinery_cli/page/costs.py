"""Who causes the cost of a plan, as tables at the end of the page: NodePools,
capacity types, namespaces, and what is there.
"""

from collections.abc import Mapping

from joinery_cli.page.text import NOTHING, Html, element, join, text
from joinery_cli.view.figures import count, money, part
from joinery_cli.view.plan_view import PlanView

#: The rest of a long list of namespaces is one line.
_LISTED = 30


def section(plan: PlanView) -> Html:
    """A table for each way to divide the cost; nothing where nothing is bought."""
    if not plan.packing.launches:
        return NOTHING
    costs = plan.costs
    tables = (
        _table("NodePool", costs.by_node_pool),
        _table("capacity type", costs.by_capacity_type),
        _table("namespace of the pods", costs.by_namespace),
    )
    heading = element("summary", element("h2", text("Cost")), element("small", text("new nodes, by who causes it")))
    inside = element("div", *tables, _beside(plan), class_="costs")
    return element("section", element("details", heading, inside, class_="part", open_="open"), id="costs")


def _table(what: str, hourly: Mapping[str, float]) -> Html:
    whole = sum(hourly.values())
    ranked = list(hourly.items())
    lines = ranked[:_LISTED]
    if len(ranked) > _LISTED:
        rest = ranked[_LISTED:]
        lines.append((f"and {count(len(rest), 'more')}", sum(price for _, price in rest)))
    headings = (element("th", text(name)) for name in (what, "$/h", ""))
    rows = (
        element("tr", *(element("td", text(cell)) for cell in (name, money(price), part(price, whole))))
        for name, price in lines
    )
    return element("table", element("tr", *headings), *rows)


def _beside(plan: PlanView) -> Html:
    """What the same nodes would cost on demand, and what the nodes there are cost."""
    said = [f"On demand the same nodes would cost {money(plan.costs.on_demand)}/h."]
    if running := plan.costs.running.sentence():
        said.append(f"{running}.")
    return join(element("p", text(sentence)) for sentence in said)
