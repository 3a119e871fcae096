"""Shares on demand: of a workload's pods so many run on on-demand capacity, and the others where it is cheapest.

kube-scheduler cannot count that. A spread over capacity types knows halves, and its domains are missing where a
NodePool sells one of them alone. So such pods wait at a scheduling gate (Kubernetes "Pod Scheduling Readiness"), while
which the API server lets their node affinity be narrowed. Here it is decided which are narrowed to on-demand capacity;
all others lose the gate as they are. From then on a pod's own affinity says where it may run, which kube-scheduler,
plans and moves obey alike. A pod that is evicted is made anew, waits at the gate, and takes the place of the one that
went.

A workload is the pods of one controller. A Deployment's rollout makes a ReplicaSet, whose pods are counted anew.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from joinery.decisions.scheduling.constraints.podclasses import terms_of
from joinery.objects.actions import Announce, UpdatePod
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ON_DEMAND_SHARE, SPOT
from joinery.objects.kubernetes.core import NodeSelectorRequirement, Pod
from joinery.objects.kubernetes.node_affinity import narrowed
from joinery.objects.policies import OnDemandShare, on_demand_share_of
from joinery.objects.snapshot.pods import controller_of, is_active
from joinery.objects.snapshot.pool_shares import ON_DEMAND_KINDS

_ON_DEMAND = NodeSelectorRequirement(key=CAPACITY_TYPE, operator="In", values=sorted(ON_DEMAND_KINDS))


@dataclass(frozen=True)
class Shares:
    """``let_through``: the pods that lose the gate. ``faults``: those whose annotation says nothing."""

    let_through: Sequence[UpdatePod] = ()
    faults: Sequence[Announce] = ()


def on_demand_shares(pods: Sequence[Pod]) -> Shares:
    """Which pods at the gate are let through, and as what; by name, so that each run decides the same."""
    waiting: dict[Hashable, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.spec.scheduling_gates and _waits(pod):
            waiting[_workload(pod)].append(pod)
    if not waiting:
        return Shares()
    others: dict[Hashable, list[Pod]] = defaultdict(list)
    for pod in pods:
        if is_active(pod) and not _waits(pod) and (workload := _workload(pod)) in waiting:
            others[workload].append(pod)
    let_through, faults = list[UpdatePod](), list[Announce]()
    for workload, gated in waiting.items():
        passing = []
        for pod in sorted(gated, key=lambda pod: pod.key):
            share = _share(pod)
            if isinstance(share, OnDemandShare):
                passing.append((pod, share))
            else:
                faults.append(Announce("InvalidOnDemandShare", f"{ON_DEMAND_SHARE}: {share}", pod))
        let_through += _dealt(passing, others[workload])
    return Shares(let_through, faults)


def with_shares(pods: Sequence[Pod]) -> tuple[Pod, ...]:
    """The pods as they are once they are let through."""
    after = {update.before.key: update.after for update in on_demand_shares(pods).let_through}
    return tuple(after.get(pod.key, pod) for pod in pods) if after else tuple(pods)


def past_the_gate(pods: Sequence[Pod]) -> Iterable[Pod]:
    """The pods without a node whose annotation does nothing: no pod of their workload has waited at the gate."""
    annotated = [pod for pod in pods if ON_DEMAND_SHARE in pod.metadata.annotations]
    dealt = {_workload(pod) for pod in annotated if _waits(pod) or _is_on_demand(pod)}
    for pod in annotated:
        share = _share(pod)
        is_asked_for = isinstance(share, OnDemandShare) and share.of(1) > 0
        if is_asked_for and not pod.spec.node_name and is_active(pod) and _workload(pod) not in dealt:
            yield pod


def _dealt(passing: Sequence[tuple[Pod, OnDemandShare]], others: Sequence[Pod]) -> Iterable[UpdatePod]:
    """The pods of one workload as they are let through. ``others``: those that wait at the gate no longer."""
    there = [*others, *(pod for pod, _ in passing)]
    count, on_demand = len(there), sum(map(_is_on_demand, there))
    for pod, share in passing:
        wanted = share.of(count)
        if on_demand < wanted and not _is_on_demand(pod) and _may_be_on_demand(pod):
            on_demand += 1
            why = f"{wanted} of the {count} pods of its workload run on demand, and this is number {on_demand}"
            yield UpdatePod(pod, _open(narrowed(pod, _ON_DEMAND)), why)
        else:
            why = f"it runs where it may: {on_demand} of the {count} pods of its workload run on demand, of {wanted}"
            yield UpdatePod(pod, _open(pod), why)


def _waits(pod: Pod) -> bool:
    gates = pod.spec.scheduling_gates
    return any(gate.name == ON_DEMAND_SHARE for gate in gates) and not pod.spec.node_name and is_active(pod)


def _workload(pod: Pod) -> Hashable:
    """Whose pods are counted together; of a pod that no controller has made, its own."""
    owner = controller_of(pod)
    return (pod.metadata.namespace, owner.kind, owner.name, owner.uid) if owner else pod.key


def _share(pod: Pod) -> OnDemandShare | str:
    """What its annotation says, or what is wrong with it."""
    try:
        return on_demand_share_of(pod.metadata.annotations[ON_DEMAND_SHARE])
    except KeyError:
        return "the pod has no such annotation"
    except ValueError as error:
        return str(error)


def _is_on_demand(pod: Pod) -> bool:
    """Whether it may run on nothing else."""
    return not any(term.get(CAPACITY_TYPE).has(SPOT) for term in terms_of(pod, []))


def _may_be_on_demand(pod: Pod) -> bool:
    return any(term.get(CAPACITY_TYPE).has(kind) for term in terms_of(pod, []) for kind in _ON_DEMAND.values)


def _open(pod: Pod) -> Pod:
    """The pod without the gate. Another's gate stays."""
    gates = [gate for gate in pod.spec.scheduling_gates if gate.name != ON_DEMAND_SHARE]
    return replace(pod, spec=replace(pod.spec, scheduling_gates=gates))
