"""Who a claim was launched for, and who stands in for a pod that is no more.

A controller recreates an evicted pod under a new name. The claim that was bought for the first is there for the second, or it would be
bought for again. So a claim remembers its pods by name, and by whose they are and what they need: a pod that waits, of the same
owner and with equal needs, takes the place of one that is gone, one for one.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from joinery.apis.core import Node, Pod, Taint
from joinery.apis.labels import NO_SCHEDULE, PLANNED_NEEDS, PLANNED_PODS, PLANNED_TAINT
from joinery.apis.nodeclaim import NodeClaim
from joinery.state.claims import INITIALIZED, REGISTERED
from joinery.state.pods import is_active, is_reschedulable, lasting

#: The most that the two annotations together may take, in bytes: the API server takes 256 KiB of all annotations of an object. Pods
#: beyond that are served as well, but nothing is kept for them.
MOST_BYTES = 128 << 10
_DIGITS = 12


def remembered(pods: Iterable[str], known: Mapping[str, Pod]) -> dict[str, str]:
    """The annotations for these pods (namespace/name), of which ``known`` are looked at."""
    names: list[str] = []
    groups: dict[str, list[int]] = defaultdict(list)
    size = 0
    for name in pods:
        group = _group(known[name]) if name in known else ""
        size += len(name) + len('"", 1234, ') + (len(group) + len('"": [], ') if group and group not in groups else 0)
        if size > MOST_BYTES:
            break
        if group:
            groups[group].append(len(names))
        names.append(name)
    return {PLANNED_PODS: json.dumps(names), PLANNED_NEEDS: json.dumps(groups)}


def planned_pods(claim: NodeClaim | None) -> tuple[str, ...]:
    """The pods (namespace/name) a claim was launched for, by their names; an unreadable annotation is as good as none."""
    listed = _read(claim, PLANNED_PODS)
    return tuple(str(key) for key in listed) if isinstance(listed, list) else ()


def needs_of(claim: NodeClaim) -> frozenset[str]:
    """What its pods need, as digests of ``needs``."""
    return frozenset(group.rpartition("/")[2] for group in _groups(claim))


def needs(pod: Pod) -> str:
    """A digest of all that decides where a pod may go, its labels apart; the same for every pod of a template."""
    mounted = [volume for volume in pod.spec.volumes if volume.persistent_volume_claim or volume.ephemeral]
    bare = replace(
        pod.spec, node_name="", scheduling_gates=[], tolerations=list(lasting(pod.spec.tolerations)), volumes=mounted
    )
    namespace = pod.metadata.namespace or "default"
    return sha256(msgspec.json.encode((namespace, bare), order="deterministic")).hexdigest()[:_DIGITS]


def expected(
    claims: Iterable[NodeClaim], nodes: Iterable[Node], pods: Collection[Pod]
) -> Mapping[str, tuple[str, ...]]:
    """By the claim's name, the pods that it is there for now: those planned for it, and in the place of one that is gone its twin."""
    listed = tuple(claims)
    found = {claim.metadata.name: list(planned_pods(claim)) for claim in listed}
    places = list(_vacant(_keeping(listed, nodes), {pod.key for pod in pods if _holds_its_place(pod)}))
    waiting = _candidates(pods, {place.owner for place in places}, {name for names in found.values() for name in names})
    for place in places:
        if twins := waiting.get(place.group):
            found[place.claim][place.index] = twins.pop(0)
    return {name: tuple(names) for name, names in found.items()}


def kept_by(claim: NodeClaim) -> Taint:
    """The taint that keeps a claim's new node for the pods that it was bought for. A taint's value holds 63 characters."""
    return Taint(key=PLANNED_TAINT, value=claim.metadata.name[-63:].lstrip("-."), effect=NO_SCHEDULE)


def is_kept(taint: Taint) -> bool:
    """Whether it is such a taint. Whoever is planned for the node gets to tolerate it, so a plan looks past it."""
    return (taint.key, taint.effect) == (PLANNED_TAINT, NO_SCHEDULE)


# --- reading the annotations ---


def _read(claim: NodeClaim | None, key: str) -> object:
    try:
        return json.loads(claim.metadata.annotations.get(key, "null") if claim else "null")
    except ValueError:
        return None


def _groups(claim: NodeClaim) -> dict[str, list[int]]:
    """Owner and needs, as ``_group`` writes them, to the indices of the planned pods of that sort."""
    listed, count = _read(claim, PLANNED_NEEDS), len(planned_pods(claim))
    if not isinstance(listed, dict):
        return {}
    found = {group: indices for group, indices in listed.items() if isinstance(indices, list)}
    return {group: [i for i in indices if isinstance(i, int) and 0 <= i < count] for group, indices in found.items()}


def _group(pod: Pod) -> str:
    return f"{_owner(pod)}/{needs(pod)}"


def _owner(pod: Pod) -> str:
    """The UID of its controller; empty for a pod that nobody recreates."""
    return next((owner.uid for owner in pod.metadata.owner_references if owner.controller), "")


# --- whose place is free ---


@dataclass(frozen=True, slots=True)
class _Place:
    claim: str
    index: int
    group: str

    @property
    def owner(self) -> str:
        return self.group.partition("/")[0]


def _keeping(claims: Iterable[NodeClaim], nodes: Iterable[Node]) -> Iterator[NodeClaim]:
    """Those whose node is still to come, or kept for its pods: once it is open to all, the plan is history."""
    kept = {node.spec.provider_id for node in nodes if any(map(is_kept, node.spec.taints))}
    for claim in sorted(claims, key=lambda each: (each.is_true(INITIALIZED), each.metadata.name)):
        is_open = claim.is_true(REGISTERED) and claim.status.provider_id not in kept
        if not claim.is_deleting and not is_open:
            yield claim


def _vacant(claims: Iterable[NodeClaim], held: Collection[str]) -> Iterator[_Place]:
    for claim in claims:
        names = planned_pods(claim)
        for group, indices in sorted(_groups(claim).items()):
            for index in indices:
                if names[index] not in held and not group.startswith("/"):
                    yield _Place(claim.metadata.name, index, group)


def _holds_its_place(pod: Pod) -> bool:
    """Alive; or a StatefulSet's, which comes back under its own name."""
    return is_active(pod) or is_reschedulable(pod)


def _candidates(pods: Iterable[Pod], owners: Collection[str], planned: Collection[str]) -> dict[str, list[str]]:
    """Pods that wait and that nobody planned for yet, by owner and needs, in the order of their names."""
    found: dict[str, list[str]] = defaultdict(list)
    for pod in sorted(pods, key=lambda each: each.key) if owners else ():
        if not pod.spec.node_name and is_active(pod) and pod.key not in planned and _owner(pod) in owners:
            found[_group(pod)].append(pod.key)
    return found
