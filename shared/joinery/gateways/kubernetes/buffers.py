"""What CapacityBuffers refer to, asked for object by object: there are few buffers, and many Deployments.

Of the kinds below the object says what its pods look like. Of any other kind its scale subresource says how many pods
it has and how they are selected, which is all that one right allows for kinds that nobody knows yet.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from joinery.gateways.kubernetes import lists
from joinery.gateways.kubernetes.api_errors import object_of
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer, ScalableRef
from joinery.objects.errors import DeniedError, NotFoundError
from joinery.objects.kubernetes.decoding import decode, decoder
from joinery.objects.kubernetes.shapes import (
    BufferSources,
    PodTemplate,
    Scale,
    Shape,
    shape_of_template,
    shape_of_workload,
)
from joinery.objects.kubernetes.workloads import ResourceQuota, Workload

#: Requests at a time.
_SIDE_BY_SIDE = 16
_QUOTAS = "/api/v1/resourcequotas"
_TEMPLATED = {
    ("apps", "Deployment"): "/apis/apps/v1/namespaces/{}/deployments/{}",
    ("apps", "StatefulSet"): "/apis/apps/v1/namespaces/{}/statefulsets/{}",
    ("apps", "ReplicaSet"): "/apis/apps/v1/namespaces/{}/replicasets/{}",
    ("", "ReplicationController"): "/api/v1/namespaces/{}/replicationcontrollers/{}",
}


class _Version(msgspec.Struct, rename="camel"):
    group_version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    preferred_version: _Version = msgspec.field(default_factory=_Version)


class _Resource(msgspec.Struct):
    name: str = ""
    kind: str = ""


class _Resources(msgspec.Struct):
    resources: list[_Resource] = []


class _Found(NamedTuple):
    """An object that may be asked for: what a message calls it, and its path."""

    name: str
    path: str


def buffer_sources(transport: Transport, buffers: Sequence[CapacityBuffer]) -> BufferSources:
    """See ``Cluster.buffer_sources``. Raises ``UnavailableError``."""
    with ThreadPoolExecutor(min(_SIDE_BY_SIDE, len(buffers) + 1)) as readers:
        quotas = readers.submit(_quotas, transport)
        shapes = dict(zip((one.key for one in buffers), readers.map(_Reader(transport).shape, buffers), strict=True))
        return BufferSources(shapes=shapes, quotas=quotas.result())


def pod_templates(transport: Transport, names: Sequence[str]) -> Mapping[str, Shape]:
    """See ``Cluster.pod_templates``. Raises ``UnavailableError``."""
    with ThreadPoolExecutor(min(_SIDE_BY_SIDE, len(names) + 1)) as readers:
        return dict(zip(names, readers.map(_Reader(transport).named, names), strict=True))


def _quotas(transport: Transport) -> tuple[ResourceQuota, ...]:
    """Without the right to read them, none: a buffer is larger then than it could be filled."""
    try:
        return lists.read(transport, _QUOTAS, ResourceQuota).objects
    except DeniedError:
        return ()


class _Reader:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def shape(self, buffer: CapacityBuffer) -> Shape:
        """What the buffer refers to, or why that is not known."""
        namespace, template, scalable = buffer.namespace, buffer.spec.pod_template_ref, buffer.spec.scalable_ref
        if template is not None:
            return _or_why(self._pod_template, namespace, template.name)
        return _or_why(self._scalable, namespace, scalable) if scalable is not None else Shape()

    def named(self, name: str) -> Shape:
        """The PodTemplate namespace/name, or why that is not known."""
        return _or_why(self._pod_template, *name.split("/", 1))

    def _pod_template(self, namespace: str, name: str) -> Shape:
        path = f"/api/v1/namespaces/{quote(namespace)}/podtemplates/{quote(name)}"
        return shape_of_template(decode(self._get(_Found(f"podtemplates {name!r}", path)), PodTemplate))

    def _scalable(self, namespace: str, ref: ScalableRef) -> Shape:
        core = ref.api_group == "" and ref.kind == "ReplicationController"
        group = ref.api_group or ("" if core else "apps")
        path = _TEMPLATED.get((group, ref.kind))
        if path is None:
            return self._by_scale(namespace, ref, group)
        found = _Found(f"{ref.kind} {ref.name!r}", path.format(quote(namespace), quote(ref.name)))
        return shape_of_workload(decode(self._get(found), Workload))

    def _by_scale(self, namespace: str, ref: ScalableRef, group: str) -> Shape:
        base = self._served(group)
        plural = self._plural(base, ref.kind, group)
        found = _Found(
            f"{ref.kind} {ref.name!r}", f"{base}/namespaces/{quote(namespace)}/{plural}/{quote(ref.name)}/scale"
        )
        read = decode(self._get(found), Scale)
        return Shape(replicas=read.spec.replicas, selector=_labels_of(read.status.selector))

    def _served(self, group: str) -> str:
        """The path of the version of an API group that the API server prefers."""
        if not group:
            return "/api/v1"
        raw = self._get(_Found(f"API group {group!r}", f"/apis/{quote(group)}"), unsupported="API group")
        return f"/apis/{decoder(_Group).decode(raw).preferred_version.group_version}"

    def _plural(self, base: str, kind: str, group: str) -> str:
        """What the API calls the kind in paths. Raises ``ValueError`` for one that has no scale subresource."""
        listed: list[_Resource] = decoder(_Resources).decode(self._get(_Found(base, base))).resources
        names = {one.name for one in listed}
        plurals = [one.name for one in listed if one.kind == kind and "/" not in one.name]
        scalable = [plural for plural in plurals if f"{plural}/scale" in names]
        if not scalable:
            raise ValueError(f"unsupported kind {kind!r}: {group or 'the core group'} has none that can be scaled")
        return scalable[0]

    def _get(self, found: _Found, *, unsupported: str = "") -> bytes:
        """Raises ``NotFoundError``, ``DeniedError``, ``UnavailableError``, and ``ValueError`` for what cannot be
        asked for at all.
        """
        answer = self._transport.ask("GET", found.path)
        if answer.code == 404:
            if unsupported:
                raise ValueError(f"unsupported scalableRef {found.name}")
            raise NotFoundError(f"{found.name} not found")
        if answer.code == 403:
            said = answer.status.message
            raise DeniedError(f"the right to read {found.name} is missing: deploy again, or grant it ({said})")
        return object_of(f"GET {found.path}", answer)


def _or_why(read: Callable[..., Shape], *args: Any) -> Shape:
    """What it reads, or why it cannot."""
    try:
        return read(*args)
    except NotFoundError as error:
        return Shape(missing=str(error))
    except (DeniedError, msgspec.ValidationError, ValueError) as error:
        return Shape(missing=str(error), is_unread=True)


def _labels_of(selector: str) -> dict[str, str] | None:
    """A selector of labels that must be equal; None for one that says anything else, or nothing."""
    parts = [part.replace("==", "=").partition("=") for part in selector.split(",") if part]
    plain = parts and all(sign and key.strip().isprintable() and not key.endswith("!") for key, sign, _ in parts)
    return {key.strip(): value.strip() for key, _, value in parts} if plain else None
