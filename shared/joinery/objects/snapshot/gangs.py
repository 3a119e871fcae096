"""Gangs: pods that are scheduled all together, or at least so many of them, or not at all.

Who says so, and how (each is enforced by its own scheduler or controller; what is the same for a plan is here):

=====================  ================================================  =============================================
Kubernetes             ``spec.schedulingGroup.podGroupName`` of the pod  PodGroup, ``schedulingPolicy.gang.minCount``
coscheduling           label ``scheduling.x-k8s.io/pod-group``           PodGroup, ``minMember``
Volcano                annotation ``scheduling.k8s.io/group-name``, or   PodGroup, ``minMember``
                       ``scheduling.volcano.sh/group-name``
Kueue                  annotation or label                               annotation of each pod,
                       ``kueue.x-k8s.io/pod-group-name``                 ``kueue.x-k8s.io/pod-group-total-count``
ProvisioningRequest    none: virtual pods stand for it                   all of them (``decisions.headroom.requests``)
=====================  ================================================  =============================================

Sources: kube-scheduler's plugins GangScheduling and TopologyPlacementGenerator; scheduler-plugins
``apis/scheduling/v1alpha1``; Volcano ``apis/scheduling/v1beta1/labels.go``; Kueue
``pkg/controller/jobs/pod/constants``.

A pod whose PodGroup is missing waits, as its scheduler lets it wait: kube-scheduler does not try it (``PreEnqueue``),
coscheduling turns it down when it has found a node (``Permit``), Volcano leaves it out of its jobs. Where the cluster
does not serve that API (``Snapshot.unserved``) none of them is at work, and the label is a label.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from joinery.objects.karpenter.labels import PROVISIONING_REQUEST
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.podgroups import PodGroup
from joinery.objects.snapshot.pod_groups import PodGroup as PodsOfNode
from joinery.objects.snapshot.pods import is_active, is_terminal
from joinery.objects.wording import must_be

if TYPE_CHECKING:
    from joinery.objects.snapshot.snapshot import Snapshot

KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
KUEUE_TOTAL = "kueue.x-k8s.io/pod-group-total-count"
#: Pods of such a group are let in one by one, as they come.
KUEUE_FAST_ADMISSION = "kueue.x-k8s.io/pod-group-fast-admission"
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"
VOLCANO_GROUPS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
KUEUE, _REQUEST = "kueue", "provisioning_requests"
_KINDS = {KUEUE: "Kueue pod group", _REQUEST: "ProvisioningRequest"}


class PodGroupApi(NamedTuple):
    """An API that has PodGroups. ``counts_done``: whether a pod that has ended still counts, because its work is done
    (Volcano ``JobInfo.ReadyTaskNum``). kube-scheduler forgets pods that have ended.
    """

    group: str
    counts_done: bool = False


#: By the snapshot's field for its PodGroups.
FIELDS: Mapping[str, PodGroupApi] = {
    "scheduling_groups": PodGroupApi("scheduling.k8s.io"),
    "coscheduling_groups": PodGroupApi("scheduling.x-k8s.io"),
    "volcano_groups": PodGroupApi("scheduling.volcano.sh", counts_done=True),
}


class GangKey(NamedTuple):
    """Which gang a pod names. ``field``: the snapshot's for the PodGroups of its API; ``kueue`` has none."""

    field: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{_KINDS.get(self.field, 'PodGroup')} {self.namespace}/{self.name}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Gang:
    """Pods that are placed together. ``str`` names it for people.

    minimum    how many of them must have a node at the same time; None if nobody says, so that none may be placed
    problem    why nobody says that, to be read after the gang's name
    members    the pods by namespace/name that have a node, wait for one or, where that counts, have ended
    topology   the node label that has one value for all of them; empty where they may be anywhere
    goes_whole   whether none of them may be disrupted without the others
    """

    key: GangKey
    minimum: int | None
    members: Mapping[str, Pod]
    problem: str = ""
    topology: str = ""
    goes_whole: bool = False

    def __str__(self) -> str:
        return str(self.key)

    @cached_property
    def seated(self) -> frozenset[str]:
        """The members that have a node, are nominated for one, or need none any more."""
        return frozenset(
            name
            for name, pod in self.members.items()
            if pod.spec.node_name or pod.status.nominated_node_name or is_terminal(pod)
        )

    @property
    def lacks_members(self) -> bool:
        """Whether there are fewer pods than must be placed together."""
        return self.minimum is None or len(self.members) < self.minimum

    def with_node(self, placed: Iterable[str], pending: frozenset[str]) -> int:
        """How many members have a node once these are ``placed``. ``pending``: all pods that a plan is to place."""
        return len((self.seated - pending) | (self.members.keys() & set(placed)))

    def is_whole(self, placed: Iterable[str], pending: frozenset[str]) -> bool:
        """Whether enough have one."""
        return self.minimum is not None and self.with_node(placed, pending) >= self.minimum


