"""What a decision about nodes comes to, in sentences that are true and no more than that.

One place, so that table, page and explanations agree.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from joinery.objects.karpenter.duration import spoken
from joinery.objects.objections import ObjectionCode
from joinery_cli.view.disruption_view import CommandView, DisruptionView, DrawnNode
from joinery_cli.view.figures import MOST_GAP, NEGLIGIBLE, ONE_PRICE, count, money, monthly

#: Which rule holds a node, as a heading.
RULES: Mapping[ObjectionCode, str] = {
    ObjectionCode.NOT_INITIALIZED: "not fit for pods yet",
    ObjectionCode.LEAVING: "leaving already",
    ObjectionCode.IN_COMMAND: "in a disruption command already",
    ObjectionCode.NOMINATED: "pods are nominated to it",
    ObjectionCode.DO_NOT_DISRUPT: "annotated do-not-disrupt",
    ObjectionCode.UNPRICED: "nobody knows its price",
    ObjectionCode.NOT_REPAID: "new, and has not paid for itself",
    ObjectionCode.NO_NODE_POOL: "no NodePool that could replace it",
    ObjectionCode.POLICY: "its NodePool's consolidationPolicy",
    ObjectionCode.CONSOLIDATE_AFTER: "its NodePool's consolidateAfter",
    ObjectionCode.BUDGET: "its NodePool's budgets",
    ObjectionCode.CANARY: "a new image is tried first",
    ObjectionCode.STOPPED: "disruption is stopped",
    ObjectionCode.PAUSED: "its NodePool is paused",
    ObjectionCode.LAUNCHES_FAIL: "what its NodePool launched last did not become ready",
    ObjectionCode.POD: "pods that must not be disrupted",
    ObjectionCode.POD_DISRUPTION_BUDGET: "budgets of its pods",
    ObjectionCode.PREFERENCE: "what its pods prefer",
    ObjectionCode.NOT_WORTH_IT: "moving its pods costs more than it saves",
    ObjectionCode.NO_PLACE: "its pods have no other place",
    ObjectionCode.TIME_LIMIT: "time was up",
}


def rule(code: ObjectionCode) -> str:
    """The rule in words; one that is newer than these by its code."""
    return RULES.get(code, code.value)


def unheld(node: DrawnNode, *, is_static: bool) -> str:
    """Why a node stays that no rule keeps and no command retires. ``is_static``: its NodePool is."""
    if not node.claim:
        return "It has no NodeClaim of an EC2NodeClass, so it is not Joinery's to disrupt."
    if is_static:
        return f"NodePool {node.node_pool} is static: it keeps a number of nodes, and is not consolidated."
    return "No rule holds it. No command that retires it saves enough to repay its moves."


def headline(view: DisruptionView) -> str:
    """``12 nodes go, 3 are bought: 94 nodes become 85``; what is said where nothing is to do."""
    if not view.commands:
        if any(group.code is ObjectionCode.PAUSED for group in view.staying):
            return "Nothing to do by commands: a NodePool is paused, and its nodes go without"
        return (
            "Nothing to do: every node stays"
            if _priced(view)
            else "Nothing to do: there is no node with a NodeClaim of an EC2NodeClass"
        )
    going, coming = len(view.retired), len(view.bought)
    bought = f", {coming:,} {'is' if coming == 1 else 'are'} bought" if coming else ""
    goes = f"{count(going, 'node')} {'goes' if going == 1 else 'go'}"
    return f"{goes}{bought}: {count(len(view.before), 'node')} become{_s(len(view.before))} {len(view.after):,}"


def _priced(view: DisruptionView) -> bool:
    """Whether anything is decided about any node, and its price counted."""
    return any(node.claim for node in view.before)


def _s(number: int) -> str:
    return "s" if number == 1 else ""


def totals(view: DisruptionView) -> Iterator[str]:
    """What is said of the whole below the headline."""
    yield bill(view)
    if view.headroom:
        yield view.headroom.sentence(f"{money(view.disruptions.before)}/h")
    yield from uncounted(view)
    yield from leaving(view)
    if view.commands:
        yield evictions(view)
    yield from nearness(view)
    yield from refusals(view)


def bill(view: DisruptionView) -> str:
    """What all nodes cost before and after."""
    before, after = view.disruptions.before, view.disruptions.after
    if not _priced(view):
        return "$0/h: no node is counted"
    if not view.commands:
        return f"{money(before)}/h, {monthly(before)}"
    return f"{money(before)}/h becomes {money(after)}/h: {saved(view.savings, before)}"


def uncounted(view: DisruptionView) -> Iterator[str]:
    """Nodes that are counted as nodes and not in the bill: a node group's, or an export's without NodeClaims."""
    others = sum(not node.claim for node in view.before)
    if others and _priced(view):
        stay = "stays, and is" if others == 1 else "stay, and are"
        yield f"{count(others, 'node')} without a NodeClaim of an EC2NodeClass {stay} not in it"


def leaving(view: DisruptionView) -> Iterator[str]:
    """Nodes that are in the bill before and after, and are soon in neither."""
    nodes = [name for group in view.staying if group.code is ObjectionCode.LEAVING for name in group.nodes]
    if nodes:
        leave = "is leaving already, and is" if len(nodes) == 1 else "are leaving already, and are"
        yield f"{count(len(nodes), 'node')} {leave} still counted"


def saved(savings: float, before: float = 0.0) -> str:
    """``saves $1.2000/h, about $876 a month (12.0%)``; or that it is dearer."""
    part = f" ({abs(savings) / before:.1%})" if before > 0 else ""
    if savings < -ONE_PRICE:
        return f"costs {money(-savings)}/h more, {monthly(-savings)}{part}"
    return f"saves {money(savings)}/h, {monthly(savings)}{part}"


def evictions(view: DisruptionView) -> str:
    """How many pods are evicted, what that counts as, and when it is repaid."""
    if not view.evicted:
        return "No pod is evicted"
    return f"{count(view.evicted, 'eviction')}{counted(view.evicted, view.move_price, view.repaid_in)}"


def counted(pods: int, move_price: float, repaid: timedelta | None) -> str:
    """What so many evictions count as: `` count as $0.0300, which pays for itself in 4 min``."""
    counts = "counts" if pods == 1 else "count"
    if move_price <= 0:
        return f" {counts} as nothing"
    payback = "never pays for itself" if repaid is None else f"pays for itself in {spoken(repaid)}"
    return f" {counts} as {money(move_price)}, which {payback}"


def result(view: CommandView) -> str:
    """What one command changes in the bill."""
    savings = view.command.savings
    return f"costs {money(-savings)}/h more" if savings < -ONE_PRICE else f"saves {money(savings)}/h"


def moves(view: CommandView) -> str:
    """What a command's evictions count as, and where its pods go; empty where none moves."""
    moved = sum(len(route.pods) for route in view.routes)
    if not moved:
        return ""
    pods = len(view.command.pods)
    evicted = f"{count(pods, 'eviction')}{counted(pods, view.command.move_price, view.repaid_in)}"
    kinds = ((False, "that stays", "that stay"), (True, "that is bought", "that are bought"))
    places = []
    for is_new, one, many in kinds:
        routes = [route for route in view.routes if route.is_target_new is is_new]
        targets = len({route.target for route in routes})
        if targets:
            number = count(sum(len(route.pods) for route in routes), "pod")
            places.append(f"{number} to {count(targets, 'node')} {one if targets == 1 else many}")
    return f"{evicted}: {', '.join(places)}"


