"""From a simulation to commands: nodes that share a launch go together, and every other node goes by itself.

Room on nodes that stay was dealt out to all at once, so whether one node goes has no bearing on another. Nor do rules
over zones and other domains, as long as pods stay in theirs: no count changes. Where the simulation had to let some
leave theirs, all nodes that do so under one rule go together: then its counts change once, from right to right. So any
of the commands may be carried out without the others.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from joinery.decisions.disruption.candidates import Candidate
from joinery.decisions.disruption.consolidation.model import NEGLIGIBLE, ConsolidationModel, hourly
from joinery.decisions.disruption.consolidation.simulation import SimulatedMoves
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.scheduling.packing import ExistingPlacement, Launch
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ZONE
from joinery.objects.snapshot.pods import is_virtual


def commands_of(simulated: SimulatedMoves, bonds: Iterable[Collection[str]] = ()) -> tuple[DecidedCommand, ...]:
    """The commands of a simulation in the order in which budgets should take them: empty nodes first, then drifted
    ones, the longest drifted first (Karpenter's order, too), then by savings for each dollar of moves.

    ``bonds``: sets of pods (namespace/name) whose nodes must go together, besides those that share a launch.
    """
    home = {pod.key: index for index, candidate in enumerate(simulated.candidates) for pod in candidate.pods}
    groups = _groups(len(simulated.candidates), (*(launch.pods for launch in simulated.launches), *bonds), home)
    shares = _shares(simulated, [[simulated.candidates[index] for index in members] for members in groups])
    ordered = sorted(((_command(share), share) for share in shares), key=_order)
    return tuple(command for command, _ in ordered)


@dataclass(frozen=True)
class _Share:
    """What a command has of a simulation. ``existing``: the places of its own pods."""

    members: Sequence[Candidate]
    launches: list[Launch] = field(default_factory=list)
    existing: list[ExistingPlacement] = field(default_factory=list)


def _shares(simulated: SimulatedMoves, groups: Iterable[Sequence[Candidate]]) -> Sequence[_Share]:
    shares = [_Share(members) for members in groups]
    share_of = {pod.key: share for share in shares for candidate in share.members for pod in candidate.pods}
    for launch in simulated.launches:
        next(share_of[pod] for pod in launch.pods if pod in share_of).launches.append(launch)
    for placement in simulated.existing:
        dealt: dict[int, list[str]] = defaultdict(list)
        for pod in placement.pods:
            dealt[id(share_of[pod])].append(pod)
        for pods in dealt.values():
            share_of[pods[0]].existing.append(replace(placement, pods=tuple(pods)))
    return shares


def is_worth_it(command: DecidedCommand, candidates: Iterable[Candidate]) -> bool:
    """Whether what it saves repays its moves in time. Drifted nodes must go whatever that costs, and empty ones
    although nobody may know what that saves.
    """
    if command.reason is DisruptionReason.DRIFTED:
        return True
    saves = command.reason is DisruptionReason.EMPTY or command.savings > NEGLIGIBLE
    return saves and command.savings >= sum(map(hourly, candidates)) - NEGLIGIBLE


def _order(one: tuple[DecidedCommand, _Share]) -> tuple[bool, bool, tuple[bool, str, str], float, str]:
    command, share = one
    drifted = command.reason is DisruptionReason.DRIFTED
    longest = min((member.drift_order for member in share.members if member.is_drifted), default=(False, "", ""))
    ratio = command.savings / command.move_price if command.move_price > 0 else float("inf")
    return command.reason is not DisruptionReason.EMPTY, not drifted, longest, -ratio, min(command.retire)


def _groups(count: int, bonds: Iterable[Collection[str]], home: Mapping[str, int]) -> list[list[int]]:
    """The indices of candidates, those together whose pods are bound together."""
    parent = list(range(count))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for pods in bonds:
        members = sorted({root(home[pod]) for pod in pods if pod in home})
        for other in members[1:]:
            parent[other] = members[0]
    groups: dict[int, list[int]] = defaultdict(list)
    for index in range(count):
        groups[root(index)].append(index)
    return list(groups.values())


def _command(share: _Share) -> DecidedCommand:
    members = share.members
    savings = sum(candidate.price for candidate in members) - sum(launch.offering.price for launch in share.launches)
    return DecidedCommand(
        reason=_reason(members, buys=bool(share.launches)),
        message=_message(members, share.launches, savings),
        retire=tuple(sorted(candidate.claim.metadata.name for candidate in members)),
        launches=tuple(share.launches),
        existing=tuple(share.existing),
        pods=tuple(sorted(pod.key for candidate in members for pod in candidate.pods if not is_virtual(pod))),
        savings=savings,
        move_price=sum(candidate.move_price for candidate in members),
    )


def _reason(members: Sequence[Candidate], *, buys: bool) -> DisruptionReason:
    """Emptiness comes before drift, as in Karpenter: what nobody needs is not replaced, whatever it is.

    Else drift where any node has drifted: such a command goes whatever it costs. Nodes may count as empty though they
    have pods, which are of no weight. Where a node is bought for these (``buys``), the others are replaced, not given
    up.
    """
    if not buys and all(DisruptionReason.EMPTY in candidate.reasons for candidate in members):
        return DisruptionReason.EMPTY
    is_drift = any(candidate.is_drifted for candidate in members)
    return DisruptionReason.DRIFTED if is_drift else DisruptionReason.UNDERUTILIZED


def _message(members: Sequence[Candidate], launches: Sequence[Launch], savings: float) -> str:
    """What goes, what comes, and what that saves."""
    gone = f"{len(members)} nodes" if len(members) > 1 else f"a node ({members[0].instance_type})"
    drifted = sum(candidate.is_drifted for candidate in members)
    if 0 < drifted < len(members):
        gone += f", {drifted} of them drifted,"
    types = sorted({launch.offering.instance_type for launch in launches})
    named = ", ".join(types[:3]) + (", ..." if len(types) > 3 else "")
    new = f"{len(launches)} new ones" if len(launches) > 1 else "a new one"
    into = f"{gone} for {new} ({named})" if launches else f"{gone} without replacement"
    pods = [pod for candidate in members for pod in candidate.pods]
    chunks = sum(map(is_virtual, pods))
    moved, room = len(pods) - chunks, f" and the room for {chunks} of a buffer" if chunks else ""
    change = f"saves ${savings:.4f}/h" if savings >= 0 else f"costs ${-savings:.4f}/h more"
    return f"{into}: {change}, moves {moved} pod{'' if moved == 1 else 's'}{room}"


# --- which moves are right only together ---


def bonds_of(simulated: SimulatedMoves, model: ConsolidationModel) -> Sequence[frozenset[str]]:
    """Sets of pods (namespace/name): those that leave their domains under rules that have to do with each other.

    Where such a rule does not hold as the cluster stands, a pod may be refused even by the domain that it has, until
    others have left: then all that move under the rule belong together.
    """
    labels = {view.node: view.labels for view in model.nodes}
    destination: dict[str, Mapping[str, str]] = {}
    for placement in simulated.existing:
        destination |= dict.fromkeys(placement.pods, labels.get(placement.node, {}))
    for launch in simulated.launches:
        decided = {ZONE: launch.offering.zone, CAPACITY_TYPE: launch.offering.capacity_type}
        destination |= dict.fromkeys(launch.pods, {**launch.labels, **decided})
    leaving: dict[int, set[str]] = defaultdict(set)
    staying: dict[int, set[str]] = defaultdict(set)
    for pod, item, here in _items(model):
        there = destination.get(pod)
        if there is None:
            continue
        leaves = any(there.get(key, "") != here.get(key, "") for key in model.domains[item])
        for rule in model.coupled[item] if leaves else model.coupled[item] & model.broken:
            (leaving if leaves else staying)[rule].add(pod)
    return [frozenset(pods | staying[rule]) for rule, pods in leaving.items()]


def _items(model: ConsolidationModel) -> Iterator[tuple[str, int, Mapping[str, str]]]:
    """Every pod that may move, with its item, and the labels of its node."""
    for (item, index), pods in model.pods.items():
        for pod in pods:
            yield pod, item, model.nodes[index].labels
