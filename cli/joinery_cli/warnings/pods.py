"""Pods that an API server takes, and that hardly ask for what was meant: ``memory: 512m`` is half a byte, ``cpu: 500``
five hundred cores, a NodePool with ``memory: 1000`` has room for no node, and a topology spread whose selector does
not match the pods themselves spreads nothing.

A cluster says nothing of them: the pods are put on nodes that are far too small, or all into one zone.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from joinery.decisions.scheduling.constraints.selectors import read, unreadable
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import DaemonSet, Namespace, Pod, PodSpec, TopologySpreadConstraint
from joinery.objects.kubernetes.quantity import amount
from joinery_cli.notices import UserNotice, warning, warnings_of
from joinery_cli.view.workloads import owner_of

#: No process lives in less than a mebibyte; no container has needed so many cores that were written without a unit.
_LEAST_BYTES, _MOST_CORES = 2**20, 100
#: Few are gibibytes, some hundreds mebibytes; what is larger was meant to be something else.
_MOST_GIBIBYTES, _MOST_MEBIBYTES = 32, 99_999
#: No instance type has less memory than half a gibibyte.
_SMALLEST_NODE = 2**29
_BYTES = ("memory", "ephemeral-storage")
_ISTIO, _ISTIO_PROXY = "sidecar.istio.io/inject", "istio-proxy"
_NUMBER = re.compile(r"(\d+)(m?)")


def odd_amounts(pods: Iterable[Pod], daemon_sets: Iterable[DaemonSet]) -> Iterator[UserNotice]:
    """A warning for each amount that lacks its unit, naming whose pods they are."""
    specs = [(owner_of(pod), pod.spec) for pod in pods]
    specs += [(f"{one.metadata.namespace}/{one.metadata.name}", one.spec.template.spec) for one in daemon_sets]
    yield from warnings_of(((owner, odd) for owner, spec in specs for odd in _odd_requests(spec)), "pods of ")


def _odd_requests(spec: PodSpec) -> Iterator[str]:
    for container in (*spec.containers, *spec.init_containers):
        yield from _odd(container.resources.requests)


def _odd(requests: Mapping[str, object]) -> Iterator[str]:
    for name, given in requests.items():
        written = _NUMBER.fullmatch(str(given))
        if written is None:
            continue
        number, value = int(written[1]), amount(name, str(given))
        if name in _BYTES and 0 < value < _LEAST_BYTES:
            unit = "Gi" if number <= _MOST_GIBIBYTES else "Mi"
            question = f"; is it {number}{unit}?" if number <= _MOST_MEBIBYTES else ""
            yield f"they request {name}: {given}, which is {_bytes(written, value)}{question}"
        elif name == "cpu" and not written[2] and number >= _MOST_CORES:
            yield f"they request cpu: {given}, which is {number:,} cores; is it {number}m?"


def _bytes(written: re.Match[str], value: int) -> str:
    return "less than a byte" if written[2] and value <= 1 else f"{value:,} bytes"


def odd_limits(pools: Iterable[NodePool]) -> Iterator[UserNotice]:
    """The same for what a NodePool may have in all. Nothing at all is a limit that people set to stop it."""
    for pool in pools:
        for name, given in pool.spec.limits.items():
            written = _NUMBER.fullmatch(given)
            if written and name in _BYTES and 0 < (value := amount(name, given)) < _SMALLEST_NODE:
                question = f"; is it {written[1]}Gi?" if int(written[1]) <= _MOST_MEBIBYTES else ""
                yield warning(
                    f"NodePool {pool.metadata.name}: spec.limits.{name}: {given} is {_bytes(written, value)}, and no "
                    f"node is so small{question}"
                )


def uncounted_sidecars(pods: Iterable[Pod], namespaces: Iterable[Namespace]) -> Iterator[UserNotice]:
    """A warning where Istio's webhook adds a proxy to pods of manifests; pods of a cluster have it already.

    Istio, "Installing the Sidecar": the pod's own label decides, then its older annotation, then the namespace's label.
    """
    meshed = {one.metadata.name for one in namespaces if one.metadata.labels.get("istio-injection") == "enabled"}
    doubts = []
    for pod in pods:
        meta, spec = pod.metadata, pod.spec
        own = meta.labels.get(_ISTIO) or meta.annotations.get(_ISTIO)
        is_meshed = own == "true" or (own != "false" and meta.namespace in meshed)
        has_proxy = any(one.name == _ISTIO_PROXY for one in (*spec.containers, *spec.init_containers))
        if is_meshed and not (has_proxy or meta.uid or spec.host_network):
            what = "a webhook of Istio adds a sidecar, which is not counted: the files lack what it requests"
            doubts.append((owner_of(pod), what))
    yield from warnings_of(doubts, "pods of ")


def idle_spreads(pods: Iterable[Pod]) -> Iterator[UserNotice]:
    """A warning for each topology spread that does not count its own pods, naming whose they are."""
    spreads = ((pod, spread) for pod in pods for spread in pod.spec.topology_spread_constraints)
    idle = (
        (owner_of(pod), f"their topology spread over {spread.topology_key} spreads nothing: {why}")
        for pod, spread in spreads
        if (why := _idle(spread, pod))
    )
    yield from warnings_of(idle, "pods of ")


def _idle(spread: TopologySpreadConstraint, pod: Pod) -> str | None:
    """Why the spread does not count its own pod. A selector that cannot be read is a reason on the pod."""
    selector = spread.label_selector
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return "it has no labelSelector"
    if unreadable(selector) or read(selector).matches(pod.metadata.labels):
        return None
    wanted = [f"{key}={value}" for key, value in selector.match_labels.items()]
    wanted += [one.key for one in selector.match_expressions]
    return f"its labelSelector ({', '.join(wanted)}) matches none of them"
