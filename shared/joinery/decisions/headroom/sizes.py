"""How many chunks a buffer has (cluster autoscaler, capacitybuffer; Karpenter `computeReplicas`).

The larger of ``replicas`` and ``percentage`` counts, as in Karpenter, and in cluster autoscaler since July 2026
(``translators/replicas.go``). A percentage of no replicas is none, as there, and not as if it were not given.
``limits`` bind it, and are its size where neither is given. Then come the namespace's ResourceQuotas, because nobody
could create the pods that the room is for.
"""

from dataclasses import dataclass, field

from joinery.decisions.scheduling.constraints.resource_quotas import asked_of, bound_of, is_counted
from joinery.objects.autoscaling.capacitybuffer import CapacityBufferSpec
from joinery.objects.kubernetes.core import Pod, PodSpec
from joinery.objects.kubernetes.quantity import Resources, amounts
from joinery.objects.kubernetes.workloads import ResourceQuota

#: Chunks of one buffer, and of all of a cluster. Whoever may create a buffer decides how large it is, and each chunk is
#: planned as a pod.
MOST_OF_BUFFER, MOST_OF_CLUSTER = 1_000, 10_000


def size_of(spec: CapacityBufferSpec, requests: Resources, replicas: int | None) -> int:
    """Chunks. ``requests``: of one; ``replicas``: of the workload, None where there is none."""
    sizes = [] if spec.replicas is None else [spec.replicas]
    if spec.percentage is not None and replicas is not None:
        sizes.append(-(-replicas * spec.percentage // 100))
    fitting = _fitting(amounts(spec.limits), requests)
    if fitting is None:
        return max(sizes, default=0)
    return min(max(sizes), fitting) if sizes else fitting


def _fitting(limits: Resources, requests: Resources) -> int | None:
    """How many fit within the limits; None where these name nothing that a chunk requests."""
    counts = [limit // requests[name] for name, limit in limits.items() if requests.get(name, 0) > 0]
    return max(0, min(counts)) if counts else None


@dataclass
class Quotas:
    """The ResourceQuotas of a cluster, of which one buffer after another takes its part."""

    quotas: tuple[ResourceQuota, ...]
    taken: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)

    def take(self, namespace: str, spec: PodSpec, wanted: int) -> tuple[int, tuple[str, ...]]:
        """How many of the chunks the quotas allow, and the names of those that stand in the way of more."""
        own = [one for one in self.quotas if one.metadata.namespace == namespace and is_counted(spec, one)]
        asked = asked_of(Pod(spec=spec)) if own else {}
        rooms = {one.metadata.name: self._room(one, asked) for one in own}
        allowed = min(wanted, *rooms.values()) if rooms else wanted
        for quota in own:
            used = self.taken.setdefault((namespace, quota.metadata.name), {})
            for name, value in asked.items():
                used[name] = used.get(name, 0) + value * allowed
        return allowed, tuple(sorted(name for name, room in rooms.items() if room < wanted))

    def _room(self, quota: ResourceQuota, asked: Resources) -> int:
        """For how many more pods that ask for so much it has room."""
        used = quota.status.used
        taken = self.taken.get((quota.metadata.namespace, quota.metadata.name), {})
        rooms = [
            (bound_of(name, most) - bound_of(name, used.get(name, 0)) - taken.get(name, 0)) // asked[name]
            for name, most in quota.spec.hard.items()
            if asked.get(name, 0) > 0
        ]
        return max(0, min(rooms, default=MOST_OF_CLUSTER))
