"""Which pods a claim was launched for, and which pods take the place of those that are gone.

A controller recreates an evicted pod under a new name. The claim that was bought for the first pod has to be there for
the second, or another node would be bought for it. So a claim remembers the names of its pods, and for each the owner
and a digest of its needs. A pod with the same owner and equal needs takes the place of one that is gone, one for one:
one that is on the claim's node already, or else one that waits. Between an eviction and its recreation the place is
nobody else's: a plan that gave it away would leave the evicted pod without a node.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from joinery.objects.annotations.drain_start import USUAL_GRACE
from joinery.objects.karpenter.labels import NO_SCHEDULE, PLANNED_NEEDS, PLANNED_PODS, PLANNED_TAINT, UNSERVED_NEEDS
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod, Taint
from joinery.objects.snapshot.claims import INITIALIZED, has_joined
from joinery.objects.snapshot.pods import is_active, is_reschedulable, lasting, own_grace, owner_uid

#: The most that the two annotations together may take, in bytes: the API server takes 256 KiB of all annotations of an
#: object. Pods beyond that are planned onto the node as well, but it is not kept for them.
MOST_BYTES = 128 << 10
#: How long a place is kept for the successor of a pod that was asked to go: its owner makes it at once, unless it is
#: scaled down.
LONGEST_TRANSIT = timedelta(seconds=10)
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Expectation:
    """Whom claims are there for now, by the claim's name.

    ``pods``: the pods (namespace/name) that it was launched for; in the place of one that is gone stands a pod that is
    like it, and waits or is there. ``in_transit``: those of them that were asked to go elsewhere a moment ago, and
    whose successors are still to come.
    """

    pods: Mapping[str, tuple[str, ...]]
    in_transit: Mapping[str, tuple[Pod, ...]]


def remembered(names: Iterable[str], pods: Mapping[str, Pod]) -> dict[str, str]:
    """The two annotations that remember these pods (namespace/name).

    The first lists their names; the second maps owner and needs to their indices in that list. ``pods``: by
    namespace/name, those of the snapshot. One that is not among them is remembered by its name alone.
    """
    listed: list[str] = []
    groups: dict[str, list[int]] = defaultdict(list)
    size = 0
    for name in names:
        group = _group(pods[name]) if name in pods else ""
        size += len(name) + len('"", 1234, ') + (len(group) + len('"": [], ') if group and group not in groups else 0)
        if size > MOST_BYTES:
            break
        if group:
            groups[group].append(len(listed))
        listed.append(name)
    return {PLANNED_PODS: json.dumps(listed), PLANNED_NEEDS: json.dumps(groups)}


def planned_pods(claim: NodeClaim | None) -> tuple[str, ...]:
    """The pods (namespace/name) that a claim was launched for; none where the annotation cannot be read."""
    names = _read(claim, PLANNED_PODS)
    return tuple(map(str, names)) if isinstance(names, list) else ()


def needs_of(claim: NodeClaim) -> frozenset[str]:
    """The digests of what the claim's pods need (``needs``)."""
    return frozenset(group.rpartition("/")[2] for group in _groups(claim))


def owners_planned(claim: NodeClaim) -> Counter[str]:
    """By UID of the owner, for how many of its pods the claim was launched."""
    planned: Counter[str] = Counter()
    for group, indices in _groups(claim).items():
        planned[group.rpartition("/")[0]] += len(indices)
    return planned


def needs(pod: Pod) -> str:
    """A digest of everything that decides where a pod may go, except its labels.

    All pods of one template have the same.
    """
    mounted = [volume for volume in pod.spec.volumes if volume.persistent_volume_claim or volume.ephemeral]
    bare = replace(
        pod.spec,
        node_name="",
        scheduling_gates=[],
        tolerations=list(lasting(pod.spec.tolerations)),
        volumes=mounted,
        # They say how long the pod runs, not where.
        restart_policy="",
        active_deadline_seconds=None,
    )
    namespace = pod.metadata.namespace or "default"
    return sha256(msgspec.json.encode((namespace, bare), order="deterministic")).hexdigest()[:_DIGITS]


def unserved_needs(claim: NodeClaim) -> frozenset[str]:
    """Digests of the needs for which no pod was bound to its node in time; none where the annotation cannot be read."""
    listed = _read(claim, UNSERVED_NEEDS)
    return frozenset(map(str, listed)) if isinstance(listed, list) else frozenset()


def unserved(digests: Collection[str]) -> dict[str, str]:
    """The annotation that remembers them."""
    return {UNSERVED_NEEDS: json.dumps(sorted(digests))}


def expected(
    claims: Iterable[NodeClaim], nodes: Iterable[Node], pods: Collection[Pod]
) -> Mapping[str, tuple[str, ...]]:
    """By the claim's name, the pods (namespace/name) that it is there for now, as ``Expectation`` has them."""
    return _matched(claims, nodes, pods)[0]


