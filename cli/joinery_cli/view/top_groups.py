"""From a snapshot, and what is decided about it, to what ``joinery top`` shows. Pure: the moment is the snapshot's.

Every reason is one that ``joinery plan`` or ``joinery disrupt`` gives; nothing is decided here.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from joinery.decisions.disruption.decision import StayingNode
from joinery.decisions.disruption.expiration import expires_at
from joinery.decisions.disruption.pausing import PausedNode, paused_nodes
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.lifecycle.state.budgets import PoolNodes, budgets_open_at, pool_nodes
from joinery.decisions.scheduling.gangs import what_lacks
from joinery.decisions.scheduling.packing import Packing, placed_pods
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import INTERRUPTED_AT
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.pause import LEAD
from joinery.objects.kubernetes.core import Pod
from joinery.objects.objections import ObjectionCode
from joinery.objects.snapshot.claims import INITIALIZED, INSTANCE_TERMINATING, LAUNCHED, REGISTERED
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.offerings import price_among
from joinery.objects.snapshot.pods import is_virtual
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.notices import some_of
from joinery_cli.view.disruption_view import CommandView, DisruptionView, DrawnNode
from joinery_cli.view.disruption_words import result, unheld
from joinery_cli.view.figures import count, natural
from joinery_cli.view.headroom import buffers_in
from joinery_cli.view.top_view import Phase, TopNext, TopNode, TopPods, TopPool, TopView
from joinery_cli.view.workloads import owner_of

#: The steps of a node that comes, and of one that goes (``decisions.lifecycle.draining``), by their conditions.
_BOOTING = {
    LAUNCHED: "EC2 launches it",
    REGISTERED: "its kubelet has to join",
    INITIALIZED: "it is not ready for pods yet",
}
_ENDING = {
    "Drained": "its pods are evicted",
    "VolumesDetached": "its volumes are detached",
    INSTANCE_TERMINATING: "its instance is ended",
}
#: What ends sooner than that is said before it does.
_SOON = timedelta(days=1)


def top_view(
    problem: DisruptionProblem,
    packing: Packing,
    seen: DisruptionView,
    *,
    source: str,
    planned: Snapshot | None = None,
) -> TopView:
    """The cluster of the problem. ``packing``: the plan for its pods; ``seen``: the decision about its nodes.
    ``planned``: what the plan was made for, where that has room of buffers that the problem about nodes has not.
    """
    snapshot = problem.packing.snapshot
    return TopView(
        source=source,
        now=snapshot.now,
        pools=_pools(problem, seen),
        pending=tuple(_pending(planned or snapshot, packing)),
        coming=tuple(_coming(problem, seen)),
        problem=problem,
        seen=seen,
    )


# --- nodes ---


def _pools(problem: DisruptionProblem, seen: DisruptionView) -> tuple[TopPool, ...]:
    """The dearest NodePool first; nodes of none last."""
    snapshot = problem.packing.snapshot
    views = {view.name: view for view in snapshot.views}
    claims = {claim.metadata.name: claim for claim in snapshot.managed_claims}
    created = {node.metadata.name: node.metadata.creation_timestamp for node in snapshot.nodes}
    commands = {name: command for command in seen.commands for name in command.command.retire}
    paused = {one.claim.metadata.name: one for one in paused_nodes(snapshot, problem.sold)}
    kept: dict[str, list[StayingNode]] = defaultdict(list)
    for one in seen.disruptions.staying:
        kept[one.node_claim].append(one)
    pools: dict[str, list[TopNode]] = defaultdict(list)
    for drawn in seen.before:
        claim = claims.get(drawn.claim)
        phase, code, why, until = _state(
            views[drawn.name], claim, commands.get(drawn.claim) or paused.get(drawn.claim), kept[drawn.claim]
        )
        pool = snapshot.pools_by_name.get(drawn.node_pool)
        born = claim.metadata.creation_timestamp if claim else created.get(drawn.name)
        pools[drawn.node_pool].append(
            TopNode(
                drawn=drawn,
                price=_price(drawn, problem, seen),
                age=snapshot.now - born if born else None,
                phase=phase,
                code=code,
                why=why or unheld(drawn, is_static=pool is not None and pool.is_static),
                until=until,
            )
        )
    shares = snapshot.pool_shares
    grouped = [TopPool(name=name, nodes=tuple(nodes), share=shares.get(name)) for name, nodes in pools.items()]
    return tuple(sorted(grouped, key=lambda pool: (not pool.name, -pool.hourly, natural(pool.name))))


def _price(drawn: DrawnNode, problem: DisruptionProblem, seen: DisruptionView) -> float | None:
    """Of a node that has not joined yet, as its claim was decided."""
    if drawn.price is not None:
        return drawn.price
    decided = seen.disruptions.prices.get(drawn.claim)
    return decided or price_among(problem.sold.get(drawn.instance_type, ()), drawn.zone, drawn.capacity_type)


_State = tuple[Phase, str, str, datetime | None]


def _state(
    view: NodeView, claim: NodeClaim | None, going: CommandView | PausedNode | None, kept: Sequence[StayingNode]
) -> _State:
    """How far a node is, and what is said of that: nothing of one that stays without a rule."""
    if claim is not None and view.is_leaving and not view.is_candidate:
        taken = "EC2 takes it back" if INTERRUPTED_AT in claim.metadata.annotations else "its drain begins"
        return Phase.LEAVING, "Leaving", _step(claim, _ENDING) or taken, None
    if claim is not None and not view.is_initialized:
        phase = Phase.BOOTING if claim.status.provider_id else Phase.LAUNCHING
        return phase, "NotInitialized", _step(claim, _BOOTING) or "its instance boots", None
    if isinstance(going, PausedNode):
        if going.why:
            return Phase.STAYS, ObjectionCode.PAUSED.value, f"{going.pause}; {going.why}", going.pause.until
        return Phase.GOES, ObjectionCode.PAUSED.value, going.message, None
    if going is not None:
        decided = going.command
        return Phase.GOES, decided.reason.value, f"{decided.message}; the command {result(going)}", None
    if kept:
        first = min(kept, key=lambda one: one.disruption is not None).objection
        return Phase.STAYS, first.code.value, first.message, first.until
    return Phase.STAYS, "", "", None


def _step(claim: NodeClaim, steps: Mapping[str, str]) -> str:
    """What lifecycle says of the step that the claim is at; a record has no messages. Empty where it is at none."""
    for kind, otherwise in steps.items():
        condition = claim.condition(kind)
        if condition is not None and condition.status != "True":
            return condition.message or otherwise
    return ""


# --- pods ---


def _pending(snapshot: Snapshot, packing: Packing) -> Iterator[TopPods]:
    """Those without a place first; alike ones together."""
    reasons: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    homes: dict[tuple[str, str], list[str]] = defaultdict(list)
    pods = snapshot.pods_by_key
    packing = without_settled(packing, snapshot)
    for unplaced in packing.unplaced:
        reasons[_owner(unplaced.pod, pods), tuple(map(str, unplaced.reasons))].append(unplaced.pod)
    for launch in packing.launches:
        offering = launch.offering
        new = f"a new {offering.instance_type}, {offering.capacity_type}, of NodePool {launch.node_pool}"
        for pod in launch.pods:
            homes[_owner(pod, pods), new].append(pod)
    for placement in packing.existing:
        home = placement.node or "a NodeClaim whose node is on its way"
        for pod in placement.pods:
            homes[_owner(pod, pods), home].append(pod)
    for pod, why in _beside_plan(snapshot, packing):
        reasons[_owner(pod, pods), (why,)].append(pod)
    found = [
        *(_of(owner, names, snapshot, reasons=why) for (owner, why), names in reasons.items()),
        *(_of(owner, names, snapshot, home=home) for (owner, home), names in homes.items()),
    ]
    yield from sorted(found, key=lambda one: (one.is_room, bool(one.home), -len(one.pods), one.owner, one.home))


def _of(owner: str, names: Sequence[str], snapshot: Snapshot, **answer: Any) -> TopPods:
    pod = snapshot.pods_by_key.get(names[0])
    is_room = pod is not None and is_virtual(pod)
    return TopPods(owner=owner, pods=_sorted(names), waiting=_waiting(names, snapshot), is_room=is_room, **answer)


def _beside_plan(snapshot: Snapshot, packing: Packing) -> Iterator[tuple[str, str]]:
    """Pods of gangs that wait though no plan has them, and for what: kube-scheduler marks none before all are there."""
    if not snapshot.gangs:
        return
    planned = {one.pod for one in packing.unplaced} | {*placed_pods(packing.existing, packing.launches)}
    for gang in snapshot.gangs.values():
        for name, pod in gang.members.items():
            if name not in planned and name not in gang.seated:
                gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
                why = f"its scheduling gates hold it: {gates}" if gates else f"kube-scheduler has not tried {gang} yet"
                yield name, str(what_lacks(gang) or why)


def without_settled(packing: Packing, snapshot: Snapshot) -> Packing:
    """The packing without the room of buffers that is there: nothing waits for it."""
    virtual = buffers_in(snapshot).keys()
    if not virtual:
        return packing
    existing = (replace(one, pods=tuple(pod for pod in one.pods if pod not in virtual)) for one in packing.existing)
    return replace(packing, existing=tuple(one for one in existing if one.pods))


def _owner(name: str, pods: Mapping[str, Pod]) -> str:
    return owner_of(pods[name]) if name in pods else name


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=natural))


def _waiting(names: Iterable[str], snapshot: Snapshot) -> timedelta | None:
    """Since the first of the pods was created. One that still runs on a node that goes does not wait yet."""
    pods = (snapshot.pods_by_key[name] for name in names if name in snapshot.pods_by_key)
    born = [pod.metadata.creation_timestamp for pod in pods if not pod.spec.node_name]
    since = min((moment for moment in born if moment), default=None)
    return snapshot.now - since if since else None


# --- what comes next ---


def _coming(problem: DisruptionProblem, seen: DisruptionView) -> Iterator[TopNext]:
    """The decided commands in their order; then what has a time, the soonest first."""
    for command in seen.commands:
        yield TopNext(subject=some_of([node.name for node in command.retired]), what=_command(command))
    snapshot = problem.packing.snapshot
    others = [*_pauses(snapshot), *_budgets(problem, seen), *_ends(seen), *_expirations(snapshot, seen)]
    yield from sorted(others, key=lambda one: (one.at is None, one.at or seen.now))


def _command(command: CommandView) -> str:
    bought = ", ".join(sorted({node.instance_type for node in command.bought}))
    coming = f"{count(len(command.bought), 'node')} bought ({bought})" if bought else "nothing bought"
    moved = count(len(command.command.pods), "eviction")
    return f"{command.command.reason.value}: {coming}, {moved}, {result(command)}"


def _pauses(snapshot: Snapshot) -> Iterator[TopNext]:
    """When NodePools that are paused buy again."""
    for _, pause in sorted(snapshot.pauses.items()):
        what = "buys again" if pause.until else "is paused until somebody resumes it"
        yield TopNext(subject=pause.whose, what=what, at=pause.until - LEAD if pause.until else None)


def _budgets(problem: DisruptionProblem, seen: DisruptionView) -> Iterator[TopNext]:
    """When NodePools whose budgets keep nodes let more of them go."""
    snapshot = problem.packing.snapshot
    nodes = pool_nodes(snapshot.views)
    pool_of = {node.claim: node.node_pool for node in seen.before if node.claim}
    held: dict[tuple[str, DisruptionReason], set[str]] = defaultdict(set)
    for one in seen.disruptions.staying:
        if one.objection.code is ObjectionCode.BUDGET:
            reason = one.disruption or DisruptionReason.UNDERUTILIZED
            held[pool_of.get(one.node_claim, ""), reason].add(one.node_claim)
    for (name, reason), claims in sorted(held.items()):
        pool = snapshot.pools_by_name.get(name)
        opens = budgets_open_at(pool, reason, nodes.get(name, PoolNodes()), snapshot.now) if pool else None
        keep = f"its budgets keep {count(len(claims), 'node')} ({reason.value})"
        when = "until one that leaves is gone, or for good" if opens is None else "and open"
        yield TopNext(subject=f"NodePool {name}", what=f"{keep} {when}", at=opens)


def _ends(seen: DisruptionView) -> Iterator[TopNext]:
    """When rules that end by themselves do so, rule by rule."""
    ends: dict[ObjectionCode, dict[str, datetime]] = defaultdict(dict)
    for one in seen.disruptions.staying:
        if one.objection.until is not None and one.objection.until > seen.now:
            ends[one.objection.code][one.node_claim] = one.objection.until
    names = {node.claim: node.name for node in seen.before}
    for code, until in sorted(ends.items()):
        first = min(until, key=lambda claim: (until[claim], claim))
        others = f" and {count(len(until) - 1, 'other node')}" if len(until) > 1 else ""
        yield TopNext(subject=f"{names.get(first, first)}{others}", what=f"{code.value} ends", at=until[first])


def _expirations(snapshot: Snapshot, seen: DisruptionView) -> Iterator[TopNext]:
    """Nodes that expire within a day."""
    names = {node.claim: node.name for node in seen.before}
    for claim in snapshot.managed_claims:
        at = None if claim.is_deleting else expires_at(claim)
        if at is not None and at - snapshot.now < _SOON:
            yield TopNext(subject=names.get(claim.metadata.name, claim.metadata.name), what="expires", at=at)
