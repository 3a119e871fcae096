"""Topology spreads that spread nothing: without a selector, or with one that the pods themselves do not match.

An API server takes them. kube-scheduler counts the pods that the selector matches, so a slip in a label puts all
replicas into one zone, and nothing else tells of it.
"""

from collections.abc import Iterable, Iterator

from joinery.decisions.scheduling.constraints.selectors import read, unreadable
from joinery.objects.kubernetes.core import Pod, TopologySpreadConstraint
from joinery_cli.notices import Notice, warnings_of
from joinery_cli.view.workloads import owner_of


def idle_spreads(pods: Iterable[Pod]) -> Iterator[Notice]:
    """A warning for each, naming whose pods they are."""
    spreads = ((pod, spread) for pod in pods for spread in pod.spec.topology_spread_constraints)
    doubts = (
        (owner_of(pod), f"their topology spread over {spread.topology_key} spreads nothing: {why}")
        for pod, spread in spreads
        if (why := _idle(spread, pod))
    )
    yield from warnings_of(doubts, "pods of ")


def _idle(spread: TopologySpreadConstraint, pod: Pod) -> str:
    """Why the spread does not count its own pod; empty where it does, or cannot be read, which is told elsewhere."""
    selector = spread.label_selector
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return "it has no labelSelector"
    if unreadable(selector) or read(selector).matches(pod.metadata.labels):
        return ""
    wanted = [f"{key}={value}" for key, value in selector.match_labels.items()]
    wanted += [one.key for one in selector.match_expressions]
    return f"its labelSelector ({', '.join(wanted)}) matches none of them"
