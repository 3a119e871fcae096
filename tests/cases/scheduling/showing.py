"""A packing in the words of a golden case, so that what differs can be read line by line.

Only what a case asks about is shown: an expected launch that names pods and zones is compared by pods and zones. A case
that says how many pods are in which domain (``tally``) need not list the launches.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.reason import Reason
from joinery.decisions.verification.violation import Violation
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ZONE
from tests.cases.scheduling import notation
from tests.cases.scheduling.notation import Document
from tests.cases.scheduling.reading import Case, shown_amount


def expected(case: Case) -> Document:
    """What the case wants, in the order in which it is shown."""
    wanted = case.expect
    return {
        "existing": {name: _listed(pods) for name, pods in sorted(wanted.get("existing", {}).items())},
        "launches": sorted((_canonical(launch) for launch in wanted.get("launches", [])), key=str),
        "unplaced": {pod: _listed(reasons) for pod, reasons in sorted(wanted.get("unplaced", {}).items())},
        "relaxed": {pod: _listed(dropped) for pod, dropped in sorted(wanted.get("relaxed", {}).items())},
        **{name: wanted[name] for name in ("hourly", "poolReasons", "tally") if name in wanted},
    }


def actual(case: Case, packing: Packing) -> Document:
    """The packing, with each launch shown in the fields that the case's launches name."""
    fields = {name for launch in case.expect.get("launches", []) for name in launch} or {"pods"}
    shapes = {name: launch[name] for launch in case.expect.get("launches", []) for name in launch if name in _SUBSETS}
    found: Document = {
        "existing": {e.node or e.node_claim: _pods(case, e.pods) for e in packing.existing},
        "launches": sorted((_canonical(_launch(case, x, fields, shapes)) for x in packing.launches), key=str),
        "unplaced": _grouped(case, {u.pod: [reason_line(r) for r in u.reasons] for u in packing.unplaced}),
        "relaxed": _grouped(case, {r.pod: list(r.dropped) for r in packing.relaxed}),
    }
    found["existing"] = dict(sorted(found["existing"].items()))
    if "tally" in case.expect:
        found["tally"] = {name: _tally(case, packing, name) for name in case.expect["tally"]}
        found["launches"] = found["launches"] if "launches" in case.expect else []
    if "hourly" in case.expect:
        found["hourly"] = round(packing.hourly, 4)
    if "poolReasons" in case.expect:
        found["poolReasons"] = [reason_line(reason) for reason in packing.pool_reasons]
    return found


def _tally(case: Case, packing: Packing, name: str) -> dict[str, int]:
    """How many planned pods are where a label has which value; ``several`` for nodes on which it is not settled."""
    key, found = notation.key(name), Counter[str]()
    nodes = {node.metadata.name: node.metadata.labels for node in case.problem.snapshot.nodes}
    for launch in packing.launches:
        values = _values(launch, key) or [launch.labels.get(key, launch.name if name == "host" else "none")]
        found[values[0] if len(values) == 1 else "several"] += len(launch.pods)
    for placement in packing.existing:
        found[nodes.get(placement.node, {}).get(key, "none")] += len(placement.pods)
    return dict(sorted(found.items()))


def reason_line(reason: Reason | Violation) -> str:
    """``Code | subject | message``, with short label names."""
    subject = reason.where if isinstance(reason, Violation) else str(reason.subject or "")
    words = [reason.code, subject, reason.message]
    line = " | ".join(word for word in words if word)
    for long, short in notation.LONG.items():
        line = line.replace(long, short)
    return line


def _canonical(launch: Mapping[str, Any]) -> Document:
    return {name: _listed(launch[name]) if name in _LISTS else launch[name] for name in sorted(launch)}


def _listed(given: Any) -> list[Any]:
    return sorted(given, key=str) if isinstance(given, list) else [given]


def _grouped(case: Case, found: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Pods of one description that share one fate are shown as ``web x3``."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for pod, lines in found.items():
        groups.setdefault((case.bases.get(pod, pod), tuple(lines)), []).append(pod)
    shown: dict[str, list[str]] = {}
    for (_, said), pods in sorted(groups.items(), key=lambda item: (len(item[0][1]), item[0])):
        name = _pods(case, pods)[0]
        shown[name if name not in shown else f"{name} more"] = sorted(said)
    return dict(sorted(shown.items()))


def _pods(case: Case, pods: Iterable[str]) -> list[str]:
    """``a`` for a pod by itself, ``web x2`` for two of those made from one description."""
    listed = list(pods)
    made = Counter(case.bases[pod] for pod in listed if pod in case.bases)
    alone = [pod for pod in listed if pod not in case.bases]
    return sorted([_short(pod) for pod in alone] + [f"{base} x{count}" for base, count in made.items()])


def _short(pod: str) -> str:
    return pod.removeprefix("default/")


def _launch(case: Case, launch: Launch, fields: Iterable[str], shapes: Mapping[str, Any]) -> Document:
    found: Document = {"pods": _pods(case, launch.pods)}
    for name in fields:
        if name in _SUBSETS:
            found[name] = _SUBSETS[name](launch, shapes[name])
        elif name != "pods":
            found[name] = _FIELDS[name](launch)
    return {name: found[name] for name in fields}


def _values(launch: Launch, key: str) -> list[str]:
    return [value for r in launch.requirements if r.key == key and r.operator == "In" for value in r.values]


def _requirement(launch: Launch, name: str) -> str:
    listed = [r for r in launch.requirements if r.key == notation.key(name)]
    shown = (
        f"{r.operator} {','.join(r.values)}".strip() + (f" min {r.min_values}" if r.min_values else "") for r in listed
    )
    return "; ".join(shown) or "none"


_LISTS = ("pods", "zones", "capacities", "types", "taints", "startupTaints")
_FIELDS: dict[str, Callable[[Launch], Any]] = {
    "pool": lambda launch: launch.node_pool,
    "type": lambda launch: launch.offering.instance_type,
    "zone": lambda launch: launch.offering.zone,
    "capacity": lambda launch: launch.offering.capacity_type,
    "price": lambda launch: round(launch.offering.price, 5),
    "zones": lambda launch: _values(launch, ZONE),
    "capacities": lambda launch: _values(launch, CAPACITY_TYPE),
    "types": lambda launch: list(launch.instance_types),
    "taints": lambda launch: [_taint(t) for t in launch.taints],
    "startupTaints": lambda launch: [_taint(t) for t in launch.startup_taints],
    "minValuesRelaxed": lambda launch: launch.min_values_relaxed,
    "count": lambda launch: len(launch.pods),
    "reservation": lambda launch: launch.offering.reservation,
}
_SUBSETS: dict[str, Callable[[Launch, Any], Any]] = {
    "labels": lambda launch, shape: {name: launch.labels.get(notation.key(name), "none") for name in shape},
    "requirements": lambda launch, shape: {name: _requirement(launch, name) for name in shape},
    "requests": lambda launch, shape: {name: shown_amount(name, launch.requests.get(name, 0)) for name in shape},
}


def _taint(taint: Any) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