def expectation(
    claims: Collection[NodeClaim],
    nodes: Iterable[Node],
    pods: Collection[Pod],
    now: datetime,
    planned: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> Expectation:
    """``planned``: by claim, its ``planned_pods``, as far as they have been read already."""
    by_claim, vacancies = _matched(claims, nodes, pods, planned)
    if not vacancies:
        return Expectation(by_claim, {})
    node_of = {claim.metadata.name: claim.status.node_name for claim in claims}
    going = {pod.key: pod for pod in pods if pod.spec.node_name and _has_just_gone(pod, now)}
    in_transit: dict[str, list[Pod]] = defaultdict(list)
    for vacancy in vacancies:
        pod = going.get(by_claim[vacancy.claim][vacancy.index])
        if pod is not None and pod.spec.node_name != node_of[vacancy.claim]:
            in_transit[vacancy.claim].append(pod)
    return Expectation(by_claim, {claim: tuple(own) for claim, own in in_transit.items()})


def _matched(
    claims: Iterable[NodeClaim],
    nodes: Iterable[Node],
    pods: Collection[Pod],
    known: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> "tuple[Mapping[str, tuple[str, ...]], list[_Vacancy]]":
    """Whom each claim is for, and the places that nobody has taken."""
    all_claims = tuple(claims)
    names_of = {
        claim.metadata.name: known[claim.metadata.name] if claim.metadata.name in known else planned_pods(claim)
        for claim in all_claims
    }
    awaited = [claim for claim in _still_for_their_pods(all_claims, nodes) if _groups(claim)]
    if not awaited:
        # Most claims are old, and most runs find none that is awaited: then the pods need not be looked at.
        return names_of, []
    by_claim = {claim: list(names) for claim, names in names_of.items()}
    planned = {name for names in by_claim.values() for name in names}
    present = {pod.key for pod in pods if _keeps_place(pod)}
    joined = {claim.metadata.name: claim.status.node_name for claim in awaited if claim.status.node_name}
    left = list(_vacancies(awaited, present))
    successors = _successors(pods, {vacancy.owner for vacancy in left}, planned, {"", *joined.values()})
    for node_of in (joined, dict.fromkeys(by_claim, "")):
        vacancies, left = left, []
        for vacancy in vacancies:
            if alike := successors.get((node_of.get(vacancy.claim), vacancy.group)):
                by_claim[vacancy.claim][vacancy.index] = alike.pop(0)
            else:
                left.append(vacancy)
    return {claim: tuple(names) for claim, names in by_claim.items()}, left


def kept_by(claim: NodeClaim) -> Taint:
    """The taint that keeps a claim's new node for the pods that it was bought for."""
    # The value of a taint has at most 63 characters. A claim's name differs from others at its end.
    return Taint(key=PLANNED_TAINT, value=claim.metadata.name[-63:].lstrip("-."), effect=NO_SCHEDULE)


def is_kept(taint: Taint) -> bool:
    """Whether it is such a taint. Plans ignore it, because the pods that they place on the node will tolerate it."""
    return (taint.key, taint.effect) == (PLANNED_TAINT, NO_SCHEDULE)


# --- reading the annotations ---


def _read(claim: NodeClaim | None, key: str) -> object:
    try:
        return json.loads(claim.metadata.annotations.get(key, "null") if claim else "null")
    except (ValueError, RecursionError):
        return None


def _groups(claim: NodeClaim) -> dict[str, list[int]]:
    """Owner and needs, as ``_group`` writes them, to the indices of the planned pods of that sort."""
    annotation, count = _read(claim, PLANNED_NEEDS), len(planned_pods(claim))
    if not isinstance(annotation, dict):
        return {}
    groups = {group: indices for group, indices in annotation.items() if isinstance(indices, list)}
    return {group: [i for i in indices if isinstance(i, int) and 0 <= i < count] for group, indices in groups.items()}


def _group(pod: Pod) -> str:
    return f"{owner_uid(pod)}/{needs(pod)}"


# --- whose place is vacant ---


@dataclass(frozen=True, slots=True)
class _Vacancy:
    """A place on a claim whose pod is gone: its index in the claim's list, and the owner and needs of that pod."""

    claim: str
    index: int
    group: str

    @property
    def owner(self) -> str:
        return self.group.partition("/")[0]


def _still_for_their_pods(claims: Iterable[NodeClaim], nodes: Iterable[Node]) -> Iterator[NodeClaim]:
    """Claims whose node is on its way or kept for its pods. Once it is open to all, its plan no longer counts."""
    kept = {node.spec.provider_id for node in nodes if any(map(is_kept, node.spec.taints))}
    closed = (claim for claim in claims if claim.status.provider_id in kept or not has_joined(claim))
    for claim in sorted(closed, key=lambda claim: (claim.is_true(INITIALIZED), claim.metadata.name)):
        if not claim.is_deleting:
            yield claim


def _vacancies(claims: Iterable[NodeClaim], present: Collection[str]) -> Iterator[_Vacancy]:
    """The places of pods that are gone. ``present``: the pods that still hold theirs."""
    for claim in claims:
        names = planned_pods(claim)
        for group, indices in sorted(_groups(claim).items()):
            for index in indices:
                # A group that starts with a slash has no owner: nobody recreates such a pod.
                if names[index] not in present and not group.startswith("/"):
                    yield _Vacancy(claim.metadata.name, index, group)


def _keeps_place(pod: Pod) -> bool:
    """Whether it is alive, or a StatefulSet's, which comes back under its own name."""
    return is_active(pod) or is_reschedulable(pod)


def _has_just_gone(pod: Pod, now: datetime) -> bool:
    """Whether it was asked to go a moment ago. The API server says when its grace ends."""
    ends, grace = pod.metadata.deletion_timestamp, own_grace(pod)
    return ends is not None and now - ends < LONGEST_TRANSIT - (USUAL_GRACE if grace is None else grace)


def _successors(
    pods: Iterable[Pod], owners: Collection[str], planned: Collection[str], nodes: Collection[str]
) -> dict[tuple[str | None, str], list[str]]:
    """The pods of these owners on these nodes (empty for those that wait) that no claim was launched for: by the node,
    and by owner and needs; in the order of their names.
    """
    successors: dict[tuple[str | None, str], list[str]] = defaultdict(list)
    theirs = (pod for pod in pods if pod.spec.node_name in nodes and owner_uid(pod) in owners) if owners else ()
    for pod in sorted(theirs, key=lambda pod: pod.key):
        if is_active(pod) and pod.key not in planned:
            successors[pod.spec.node_name, _group(pod)].append(pod.key)
    return successors
