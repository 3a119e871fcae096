"""Score plugins, with kube-scheduler's default weights: where a pod would rather go.

Least allocated, balanced, preferred node affinity, untainted, preferred pod affinity, soft spread. Image locality is
left out: images have no place in the simulator.
"""

from collections.abc import Callable, Mapping, Sequence

from joinery.objects.karpenter.labels import PREFER_NO_SCHEDULE
from joinery.objects.kubernetes.core import Pod
from simulator.actors.kubescheduler.topology import spreads, term_selects
from simulator.actors.kubescheduler.view import NodeInfo, View, requests, tolerates
from simulator.kubernetes.selectors import term_matches

FULL = 100
Scores = Mapping[str, float]


def total_scores(pod: Pod, infos: Sequence[NodeInfo], view: View) -> dict[str, float]:
    """Node name to score, each plugin normalised to 0..100 and weighted."""
    result = dict.fromkeys((info.name for info in infos), 0.0)
    for weight, plugin in _PLUGINS:
        for name, score in plugin(pod, infos, view).items():
            result[name] += weight * score
    return result


def _least_allocated(pod: Pod, infos: Sequence[NodeInfo], view: View) -> Scores:
    return {info.name: FULL * (1 - sum(_shares(pod, info)) / 2) for info in infos}


def _balanced(pod: Pod, infos: Sequence[NodeInfo], view: View) -> Scores:
    return {info.name: FULL * (1 - abs(cpu - memory) / 2) for info in infos for cpu, memory in [_shares(pod, info)]}


def _shares(pod: Pod, info: NodeInfo) -> tuple[float, float]:
    """How full cpu and memory would be."""
    asked = requests(pod)
    cpu, memory = (
        min(1.0, (info.requested.get(name, 0) + asked.get(name, 0)) / max(1, info.allocatable.get(name, 0)))
        for name in ("cpu", "memory")
    )
    return cpu, memory


def _node_affinity(pod: Pod, infos: Sequence[NodeInfo], view: View) -> Scores:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else []
    return _normalised(
        {info.name: sum(t.weight for t in terms if term_matches(t.preference, info.node)) for info in infos}
    )


def _untainted(pod: Pod, infos: Sequence[NodeInfo], view: View) -> Scores:
    disliked = {
        info.name: sum(
            taint.effect == PREFER_NO_SCHEDULE and not tolerates(pod.spec.tolerations, taint)
            for taint in info.node.spec.taints
        )
        for info in infos
    }
    return _reversed(disliked)


def _pod_affinity(pod: Pod, infos: Sequence[NodeInfo], view: View) -> Scores:
    affinity = pod.spec.affinity
    near = affinity.pod_affinity if affinity else None
    far = affinity.pod_anti_affinity if affinity else None
    terms = [
        (sign * preferred.weight, preferred.pod_affinity_term)
        for sign, group in ((1, near), (-1, far))
        for preferred in (group.preferred_during_scheduling_ignored_during_execution if group else [])
    ]
    if not terms:
        return {}
    raw = dict.fromkeys((info.name for info in infos), 0.0)
    for weight, term in terms:
        for home, other in view.placed():
            if term.topology_key in home.labels and term_selects(term, pod, other, view):
                for info in infos:
                    raw[info.name] += weight * (info.labels.get(term.topology_key) == home.labels[term.topology_key])
    low, high = min(raw.values()), max(raw.values())
    return {name: FULL * (score - low) / (high - low) if high > low else 0 for name, score in raw.items()}


def _soft_spread(pod: Pod, infos: Sequence[NodeInfo], view: View) -> Scores:
    soft = [
        constraint
        for constraint in pod.spec.topology_spread_constraints
        if constraint.when_unsatisfiable == "ScheduleAnyway"
    ]
    if not soft:
        return {}
    counted = spreads(pod, soft, view)
    crowd = {
        info.name: sum(spread.counts.get(info.labels.get(spread.constraint.topology_key, ""), 0) for spread in counted)
        for info in infos
    }
    return _reversed(crowd)


def _normalised(raw: Mapping[str, int]) -> Scores:
    high = max(raw.values(), default=0)
    return {name: FULL * score / high if high else 0 for name, score in raw.items()}


def _reversed(raw: Mapping[str, int]) -> Scores:
    high = max(raw.values(), default=0)
    return {name: FULL * (high - score) / high if high else FULL for name, score in raw.items()}


_PLUGINS: tuple[tuple[int, Callable[[Pod, Sequence[NodeInfo], View], Scores]], ...] = (
    (1, _least_allocated),
    (1, _balanced),
    (2, _node_affinity),
    (3, _untainted),
    (2, _pod_affinity),
    (2, _soft_spread),
)
