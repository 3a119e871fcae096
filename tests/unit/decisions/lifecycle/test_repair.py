"""Repair: which nodes are replaced or rebooted for their conditions, and what keeps them from that."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from joinery.decisions.lifecycle.repair import REBOOT_HELPS_WITHIN, Repairs, repairs
from joinery.decisions.lifecycle.state.cluster import ClusterState, state_of
from joinery.objects.actions import Command, DeleteClaim, RebootInstance, UpdateClaim
from joinery.objects.karpenter.labels import DO_NOT_REPAIR, REBOOTED_AT, TERMINATION_TIMESTAMP, ZONE_ID
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Condition, Node
from joinery.objects.policies import NodeRepair
from joinery.objects.snapshot.claims import moment
from joinery.objects.snapshot.instances import Instance
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from tests.real.files import FOLDER

MINUTE = timedelta(minutes=1)
#: Conditions as the kubelet and the EKS node monitoring agent write them, by what is wrong.
SEEN = json.loads((FOLDER / "conditions" / "node-monitoring-agent.json").read_text())
SINCE = datetime.fromisoformat("2026-11-21T21:46:47+00:00")
BROKEN = SEEN["cni-not-running"]


def _node(name: str, *conditions: Mapping[str, Any], pool: str = "default", zone_id: str = "use1-az1") -> Node:
    """A node with these conditions beside the kubelet's."""
    node = builders.node(name, node_pool=pool, labels={ZONE_ID: zone_id})
    added = [msgspec.convert(condition, Condition) for condition in conditions]
    kept = [condition for condition in node.status.conditions if condition.type not in {c.type for c in added}]
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, conditions=[*kept, *added]))


def _claim(name: str, *, pool: str = "default", **given: Any) -> NodeClaim:
    return builders.node_claim(f"claim-{name}", node=name, node_pool=pool, created=SINCE - timedelta(days=1), **given)


def _view(
    now: datetime,
    claims: Sequence[NodeClaim],
    nodes: Sequence[Node],
    state: str = "running",
    shifted: frozenset[str] | None = frozenset(),
    pools: Sequence[NodePool] = (),
) -> ClusterState:
    instances = [
        Instance(claim.status.provider_id.rpartition("/")[2], "m7a.xlarge", "us-east-1a", "on-demand", state, SINCE)
        for claim in claims
    ]
    snapshot = Snapshot(now=now, node_pools=tuple(pools), node_claims=tuple(claims), nodes=tuple(nodes))
    return state_of(snapshot, instances, shifted=shifted)


def _of_one(
    condition: Mapping[str, Any], after: timedelta, mode: NodeRepair = NodeRepair.REPLACE, **given: Any
) -> tuple[Command, ...]:
    """What is done about one broken node so long after its condition began."""
    view = _view(SINCE + after, [_claim("broken", **given)], [_node("broken", condition)])
    return repairs(view, mode).chains.get("claim-broken", ())


def _fleet(unhealthy: int, healthy: int, pool: str) -> tuple[list[NodeClaim], list[Node]]:
    names = [f"{pool}-{number}" for number in range(unhealthy + healthy)]
    nodes = [_node(name, *[BROKEN] * (number < unhealthy), pool=pool) for number, name in enumerate(names)]
    return [_claim(name, pool=pool) for name in names], nodes


def _of_fleets(*fleets: tuple[list[NodeClaim], list[Node]], after: timedelta = 30 * MINUTE, **given: Any) -> Repairs:
    claims = [claim for claims, _ in fleets for claim in claims]
    nodes = [node for _, nodes in fleets for node in nodes]
    return repairs(_view(SINCE + after, claims, nodes, **given), NodeRepair.REPLACE)


def _kinds(commands: Sequence[Command]) -> list[str]:
    return [type(command).__name__ for command in commands]


