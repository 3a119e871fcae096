"""Annotations of ours that nothing reads where they stand: misspelt, of another object, or with a value that is none.

No API server knows them, so a pod that asks for its successor by a misspelt annotation is only evicted like any other.
A NodePool with a wrong value takes no part, and says so itself (``objects.karpenter.validation``).
"""

from collections.abc import Callable, Iterator, Mapping

from joinery.objects.karpenter import labels
from joinery.objects.karpenter.disruption import dollars_of, eviction_rate_of
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.pods import is_active
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.notices import Notice, warning, warnings_of
from joinery_cli.reading.own_annotations import OF_PODS, OF_POOLS, nothing_reads
from joinery_cli.view.workloads import subject_of

_WISHES = ("true", "false")
#: How the values of other annotations of pods are read.
_READ: Mapping[str, Callable[[str], object]] = {
    labels.DISRUPTION_PRICE: dollars_of,
    labels.EVICTION_RATE: eviction_rate_of,
}
#: Who makes pods for which no rollout of a Deployment can bring a successor.
_NO_ROLLOUT = ("StatefulSet", "Job")


def annotated_in_vain(snapshot: Snapshot) -> Iterator[Notice]:
    """A warning for each slip, naming who made it."""
    for pool in snapshot.node_pools:
        if snapshot.serves(pool):
            template = pool.spec.template.metadata.annotations
            slips = (
                *nothing_reads(pool.metadata.annotations, OF_POOLS, "a NodePool"),
                *(f"spec.template.{slip}" for slip in nothing_reads(template, (), "a NodeClaim")),
            )
            yield from (warning(f"NodePool {pool.metadata.name}: {slip}") for slip in slips)
    active = filter(is_active, snapshot.pods)
    yield from warnings_of((subject_of(pod), doubt) for pod in active for doubt in _doubts(pod))


def _doubts(pod: Pod) -> Iterator[str]:
    yield from nothing_reads(pod.metadata.annotations, OF_PODS, "a Pod")
    wish = pod.metadata.annotations.get(labels.SURGE_BEFORE_EVICTION)
    if wish is not None and wish not in _WISHES:
        yield f"metadata.annotations[{labels.SURGE_BEFORE_EVICTION}]: {wish!r} is none of {', '.join(_WISHES)}"
    for key in _READ.keys() & pod.metadata.annotations.keys():
        try:
            _READ[key](pod.metadata.annotations[key])
        except ValueError as error:
            yield f"metadata.annotations[{key}]: {error}"
    owner = next((one.kind for one in pod.metadata.owner_references if one.controller), "")
    if wish == "true" and (not owner or owner in _NO_ROLLOUT):
        whose = f"a {owner}'s pod" if owner else "a pod without a Deployment"
        yield (
            f"{labels.SURGE_BEFORE_EVICTION} asks for what {whose} cannot have: it is evicted like any other, because "
            "only the rollout of a Deployment brings a successor first"
        )
