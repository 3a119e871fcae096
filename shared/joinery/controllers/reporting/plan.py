"""Events on pods about a plan, and lines in the log.

Users who may create pods decide how many there are, so their number is bounded. What has not changed is not sent again
in the next run (``ChangeMonitor``, ``Recorder.is_news``). Of what is new a run sends a bounded number, and namespaces
take turns. No text is longer than an Event's note.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import TypeVar

from joinery.controllers.acting.announcements import announce, news
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.launching.claim_writer import ClaimWriter
from joinery.controllers.reporting.change_monitor import ChangeMonitor
from joinery.controllers.telemetry import CODE, NODE_POOL, POD, REASON, logger
from joinery.decisions.scheduling.explain.elsewhere import also_served, bought_twice, foreign
from joinery.decisions.scheduling.packing import Launch, Packing, Unplaced
from joinery.decisions.scheduling.pool_shares import not_kept
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.gateways.bundles import Gateways
from joinery.objects.actions import Announce
from joinery.objects.annotations.plans import needs, unserved_needs
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.pods import is_virtual
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.snapshot.urgency import namespace_of
from joinery.objects.wording import shortened

T = TypeVar("T")


def report(  # noqa: PLR0913
    gateways: Gateways,
    invocation: Invocation,
    snapshot: Snapshot,
    packing: Packing,
    writer: ClaimWriter,
    monitor: ChangeMonitor,
) -> None:
    """Write an Event for each pod, where it is expected or why it has no node, and to the log what concerns many pods.

    ``monitor``: knows what earlier runs have logged.
    """
    pods = snapshot.pods_by_key
    others = foreign(snapshot)
    left_to_others = also_served((unplaced.pod for unplaced in packing.unplaced), pods, others)
    # A pod that another provider may serve gets no Event that there is no node for it: that would be wrong.
    without_node = [unplaced for unplaced in packing.unplaced if unplaced.pod not in left_to_others]
    _log_pools(packing, snapshot, monitor)
    _log_others(left_to_others, bought_twice(packing, pods, others), monitor, snapshot.now)
    _log_unplaced(without_node, monitor, snapshot.now)
    claim_of_pod = {pod: written.claim.metadata.name for written in writer.written for pod in written.launch.pods}
    announcements = (
        _nominated(packing, claim_of_pod, pods),
        _failed(without_node, pods),
        _observed(writer.observed, pods),
        _not_bound(snapshot, packing, pods),
        _shares_not_kept(snapshot, packing),
    )
    announce(gateways, invocation, news(gateways, chain.from_iterable(announcements)))


def _nominated(packing: Packing, claim_of_pod: Mapping[str, str], pods: Mapping[str, Pod]) -> Iterator[Announce]:
    """Where each pod that waits is expected. ``claim_of_pod``: the name of the claim that was written for it."""
    places = {
        pod: f"node/{placement.node}" if placement.node else f"nodeclaim/{placement.node_claim}"
        for placement in packing.existing
        for pod in placement.pods
    }
    places |= {pod: f"nodeclaim/{name}" for pod, name in claim_of_pod.items()}
    for pod, place in _of_waiting(places.items(), pods):
        yield Announce("Nominated", f"pod should schedule on {place}", pod)


def _shares_not_kept(snapshot: Snapshot, packing: Packing) -> Iterator[Announce]:
    """Which NodePools have too few nodes on demand with what is bought of them."""
    for name, why in not_kept(snapshot.pool_shares, packing.launches).items():
        yield Announce("OnDemandShareNotKept", why, snapshot.pools_by_name[name])


def _not_bound(snapshot: Snapshot, packing: Packing, pods: Mapping[str, Pod]) -> Iterator[Announce]:
    """Which pods have room on a node that was kept for pods like them, and kube-scheduler bound none of them there."""
    in_vain = {claim.metadata.name: unserved_needs(claim) for claim in snapshot.managed_claims}
    places = ((pod, place) for place in packing.existing if in_vain.get(place.node_claim) for pod in place.pods)
    for pod, place in _of_waiting(places, pods):
        if needs(pod) in in_vain[place.node_claim]:
            said = next((condition.message for condition in pod.status.conditions if condition.message), "nothing")
            text = (
                f"node/{place.node} fits by all that Joinery knows and was kept for pods like it, but kube-scheduler "
                f"bound none of them there. It says: {said}"
            )
            yield Announce("NotBound", text, pod)


def _observed(launches: Iterable[Launch], pods: Mapping[str, Pod]) -> Iterator[Announce]:
    """What would be bought for each pod that waits, if it were not for ``observe`` mode."""
    launch_of = ((pod, launch) for launch in launches for pod in launch.pods)
    for pod, launch in _of_waiting(launch_of, pods):
        text = f"observe mode: would launch {launch.offering.instance_type} or better of NodePool {launch.node_pool}"
        yield Announce("Observed", text, pod)


def _of_waiting(by_name: Iterable[tuple[str, T]], pods: Mapping[str, Pod]) -> Iterator[tuple[Pod, T]]:
    """Those of pods that wait. A pod that is bound, on a node that goes, has nothing to do with its next place yet.
    A buffer's chunks are no pods that anybody could look at: its own status says what becomes of them.
    """
    known = ((pods[name], news) for name, news in by_name if name in pods)
    return ((pod, news) for pod, news in known if not pod.spec.node_name and not is_virtual(pod))


def _failed(without_node: Iterable[Unplaced], pods: Mapping[str, Pod]) -> Iterator[Announce]:
    """Why each pod without a place has none."""
    for unplaced in without_node:
        if unplaced.pod in pods:
            yield Announce("FailedScheduling", f"no node for it: {_text(unplaced.reasons)}", pods[unplaced.pod])


def _text(reasons: Iterable[Reason]) -> str:
    """The reasons as one sentence. Each is shortened by itself, so that a long one does not cut off the others."""
    return "; ".join(shortened(str(reason)) for reason in reasons)


def _log_pools(packing: Packing, snapshot: Snapshot, monitor: ChangeMonitor) -> None:
    """Which of our NodePools take no part. That another provider's and static ones take none is how it should be."""
    theirs = {pool.metadata.name for pool in snapshot.node_pools if not snapshot.serves(pool)}
    ours = [
        (reason.subject.name, reason)
        for reason in packing.pool_reasons
        if reason.subject and reason.subject.name not in theirs and reason.code is not ReasonCode.STATIC
    ]
    for pool, reason in monitor.news(ours, lambda line: line[1], lambda line: line[0], snapshot.now).lines:
        why = {NODE_POOL: pool, CODE: reason.code, REASON: reason.message}
        logger.warning("a NodePool takes no part", extra=why)


