"""The Top document: what ``joinery top`` shows, as a line of JSON for each refresh, keys always in the same order."""

import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from joinery_cli.output.json import DIGITS, moment_text, rounded_down
from joinery_cli.output.visible import in_json
from joinery_cli.view.costs import CURRENCY
from joinery_cli.view.pool_shares import share_document
from joinery_cli.view.top_view import TopNext, TopNode, TopPods, TopView


def write_line(document: Mapping[str, Any]) -> None:
    """One document in one line of standard output, at once: who reads waits for it."""
    sys.stdout.write(in_json(msgspec.json.encode(document).decode()) + "\n")
    sys.stdout.flush()


def top_document(view: TopView) -> Mapping[str, Any]:
    """Everything that the screen shows."""
    decision = view.seen.disruptions
    shares = [{"nodePool": pool.name, **share_document(pool.share)} for pool in view.pools if pool.share]
    return {
        "apiVersion": "joinery.dev/v1",
        "kind": "Top",
        "now": moment_text(view.now),
        "source": view.source,
        "totals": {
            "nodes": len(view.nodes),
            "spot": view.spot,
            "pending": view.waiting,
            "unschedulable": view.homeless,
            **({"room": view.room, "unschedulableRoom": view.homeless_room} if view.room else {}),
            "currency": CURRENCY,
            "hourly": round(view.hourly, DIGITS),
            "managed": round(decision.before, DIGITS),
            "lowerBound": max(0.0, rounded_down(decision.lower_bound)),
            "savings": round(view.seen.savings, DIGITS),
            **({"headroom": view.seen.headroom.document()} if view.seen.headroom else {}),
        },
        **({"shares": shares} if shares else {}),
        "nodes": [_node(node) for node in view.nodes],
        "pending": [_pods(one) for one in view.pending],
        "next": [_next(one) for one in view.coming],
        "notices": [notice.document() for notice in view.seen.notices],
    }


def _node(node: TopNode) -> Mapping[str, Any]:
    drawn = node.drawn
    used, room = drawn.filled.used, drawn.filled.room
    return {
        "name": node.name,
        "nodeClaim": drawn.claim,
        "nodePool": drawn.node_pool,
        "instanceType": drawn.instance_type,
        "zone": drawn.zone,
        "capacityType": drawn.capacity_type,
        "price": node.price,
        "pods": drawn.filled.pods,
        "use": {name: round(used.get(name, 0) / room[name], 4) for name in ("cpu", "memory") if room.get(name)},
        "ageSeconds": None if node.age is None else int(node.age.total_seconds()),
        "phase": node.phase.value,
        "code": node.code,
        "reason": node.why,
        "until": moment_text(node.until) if node.until else None,
    }


def _pods(one: TopPods) -> Mapping[str, Any]:
    return {
        "owner": one.owner,
        "pods": one.pods,
        "waitingSeconds": None if one.waiting is None else int(one.waiting.total_seconds()),
        "home": one.home or None,
        "reasons": one.reasons,
        **({"room": True} if one.is_room else {}),
    }


def _next(one: TopNext) -> Mapping[str, Any]:
    return {"subject": one.subject, "what": one.what, "at": moment_text(one.at) if one.at else None}
