"""The pods of DaemonSets: which nodes they run on, and what they take there.

New nodes run them too, so what they take there is not room for pending pods (Karpenter `getDaemonOverhead`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from joinery.decisions.scheduling.constraints.nodeterms import alternatives, selector
from joinery.decisions.scheduling.constraints.requirements import Requirements, UnknownOperatorError
from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.decisions.scheduling.constraints.taints import TOLERATE_PREFERRED, TaintLike, first_untolerated
from joinery.decisions.scheduling.devices.needs import Needs
from joinery.objects.karpenter.labels import INITIALIZED, REGISTERED
from joinery.objects.kubernetes.core import DaemonSet, NodeSelectorTerm, Pod, PodSpec
from joinery.objects.kubernetes.quantity import Resources
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import is_active

#: The field of a node that terms may ask for.
_NAME = "metadata.name"


@dataclass(frozen=True, eq=False)
class Daemon:
    """The pod of one DaemonSet, as it would run on a node.

    name       namespace/name of the DaemonSet
    pod        made from its template
    requests   what the pod takes
    devices    what its claims take of a node's devices, where pods to place claim some
    terms      requirements on its node, of which its name is one (``_NAME``); any one of them will do
    """

    name: str
    pod: Pod
    requests: Resources
    terms: tuple[Requirements, ...]
    devices: Needs = ()

    def tolerates(self, taints: Iterable[TaintLike]) -> bool:
        """Whether no taint keeps the pod away. PreferNoSchedule taints never do."""
        return first_untolerated((*self.pod.spec.tolerations, TOLERATE_PREFERRED), taints) is None

    def runs_on(self, view: NodeView) -> bool:
        """Whether the DaemonSet controller puts a pod on an existing node. Labels and taints decide, free room does
        not.

        A node with a NodeClaim counts as registered and initialized: sooner or later it will be.
        """
        if not self.tolerates(view.taints):
            return False
        joined = {REGISTERED: "true", INITIALIZED: "true"} if view.claim else {}
        labels = {**view.labels, **joined, _NAME: view.node}
        return any(term.matches(labels) for term in self.terms)

    @property
    def new_node_terms(self) -> tuple[Requirements, ...]:
        """``terms`` for a new node: without the labels that every node gets when it registers and is initialized.

        Nobody can know its name yet.
        """
        joined = (REGISTERED, INITIALIZED, _NAME)
        return tuple(
            Requirements({key: allowed for key, allowed in term.sets.items() if key not in joined})
            for term in self.terms
            if _NAME not in term.sets or term.sets[_NAME].has("")
        )


def read_daemons(daemon_sets: Iterable[DaemonSet], pods: Iterable[Pod]) -> tuple[Daemon, ...]:
    """The pods of all DaemonSets, by namespace and name. A DaemonSet that cannot be read is left out.

    The template says where a pod may run. The newest of ``pods``, which come the oldest first, says what it takes,
    because admission webhooks and a VerticalPodAutoscaler give pods other requests than their template has.
    """
    daemons = []
    newest = _newest_pods(pods)
    for daemon_set in sorted(daemon_sets, key=lambda d: (d.metadata.namespace, d.metadata.name)):
        metadata, template = daemon_set.metadata, daemon_set.spec.template
        namespace = metadata.namespace or "default"
        spec = _with_live_requests(template.spec, newest.get((namespace, metadata.name)))
        pod = Pod(metadata=msgspec.structs.replace(template.metadata, namespace=namespace), spec=spec)
        try:
            daemon = Daemon(f"{metadata.namespace}/{metadata.name}", pod, requests_of(pod), _terms(spec))
        except (ValueError, UnknownOperatorError):
            continue
        daemons.append(daemon)
    return tuple(daemons)


def _newest_pods(pods: Iterable[Pod]) -> Mapping[tuple[str, str], Pod]:
    """The newest pod of each DaemonSet, by the DaemonSet's namespace and name."""
    return {
        (pod.metadata.namespace or "default", owner.name): pod
        for pod in filter(is_active, pods)
        for owner in pod.metadata.owner_references
    }


def _with_live_requests(template: PodSpec, pod: Pod | None) -> PodSpec:
    """The template with everything that requests, host ports and claims come from taken from a pod that runs."""
    if pod is None:
        return template
    return msgspec.structs.replace(
        template,
        containers=pod.spec.containers,
        init_containers=pod.spec.init_containers,
        overhead=pod.spec.overhead,
        resources=pod.spec.resources,
        resource_claims=pod.spec.resource_claims,
    )


def _terms(spec: PodSpec) -> tuple[Requirements, ...]:
    """The node selector with each required node affinity term. Raises ``UnknownOperatorError``."""
    chosen = selector(spec.node_selector.items())
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None:
        return (chosen,)
    return tuple(chosen.intersect(term) for term in alternatives(map(_with_fields, required.node_selector_terms)))


def _with_fields(term: NodeSelectorTerm) -> NodeSelectorTerm:
    """The term with its fields among its expressions: the one field that Kubernetes knows is the node's name."""
    return NodeSelectorTerm(match_expressions=[*term.match_expressions, *term.match_fields])