@pytest.mark.parametrize(
    ("seen", "minutes"),
    [
        ("gpu-off-the-bus", 10),
        ("gpu-memory-error-then-monitoring-lost", 10),
        ("cni-not-running", 30),
        ("out-of-process-ids", 30),
        ("pod-stuck", 30),
        ("disk-failed", 30),
        ("kubelet-silent", 30),
        ("kubelet-not-ready", 30),
    ],
)
def test_a_condition_is_borne_for_its_toleration_and_no_longer(seen: str, minutes: int) -> None:
    """Accelerators for ten minutes, everything else for thirty."""
    assert _of_one(SEEN[seen], minutes * MINUTE - timedelta(seconds=1)) == ()
    assert _kinds(_of_one(SEEN[seen], minutes * MINUTE)) == ["UpdateClaim", "Announce", "DeleteClaim"]


def test_of_several_conditions_the_one_that_is_due_first_counts() -> None:
    """A broken GPU is not borne longer because the network broke as well."""
    node = _node("broken", SEEN["cni-not-running"], SEEN["gpu-off-the-bus"])

    assert repairs(_view(SINCE + 10 * MINUTE, [_claim("broken")], [node]), NodeRepair.REPLACE).chains


@pytest.mark.parametrize("kind", ["KernelReady", "NetworkingReady", "StorageReady", "AcceleratedHardwareReady"])
def test_an_agent_that_is_not_heard_of_breaks_no_node(kind: str) -> None:
    """Unknown counts for the kubelet's Ready alone: the agent may have been removed."""
    assert _of_one({**SEEN["kubelet-silent"], "type": kind}, timedelta(days=1)) == ()


def test_conditions_that_are_not_about_repair_are_none_of_ours() -> None:
    """A disk that is full is the kubelet's to clean up."""
    assert _of_one({**BROKEN, "type": "DiskPressure", "status": "True"}, timedelta(days=1)) == ()


def test_a_monitoring_service_that_is_lost_breaks_no_node() -> None:
    """EKS repairs nothing for it, and a new GPU node whose service starts late would be replaced for ever."""
    assert _of_one(SEEN["gpu-monitoring-lost"], timedelta(days=1)) == ()


def test_repair_is_off_unless_it_is_asked_for() -> None:
    """A node may have been broken for a day."""
    assert _of_one(BROKEN, timedelta(days=1), NodeRepair.OFF) == ()


def test_the_deadline_is_now() -> None:
    """The claim gets it before it is deleted: else it would be drained within its pods' budgets."""
    update, _, deletion = _of_one(BROKEN, 30 * MINUTE, termination_grace_period="24h")

    assert isinstance(update, UpdateClaim)
    assert moment(update.after.metadata.annotations[TERMINATION_TIMESTAMP]) == SINCE + 30 * MINUTE
    assert isinstance(deletion, DeleteClaim)


@pytest.mark.parametrize(
    ("minutes", "expected"), [(-10, ["Announce", "DeleteClaim"]), (10, ["UpdateClaim", "Announce", "DeleteClaim"])]
)
def test_a_deadline_is_pulled_forward_and_never_put_off(minutes: int, expected: list[str]) -> None:
    """One that has passed already stays as it is."""
    deadline = (SINCE + (30 + minutes) * MINUTE).isoformat()

    assert _kinds(_of_one(BROKEN, 30 * MINUTE, annotations={TERMINATION_TIMESTAMP: deadline})) == expected


def test_the_drain_of_a_claim_that_goes_already_is_forced_once() -> None:
    """A stuck drain gets its deadline, and then goes on as any other."""
    going: dict[str, Any] = {"deleted": SINCE}
    assert _kinds(_of_one(BROKEN, 30 * MINUTE, **going)) == ["UpdateClaim"]
    over = {TERMINATION_TIMESTAMP: (SINCE + 30 * MINUTE).isoformat()}
    assert _of_one(BROKEN, 31 * MINUTE, annotations=over, **going) == ()


# --- the reboot ---


def test_the_claim_says_that_it_is_rebooted_before_it_is() -> None:
    """A run that is stopped between the two must not lead to a second reboot."""
    commands = _of_one(BROKEN, 30 * MINUTE, NodeRepair.REBOOT)

    assert _kinds(commands) == ["UpdateClaim", "Announce", "RebootInstance"]
    assert isinstance(commands[2], RebootInstance)
    assert commands[2].instance_id == "i-broken"