def nearness(view: DisruptionView) -> Iterator[str]:
    """What is proven: how far price and moves may be above the best possible."""
    decision = view.disruptions
    if decision.lower_bound <= 0:
        return
    reached = f"{money(decision.after + decision.moves)}/h with the evictions spread over {spoken(view.payback)}; "
    # A budget keeps nodes for a while, which the bound does not know: command after command gets there.
    is_for_now = any(one.objection.code is ObjectionCode.BUDGET for one in decision.staying)
    best = "budgets allow in the end" if is_for_now else "can be reached"
    bound = f"roven lower bound {money(decision.lower_bound)}/h{_within(decision.gap, best)}"
    yield f"{reached}p{bound}" if decision.moves else f"P{bound}"
    if decision.cost_of_budgets > ONE_PRICE:
        later = f"Budgets leave {money(decision.cost_of_budgets)}/h of the difference to later decisions"
        yield f"{later}{_within(decision.gap_within_budgets, 'they allow now', cheaper='is allowed now')}"


def refusals(view: DisruptionView) -> Iterator[str]:
    """Commands that the check of all rules found wrong, which is a mistake of Joinery's own."""
    for mistake in view.disruptions.mistakes:
        names, why = ", ".join(mistake.command.retire), mistake.objection
        yield f"Refused: to retire {names} breaks a rule by Joinery's own check: {why}; please report this"


def _within(gap: float, best: str, *, cheaper: str = "can be reached") -> str:
    if gap >= MOST_GAP:
        return ""
    if gap < ONE_PRICE:
        return f": nothing cheaper {cheaper}"
    if gap < NEGLIGIBLE:
        return f": less than 0.1% above the best that {best}"
    return f": at most {gap:.1%} above the best that {best}"
