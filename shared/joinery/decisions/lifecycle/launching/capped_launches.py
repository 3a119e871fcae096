"""Claims that were written and never launched, under the caps: those that do not fit now are left for a later run.

Whoever wrote them was stopped before it launched them. Several such runs may have left claims, or the caps were lowered
since, so the caps bind these launches too. Claims that share a CreateFleet call are launched together or not at all,
because its token stands for all of them. A claim that does not fit for long is given up by the launch timeout
(``lifecycle.joining.liveness``), and its pods are planned anew.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from joinery.decisions.lifecycle.launching.fleet_groups import FleetGroup
from joinery.decisions.lifecycle.launching.instance_filters import filtered
from joinery.decisions.scheduling.launch_caps import Purchase, admit, over
from joinery.decisions.scheduling.reason import Reason
from joinery.objects.actions import Announce
from joinery.objects.annotations.plans import expected
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.policies import Caps
from joinery.objects.snapshot.claims import types_of
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.snapshot.urgency import Urgency, lately_served, urgencies


@dataclass(frozen=True)
class CappedLaunches:
    """What to launch now, and what to leave.

    ``admitted``: the claims to launch. ``announcements``: for each claim that is left and each of its pods that wait,
    the cap in its way. ``caps``: what is left of them once the admitted claims are launched.
    """

    admitted: tuple[NodeClaim, ...]
    announcements: tuple[Announce, ...]
    caps: Caps


def within_caps(
    groups: Sequence[FleetGroup],
    caps: Caps,
    *,
    snapshot: Snapshot,
    types: Mapping[str, Sequence[InstanceType]],
    launched: Collection[str],
) -> CappedLaunches:
    """Admit calls by the urgency of the pods that they are for.

    ``types``: by name of the node class, what can be bought. ``launched``: tokens of calls that have instances
    already; finishing these buys nothing.
    """
    pods_of = expected(snapshot.node_claims, snapshot.nodes, snapshot.pods)
    urgency_of = urgencies(snapshot)
    purchases = [
        _purchase(
            group,
            None if group.token in launched else cheapest(group, types),
            [pod for claim in group.waiting for pod in pods_of[claim.metadata.name]],
            urgency_of,
        )
        for group in groups
    ]
    judged = list(zip(groups, purchases, admit(purchases, caps, lately_served(snapshot)), strict=True))
    rest = caps
    for _, purchase, cap in judged:
        rest = rest.after(purchase.instances, purchase.hourly) if cap is None else rest
    left = [(claim, over(cap, caps)) for group, _, cap in judged if cap is not None for claim in group.waiting]
    return CappedLaunches(
        admitted=tuple(claim for group, _, cap in judged if cap is None for claim in group.waiting),
        announcements=tuple(_announcements(left, pods_of, snapshot)),
        caps=rest,
    )


def _purchase(
    group: FleetGroup, price: float | None, pods: Sequence[str], urgency_of: Mapping[str, Urgency]
) -> Purchase:
    """``price``: $/h of one instance; None for a call that buys nothing, which fits under every cap."""
    count = 0 if price is None else len(group.waiting)
    return Purchase.for_pods(count, count * (price or 0.0), pods, urgency_of)


def cheapest(group: FleetGroup, types: Mapping[str, Sequence[InstanceType]]) -> float | None:
    """$/h by AWS's list of the cheapest instance that the call may get; None if nothing that it allows is on sale."""
    claim = group.claims[0]
    choice = filtered(claim, types_of(claim, types) or (), group.requests)
    if choice is None:
        return None
    prices = ((one.price, one.list_price) for candidate in choice.types for one in candidate.offerings)
    return min(prices, default=(0.0, None))[1]


def _announcements(
    left: Sequence[tuple[NodeClaim, Reason]], pods_of: Mapping[str, Sequence[str]], snapshot: Snapshot
) -> Iterator[Announce]:
    """For each claim that is left the reason, and then for each of its pods that wait."""
    for claim, reason in left:
        yield Announce("LaunchHeldBack", f"not launched yet: {reason}", claim)
    waiting = {pod.key: pod for pod in snapshot.pods if not pod.spec.node_name}
    for claim, reason in left:
        for pod in pods_of[claim.metadata.name]:
            if pod in waiting:
                yield Announce("FailedScheduling", f"no node for it yet: {reason}", waiting[pod])