def test_a_reboot_gets_its_time_and_then_the_node_is_replaced() -> None:
    """One reboot a node."""
    rebooted = {REBOOTED_AT: (SINCE + 30 * MINUTE).isoformat()}
    given: dict[str, Any] = {"mode": NodeRepair.REBOOT, "annotations": rebooted}

    assert _of_one(BROKEN, 30 * MINUTE + REBOOT_HELPS_WITHIN - timedelta(seconds=1), **given) == ()
    assert "DeleteClaim" in _kinds(_of_one(BROKEN, 30 * MINUTE + REBOOT_HELPS_WITHIN, **given))


def test_trouble_long_after_a_reboot_is_borne_as_usual_and_leads_to_no_second_one() -> None:
    """The reboot helped for a week."""
    rebooted = {REBOOTED_AT: (SINCE - timedelta(days=7)).isoformat()}
    given: dict[str, Any] = {"mode": NodeRepair.REBOOT, "annotations": rebooted}

    assert _of_one(BROKEN, 29 * MINUTE, **given) == ()
    assert "DeleteClaim" in _kinds(_of_one(BROKEN, 30 * MINUTE, **given))


def test_broken_hardware_is_not_rebooted() -> None:
    """The agent would forget what it saw, and the GPU would still be off the bus."""
    assert "DeleteClaim" in _kinds(_of_one(SEEN["gpu-off-the-bus"], 10 * MINUTE, NodeRepair.REBOOT))
    assert "RebootInstance" in _kinds(_of_one(SEEN["gpu-memory-error"], 10 * MINUTE, NodeRepair.REBOOT))


def test_only_a_running_instance_is_rebooted() -> None:
    """EC2 refuses to reboot one that is stopped."""
    view = _view(SINCE + 30 * MINUTE, [_claim("broken")], [_node("broken", BROKEN)], state="stopped")

    assert "DeleteClaim" in _kinds(repairs(view, NodeRepair.REBOOT).chains["claim-broken"])


def test_without_knowing_the_instances_nothing_is_rebooted() -> None:
    """EC2 could not be asked: the next run asks again."""
    snapshot = Snapshot(now=SINCE + 30 * MINUTE, node_claims=(_claim("broken"),), nodes=(_node("broken", BROKEN),))

    assert repairs(state_of(snapshot, None), NodeRepair.REBOOT) == Repairs()


# --- the brake ---


@pytest.mark.parametrize(
    ("unhealthy", "total", "is_repaired"),
    [(1, 1, True), (1, 5, True), (2, 5, False), (2, 6, True), (3, 10, False), (20, 100, True), (21, 100, False)],
)
def test_a_fifth_of_a_pool_rounded_up_may_be_unhealthy(unhealthy: int, total: int, is_repaired: bool) -> None:
    """Beyond it the cause is probably not the nodes."""
    done = _of_fleets(_fleet(unhealthy, total - unhealthy, "web"), _fleet(0, 500, "batch"))

    assert len(done.chains) == (unhealthy if is_repaired else 0)


def test_the_brake_holds_for_the_whole_cluster() -> None:
    """One node of each small pool is unhealthy, which no pool's own brake minds."""
    fleets = [_fleet(1, 1, f"pool-{number}") for number in range(10)]
    done = _of_fleets(*fleets)

    assert not done.chains
    assert len(done.blocked) == 10
    assert "10 of 20 nodes of the cluster are unhealthy" in done.blocked[0].message


def test_nodes_that_are_not_ours_count_in_the_cluster() -> None:
    """A managed node group that is unhealthy has the same cause."""
    others = [_node(f"managed-{number}", BROKEN, pool="") for number in range(3)]

    assert not _of_fleets(_fleet(1, 4, "web"), ([], others)).chains
    assert _of_fleets(_fleet(1, 4, "web"), ([], [_node("managed", pool="")])).chains


def test_nodes_count_as_unhealthy_before_their_time_is_up() -> None:
    """An outage that has just begun must stop the repair of a node that broke before it."""
    old = {**BROKEN, "lastTransitionTime": (SINCE - timedelta(hours=1)).isoformat()}
    claims, nodes = _fleet(4, 1, "web")
    nodes[0] = _node("web-0", old, pool="web")

    assert not _of_fleets((claims, nodes), after=MINUTE).chains


