"""Which launches a run may make under its caps.

A cap must not keep every pod waiting because one Deployment runs away. So purchases are admitted one by one, the most
urgent first: those for pods on nodes that are lost whatever we do, those for pods on nodes that we retire, and then
those for pods that wait, by their priority. Where these are alike, namespaces take turns: however many pods one of them
has, it is bought a second node only after each other was bought its first. A purchase that does not fit beside those
before it is passed over, and smaller ones after it may still fit.

A purchase is a launch of a plan, or the CreateFleet call of claims that a killed run left behind. It counts by AWS's
list: a cap is about the bill, and a NodeOverlay may say that nodes cost nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from joinery.decisions.scheduling.packing import Launch, Unplaced
from joinery.decisions.scheduling.pools.deaths import Hold
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.objects.policies import Caps
from joinery.objects.snapshot.urgency import LEAST_URGENT, Urgency, namespace_of

#: $/h: sums of prices differ by so much, depending on the order of their terms.
_NEGLIGIBLE = 1e-9


class Cap(StrEnum):
    """The cap that a purchase does not fit under; the setting of that name."""

    LAUNCHES = "MaxLaunches"
    HOURLY = "MaxHourly"


@dataclass(frozen=True, slots=True)
class Purchase:
    """Instances that are bought together or not at all.

    ``hourly``: $/h of all of them by AWS's list. ``urgency``: of the most urgent pods that they are for;
    ``namespaces``: whose these are. ``pods``: how many pods they are for.
    """

    instances: int
    hourly: float
    urgency: Urgency = LEAST_URGENT
    pods: int = 0
    namespaces: frozenset[str] = frozenset()

    @classmethod
    def for_pods(
        cls, instances: int, hourly: float, pods: Iterable[str], urgencies: Mapping[str, Urgency]
    ) -> "Purchase":
        """``pods``: namespace/name, those that they are for. ``urgencies``: by pod."""
        urgency_of = {pod: urgencies.get(pod, LEAST_URGENT) for pod in pods}
        first = min(urgency_of.values(), default=LEAST_URGENT)
        namespaces = frozenset(namespace_of(pod) for pod, urgency in urgency_of.items() if urgency == first)
        return cls(instances, hourly, first, len(urgency_of), namespaces)


def purchase_of(launches: Sequence[Launch], urgencies: Mapping[str, Urgency]) -> Purchase:
    """Launches that are made together or not at all."""
    pods = [pod for launch in launches for pod in launch.pods]
    return Purchase.for_pods(len(launches), sum(one.offering.list_price for one in launches), pods, urgencies)


def admit(
    purchases: Sequence[Purchase], caps: Caps, served: Mapping[str, int] = MappingProxyType({})
) -> tuple[Cap | None, ...]:
    """For each purchase, in the order given, the cap that it does not fit under; None if it is admitted.

    Equally urgent purchases come in turns of their namespaces. ``served``: by namespace, how many turns it has had
    before (``objects.snapshot.urgency.lately_served``). Within a turn those for more pods come first, then the cheaper
    ones.
    """
    verdicts: list[Cap | None] = [None] * len(purchases)
    turns = _turns(purchases, served)
    for index in sorted(range(len(purchases)), key=lambda i: (purchases[i].urgency, turns[i], *_rank(purchases[i]))):
        bought = caps.after(purchases[index].instances, purchases[index].hourly)
        verdicts[index] = _exceeded(bought)
        if verdicts[index] is None:
            caps = bought
    return tuple(verdicts)


def _turns(purchases: Sequence[Purchase], served: Mapping[str, int]) -> Sequence[int]:
    """For each purchase, how many its namespace gets before it; of several namespaces, the one with fewest counts."""
    turns = [0] * len(purchases)
    taken = Counter(served)
    for index in sorted(range(len(purchases)), key=lambda i: (purchases[i].urgency, *_rank(purchases[i]))):
        turns[index] = min((taken[namespace] for namespace in purchases[index].namespaces), default=0)
        taken.update(purchases[index].namespaces)
    return turns


def _rank(purchase: Purchase) -> tuple[int, float, Sequence[str]]:
    return -purchase.pods, purchase.hourly, sorted(purchase.namespaces)


def _exceeded(caps: Caps) -> Cap | None:
    if caps.max_launches is not None and caps.launched > caps.max_launches:
        return Cap.LAUNCHES
    if caps.max_hourly is not None and caps.hourly > caps.max_hourly + _NEGLIGIBLE:
        return Cap.HOURLY
    return None


def is_too_dear(launch: Launch, caps: Caps) -> bool:
    """Whether a launch does not even fit into a run that buys nothing else."""
    return _exceeded(Caps(max_hourly=caps.max_hourly, hourly=launch.offering.list_price)) is not None


def fits(launches: Sequence[Launch], caps: Caps, trials: Sequence[Hold | None] = ()) -> bool:
    """Whether all launches of a plan may be made, so that it does not matter which come first."""
    tried = [hold for hold in trials if hold is not None]
    return (
        len(tried) == len(set(tried))
        and _exceeded(caps.after(len(launches), sum(launch.offering.list_price for launch in launches))) is None
    )


@dataclass(frozen=True)
class Admission:
    """The launches of a plan, those that may be made and those that the caps leave out.

    ``unplaced``: the pods of the launches that are left out, each with the cap in its way.
    """

    launches: tuple[Launch, ...]
    left_out: tuple[Launch, ...]
    unplaced: tuple[Unplaced, ...]

    def without_launches(self) -> "Admission":
        """The same with every launch left out, for the reason of the first that is left out already."""
        others = (Unplaced(pod, self.unplaced[0].reasons) for launch in self.launches for pod in launch.pods)
        return Admission((), (*self.launches, *self.left_out), (*self.unplaced, *others))


def admit_launches(
    launches: Sequence[Launch],
    caps: Caps,
    urgencies: Mapping[str, Urgency],
    served: Mapping[str, int] = MappingProxyType({}),
    trials: Sequence[Hold | None] = (),
    bundles: Sequence[Sequence[int]] | None = None,
) -> Admission:
    """Admit the launches of a plan. ``urgencies``: by pod (namespace/name). ``served``: as ``admit`` has it.

    ``trials``: by launch, the hold that it would try, if any (``pools.deaths``). Of each hold the most urgent launch is
    admitted. ``bundles``: which launches are made together or not at all, each in one bundle; each by itself if None.
    """
    bundled = [range(index, index + 1) for index in range(len(launches))] if bundles is None else bundles
    purchases = [purchase_of([launches[index] for index in bundle], urgencies) for bundle in bundled]
    reasons = [over(cap, caps) if cap else None for cap in admit(purchases, caps, served)]
    begun: set[Hold] = set()
    for number in sorted(range(len(purchases)), key=lambda number: purchases[number].urgency) if trials else ():
        holds = {hold for index in bundled[number] if (hold := trials[index]) is not None}
        if reasons[number] is None:
            reasons[number] = next((hold.reason for hold in sorted(holds & begun, key=str)), None)
            begun |= holds if reasons[number] is None else set()
    of_launch = {index: reason for bundle, reason in zip(bundled, reasons, strict=True) for index in bundle}
    judged = [(launch, of_launch[index]) for index, launch in enumerate(launches)]
    return Admission(
        launches=tuple(launch for launch, reason in judged if reason is None),
        left_out=tuple(launch for launch, reason in judged if reason is not None),
        unplaced=tuple(Unplaced(pod, (reason,)) for launch, reason in judged if reason for pod in launch.pods),
    )


def over(cap: Cap, caps: Caps) -> Reason:
    """Why a pod is left out for a cap."""
    template = "its node would exceed {cap} ({limit} a run) beside those that come first; the next run tries again"
    return Reason.of(ReasonCode.CAPS, template, cap=cap.value, limit=_limit(cap, caps))


def cap_alone(purchase: Purchase, caps: Caps) -> Cap | None:
    """The cap under which no run may ever make the purchase; None if one may that buys nothing else."""
    whole = Caps(max_launches=caps.max_launches, max_hourly=caps.max_hourly)
    return _exceeded(whole.after(purchase.instances, purchase.hourly))


def over_alone(cap: Cap, purchase: Purchase, caps: Caps, gang: str) -> Reason:
    """Why no run may ever make a purchase for this gang."""
    figures = {"gang": gang, "cap": cap.value, "limit": _limit(cap, caps)}
    if cap is Cap.LAUNCHES:
        template = "{gang} needs {nodes} nodes together, more than {cap} lets a run launch ({limit})"
        return Reason.of(ReasonCode.CAPS, template, nodes=purchase.instances, **figures)
    template = "the nodes of {gang} cost {price} $/h together, more than {cap} lets a run buy ({limit})"
    return Reason.of(ReasonCode.CAPS, template, price=f"{purchase.hourly:.2f}", **figures)


def _limit(cap: Cap, caps: Caps) -> int | str:
    return (caps.max_launches or 0) if cap is Cap.LAUNCHES else f"{caps.max_hourly:.2f} $/h"
