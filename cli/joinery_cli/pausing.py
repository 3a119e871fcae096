"""``joinery pause`` and ``joinery resume``: a person's word about a NodePool, or a namespace's buffers.

It is an annotation of its own (``objects.karpenter.pause``), so that a schedule beside it stays as it was written.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from joinery.objects.errors import ConfigurationError

if TYPE_CHECKING:
    from joinery.decisions.scheduling.paid_for import Sold
    from joinery.gateways.kubernetes.gateway import Objects
    from joinery.objects.kubernetes.references import Reference
    from joinery.objects.snapshot.snapshot import Snapshot
    from joinery_cli.notices import UserNotice

Names = Annotated[
    list[str] | None, typer.Argument(metavar="NODEPOOL", show_default=False, help="The NodePools. Repeatable.")
]
All = Annotated[bool, typer.Option("--all", help="All NodePools of the cluster.")]
Namespaces = Annotated[
    list[str] | None,
    typer.Option("-n", "--namespace", metavar="NAME", help="The CapacityBuffers of this namespace. Repeatable."),
]


def pause(names: Names = None, everything: All = False, namespaces: Namespaces = None) -> None:
    """Buy nothing for NodePools, and let their nodes go within their budgets, until joinery resume.

    Writes an annotation in the current kubeconfig's cluster; joinery disrupt shows which nodes go, and what that saves.
    Pods that no other NodePool takes wait. A schedule is an annotation too: joinery.dev/pause.
    """
    objects = _objects()
    for where in meant(objects, names or (), namespaces or (), everything=everything):
        print(paused(objects, where))


def resume(names: Names = None, everything: All = False, namespaces: Namespaces = None) -> None:
    """Buy again for NodePools that are paused, by hand or in this window of their schedule.

    Writes an annotation in the current kubeconfig's cluster.
    """
    from joinery_cli.sources import moment

    objects, now = _objects(), moment(None)
    for where in meant(objects, names or (), namespaces or (), everything=everything):
        print(resumed(objects, where, now))


def meant(
    objects: "Objects", names: Sequence[str], namespaces: Sequence[str], *, everything: bool
) -> "Sequence[Reference]":
    """The objects that are meant, all of which there are: NodePools of v1, else of v1beta1, else Provisioners. Raises
    ``ConfigurationError``.
    """
    from joinery.objects.kubernetes.references import Reference

    pools = [*_pools(objects)]
    there = {pool.name: pool for pool in reversed(pools)}
    named = pools if everything else [there.get(name, Reference("NodePool", name)) for name in names]
    found = [*named, *(Reference("Namespace", name) for name in namespaces)]
    if not found:
        raise ConfigurationError("which NodePool? Name some, or write --all, or --namespace NAME for its buffers")
    for where in found:
        if objects.read(where) is None:
            raise ConfigurationError(f"there is no {where}: nothing was changed")
    return found


def _pools(objects: "Objects") -> "Mapping[Reference, Mapping[str, str]]":
    """The annotations of all that nodes are bought for, each once: an API server that has v1 has the same objects in
    v1beta1.
    """
    from joinery.objects.kubernetes.references import Reference

    of_kinds = [objects.labelled("NodePool") or objects.labelled("NodePool.v1beta1"), objects.labelled("Provisioner")]
    return {Reference(one["kind"], one["metadata"]["name"]): _annotations(one) for listed in of_kinds for one in listed}


def paused(objects: "Objects", where: "Reference") -> str:
    """Write that it is paused, if nobody has. Returns the line for the person."""
    from joinery.objects.karpenter.labels import PAUSED

    if _annotations(objects.read(where)).get(PAUSED) == "true":
        return f"{where}: is paused already, until joinery resume"
    objects.patch(where, {"metadata": {"annotations": {PAUSED: "true"}}})
    return f"{where}: paused until joinery resume"


def resumed(objects: "Objects", where: "Reference", now: datetime) -> str:
    """Write that it runs again. Returns the line for the person. Where a schedule does not pause it now, nothing has to
    be said any more; where nothing does, nothing is written.
    """
    from joinery.objects.karpenter.labels import PAUSED
    from joinery.objects.karpenter.pause import pause_by

    annotations, of_pools = _annotations(objects.read(where)), _pools(objects).values()
    by_schedule = pause_by({key: value for key, value in annotations.items() if key != PAUSED}, of_pools, "", now)
    if pause_by(annotations, of_pools, "", now) is None:
        return f"{where}: runs already"
    since = now.isoformat(timespec="seconds") if by_schedule else None
    objects.patch(where, {"metadata": {"annotations": {PAUSED: since}}})
    return f"{where}: runs again" + ("; a schedule counts from its next window on" if by_schedule else "")


def _annotations(stored: Mapping[str, Any] | None) -> Mapping[str, str]:
    annotations: Mapping[str, str] = (stored or {}).get("metadata", {}).get("annotations") or {}
    return annotations


def notes_of_pauses(snapshot: "Snapshot", sold: "Sold") -> "Iterator[UserNotice]":
    """For each NodePool that is paused which of its nodes go now, and what that saves."""
    from joinery.decisions.disruption.pausing import paused_nodes
    from joinery_cli.notices import note

    nodes = paused_nodes(snapshot, sold)
    for name in sorted(snapshot.pauses):
        own = [one for one in nodes if one.pause.whose == snapshot.pauses[name].whose]
        going, kept = [one for one in own if not one.why], next((one.why for one in own if one.why), "")
        hourly, whole = sum(one.hourly for one in going), sum(one.saved for one in going)
        saves = f", which saves ${hourly:.4f}/h" + (f", ${whole:.2f} in the whole pause" if whole else "")
        stays = f"; others stay for now: {kept}" if kept else ""
        go = "goes" if len(going) == 1 else "go"
        many = f"{len(going)} of its {len(own)} nodes {go} now{saves if going else ''}{stays}"
        yield note(f"{snapshot.pauses[name]}: {many if own else 'it has no nodes'}")


def _objects() -> "Objects":
    """Raises ``ConfigurationError`` where there is no kubeconfig."""
    from joinery.gateways.kubernetes.auth import from_kubeconfig
    from joinery.gateways.kubernetes.objects import KubernetesObjects
    from joinery.gateways.kubernetes.transport import Transport

    return KubernetesObjects(Transport(from_kubeconfig()))