def test_a_node_that_is_kept_is_told_of_now_and_then() -> None:
    """Runs come every few seconds, and hundreds of nodes may be kept."""
    fleet = _fleet(3, 2, "web")

    assert [event.reason for event in _of_fleets(fleet).blocked] == ["NodeRepairBlocked"] * 3
    assert not _of_fleets(fleet, after=32 * MINUTE).blocked
    assert len(_of_fleets(fleet, after=45 * MINUTE).blocked) == 3


def test_nodes_of_a_zone_that_is_shifted_away_from_are_neither_repaired_nor_counted() -> None:
    """They are there when the zone comes back, and the other zones are repaired meanwhile."""
    away = ([_claim("away")], [_node(f"away-{n}", BROKEN, zone_id="use1-az2") for n in range(3)])
    away[1].append(_node("away", BROKEN, zone_id="use1-az2"))
    here = ([_claim("here")], [_node("here", BROKEN)])

    assert not _of_fleets(away, here).chains
    assert list(_of_fleets(away, here, shifted=frozenset({"use1-az2"})).chains) == ["claim-here"]
    assert _of_fleets(away, here, shifted=None) == Repairs()


# --- budgets and vetoes ---


def _budgeted(*budgets: dict[str, Any], unhealthy: int = 2, **given: Any) -> Repairs:
    """What becomes of so many unhealthy nodes of ten in a NodePool with these budgets."""
    pool = builders.node_pool("web", budgets=budgets)
    return _of_fleets(_fleet(unhealthy, 10 - unhealthy, "web"), pools=[pool], **given)


def test_a_budget_for_unhealthy_nodes_bounds_how_many_are_repaired_at_once() -> None:
    """It says so (Karpenter v1.15, the reason ``Unhealthy``)."""
    done = _budgeted({"nodes": "1", "reasons": ["Unhealthy", "Drifted"]})
    assert len(done.chains) == 1
    assert [event.reason for event in done.blocked] == ["NodeRepairBlocked"]
    assert "the budget 1 for Unhealthy, Drifted allows 1 of 10 nodes" in done.blocked[0].message


def test_that_a_node_is_unhealthy_uses_no_budget_for_its_repair_up() -> None:
    """Only nodes that are going do."""
    assert len(_budgeted({"nodes": "2", "reasons": ["Unhealthy"]}).chains) == 2


@pytest.mark.parametrize("budget", [{"nodes": "0"}, {"nodes": "0", "reasons": ["Drifted", "Empty", "Underutilized"]}])
def test_other_budgets_do_not_keep_a_broken_node(budget: dict[str, Any]) -> None:
    """What its owner wants left alone by day is not what does not work."""
    assert len(_budgeted(budget).chains) == 2


def test_the_drain_of_a_node_that_goes_already_is_forced_whatever_the_budget_says() -> None:
    """It has gone through the budgets."""
    node, claim = _node("broken", BROKEN), _claim("broken", deleted=SINCE)
    pool = builders.node_pool(budgets=[{"nodes": "0", "reasons": ["Unhealthy"]}])
    assert repairs(_view(SINCE + 30 * MINUTE, [claim], [node], pools=[pool]), NodeRepair.REPLACE).chains


@pytest.mark.parametrize("kind", ["Node", "NodeClaim"])
def test_do_not_repair_keeps_a_node(kind: str) -> None:
    """Somebody wants to look at it as it is (Karpenter v1.15)."""
    mark = {DO_NOT_REPAIR: "true"}
    node = _node("broken", BROKEN)
    if kind == "Node":
        node = msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, annotations=mark))
    claim = _claim("broken", annotations=mark if kind == "NodeClaim" else {})
    done = repairs(_view(SINCE + 30 * MINUTE, [claim], [node]), NodeRepair.REPLACE)
    assert (done.chains, [event.reason for event in done.blocked]) == ({}, ["NodeRepairBlocked"])
