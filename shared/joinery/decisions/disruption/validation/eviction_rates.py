"""How many pods of a workload may be evicted voluntarily in a time (``joinery.dev/eviction-rate`` on its pods).

A PodDisruptionBudget bounds how many pods of a workload are missing at once. When each comes back within seconds, all
of them may still be moved again and again. A rate bounds that, and nothing has to be remembered for it: an evicted pod
is replaced by a new one, so a workload's young pods tell how many were evicted. A rollout and a scale-up make young
pods too; then the workload is disturbed already, and rests.

The pods that count are those that were created within the time of the rate, are on their way out, or are on a node that
goes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.moves import workloads_of
from joinery.objects.karpenter.disruption import Rate, eviction_rate_of
from joinery.objects.karpenter.labels import EVICTION_RATE
from joinery.objects.kubernetes.core import Pod
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import is_terminal, is_terminating
from joinery.objects.snapshot.snapshot import Snapshot

_CODE = ObjectionCode.POD_DISRUPTION_BUDGET


class EvictionRates:
    """What the rates of workloads still allow, while commands are taken one after another.

    Hardly any cluster has such pods; where none has, the other pods are not looked at.
    """

    def __init__(self, snapshot: Snapshot, nodes: Iterable[NodeView]) -> None:
        """``nodes``: all of the snapshot."""
        self._now = snapshot.now
        self._limited = {pod.key: pod for pod in snapshot.pods if EVICTION_RATE in pod.metadata.annotations}
        self._pods: dict[str, list[Pod]] = defaultdict(list)
        for pod in snapshot.pods if self._limited else ():
            if not is_terminal(pod):
                self._pods[_workload(pod)].append(pod)
        self._leaving = {view.node for view in nodes if view.node and view.is_leaving}
        self._taken: Counter[str] = Counter()
        self._counted: dict[tuple[str, Rate], int] = {}

    def objection(self, command: DecidedCommand) -> Objection | None:
        """Why the command evicts too many pods of a workload, as a sentence about it."""
        moving = [self._limited[name] for name in command.pods if name in self._limited]
        counts = Counter(map(_workload, moving))
        for pod in moving:
            if why := self._objection(pod, counts[_workload(pod)]):
                return why
        return None

    def take(self, command: DecidedCommand) -> None:
        """The command starts, so its pods count from now on."""
        self._taken.update(_workload(self._limited[name]) for name in command.pods if name in self._limited)

    def _objection(self, pod: Pod, count: int) -> Objection | None:
        """``count``: how many pods of its workload the command moves."""
        if unread := rate_objection(pod):
            return Objection(_CODE, unread.message)
        text, name = pod.metadata.annotations[EVICTION_RATE].strip(), _workload(pod)
        rate = eviction_rate_of(text)
        total, lately, taken = len(self._pods[name]), self._disturbed(name, rate), self._taken[name]
        if count + lately + taken <= rate.limit(total):
            return None
        others = f", commands before this one move {taken}" if taken else ""
        counted = f"of its {total} pods {lately} are new in that time or about to go"
        return Objection(_CODE, f"{name} has the eviction rate {text}: {counted}{others}, and this one moves {count}")

    def _disturbed(self, name: str, rate: Rate) -> int:
        """How many pods of the workload count within the rate's time."""
        if (name, rate) not in self._counted:
            self._counted[name, rate] = sum(self._is_disturbed(pod, rate) for pod in self._pods[name])
        return self._counted[name, rate]

    def _is_disturbed(self, pod: Pod, rate: Rate) -> bool:
        created = pod.metadata.creation_timestamp
        is_young = created is not None and self._now - created < rate.length
        return is_young or is_terminating(pod) or pod.spec.node_name in self._leaving


def rate_objection(pod: Pod) -> Objection | None:
    """What is wrong with the pod's rate, as a sentence about it."""
    text = pod.metadata.annotations.get(EVICTION_RATE)
    if text is None:
        return None
    try:
        eviction_rate_of(text)
    except ValueError as error:
        return Objection(
            ObjectionCode.POD, f"pod {pod.key} has the annotation {EVICTION_RATE}, which keeps it: {error}"
        )
    return None


def _workload(pod: Pod) -> str:
    """The largest workload that the pod belongs to; itself, if it has none."""
    return (f"Pod {pod.key}", *workloads_of(pod))[-1]
