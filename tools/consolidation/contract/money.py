"""Prices, savings, bounds and the curve: whether the sums are right, and whether each command is worth it."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import chain, pairwise

from tools.consolidation.catalogue import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Catalogue
from tools.consolidation.contract.cluster import Cluster
from tools.consolidation.documents import Document, amount, key_of

#: The document rounds to a millionth of a dollar, and adds many of them up.
_DOLLARS = 1e-4
_HOUR = timedelta(hours=1)
#: From how many instance types the replacement of one spot node by another must choose (Karpenter
#: SpotToSpotConsolidation).
_SPOT_TYPES = 15


def violations(cluster: Cluster, plan: Document, catalogue: Catalogue, payback: timedelta) -> Iterator[str]:
    """Of each command by itself, then of all together."""
    for number, command in enumerate(plan["commands"]):
        what = f"command {number} ({command['reason']})"
        remarks = chain(
            _of_sums(cluster, command, catalogue),
            _of_worth(command, payback),
            _of_launches(cluster, command, catalogue),
        )
        yield from (f"{what}: {remark}" for remark in remarks)
    yield from _of_totals(cluster, plan, catalogue)
    yield from _of_bound(plan, payback / _HOUR)
    yield from _of_order(plan)
    yield from _of_curve(plan)


def _is_near(one: float, other: float) -> bool:
    return abs(one - other) <= _DOLLARS


def _price(cluster: Cluster, claim: str, catalogue: Catalogue) -> float:
    return (catalogue.price_of(cluster.claims[claim]) or 0.0) if claim in cluster.claims else 0.0


def _of_sums(cluster: Cluster, command: Document, catalogue: Catalogue) -> Iterator[str]:
    gone = sum(_price(cluster, claim, catalogue) for claim in command["retire"])
    bought = sum(launch["offering"]["price"] for launch in command["launch"])
    if not _is_near(command["savings"], gone - bought):
        yield f"savings are {command['savings']}, and the prices say {gone:.6f} - {bought:.6f} = {gone - bought:.6f}"


def _of_worth(command: Document, payback: timedelta) -> Iterator[str]:
    """Drift alone may cost something: the node has to be another one. What an empty node costs may not be known."""
    if command["movePrice"] < 0 or (command["movePrice"] > 0 and not command["pods"]):
        yield f"movePrice is {command['movePrice']} for {len(command['pods'])} pods"
    if command["reason"] not in ("Empty", "Underutilized"):
        return
    if command["savings"] < 0 or (command["savings"] == 0 and command["reason"] != "Empty"):
        yield f"saves {command['savings']}"
    repaid = command["savings"] * (payback / _HOUR)
    if repaid < command["movePrice"] - _DOLLARS:
        yield f"saves {repaid:.6f} $ within the payback time, and its moves are priced at {command['movePrice']:.6f} $"


def _offering(document: Document) -> tuple[str, str, str]:
    labels = document["metadata"].get("labels", {})
    return labels.get(INSTANCE_TYPE, ""), labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, "")


def _of_launches(cluster: Cluster, command: Document, catalogue: Catalogue) -> Iterator[str]:
    retired = [claim for claim in command["retire"] if claim in cluster.claims]
    gone = [_offering(cluster.claims[claim]) for claim in retired]
    for launch in command["launch"]:
        offering = launch["offering"]
        bought = offering["instanceType"], offering["zone"], offering["capacityType"]
        price = catalogue.price(*bought)
        if price is None or not _is_near(price, offering["price"]):
            yield f"launch {launch['name']}: {bought} costs {price}, not {offering['price']}"
        alike = (claim for claim, offering in zip(retired, gone, strict=True) if offering == bought)
        if command["reason"] == "Underutilized" and any(_holds_both(cluster, claim, launch) for claim in alike):
            yield f"buys {bought}, which is what it retires: keeping that node would spare its evictions"
    is_one_for_one = len(gone) == len(command["launch"]) == 1
    if is_one_for_one and gone[0][2] == "spot" == command["launch"][0]["offering"]["capacityType"]:
        choice = len(command["launch"][0]["instanceTypes"])
        if choice < _SPOT_TYPES and command["reason"] == "Underutilized":
            yield f"replaces a spot node by one of {choice} instance types, and {_SPOT_TYPES} are the least"


def _holds_both(cluster: Cluster, claim: str, launch: Document) -> bool:
    """Whether the claim's node would hold its own pods beside those for which one like it is bought."""
    node = cluster.node_of(claim) or {}
    staying = [pod for pod in cluster.movable([claim]) if key_of(pod) not in launch["pods"]]
    room = {name: amount(text) for name, text in node.get("status", {}).get("allocatable", {}).items()}
    taken = Counter({name: amount(text) for name, text in launch["requests"].items()})
    taken["pods"] += len(staying)
    for container in chain.from_iterable(pod["spec"]["containers"] for pod in staying):
        requests = container.get("resources", {}).get("requests", {})
        taken.update({name: amount(text) for name, text in requests.items()})
    return all(taken[name] <= most for name, most in room.items())


