"""Sidecars that a webhook adds to pods of manifests: Istio's proxy, Linkerd's, an agent of Vault.

A plan packs what is written, so a service mesh that the files switch on makes its nodes too small without a word. Pods
that an API server has had carry the sidecar, and what it requests, already.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from joinery.objects.kubernetes.core import Namespace, ObjectMeta, Pod
from joinery_cli.notices import Notice, warnings_of
from joinery_cli.view.workloads import owner_of

_ON, _OFF = "true", "false"
_NO_NAMESPACE = ObjectMeta()


class _Injector(NamedTuple):
    """Whose webhook, and the annotation that asks for it, with its values. ``container``: what it adds.
    ``namespaces``: whether a namespace's annotation asks for all its pods.
    """

    name: str
    annotation: str
    values: frozenset[str]
    container: str
    namespaces: bool = False


#: "Automatic Proxy Injection" (Linkerd), "Dapr annotations and arguments", "Agent Sidecar Injector annotations" of
#: Vault, "Annotations and labels" (Consul on Kubernetes).
_INJECTORS = (
    _Injector("Linkerd", "linkerd.io/inject", frozenset({"enabled", "ingress"}), "linkerd-proxy", namespaces=True),
    _Injector("Dapr", "dapr.io/enabled", frozenset({_ON}), "daprd"),
    _Injector("Vault", "vault.hashicorp.com/agent-inject", frozenset({_ON}), "vault-agent"),
    _Injector("Consul", "consul.hashicorp.com/connect-inject", frozenset({_ON}), "consul-dataplane"),
)
_ISTIO, _ISTIO_PROXY = "sidecar.istio.io/inject", "istio-proxy"
_ISTIO_OF_NAMESPACE, _ISTIO_REVISION = "istio-injection", "istio.io/rev"


def uncounted_sidecars(pods: Iterable[Pod], namespaces: Iterable[Namespace]) -> Iterator[Notice]:
    """A warning for each injector, naming whose pods it adds to."""
    homes = {one.metadata.name: one.metadata for one in namespaces}
    doubts = (
        (owner_of(pod), f"a webhook of {name} adds a sidecar, which is not counted: the files lack what it requests")
        for pod in pods
        if not pod.metadata.uid
        for name in _injectors(pod, homes.get(pod.metadata.namespace, _NO_NAMESPACE))
    )
    yield from warnings_of(doubts, "pods of ")


def _injectors(pod: Pod, namespace: ObjectMeta) -> Iterator[str]:
    there = {container.name for container in (*pod.spec.containers, *pod.spec.init_containers)}
    if _ISTIO_PROXY not in there and _is_in_mesh(pod, namespace):
        yield "Istio"
    for one in _INJECTORS:
        asked = _inherited(one, pod.metadata.annotations, namespace.annotations)
        if asked in one.values and one.container not in there:
            yield one.name


def _inherited(one: _Injector, own: Mapping[str, str], namespaces: Mapping[str, str]) -> str:
    return own.get(one.annotation, namespaces.get(one.annotation, "") if one.namespaces else "")


def _is_in_mesh(pod: Pod, namespace: ObjectMeta) -> bool:
    """Istio, "Installing the Sidecar": the pod's own label decides, its older annotation, the namespace's label, and
    last a revision. Pods on the host's network are left alone.
    """
    if pod.spec.host_network:
        return False
    own = pod.metadata.labels.get(_ISTIO) or pod.metadata.annotations.get(_ISTIO)
    if own in (_ON, _OFF):
        return own == _ON
    if of_namespace := namespace.labels.get(_ISTIO_OF_NAMESPACE):
        return of_namespace == "enabled"
    return _ISTIO_REVISION in namespace.labels or _ISTIO_REVISION in pod.metadata.labels
