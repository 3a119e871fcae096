"""``joinery disrupt --explain NODE``: which nodes are meant, and the explanations as lines of text that table and page
share.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

from joinery.decisions.disruption.moves import MoveCause
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.duration import spoken
from joinery_cli.explained import aligned, wrapped
from joinery_cli.notices import some_of
from joinery_cli.output.json import moment_text
from joinery_cli.view.disruption_view import Fate, NodeExplanation, PricedPods, repaid_in
from joinery_cli.view.disruption_words import moves, result, rule, unheld
from joinery_cli.view.figures import count, money, natural, share

_SHOWN_GROUPS = 12
_HOUR = timedelta(hours=1)

# --- which nodes ---


def nodes_meant(asked: Iterable[str], problem: DisruptionProblem) -> tuple[str, ...]:
    """The nodes of these names, of Nodes or of NodeClaims, as ``explain`` takes them.

    Raises ``ConfigurationError`` for a name that is neither.
    """
    node_views = problem.packing.snapshot.views
    by_name = {view.claim: view.name for view in node_views if view.claim} | {
        view.name: view.name for view in node_views
    }
    names = list(asked)
    for name in names:
        if name not in by_name:
            raise ConfigurationError(f"--explain {name}: there is no such node{_suggested(name, list(by_name))}")
    return tuple(dict.fromkeys(by_name[name] for name in names))


def _suggested(name: str, names: list[str]) -> str:
    """What may have been meant: nodes whose name begins like it, or is spelt like it."""
    if not names:
        return "; the cluster has no nodes"
    near = [one for one in names if one.startswith(name)] or get_close_matches(name, names, n=3)
    return f"; near it {'is' if len(near) == 1 else 'are'} {some_of(sorted(near, key=natural))}" if near else ""


# --- as text ---


def lines(explanation: NodeExplanation) -> Iterator[str]:
    """The explanation in lines of 80 columns; a longer one only where a name is longer. The first is its heading."""
    yield _heading(explanation)
    for sentence in (_what(explanation), *_why(explanation)):
        yield from wrapped(sentence, "  ")
    yield from _pods(explanation)


def _heading(explanation: NodeExplanation) -> str:
    name, command = explanation.node.name, explanation.command
    if command is not None:
        return f"{name} goes, with command {command.number} ({command.command.reason.value})"
    if explanation.is_leaving:
        return f"{name} is leaving already"
    received = sum(len(route.pods) for _, route in explanation.receives)
    return f"{name} stays, and takes {count(received, 'pod')}" if received else f"{name} stays"


def _what(explanation: NodeExplanation) -> str:
    node = explanation.node
    price = "nobody knows its price" if node.price is None else f"{money(node.price)}/h"
    kind = ", ".join(filter(None, (node.instance_type, node.capacity_type))) or "no known instance type"
    where = f" in {node.zone}" if node.zone else ""
    pool = f"NodePool {node.node_pool}, " if node.node_pool else ""
    claim = f"NodeClaim {node.claim}, " if node.claim and node.claim != node.name else ""
    return f"{kind}{where}, {pool}{claim}{price}, {share(node.use, 1.0)} used"


def _why(explanation: NodeExplanation) -> Iterator[str]:
    command = explanation.command
    if command is not None:
        yield f"{command.command.message}; the command {result(command)}"
        if said := moves(command):
            yield said
        return
    if explanation.drifted:
        yield f"has drifted ({explanation.drifted})"
    if explanation.is_expired:
        yield "has expired: it goes for its age, whatever is decided here, and so do pods that move to it"
    taken: dict[tuple[int, str], list[str]] = defaultdict(list)
    for number, route in explanation.receives:
        taken[number, route.source or "those that wait"] += route.pods
    for (number, source), pods in taken.items():
        yield f"takes from {source} with command {number}: {some_of(pods)}"
    if explanation.is_leaving:
        yield "It goes, whatever is decided here."
        return
    for one in explanation.kept_by:
        kept = f"not disrupted as {one.disruption.value}" if one.disruption else "stays"
        yield f"{kept} ({rule(one.objection.code)}): {one.objection}"
    if not explanation.kept_by:
        yield unheld(explanation.node, is_static=explanation.is_static)


def _pods(explanation: NodeExplanation) -> Iterator[str]:
    if explanation.staying:
        needs = "it needs" if explanation.staying == 1 else "they need"
        ends = f"{count(explanation.staying, 'pod')} would end with it: {needs} no other node"
        yield from wrapped(ends, "  ")
    moving = explanation.moving
    number = sum(len(priced.pods) for priced in moving)
    if not number:
        return
    yield ""
    yield aligned(f"  {count(number, 'pod')} would need another node; moving counts as", money(explanation.move_price))
    for priced in moving[:_SHOWN_GROUPS]:
        yield from _priced(priced)
    rest = moving[_SHOWN_GROUPS:]
    if rest:
        dollars = sum(priced.price.dollars * len(priced.pods) for priced in rest)
        yield aligned(f"    {count(sum(len(priced.pods) for priced in rest), 'more pod')}", money(dollars))
    if explanation.is_consolidated:
        yield from wrapped(_repaid(explanation), "  ")


def _priced(priced: PricedPods) -> Iterator[str]:
    price, many = priced.price, len(priced.pods)
    name = priced.pods[0] if many == 1 else f"{priced.owner} ({count(many, 'pod')}, {money(price.dollars)} each)"
    yield aligned(f"    {name}", money(price.dollars * many))
    # That an ordinary pod is evicted goes without saying.
    is_ordinary = [part.cause for part in price.parts] == [MoveCause.EVICTION]
    for part in price.parts if not is_ordinary else ():
        yield aligned(f"      {part.message}", money(part.dollars))
    if price.unread:
        yield from wrapped(price.unread.message, "      ")


def _repaid(explanation: NodeExplanation) -> str:
    """Whether retiring it could ever be worth its moves: at best its whole price is saved."""
    price, move_price = explanation.node.price, explanation.move_price
    if move_price <= 0:
        return "Its moves count as nothing."
    if not price:
        return "What it would save is not known."
    time, payback = repaid_in(move_price, price), spoken(explanation.payback)
    if time is None or time > explanation.payback:
        late = f"not before {spoken(time)}" if time else "never"
        return f"Even if nothing were bought for them, they are repaid {late}; it has to be within {payback}."
    most = price - move_price / (explanation.payback / _HOUR)
    return f"They are repaid within {payback} if what takes its place costs at most {money(most)}/h."


# --- as data ---


def explanation_document(explanation: NodeExplanation) -> Mapping[str, Any]:
    """One entry of ``explanations`` in the DisruptionPlan document. ``use``: of the scarcer of CPU and memory."""
    node, command = explanation.node, explanation.command
    return {
        "node": node.name if node.name != node.claim else "",
        "nodeClaim": node.claim,
        "nodePool": node.node_pool,
        "instanceType": node.instance_type,
        "zone": node.zone,
        "capacityType": node.capacity_type,
        "price": node.price,
        "use": round(node.use, 4),
        "fate": (Fate.GOES if command else Fate.RECEIVES if explanation.receives else Fate.STAYS).value,
        "command": command.number if command else None,
        "held": [
            {
                "reason": one.objection.message,
                "code": one.objection.code.value,
                "disruption": one.disruption and one.disruption.value,
                "until": moment_text(one.objection.until) if one.objection.until else None,
            }
            for one in explanation.kept_by
        ],
        "movePrice": round(explanation.move_price, 6),
        "paybackSeconds": explanation.payback.total_seconds(),
        "moves": [_pod_document(pod, priced) for priced in explanation.moving for pod in priced.pods],
    }


def _pod_document(pod: str, priced: PricedPods) -> Mapping[str, Any]:
    price = priced.price
    parts = [
        {"cause": part.cause.value, "price": round(part.dollars, 6), "message": part.message} for part in price.parts
    ]
    return {
        "pod": pod,
        "price": round(price.dollars, 6),
        "parts": parts,
        **({"fault": price.unread.message} if price.unread else {}),
    }
