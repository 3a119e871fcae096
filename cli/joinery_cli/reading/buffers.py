"""CapacityBuffers and ProvisioningRequests of files: what they refer to is in the same files, and the room that they
keep is planned.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from joinery.decisions.headroom import requests
from joinery.decisions.headroom.requests import ResolvedRequest
from joinery.decisions.headroom.resolve import ResolvedBuffer, resolve, with_headroom
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.autoscaling.capacitybuffer import ACTIVE_CAPACITY, CapacityBuffer
from joinery.objects.autoscaling.provisioningrequest import ATOMIC, CHECK, CHECKER, VALID_UNTIL, ProvisioningRequest
from joinery.objects.kubernetes.shapes import BufferSources, Shape, shape_of_template, shape_of_workload
from joinery.objects.snapshot.default_spreads import SpreadFiller
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.spelling import meant_by
from joinery.objects.wording import shown
from joinery_cli.notices import UserNotice, note, warning
from joinery_cli.reading.admission.quotas import as_used
from joinery_cli.reading.admission.workloads import Owner

#: Asks for what buffers refer to.
Sources = Callable[[Sequence[CapacityBuffer]], BufferSources]


def sources_in(objects: Mapping[str, Mapping[Any, Any]], spreads: SpreadFiller) -> Sources:
    """Of the objects of files, by field and key. ResourceQuotas are used up as far as the files' pods do it, or as a
    cluster has counted.
    """

    def found(buffers: Sequence[CapacityBuffer]) -> BufferSources:
        quotas = as_used(objects.get("pods", {}).values(), objects.get("resource_quotas", {}).values())
        shapes = {buffer.key: _shape(buffer, objects) for buffer in buffers}
        return BufferSources(shapes=_spread(shapes, objects, spreads), quotas=quotas)

    return found


def _spread(
    shapes: Mapping[str, Shape], objects: Mapping[str, Mapping[Any, Any]], spreads: SpreadFiller
) -> Mapping[str, Shape]:
    return spreads.of_shapes(shapes, lambda: objects.get("services", {}).values())


def _shape(buffer: CapacityBuffer, objects: Mapping[str, Mapping[Any, Any]]) -> Shape:
    template, scalable = buffer.spec.pod_template_ref, buffer.spec.scalable_ref
    if template is not None:
        return _of_template(f"{buffer.namespace}/{template.name}", objects)
    if scalable is None:
        return Shape()
    workload = objects.get("workloads", {}).get(Owner(scalable.kind, f"{buffer.namespace}/{scalable.name}"))
    if workload is None:
        return Shape(missing=f"{scalable.kind} {scalable.name!r} not found")
    return shape_of_workload(workload)


def _of_template(name: str, objects: Mapping[str, Mapping[Any, Any]]) -> Shape:
    read = objects.get("pod_templates", {}).get(name)
    if read is None:
        return Shape(missing=f"podtemplates {name.rpartition('/')[2]!r} not found")
    return shape_of_template(read)


#: The classes of ProvisioningRequests, and by what else people call them.
_CLASSES = {name: one for one in (ATOMIC, CHECK) for name in (one, one.partition(".")[0])}

#: Asks what the pods of PodTemplates (namespace/name) look like.
Templates = Callable[[Sequence[str]], Mapping[str, Shape]]


def templates_in(objects: Mapping[str, Mapping[Any, Any]], spreads: SpreadFiller) -> Templates:
    """Of the objects of files."""
    return lambda names: _spread({name: _of_template(name, objects) for name in names}, objects, spreads)


def requested(snapshot: Snapshot, templates: Templates) -> tuple[tuple[ResolvedRequest, ...], Sequence[UserNotice]]:
    """The open ProvisioningRequests, and what a person should know of all of them."""
    names = requests.templates_named(snapshot)
    resolved = requests.resolve(snapshot, templates(names)) if names else ()
    strangers = (one for one in snapshot.provisioning_requests if not one.is_ours and not one.has_ended)
    of_strangers = [_of_stranger(one) for one in strangers]
    return resolved, (*of_strangers, *(notice for one in resolved for notice in _about(one)))


def _of_stranger(request: ProvisioningRequest) -> UserNotice:
    called, given = f"ProvisioningRequest {request.key}", request.spec.provisioning_class_name
    if request.is_check:
        whose = shown(request.spec.parameters[CHECKER])
        return note(f"{called} is left to another: its spec.parameters.{CHECKER} is {whose}")
    meant = _CLASSES.get(meant_by(given, _CLASSES), "")
    field = f"{called}: spec.provisioningClassName: is {shown(given)}"
    if meant:
        return warning(f"{field}, of which nobody knows; is it {meant}?")
    return note(f"{field}, which is left to others: Joinery serves {ATOMIC} and {CHECK}")


def _about(one: ResolvedRequest) -> Iterator[UserNotice]:
    called = f"ProvisioningRequest {one.request.key}"
    yield from (warning(f"{called}: {why}") for why in one.request.ignored)
    if one.problem:
        yield warning(f"{called} gets no nodes: {one.problem}")
    elif one.is_over and not one.request.is_provisioned:
        ended = f"{one.request.lasts.total_seconds():,.0f} s after its creation ({VALID_UNTIL})"
        yield note(f"{called} gets no nodes: it ended {ended}")


def room(problem: Problem, resolved: Sequence[ResolvedRequest]) -> Iterator[UserNotice]:
    """Of each request to check, whether the nodes that there are have room for it."""
    for key, why in requests.checked(problem, resolved).items():
        called = f"ProvisioningRequest {key}"
        yield warning(f"{called}: {why}") if why else note(f"{called}: there is room for all of its pods")


def filled(snapshot: Snapshot, sources: Sources) -> tuple[Snapshot, Sequence[UserNotice]]:
    """The snapshot with the room that its buffers keep, and what a person should know of them."""
    buffers = [buffer for buffer in snapshot.capacity_buffers if buffer.is_ours]
    others = tuple(_left_alone(buffer) for buffer in snapshot.capacity_buffers if not buffer.is_ours)
    if not buffers:
        return snapshot, others
    resolved = resolve(snapshot, sources(buffers))
    return with_headroom(snapshot, resolved), (*others, *(one for buffer in resolved for one in _notices(buffer)))


def _left_alone(buffer: CapacityBuffer) -> UserNotice:
    strategy = buffer.spec.provisioning_strategy
    return note(
        f"CapacityBuffer {buffer.key} is left alone: its provisioningStrategy {strategy} is not {ACTIVE_CAPACITY}"
    )


def _notices(one: ResolvedBuffer) -> Iterator[UserNotice]:
    name = f"CapacityBuffer {one.buffer.key}"
    if not one.is_ready:
        yield warning(f"{name} keeps no room: {one.message}")
    elif one.paused:
        yield note(f"{name} keeps no room now: {one.paused}")
    elif not one.is_open:
        yield note(f"{name} keeps no room now: its schedule is not open")
    elif not one.size:
        yield note(f"{name} keeps no room: its replicas, percentage and limits come to no chunk")
    elif one.quotas:
        yield note(f"{name} is smaller than it asks for, by ResourceQuotas: {', '.join(one.quotas)}")
    elif len(one.pods) < one.size:
        yield warning(f"{name}: {one.message}")