def gang_key(pod: Pod) -> GangKey | None:
    """Which gang the pod names; None for most pods."""
    # Every run asks this of every pod that is new to it, so what most pods lack is asked first.
    namespace, labels, annotations = pod.metadata.namespace or "default", pod.metadata.labels, pod.metadata.annotations
    if pod.spec.scheduling_group is not None and pod.spec.scheduling_group.pod_group_name:
        return GangKey("scheduling_groups", namespace, pod.spec.scheduling_group.pod_group_name)
    if name := labels.get(COSCHEDULING_GROUP):
        return GangKey("coscheduling_groups", namespace, name)
    if name := next((annotations[key] for key in VOLCANO_GROUPS if annotations.get(key)), ""):
        return GangKey("volcano_groups", namespace, name)
    name = annotations.get(KUEUE_GROUP) or labels.get(KUEUE_GROUP)
    if name and annotations.get(KUEUE_FAST_ADMISSION) != "true":
        return GangKey(KUEUE, namespace, name)
    if request := annotations.get(PROVISIONING_REQUEST):
        return GangKey(_REQUEST, namespace, request.partition("/")[2])
    return None


def in_gangs(group: PodsOfNode) -> tuple[tuple[GangKey, Pod], ...]:
    """The pods of a node that name a gang, each with the gang."""
    return tuple((key, pod) for pod in group.pods if (key := gang_key(pod)) is not None)


def fields_named(groups: Iterable[PodsOfNode]) -> tuple[str, ...]:
    """Which PodGroups a cluster has to be asked for, because its pods name some: fields of the snapshot, sorted."""
    return tuple(sorted({key.field for group in groups for key, _ in group.derived(in_gangs)} & FIELDS.keys()))


def gangs_of(snapshot: "Snapshot") -> Mapping[GangKey, Gang]:
    """The gangs with members, of which one may have a minimum of one pod and a topology all the same."""
    named: dict[GangKey, dict[str, Pod]] = {}
    for group in snapshot.pod_groups:
        for key, pod in group.derived(in_gangs):
            if _counts(key, pod):
                named.setdefault(key, {})[pod.key] = pod
    if not named:
        return {}
    groups = {
        GangKey(field, group.metadata.namespace or "default", group.metadata.name): group
        for field in FIELDS
        for group in getattr(snapshot, field)
    }
    served = sorted(key for key in named if key.field not in snapshot.unserved)
    gangs = (_gang(key, named[key], groups.get(key), snapshot) for key in served)
    return {gang.key: gang for gang in gangs if gang is not None}


def _gang(key: GangKey, members: Mapping[str, Pod], group: PodGroup | None, snapshot: "Snapshot") -> Gang | None:
    if key.field == KUEUE:
        return _of_kueue(key, members)
    if key.field == _REQUEST:
        return Gang(key=key, minimum=len(members), members=members) if len(members) > 1 else None
    if group is None:
        return Gang(key=key, minimum=None, members=members, problem=_why_missing(key, snapshot))
    if group.minimum < 2 and not group.topology_key and not group.goes_whole:
        return None
    return Gang(
        key=key,
        minimum=group.minimum,
        members=members,
        topology=group.topology_key,
        goes_whole=group.goes_whole,
    )


def _of_kueue(key: GangKey, members: Mapping[str, Pod]) -> Gang | None:
    """Kueue lets nobody in whose total is no number, or another than a neighbour's; without any it knows no group."""
    totals = {name: pod.metadata.annotations.get(KUEUE_TOTAL, "") for name, pod in members.items()}
    said = dict.fromkeys(totals[name] for name in sorted(totals))
    wrong = next((one for one in said if not (one.isdecimal() and len(one) < 10 and int(one) > 0)), None)
    if not any(said):
        return None
    if wrong is not None or len(said) > 1:
        name = min(name for name, total in totals.items() if wrong in (None, total))
        problem = f"is of no known size: {KUEUE_TOTAL} of pod {name} {_what_is_wrong(wrong, said)}"
        return Gang(key=key, minimum=None, members=members, problem=problem)
    minimum = int(next(iter(said)))
    return Gang(key=key, minimum=minimum, members=members) if minimum > 1 else None


def _what_is_wrong(total: str | None, said: Iterable[str]) -> str:
    if total is None:
        one, other, *_ = said
        return f"is {one}, and {other} of another pod"
    return must_be("a whole number, 1 or more", total) if total else "is missing"


def _why_missing(key: GangKey, snapshot: "Snapshot") -> str:
    stored = f"{key.namespace}/{key.name}"
    why = next((bad.reason for bad in snapshot.invalid if (bad.kind, bad.name) == (PodGroup.__name__, stored)), "")
    lacking = f"cannot be read ({why})" if why else f"is not there (podgroups.{FIELDS[key.field].group})"
    return f"{lacking}, which says how many pods are placed together"


def _counts(key: GangKey, pod: Pod) -> bool:
    if is_terminal(pod):
        return pod.status.phase == "Succeeded" and (key.field not in FIELDS or FIELDS[key.field].counts_done)
    return bool(pod.spec.node_name) or is_active(pod)


def waiting_beside(gangs: Iterable[Gang], pending: frozenset[str]) -> Iterable[Pod]:
    """The members that wait with pending ones of their gang, and of which the scheduler has not said so yet.

    coscheduling and Volcano let those that fit wait, unmarked, until the others do too.
    """
    for gang in gangs:
        if not pending.isdisjoint(gang.members):
            for name, pod in gang.members.items():
                if name not in pending and name not in gang.seated and not pod.spec.scheduling_gates:
                    yield pod


def gangs_by_pod(snapshot: "Snapshot") -> Mapping[str, str]:
    """By pod (namespace/name), the gang that must be whole, as messages name it."""
    return {pod: str(gang) for gang in snapshot.gangs.values() if (gang.minimum or 0) > 1 for pod in gang.members}
