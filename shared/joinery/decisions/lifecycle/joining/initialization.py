"""Initialization: a registered node becomes fit for the pods that it was bought for, and is as large as it should be.

It is fit when its kubelet is ready, the taints of booting and the user's startup taints are gone, and the resources
that were asked for have appeared (the device plugin of a GPU takes a minute), or the devices that were claimed. From
then on plans go by what the node says of itself, and no longer by its claim. Initialization is never undone (Karpenter
nodeclaim/lifecycle, Initialization).

A node that is smaller than its instance type said holds fewer pods than it was bought for (Karpenter
nodeclaim/consistency): somebody should know, but nothing is done about it. A verdict stands for ten minutes from the
condition's transition time. So a claim gets one Event in ten minutes at most, though nothing is remembered anywhere
else.
"""

from collections.abc import Iterable
from datetime import timedelta

from msgspec.structs import replace

from joinery.decisions.lifecycle.state.cluster import ClusterState, is_ready
from joinery.decisions.scheduling.devices.stock import drivers_on
from joinery.objects.actions import Announce, Command
from joinery.objects.karpenter.conditions import false, true, unknown
from joinery.objects.karpenter.labels import INITIALIZED as INITIALIZED_LABEL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.kubernetes.dynamic_resources import ResourceSlice
from joinery.objects.kubernetes.quantity import amount, amounts
from joinery.objects.snapshot.claims import INITIALIZED, drivers_wanted, observed, with_condition
from joinery.objects.snapshot.nodes import is_ephemeral

CONSISTENT = "ConsistentStateFound"
STANDS_FOR = timedelta(minutes=10)
#: How much of a resource a node must have of what was expected. The rest is the kernel's, and differs by its version.
_ENOUGH = 0.9


def initialize(state: ClusterState, claim: NodeClaim, node: Node | None) -> tuple[NodeClaim, Node | None]:
    """The claim with the condition ``Initialized``, and its node with the label if it is fit."""
    at = observed(claim, state.snapshot.now)
    if node is None:
        return with_condition(claim, unknown(INITIALIZED, "NodeNotFound", "the node is not registered", at)), None
    missing = not_yet(claim, node, state.snapshot.resource_slices)
    if missing is not None:
        return with_condition(claim, unknown(INITIALIZED, *missing, at)), node
    labels = {**node.metadata.labels, INITIALIZED_LABEL: "true"}
    fit = replace(node, metadata=replace(node.metadata, labels=labels))
    return with_condition(claim, true(INITIALIZED, at)), fit


def not_yet(claim: NodeClaim, node: Node, slices: Iterable[ResourceSlice]) -> tuple[str, str] | None:
    """Reason and message of the first check that fails; None for a node that is fit."""
    if not is_ready(node):
        return "NodeNotReady", "the kubelet is not ready"
    startup = {(taint.key, taint.effect) for taint in claim.spec.startup_taints}
    for taint in node.spec.taints:
        if (taint.key, taint.effect) in startup:
            return "StartupTaintsExist", f"the startup taint {taint.key} is still there"
    for taint in node.spec.taints:
        if is_ephemeral(taint):
            return "KnownEphemeralTaintsExist", f"the taint {taint.key} is still there"
    absent = _absent_resources(claim, node)
    if absent:
        return "ResourceNotRegistered", f"no {', '.join(absent)} yet"
    wanted = drivers_wanted(claim)
    present = drivers_on(slices, node.metadata.name) if wanted else frozenset()
    silent = [driver for driver in wanted if driver not in present]
    return ("DRADriverPoolsNotPublished", f"no devices of {', '.join(silent)} yet") if silent else None


def _absent_resources(claim: NodeClaim, node: Node) -> list[str]:
    has = amounts(node.status.allocatable)
    requests = claim.spec.resources.requests
    return sorted(name for name, text in requests.items() if amount(name, text) > 0 and has.get(name, 0) <= 0)


def checked(state: ClusterState, claim: NodeClaim, node: Node | None) -> tuple[NodeClaim, tuple[Command, ...]]:
    """The claim with the condition ``ConsistentStateFound``, and an Event if that has just become a bad one.

    ``node``: its Node, if it has one.
    """
    if node is None or not claim.is_true(INITIALIZED) or len(state.nodes_of(claim)) != 1:
        return claim, ()
    before = claim.condition(CONSISTENT)
    since = before.last_transition_time if before is not None else None
    if since is not None and state.snapshot.now - since < STANDS_FOR:
        return claim, ()
    at, missing = observed(claim, state.snapshot.now), "; ".join(_missing(claim, node))
    if not missing:
        if before is not None and before.status == "True" and before.observed_generation == at.generation:
            return claim, ()  # So it is with nearly all claims in nearly every run.
        return with_condition(claim, true(CONSISTENT, at)), ()
    after = with_condition(claim, false(CONSISTENT, "ConsistencyCheckFailed", missing, at))
    is_news = before is None or before.status != "False"
    return after, (Announce("FailedConsistencyCheck", missing, claim),) if is_news else ()


def _missing(claim: NodeClaim, node: Node) -> Iterable[str]:
    """For each resource that the claim's pods asked for, how much of what was expected is not there."""
    expected, actual = claim.status.capacity, node.status.capacity
    for name, text in sorted(claim.spec.resources.requests.items()):
        wanted, there = amount(name, expected.get(name, 0)), actual.get(name, 0)
        if amount(name, text) > 0 and wanted > 0 and amount(name, there) / wanted < _ENOUGH:
            yield f"expected {expected[name]} of {name}, but node {node.metadata.name} has {there}"
