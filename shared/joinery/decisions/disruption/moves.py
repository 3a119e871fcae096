"""What it is worth not to move a pod: the price of its eviction in dollars, and how soon savings must repay it.

- An **ordinary** pod costs ``DisruptionOptions.move_price``, or what ``joinery.dev/disruption-price`` on its NodePool
  says.
- Its **disruption cost** multiplies that: Karpenter's figure from what its annotations say (``eviction_cost``) and
  the pod's priority, which is 1 for an ordinary pod. Below 0 it counts as 0.
- The **only replica** of its workload counts twice: while it moves, nobody does its work. It counts so only if
  the number of replicas is known (``DisruptionProblem.replicas``): a file may hold one pod of many.
- A pod that **runs to completion** (a Job's, or one that is not restarted when it ends well) begins anew elsewhere, so
  what it has done is lost. That is the price of its share of the node since it started, or one ordinary eviction for
  each ten minutes, whichever is more: a light pod that waited for hours has lost hours too.
- Such a pod with ``activeDeadlineSeconds`` **ends soon** by itself if its time is up before the payback time is over.
  Moving it frees its share for that long only. The rest of the payback time is no gain, so it is added to its price.
- A node that **expires soon**, before the payback time is over, has all of its pods evicted then. So an eviction now
  counts for as much of its price as is left of that time. Karpenter has the cost of a node fall with its age in the
  same way, over its whole lifetime (`disruption.LifetimeRemaining`).
- A pod that was **displaced** lately (``objects.annotations.displacement``) may need a new node once more. The price
  of that node over the payback time counts once for all pods of its workload on a node, and less the longer ago it was:
  after a day nothing is left of it. Each failed try adds as much and a day, so they become ever less frequent.
- ``joinery.dev/disruption-price`` on the pod takes the place of all that.

Pods that do not move cost nothing, and neither does the room of a buffer. With ``move_price`` 0 no move costs anything:
that asks what the cluster could cost. With a NodePool's price 0 only pods with a price of their own cost anything to
move from its nodes.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from joinery.decisions.disruption.expiration import expires_at
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.decisions.scheduling.problem import EvictionPrices
from joinery.objects.annotations.displacement import displacement_of
from joinery.objects.karpenter.disruption import OUR_DELETION_COST, dollars_of, payback_of, switch_of
from joinery.objects.karpenter.duration import spoken
from joinery.objects.karpenter.labels import (
    DISRUPTION_COST,
    DISRUPTION_PRICE,
    NEW_NODES_REPAY,
    PAYBACK,
    POD_DELETION_COST,
)
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Pod
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import (
    controller_of,
    is_active,
    is_owned_by,
    is_reschedulable,
    is_terminating,
    is_virtual,
    owner_uid,
    priorities_of,
    priority_of,
)
from joinery.objects.snapshot.snapshot import Snapshot

T = TypeVar("T")
_HOUR = timedelta(hours=1)
#: How long a pod that runs to completion runs until losing its work counts as much as an eviction.
_WORK_OF_AN_EVICTION = timedelta(minutes=10)
#: For how long a failed try makes the next one dearer. Load has a daily rhythm: pods that had no room yesterday at this
#: time may have it today.
_DISPLACEMENT_FORGOTTEN = timedelta(days=1)
#: What fills a node. Other resources have no price of their own.
_PRICED = ("cpu", "memory")
#: Seconds: longer than any time of payback.
_FOREVER = timedelta(days=365_000).total_seconds()
_TEMPLATE_HASH = "pod-template-hash"
_LEAST_COST, _MOST_COST = -10.0, 10.0
#: How much of either makes a pod count one more (Karpenter `GetPodEvictionCost`).
_COST_UNIT, _PRIORITY_UNIT = 2.0**27, 2.0**25


class MoveCause(StrEnum):
    """Why a move costs what it does. The spelling is part of what users see."""

    EVICTION = "Eviction"
    DISRUPTION_COST = "DisruptionCost"
    ONLY_REPLICA = "OnlyReplica"
    LOST_WORK = "LostWork"
    ENDS_SOON = "EndsSoon"
    EXPIRES_SOON = "ExpiresSoon"
    DISPLACED = "Displaced"
    ANNOTATION = "Annotation"


@dataclass(frozen=True, slots=True)
class MovePart:
    """A part of a price. ``dollars``: what it adds; negative where it makes the move cheaper."""

    cause: MoveCause
    dollars: float
    message: str


@dataclass(frozen=True, slots=True)
class MovePrice:
    """What moving one pod costs. ``parts`` add up to ``dollars``.

    ``unread``: what is wrong with the pod's own price. The price is then what it would be without. Someone meant
    another one, so the node is not consolidated.
    """

    dollars: float = 0.0
    parts: tuple[MovePart, ...] = ()
    unread: Objection | None = None


@dataclass(frozen=True, slots=True)
class PoolTerms:
    """What a NodePool says of moves from its nodes.

    ``ordinary``: dollars for an ordinary pod. ``payback``: what a command saves must repay its moves within this time.
    ``new_nodes_repay``: whether its new nodes stay until they have paid for themselves. ``unread``: what is wrong
    with an annotation of the pool.
    """

    ordinary: float
    payback: timedelta
    new_nodes_repay: bool
    unread: Objection | None = None


_FREE = MovePrice()


class MovePrices:
    """Prices the moves of one problem. Most pods are ordinary, and all of these share one price."""

    def __init__(self, problem: DisruptionProblem) -> None:
        snapshot = problem.packing.snapshot
        self._options, self._now, self._replicas = problem.options, snapshot.now, problem.replicas
        self._priorities = priorities_of(snapshot.priority_classes)
        self._terms = {pool.metadata.name: self._terms_of(pool) for pool in snapshot.node_pools}
        self._expires = {
            claim.metadata.name: at for claim in snapshot.managed_claims if (at := expires_at(claim)) is not None
        }
        self._displaced = _displaced(snapshot)
        self._shared: dict[tuple[float, float, bool], MovePrice] = {}

    def terms(self, pool: str) -> PoolTerms:
        """What the NodePool of that name says of moves from its nodes."""
        return self._terms[pool]

    def weight(self, pod: Pod) -> float:
        """How many evictions the pod's counts as by Karpenter's disruption cost; never negative."""
        return max(0.0, eviction_cost(pod, self._priorities))

    def price(self, pod: Pod, view: NodeView, hourly: float) -> MovePrice:
        """What moving the pod costs. ``view``: its node, which has a NodePool; ``hourly``: the node's price in $/h.

        Pods that do not move cost nothing: those of DaemonSets and of the kubelet itself, and those that have finished.
        Nor does a pod that is on its way out already.
        """
        return self.price_of_moving(pod, view, hourly) if is_reschedulable(pod) else _FREE

    def price_of_moving(self, pod: Pod, view: NodeView, hourly: float) -> MovePrice:
        """The same for a pod that is known to move (``objects.snapshot.pods.is_reschedulable``): there are a hundred
        thousand."""
        if not self._options.move_price or is_terminating(pod) or is_virtual(pod):
            return _FREE
        unread = None
        if DISRUPTION_PRICE in pod.metadata.annotations:
            try:
                return _own_price(pod)
            except ValueError as error:
                text = f"pod {pod.key} has the annotation {DISRUPTION_PRICE}, and {error}"
                unread = Objection(ObjectionCode.POD, text)
        terms = self._terms[view.pool]
        price = self._with_losses(pod, view, hourly, terms) if terms.ordinary else _FREE
        return MovePrice(price.dollars, price.parts, unread) if unread else price

    def evictions(self, pods: Iterable[Pod]) -> EvictionPrices:
        """What the evictions alone cost, of pods that may have no node yet. A price that cannot be read is none."""
        own, weights = {}, {}
        for pod in pods:
            if DISRUPTION_PRICE in pod.metadata.annotations:
                with suppress(ValueError):
                    own[pod.key] = _own_price(pod).dollars
            weight = self.weight(pod) * (2 if self._is_only_replica(pod) else 1)
            if weight != 1.0:
                weights[pod.key] = weight
        ordinary = {name: terms.ordinary for name, terms in self._terms.items()}
        return EvictionPrices(own=own, weights=weights, ordinary=ordinary)

    def _terms_of(self, pool: NodePool) -> PoolTerms:
        ordinary, not_priced = _read(pool, DISRUPTION_PRICE, dollars_of, self._options.move_price)
        payback, not_timed = _read(pool, PAYBACK, payback_of, self._options.payback)
        repay, not_switched = _read(pool, NEW_NODES_REPAY, switch_of, self._options.new_nodes_repay)
        return PoolTerms(ordinary, payback, repay, not_priced or not_timed or not_switched)

    def _with_losses(self, pod: Pod, view: NodeView, hourly: float, terms: PoolTerms) -> MovePrice:
        """The price of the eviction, and of what is lost or bought with it."""
        price = self._anyway(self._evicted(pod, terms.ordinary), view, terms)
        losses = list(self._begun_anew(pod, view, hourly, terms)) if runs_to_completion(pod) else []
        bought = self._displaced.get(owner_uid(pod)) if self._displaced else None
        if bought is not None:
            message = "a node had to be bought for pods of its workload when they were moved lately"
            share = bought * (terms.payback / _HOUR) / _movable_of(owner_uid(pod), view)
            losses.append(MovePart(MoveCause.DISPLACED, share, message))
        return _sum(*price.parts, *losses) if losses else price

    def _evicted(self, pod: Pod, ordinary: float) -> MovePrice:
        """The price of the eviction alone."""
        key = (ordinary, self.weight(pod), self._is_only_replica(pod))
        if key not in self._shared:
            self._shared[key] = _sum(*_eviction_parts(*key))
        return self._shared[key]

    def _anyway(self, price: MovePrice, view: NodeView, terms: PoolTerms) -> MovePrice:
        """The price of an eviction that may come anyway, because the node expires."""
        at = self._expires.get(view.claim)
        if at is None or at - self._now >= terms.payback:
            return price
        left = max(timedelta(), at - self._now)
        share = left / terms.payback if left else 0.0
        when = f"expires within {spoken(left)}, and it is evicted then" if left else "has expired, and it is evicted"
        message = f"its node {when} anyway"
        return _sum(*price.parts, MovePart(MoveCause.EXPIRES_SOON, price.dollars * (share - 1), message))

    def _is_only_replica(self, pod: Pod) -> bool:
        """Whether the largest workload that it belongs to, of those that are known, keeps one pod."""
        if not self._replicas or runs_to_completion(pod):
            return False
        known = [self._replicas[name] for name in workloads_of(pod) if name in self._replicas]
        return bool(known) and known[-1] == 1

    def _begun_anew(self, pod: Pod, view: NodeView, hourly: float, terms: PoolTerms) -> Iterator[MovePart]:
        """What is lost when a pod that runs to completion begins anew."""
        started = pod.status.start_time or pod.metadata.creation_timestamp
        if started is None:
            return
        run = max(timedelta(), self._now - started)
        share = _share(pod, view)
        lost = max(hourly * share * (run / _HOUR), terms.ordinary * (run / _WORK_OF_AN_EVICTION))
        yield MovePart(MoveCause.LOST_WORK, lost, f"it has run for {spoken(run)}, and would begin anew")
        if pod.spec.active_deadline_seconds is not None:
            left = timedelta(seconds=min(max(0.0, pod.spec.active_deadline_seconds - run.total_seconds()), _FOREVER))
            if left < terms.payback:
                gainless = hourly * share * ((terms.payback - left) / _HOUR)
                yield MovePart(MoveCause.ENDS_SOON, gainless, f"it ends by itself within {spoken(left)}")


def eviction_prices(problem: DisruptionProblem) -> EvictionPrices:
    """What an interruption of a pod's node would cost.

    What a pod that runs to completion loses is not in it: nobody knows how long it will have run by then.
    """
    return MovePrices(problem).evictions(problem.packing.snapshot.pods)


def _displaced(snapshot: Snapshot) -> Mapping[str, float]:
    """By UID of an owner, $/h of the nodes that were bought for its displaced pods: less, the longer ago it was."""
    hourly: dict[str, float] = defaultdict(float)
    for claim in snapshot.managed_claims:
        displacement, bought = displacement_of(claim), claim.metadata.creation_timestamp
        if displacement is not None and bought is not None:
            forgotten = max(timedelta(), snapshot.now - bought) / _DISPLACEMENT_FORGOTTEN
            if displacement.tries > forgotten:
                for owner in displacement.owners:
                    hourly[owner] += displacement.price * (displacement.tries - forgotten)
    return hourly


def _movable_of(owner: str, view: NodeView) -> int:
    """How many pods of that owner would move with the node: one new node is for all of them."""
    moving = (pod for pod in view.pods if is_reschedulable(pod) and not is_terminating(pod))
    return max(1, sum(owner_uid(pod) == owner for pod in moving))


def workloads_of(pod: Pod) -> tuple[str, ...]:
    """Who keeps a number of such pods, as ``Kind namespace/name``: the pod's controller, and the Deployment behind it.

    A ReplicaSet of a Deployment is named after it and after the hash of its template, which its pods have as a label.
    """
    controller = controller_of(pod)
    if controller is None:
        return ()
    namespace = pod.metadata.namespace or "default"
    own = f"{controller.kind} {namespace}/{controller.name}"
    template = pod.metadata.labels.get(_TEMPLATE_HASH, "")
    if controller.kind == "ReplicaSet" and template and controller.name.endswith(f"-{template}"):
        return own, f"Deployment {namespace}/{controller.name.removesuffix(f'-{template}')}"
    return (own,)


def replicas_of(pods: Iterable[Pod]) -> Mapping[str, int]:
    """How many pods each workload keeps (``DisruptionProblem.replicas``), counted.

    ``pods``: all of a cluster; of a part of them it would be wrong.
    """
    return Counter(name for pod in pods if is_active(pod) for name in workloads_of(pod))


def runs_to_completion(pod: Pod) -> bool:
    """Whether the pod does a piece of work and ends, so that a pod in its place begins with that work anew."""
    return pod.spec.restart_policy in ("Never", "OnFailure") or is_owned_by(pod, "batch/v1", "Job")


def _own_price(pod: Pod) -> MovePrice:
    """The price that the pod has as an annotation. Raises ``ValueError`` for one that cannot be read."""
    dollars = dollars_of(pod.metadata.annotations[DISRUPTION_PRICE])
    return _sum(MovePart(MoveCause.ANNOTATION, dollars, f"the pod's annotation {DISRUPTION_PRICE} says so"))


def _eviction_parts(ordinary: float, weight: float, is_only_replica: bool) -> Iterator[MovePart]:
    yield MovePart(MoveCause.EVICTION, ordinary, "it is evicted")
    if weight != 1.0:
        message = f"by its priority and its disruption cost it counts as {weight:.3g} pods"
        yield MovePart(MoveCause.DISRUPTION_COST, ordinary * (weight - 1.0), message)
    if is_only_replica:
        message = "it is the only pod of its workload, which stands still while it moves"
        yield MovePart(MoveCause.ONLY_REPLICA, ordinary * weight, message)


def _share(pod: Pod, view: NodeView) -> float:
    """How much of its node the pod holds, 0 to 1: of cpu or memory, whichever is more."""
    try:
        requests = requests_of(pod)
    except ValueError:
        return 1.0
    shares = (requests.get(name, 0) / view.allocatable[name] for name in _PRICED if view.allocatable.get(name))
    return min(1.0, max(shares, default=1.0))


def _read(pool: NodePool, key: str, read: Callable[[str], T], default: T) -> tuple[T, Objection | None]:
    """The value of a NodePool's annotation, or the default and what is wrong with it."""
    text = pool.metadata.annotations.get(key)
    try:
        return default if text is None else read(text), None
    except ValueError as error:
        text = f"its NodePool {pool.metadata.name} has the annotation {key}, and {error}"
        return default, Objection(ObjectionCode.POLICY, text)


def _sum(*parts: MovePart) -> MovePrice:
    return MovePrice(sum(part.dollars for part in parts), parts)


def eviction_cost(pod: Pod, priorities: Mapping[str, int]) -> float:
    """What it costs to evict a pod, without a unit, between -10 and 10: 1 for an ordinary one (Karpenter
    `GetPodEvictionCost`). ``priorities``: see ``objects.snapshot.pods.priorities_of``.

    It grows with the pod's priority and with ``karpenter.sh/disruption-cost``, or without it with
    ``controller.kubernetes.io/pod-deletion-cost``. A cost that is no number counts as none, and so does ours
    (``disruption.deletion_costs``): it tells a ReplicaSet in which order to shrink, and nothing of the pod's worth.
    """
    annotations = pod.metadata.annotations
    text = annotations.get(DISRUPTION_COST, annotations.get(POD_DELETION_COST, "0"))
    said = 0.0 if text == OUR_DELETION_COST else _number(text)
    cost = 1.0 + said / _COST_UNIT + priority_of(pod.spec, priorities) / _PRIORITY_UNIT
    return min(max(cost, _LEAST_COST), _MOST_COST)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0
