"""Which pods move, and where to: all that must, once each, and to a node that stays."""

from collections import Counter
from collections.abc import Iterator

from tools.consolidation.contract.candidates import holds_out
from tools.consolidation.contract.cluster import Cluster, consolidate_after, is_leaving
from tools.consolidation.documents import Document, is_true, key_of, name_of

#: Reasons for which a node that pods have just come to or gone from takes none (specification 3.7).
_CONSOLIDATION = ("Empty", "Underutilized")


def violations(cluster: Cluster, plan: Document) -> Iterator[str]:
    """Of each command by itself, then of all together."""
    for number, command in enumerate(plan["commands"]):
        what = f"command {number} ({command['reason']})"
        yield from (f"{what}: {remark}" for remark in _of_command(cluster, command))
        yield from (f"{what}: {remark}" for remark in _of_destinations(cluster, plan, command))
    for claim, times in Counter(name for command in plan["commands"] for name in command["retire"]).items():
        if times > 1:
            yield f"claim {claim} is retired {times} times"
    for pod, times in Counter(pod for command in plan["commands"] for pod in command["pods"]).items():
        if times > 1:
            yield f"pod {pod} moves {times} times"
    retired = {name for command in plan["commands"] for name in command["retire"]}
    yield from (f"claim {held['nodeClaim']} is held and retired" for held in plan["held"] if _is_both(held, retired))
    evicted = sum(len(command["pods"]) for command in plan["commands"])
    if plan["moves"]["pods"] != evicted:
        yield f"moves.pods is {plan['moves']['pods']}, and the commands evict {evicted}"


def _is_both(held: Document, retired: set[str]) -> bool:
    """Whether a retired claim is held from everything. It may be held from what it was not retired for."""
    return held["nodeClaim"] in retired and not held.get("disruption")


def _of_command(cluster: Cluster, command: Document) -> Iterator[str]:
    if not command["retire"]:
        yield "retires nothing"
    for claim in command["retire"]:
        if claim not in cluster.claims:
            yield f"there is no claim {claim}"
    needed = Counter(key_of(pod) for pod in cluster.movable(command["retire"]))
    yield from _differences("pods", Counter(command["pods"]), needed)
    placed = Counter(pod for place in [*command["existing"], *command["launch"]] for pod in place["pods"])
    yield from _differences("existing and launch", placed, needed - (_placeless(cluster, command) - placed))
    yield from (f"launch {launch['name']} is for no pods" for launch in command["launch"] if not launch["pods"])


def _placeless(cluster: Cluster, command: Document) -> Counter[str]:
    """Pods that run on a drifted node until its time is over (specification 2.9, "currently reschedulable")."""
    is_drift = command["reason"] == "Drifted"
    claims = [name for name in command["retire"] if is_drift and name in cluster.claims]
    ending = [name for name in claims if cluster.claims[name]["spec"].get("terminationGracePeriod")]
    return Counter(key_of(pod) for pod in cluster.movable(ending) if holds_out(cluster, pod))


def _differences(where: str, listed: Counter[str], needed: Counter[str]) -> Iterator[str]:
    for pod in sorted(needed - listed):
        yield f"{pod} must move and is not in {where}"
    for pod in sorted(listed - needed):
        yield f"{pod} is in {where} and {'is there twice' if pod in needed else 'is on no retired node'}"


def _of_destinations(cluster: Cluster, plan: Document, command: Document) -> Iterator[str]:
    retired = {name for other in plan["commands"] for name in other["retire"]}
    for place in command["existing"]:
        node, claim = cluster.nodes.get(place["node"]), cluster.claim_of(place["node"])
        where = f"pods go to node {place['node']!r}"
        if node is None:
            yield f"{where}, which does not exist"
        elif node["metadata"].get("deletionTimestamp") or (claim is not None and is_leaving(claim)):
            yield f"{where}, which is being deleted"
        elif claim is not None:
            yield from (f"{where}, {why}" for why in _of_managed(cluster, claim, place, retired, command["reason"]))


def _of_managed(cluster: Cluster, claim: Document, place: Document, retired: set[str], reason: str) -> Iterator[str]:
    name = name_of(claim)
    if place["nodeClaim"] != name:
        yield f"whose claim is {name}, not {place['nodeClaim']!r}"
    if name in retired:
        yield f"whose claim {name} is retired too"
    if not is_true(claim, "Initialized"):
        yield "which is not initialised"
    pool = cluster.pool_of(name)
    waits = consolidate_after(pool) if pool else None
    if reason in _CONSOLIDATION and waits and not cluster.is_settled(name):
        yield "which is within its own consolidateAfter"
