"""The Plan document: a packing as JSON, keys always in the same order."""

import math
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from joinery.decisions.scheduling.packing import ExistingPlacement, Launch, Packing, Unplaced
from joinery.objects.karpenter.meta import Requirement, Taint
from joinery.objects.kubernetes.quantity import texts
from joinery_cli.explained import reason_document
from joinery_cli.notices import UserNotice
from joinery_cli.output.visible import in_json
from joinery_cli.prices import Prices
from joinery_cli.view.costs import CURRENCY, Costs

#: Sums of prices, to the millionth of a dollar: floats add up with noise in the last digits.
DIGITS = 6


def write(document: Any) -> None:
    """Print the document, and nothing else, on standard output."""
    sys.stdout.write(in_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n")


def plan_document(
    packing: Packing, costs: Costs, prices: Prices, notices: Iterable[UserNotice] = (), *, now: datetime, seconds: float
) -> Mapping[str, Any]:
    """The whole plan, as ``joinery plan -o json`` prints it."""
    return {
        "apiVersion": "joinery.dev/v1",
        "kind": "Plan",
        "now": moment_text(now),
        "existing": [existing_document(placement) for placement in packing.existing],
        "launch": [launch_document(launch) for launch in packing.launches],
        "unschedulable": [_unplaced(unplaced) for unplaced in packing.unplaced],
        "relaxed": [{"pod": r.pod, "dropped": r.dropped} for r in packing.relaxed],
        "cost": _cost(packing, costs),
        "catalogue": prices.document(),
        "notices": [notice.document() for notice in notices],
        "solver": {"method": packing.method, "seconds": round(seconds, 3), "limit": packing.limit_struck},
    }


def with_explanations(document: Mapping[str, Any], explanations: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The same document; where something is explained, with ``explanations`` at its end."""
    listed = list(explanations)
    return {**document, "explanations": listed} if listed else document


def _unplaced(unplaced: Unplaced) -> Mapping[str, Any]:
    """A pod without a place: ``reasons`` in words, and ``causes``, the same as data."""
    reasons = unplaced.reasons
    return {"pod": unplaced.pod, "reasons": [*map(str, reasons)], "causes": [*map(reason_document, reasons)]}


def existing_document(placement: ExistingPlacement) -> Mapping[str, Any]:
    """Pods on capacity that is there or on its way."""
    return {"node": placement.node, "nodeClaim": placement.node_claim, "pods": placement.pods}


def launch_document(launch: Launch) -> Mapping[str, Any]:
    """One node to buy."""
    offering = launch.offering
    return {
        "name": launch.name,
        "nodePool": launch.node_pool,
        "requirements": [_requirement(r) for r in launch.requirements],
        "labels": dict(sorted(launch.labels.items())),
        "taints": [_taint(t) for t in launch.taints],
        "startupTaints": [_taint(t) for t in launch.startup_taints],
        "requests": texts(launch.requests),
        "instanceTypes": launch.instance_types,
        "offering": {
            "instanceType": offering.instance_type,
            "zone": offering.zone,
            "capacityType": offering.capacity_type,
            "price": offering.price,
            **({"capacityReservation": offering.reservation} if offering.reservation else {}),
        },
        "pods": launch.pods,
    }


def _requirement(requirement: Requirement) -> Mapping[str, Any]:
    document = {"key": requirement.key, "operator": requirement.operator, "values": requirement.values}
    return document if requirement.min_values is None else {**document, "minValues": requirement.min_values}


def _taint(taint: Taint) -> Mapping[str, str]:
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, **value, "effect": taint.effect}


def _cost(packing: Packing, costs: Costs) -> Mapping[str, Any]:
    hourly = round(packing.hourly, DIGITS)
    running = costs.running
    return {
        "currency": CURRENCY,
        "hourly": hourly,
        "lowerBound": min(rounded_down(packing.lower_bound), round(packing.paid, DIGITS)),
        "gap": max(0.0, round(packing.gap, 4)),
        **_kept(packing),
        **({"weaknesses": packing.weaknesses} if packing.weaknesses else {}),
        "resilience": round(packing.resilience_cost, DIGITS),
        **({"headroom": costs.headroom.document()} if costs.headroom else {}),
        **({"onDemandShares": costs.shares.document()} if costs.shares else {}),
        **({"commitments": costs.commitments.document()} if costs.commitments else {}),
        **({"interruptions": costs.interruptions.document()} if costs.interruptions else {}),
        "onDemand": round(costs.on_demand, DIGITS),
        **({} if costs.listed is None or (listed := round(costs.listed, DIGITS)) == hourly else {"list": listed}),
        "existing": {
            "hourly": round(running.hourly, DIGITS),
            "priced": running.priced,
            "unpriced": running.unpriced,
            "fargate": running.fargate,
        },
        "byNodePool": _rounded(costs.by_node_pool),
        "byCapacityType": _rounded(costs.by_capacity_type),
        "byNamespace": _rounded(costs.by_namespace),
    }


def _rounded(hourly: Mapping[str, float]) -> Mapping[str, float]:
    return {name: round(price, DIGITS) for name, price in hourly.items()}


def _kept(packing: Packing) -> Mapping[str, Any]:
    """The bound that takes the preferences, weights and node sizes which the plan keeps for rules, where it is another
    one; and about what each of them costs, $/h.
    """
    if packing.kept_bound <= packing.lower_bound:
        return {}
    bound = min(rounded_down(packing.kept_bound), round(packing.hourly, DIGITS))
    gap = max(0.0, round(packing.kept_gap, 4))
    return {
        "keepingPreferences": {"lowerBound": bound, "gap": gap, "kept": list(packing.kept)},
        **{kept.value: round(cost, DIGITS) for kept, cost in packing.kept.items()},
    }


def rounded_down(proven: float) -> float:
    """A lower bound in the document's digits. It must stay a bound.

    A billionth of a dollar less than some digits is those digits: so much is taken off for safety.
    """
    scale: int = 10**DIGITS
    return math.floor(proven * scale + 1e-3) / scale


def moment_text(moment: datetime) -> str:
    """In UTC, as Kubernetes writes it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