def _of_totals(cluster: Cluster, plan: Document, catalogue: Catalogue) -> Iterator[str]:
    cost, moves = plan["cost"], plan["moves"]
    before = sum(_price(cluster, claim, catalogue) for claim in cluster.claims)
    if not _is_near(cost["before"], before):
        yield f"cost.before is {cost['before']}, and the claims cost {before:.6f}"
    after = cost["before"] - sum(command["savings"] for command in plan["commands"])
    if not _is_near(cost["after"], after):
        yield f"cost.after is {cost['after']}, and before less the savings is {after:.6f}"
    price = sum(command["movePrice"] for command in plan["commands"])
    if not _is_near(moves["price"], price):
        yield f"moves.price is {moves['price']}, and the commands' sum is {price:.6f}"


def _of_bound(plan: Document, payback_hours: float) -> Iterator[str]:
    """The bound is of cost and moves together, with moves spread over the payback time."""
    bound, gap = plan["cost"]["lowerBound"], plan["cost"]["gap"]
    reached = plan["cost"]["after"] + plan["moves"]["price"] / payback_hours
    if bound > reached + _DOLLARS:
        yield f"cost.lowerBound is {bound}, and the decision reaches {reached:.6f} with its moves"
    if bound > 0 and abs(gap - (reached - bound) / bound) > 1e-3:
        yield f"cost.gap is {gap}, and {reached:.6f} over the bound {bound} is {(reached - bound) / bound:.4f}"


def _of_order(plan: Document) -> Iterator[str]:
    """The most saving for a dollar of moves first, so that a budget may stop anywhere; drift has its own order."""
    ranked = [
        (number, command["savings"] / command["movePrice"] if command["movePrice"] else float("inf"))
        for number, command in enumerate(plan["commands"])
        if command["reason"] in ("Empty", "Underutilized")
    ]
    for (earlier, worth), (later, more) in pairwise(ranked):
        if more > worth * (1 + _DOLLARS) + _DOLLARS:
            yield f"command {earlier} saves {worth:.3f} $/h a dollar of moves, and command {later} after it {more:.3f}"


def _of_curve(plan: Document) -> Iterator[str]:
    curve = plan["curve"]
    chosen = (plan["moves"]["pods"], plan["cost"]["after"])
    if not any(point["pods"] == chosen[0] and _is_near(point["hourly"], chosen[1]) for point in curve):
        yield f"the curve does not contain the chosen point, {chosen[1]} $/h for {chosen[0]} evictions"
    for one, other in pairwise(curve):
        if other["pods"] <= one["pods"]:
            yield f"the curve goes from {one['pods']} evictions to {other['pods']}"
        elif other["hourly"] > one["hourly"] + _DOLLARS:
            yield f"the curve rises to {other['hourly']} $/h at {other['pods']} evictions"
