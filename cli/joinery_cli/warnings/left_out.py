"""What a plan leaves out, or takes in another way than whoever wrote it may think, with how much there is of it."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.decisions.scheduling.constraints.volumes import Volumes
from joinery.decisions.scheduling.explain.elsewhere import also_served, bought_twice, foreign
from joinery.decisions.scheduling.firstfit.pending import staying_with_their_nodes
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.pools.overlays import MATCHES_NOTHING, Overlaid
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.offline import (
    NODE_CLASS,
    assumed_partitions,
    types_without_value,
    unbootable,
    unused_reservations,
)
from joinery.objects.karpenter.labels import AUTO_MODE_DRIVER, DO_NOT_DISRUPT
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.quantity import amount
from joinery.objects.snapshot.claims import DRIFTED
from joinery.objects.snapshot.nodes import pending_pods
from joinery.objects.snapshot.pods import (
    FARGATE_SCHEDULER,
    controller_of,
    is_active,
    is_daemon,
    waits_for_fargate,
)
from joinery.objects.snapshot.replicas import StaticPool, static_pools
from joinery.objects.snapshot.snapshot import Invalid, Snapshot
from joinery_cli.notices import UserNotice, note, some_of, warning
from joinery_cli.view.workloads import owner_of
from joinery_cli.warnings.annotations import idle_protections
from joinery_cli.warnings.partial_exports import (
    budgets_without_status,
    claims_without_nodes,
    groups_without_total,
    nodes_without_claims,
    nodes_without_pods,
    pods_without_groups,
    pods_without_nodes,
)
from joinery_cli.warnings.pods import idle_spreads, odd_amounts, odd_limits, uncounted_sidecars

if TYPE_CHECKING:
    from joinery.objects.settings import Settings

_OUR_SCHEDULERS = ("", "default-scheduler", FARGATE_SCHEDULER)


def unreadable(snapshot: Snapshot) -> Iterator[UserNotice]:
    """Objects of a live cluster that cannot be read and take no part, but NodePools."""
    yield from (_takes_no_part(bad) for bad in snapshot.invalid if bad.kind != "NodePool")


def overlays_left_out(changed: Overlaid) -> Iterator[UserNotice]:
    """NodeOverlays that count nowhere, or change nothing."""
    for name, reason in sorted(changed.invalid.items()):
        yield warning(f"NodeOverlay {name} takes no part: {reason}")
    for name in sorted(changed.conflicts):
        reason = "another of its weight is for the same instance types; the heavier one would count"
        yield warning(f"NodeOverlay {name} takes no part: {reason}")
    yield from (warning(f"NodeOverlay {name}: {MATCHES_NOTHING}") for name in sorted(changed.unmatched))


def beside_disruptions(snapshot: Snapshot, *, only_marked: bool) -> Iterator[UserNotice]:
    """What a decision about nodes says nothing of: NodePools that cannot be read, pods that wait, and what no command
    is for. ``only_marked``: see ``left_out``.
    """
    yield from beside_nodes(snapshot, only_marked=only_marked)
    waiting = len(pending_pods(snapshot, only_marked=only_marked))
    if waiting:
        yield note(f"{_counted(waiting, 'waits', 'wait')} for a node: joinery plan says which they get")


def beside_nodes(snapshot: Snapshot, *, only_marked: bool) -> Iterator[UserNotice]:
    """The same, where pods that wait are shown. ``only_marked``: see ``left_out``."""
    yield from (_takes_no_part(bad) for bad in snapshot.invalid if bad.kind == "NodePool")
    if not only_marked:
        yield from pods_without_nodes(snapshot)
        yield from pods_without_groups(snapshot)
        yield from nodes_without_claims(snapshot)
        yield from claims_without_nodes(snapshot)
        yield from nodes_without_pods(snapshot)
        yield from budgets_without_status(snapshot)
    if lacking := _lacking_classes(snapshot):
        yield warning(
            f"there is no {NODE_CLASS.kind} {', '.join(lacking)}, so nothing can be bought, and the nodes of its "
            f"NodePools stay. From a cluster that has it: kubectl get {NODE_CLASS.plural} -o yaml > classes.yaml, and "
            "-f classes.yaml"
        )
    yield from idle_protections(snapshot)
    yield from _expired(snapshot)
    yield from _drifted_in_static_pools(snapshot)


def _expired(snapshot: Snapshot) -> Iterator[UserNotice]:
    # Only joinery disrupt imports what decides about nodes; joinery plan starts without it.
    from joinery.decisions.disruption.expiration import expired

    if old := [claim.status.node_name or claim.metadata.name for _, claim in expired(snapshot)]:
        have, go = ("node has", "it goes for its") if len(old) == 1 else ("nodes have", "they go for their")
        yield note(f"{len(old):,} {have} expired ({some_of(old)}): {go} age, whatever is decided here")


def _drifted_in_static_pools(snapshot: Snapshot) -> Iterator[UserNotice]:
    """They are replaced by another function (``disruption.static_drift``), and look here as if they stayed for good."""
    drifted = [
        claim.status.node_name or claim.metadata.name
        for pool in static_pools(snapshot).values()
        for claim in pool.staying
        if claim.is_true(DRIFTED)
    ]
    if drifted:
        nodes, have, are = ("node", "has", "it is") if len(drifted) == 1 else ("nodes", "have", "they are")
        yield note(
            f"{len(drifted):,} {nodes} of static NodePools {have} drifted ({some_of(drifted)}): {are} replaced one for "
            "one, which this decision does not show"
        )


def _takes_no_part(bad: Invalid) -> UserNotice:
    return warning(f"{bad.kind} {bad.name} takes no part: {bad.reason}")


def lost_pods(evicted: Collection[str], snapshot: Snapshot) -> Iterator[UserNotice]:
    """Pods of a cluster that a decision evicts (``namespace/name``) and that no controller makes again, unlike what it
    says of where they go. kubectl drain refuses them without ``--force``.
    """
    lost = [pod.key for pod in snapshot.pods if pod.key in evicted and pod.metadata.uid and controller_of(pod) is None]
    if lost:
        have, them = ("pod has", "it") if len(lost) == 1 else ("pods have", "them")
        yield warning(
            f"{len(lost):,} {have} no controller that would make {them} again after the eviction ({some_of(lost)}); "
            f'{DO_NOT_DISRUPT}: "true" keeps {them}'
        )


def left_out(snapshot: Snapshot, *, only_marked: bool) -> Iterator[UserNotice]:
    """Pods and pools of a plan that are not planned, or not as they might be meant.

    ``only_marked``: pending are the pods alone that a scheduler marked so, as in a cluster; in a file all that wait
    are.
    """
    if not only_marked:
        yield from pods_without_nodes(snapshot)
        yield from pods_without_groups(snapshot)
        yield from groups_without_total(snapshot)
    yield from _on_leaving_nodes(snapshot)
    yield from _of_fixed_size(snapshot)
    yield from _gated(snapshot)
    waiting = sum(waits_for_fargate(pod) for pod in snapshot.pods)
    if waiting:
        pods = _counted(waiting, "waits", "wait")
        yield note(f"{pods} for Fargate (schedulerName {FARGATE_SCHEDULER}): no EC2 node is planned")
    yield from _of_other_schedulers(snapshot, only_marked=only_marked)
    yield from _asking_oddly(snapshot, only_marked=only_marked)


def _on_leaving_nodes(snapshot: Snapshot) -> Iterator[UserNotice]:
    """Pods of nodes that go, without a place in the plan: the only pod of a cluster may be one."""
    staying: dict[str, list[str]] = defaultdict(list)
    for pod, why in staying_with_their_nodes(snapshot):
        staying[why].append(pod.key)
    for why, pods in sorted(staying.items()):
        what = _counted(len(pods), "of a node that is leaving is", "of nodes that are leaving are")
        yield note(f"{what} not planned elsewhere ({some_of(sorted(pods))}): {why}")


def _asking_oddly(snapshot: Snapshot, *, only_marked: bool) -> Iterator[UserNotice]:
    """The scheduler packs by requests alone, so that pods without any may be many on a node that is small."""
    pending = pending_pods(snapshot, only_marked=only_marked)
    yield from odd_amounts(pending, snapshot.daemon_sets)
    yield from odd_limits(filter(snapshot.serves, snapshot.node_pools))
    yield from idle_spreads(pending)
    yield from uncounted_sidecars(pending, snapshot.namespaces)
    asking = [pod for pod in pending if not requests_of(pod).get("memory")]
    if asking:
        owners = some_of(list(dict.fromkeys(map(owner_of, asking))))
        what = f"{_counted(len(asking), 'requests', 'request')} no memory ({owners})"
        yield note(f"{what}: planned as taking none, on nodes that may have little of it")


def without_pools(snapshot: Snapshot, packing: Packing) -> Iterator[UserNotice]:
    """What whoever tries a plan on a Deployment alone has forgotten."""
    if not packing.unplaced:
        return
    lacking = _lacking_classes(snapshot)
    what = f"there is no {NODE_CLASS.kind} {', '.join(lacking)}" if lacking else "there is no NodePool"
    if lacking or not snapshot.node_pools:
        yield warning(
            f"{what}, so nothing can be bought: a plan needs a NodePool and its node class. From a cluster that has "
            f"them: kubectl get nodepools,{NODE_CLASS.plural} -o yaml > nodes.yaml, and -f nodes.yaml; or begin with "
            "examples/cluster.yaml"
        )


def _lacking_classes(snapshot: Snapshot) -> list[str]:
    """Node classes that NodePools name and that are not there."""
    classes = {one.metadata.name for one in snapshot.node_classes}
    named = {pool.spec.template.spec.node_class_ref.name for pool in snapshot.node_pools if snapshot.serves(pool)}
    return sorted(named - classes)


def _counted(number: int, one: str, many: str) -> str:
    return f"1 pod {one}" if number == 1 else f"{number:,} pods {many}"


def _gated(snapshot: Snapshot) -> Iterator[UserNotice]:
    """Pods that nobody schedules yet (Kubernetes, "Pod Scheduling Readiness"), with who holds them."""
    gated = [one for one in snapshot.pods if one.spec.scheduling_gates and not one.spec.node_name and is_active(one)]
    if gated:
        gates = sorted({gate.name for pod in gated for gate in pod.spec.scheduling_gates})
        names = some_of([pod.key for pod in gated])
        yield note(
            f"{_counted(len(gated), 'is', 'are')} gated ({names}; schedulingGates {', '.join(gates)}): not planned"
        )


def _of_other_schedulers(snapshot: Snapshot, *, only_marked: bool) -> Iterator[UserNotice]:
    """Nodes are found by kube-scheduler's rules, and another scheduler may bind by its own (Kubernetes,
    "Configure Multiple Schedulers").
    """
    waiting: dict[tuple[str, bool], list[Pod]] = defaultdict(list)
    planned = {pod.key for pod in pending_pods(snapshot, only_marked=only_marked)}
    for pod in snapshot.pods:
        foreign = pod.spec.scheduler_name not in _OUR_SCHEDULERS and not pod.spec.node_name and is_active(pod)
        if foreign and not is_daemon(pod) and not pod.spec.scheduling_gates:
            waiting[pod.spec.scheduler_name, pod.key in planned].append(pod)
    for (scheduler, is_planned), pods in sorted(waiting.items()):
        what = (
            f"{_counted(len(pods), 'waits', 'wait')} for another scheduler ({some_of([one.key for one in pods])}; "
            f"schedulerName {scheduler})"
        )
        if is_planned:
            yield note(f"{what}: planned by the rules of kube-scheduler, which may not be that scheduler's")
        else:
            yield note(f"{what}: not planned, because it has not marked them Unschedulable")


def _of_fixed_size(snapshot: Snapshot) -> Iterator[UserNotice]:
    """Static NodePools that have another number of nodes than they should: a plan for pods does not show that."""
    for name, pool in static_pools(snapshot).items():
        if pool.lacking:
            coming, spec = _coming(pool), pool.pool.spec
            nodes = "1 node" if abs(coming) == 1 else f"{abs(coming)} nodes"
            what = nodes.replace(" ", " more ") if coming >= 0 else f"{nodes} less"
            have = f"its {spec.replicas} replicas"
            if coming < pool.lacking:
                count = (spec.replicas or 0) - pool.lacking + coming
                have = f"{count} of its {spec.replicas} replicas, as many as its limits.nodes allows"
            yield note(
                f"NodePool {name} is static and gets {what} to have {have}, whatever pods need; this plan does not "
                "have them"
            )


def _coming(pool: StaticPool) -> int:
    """How many nodes the pool gets, within its own limit; negative for those that it gives up."""
    limit = pool.pool.spec.limits.get("nodes")
    if limit is None or pool.lacking < 0:
        return pool.lacking
    there = (pool.pool.spec.replicas or 0) - pool.lacking
    return max(0, min(pool.lacking, amount("nodes", limit) - there))


def not_counted(snapshot: Snapshot, catalogue: Catalog, settings: "Settings | None") -> Iterator[UserNotice]:
    """What a plan counts on that a cluster would not have, or the other way round.

    Capacity reservations that are asked for and not used, because the catalogue does not say what is left of them;
    classes with whose user data no node boots; types for which an expression of a class has no value; and partitions.
    """
    yield from map(warning, unused_reservations(snapshot.node_classes, catalogue, snapshot.now))
    yield from map(warning, unbootable(snapshot.node_classes))
    yield from map(note, assumed_partitions(snapshot.node_classes))
    yield from map(warning, types_without_value(snapshot.node_classes, catalogue, settings))


def others(packing: Packing, snapshot: Snapshot) -> Iterator[UserNotice]:
    """Of pods that another provider's NodePools may serve, such as EKS Auto Mode's: a warning where both may buy for
    them, and a note of those that have no place here and may have one there.
    """
    yield from _with_volumes_of_auto_mode(packing, snapshot)
    pools = foreign(snapshot)
    if not pools:
        return
    pods = {pod.key: pod for pod in snapshot.pods}
    if twice := bought_twice(packing, pods, pools):
        yield warning(twice)
    left = also_served((unplaced.pod for unplaced in packing.unplaced), pods, pools)
    if left:
        number = f"{len(left):,} pods that are" if len(left) > 1 else "1 pod that is"
        pool = ", ".join(sorted(set(left.values())))
        yield note(
            f"{number} left out here may be served by NodePool {pool} of another provider: {some_of(sorted(left))}"
        )


def _with_volumes_of_auto_mode(packing: Packing, snapshot: Snapshot) -> Iterator[UserNotice]:
    """Why pods wait for Auto Mode's nodes that do not ask for them: the StorageClass does."""
    pods, volumes = {pod.key: pod for pod in snapshot.pods}, Volumes(snapshot)
    left = [pods[one.pod] for one in packing.unplaced if one.pod in pods]
    bound = [pod for pod in left if pod.spec.volumes and AUTO_MODE_DRIVER in volumes.by_driver(pod)]
    if bound:
        number = f"{len(bound):,} pods get" if len(bound) > 1 else "1 pod gets"
        owners = some_of(list(dict.fromkeys(map(owner_of, bound))))
        yield warning(
            f"{number} no node here ({owners}): volumes of {AUTO_MODE_DRIVER} can be attached to nodes of EKS Auto "
            f"Mode alone; those of a StorageClass with the provisioner ebs.csi.aws.com to all others"
        )