def _log_others(left_to_others: Mapping[str, str], bought_twice: str, monitor: ChangeMonitor, now: datetime) -> None:
    """What another provider's NodePools have to do with the plan.

    ``left_to_others``: by pod, a NodePool that may serve it.
    """
    pools = ", ".join(sorted(set(left_to_others.values())))
    if left_to_others and _is_news(monitor, (len(left_to_others), pools), now):
        why = {POD: next(iter(left_to_others)), REASON: f"NodePools of another provider may serve them: {pools}"}
        logger.info(f"{len(left_to_others)} pods are left to others", extra=why)
    if bought_twice and _is_news(monitor, bought_twice, now):
        logger.warning("pods may get two nodes", extra={REASON: bought_twice})


def _is_news(monitor: ChangeMonitor, line: Hashable, now: datetime) -> bool:
    return bool(monitor.news([line], lambda line: line, str, now).lines)


def _log_unplaced(without_node: Sequence[Unplaced], monitor: ChangeMonitor, now: datetime) -> None:
    """One line for pods that fail for the same reasons, with the first of them: a Deployment's pods fail alike."""
    pods_by_reasons: dict[tuple[Reason, ...], list[str]] = {}
    for unplaced in without_node:
        pods_by_reasons.setdefault(unplaced.reasons, []).append(unplaced.pod)
    news_of_log = monitor.news(
        pods_by_reasons.items(), key=lambda line: line[0], whose=lambda line: namespace_of(line[1][0]), now=now
    )
    for reasons, pods in news_of_log.lines:
        codes = ", ".join(dict.fromkeys(reason.code for reason in reasons))
        why = {POD: pods[0], CODE: codes, REASON: shortened(_text(reasons))}
        logger.warning(f"{len(pods)} pods fit nowhere", extra=why)
    if news_of_log.left:
        logger.warning(f"pods fit nowhere for {news_of_log.left} other reasons, which later runs say")
