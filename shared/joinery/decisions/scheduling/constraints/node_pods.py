"""What the pods of a node ask of it and of other pods, as functions of its view.

Most of the pods that run are of no concern to a plan. What matters of them is worked out once for each view, and the
view keeps it (``joinery.objects.snapshot.derived``): a plan takes as long as there is something new to know.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from joinery.decisions.scheduling.constraints.mounted_claims import claims_of
from joinery.decisions.scheduling.constraints.resources import HostPort, host_ports_of, requests_of
from joinery.decisions.scheduling.constraints.selectors import Namespaces
from joinery.decisions.scheduling.constraints.topology_rules import (
    TopologyRule,
    required_anti_affinity,
    required_anti_affinity_terms,
    selector_keys,
)
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.quantity import Resources, total
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import comes_with_node, is_daemon, is_terminating

_NONE = Namespaces(())


class Sort(NamedTuple):
    """Pods that no topology rule tells apart: one of them, and how many they are."""

    example: Pod
    number: int


def taken(view: NodeView) -> Resources:
    """What the pods that stay ask for together."""
    return total(map(requests_of, view.staying))


def taken_in_transit(view: NodeView) -> Resources:
    """What those asked for together whose successors are still to come."""
    return total(map(requests_of, view.in_transit))


def asked_for(view: NodeView) -> Resources:
    """What all of its pods ask for together."""
    return total(map(requests_of, view.pods))


def host_ports(view: NodeView) -> frozenset[HostPort]:
    """The host ports of those that stay."""
    return _ports_of(view.staying)


def ports_to_come(view: NodeView) -> frozenset[HostPort]:
    """The host ports of those whose successors are still to come."""
    return _ports_of(view.in_transit)


def _ports_of(pods: Iterable[Pod]) -> frozenset[HostPort]:
    return frozenset(port for pod in pods for port in host_ports_of(pod))


def with_volumes(view: NodeView) -> Sequence[Pod]:
    """The pods that mount volume claims."""
    return [pod for pod in view.pods if claims_of(pod)]


def claims_in_use(view: NodeView) -> frozenset[str]:
    """The volume claims (namespace/name) that they mount."""
    return frozenset(name for pod in view.pods for name in claims_of(pod))


def of_daemon_sets(view: NodeView) -> Sequence[tuple[frozenset[str], Resources]]:
    """Of each pod of a DaemonSet: whose it is, as ``Daemon.name`` says it, and what it asks for."""
    return [
        (
            frozenset(f"{pod.metadata.namespace}/{owner.name}" for owner in pod.metadata.owner_references),
            requests_of(pod),
        )
        for pod in filter(is_daemon, view.pods)
    ]


def running_daemon_sets(view: NodeView) -> frozenset[str]:
    """The DaemonSets that have a pod there."""
    return frozenset().union(*(names for names, _ in view.derived(of_daemon_sets)))


def number_of_own(view: NodeView) -> int:
    """How many pods did not come with the node."""
    return sum(not comes_with_node(pod) for pod in view.pods)


def labels_looked_at(view: NodeView) -> frozenset[str]:
    """Every pod label that their topology rules look at."""
    return selector_keys(view.pods)


class Apart(NamedTuple):
    """The required anti-affinity of pods.

    ``rules``: those that look at namespaces by name. ``others``: the pods with rules that select namespaces by their
    labels, which may change.
    """

    rules: Sequence[TopologyRule]
    others: Sequence[Pod]


def keeping_apart(view: NodeView) -> Apart:
    """The rules by which the pods keep others away."""
    rules: list[TopologyRule] = []
    others = []
    for pod in view.pods:
        terms = required_anti_affinity_terms(pod)
        if any(term.namespace_selector is not None for term in terms):
            others.append(pod)
        elif terms:
            rules += required_anti_affinity(pod, _NONE)
    return Apart(rules, others)


def sorts(view: NodeView) -> Mapping[str, Sort]:
    """The pods by namespace, labels, and whether they are on their way out."""
    found: dict[str, Sort] = {}
    for pod in view.pods:
        labels = tuple(sorted(pod.metadata.labels.items()))
        # A text, because it remembers its hash: tens of thousands are looked up in every plan. A few are kept.
        key = sys.intern(str((pod.metadata.namespace or "default", labels, is_terminating(pod))))
        found[key] = Sort(found[key].example, found[key].number + 1) if key in found else Sort(pod, 1)
    return found


def keys(view: NodeView) -> frozenset[str]:
    """The pods by namespace/name."""
    return frozenset(pod.key for pod in view.pods)
