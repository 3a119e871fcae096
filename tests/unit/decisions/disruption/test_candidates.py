"""Candidates: which nodes may be disrupted now, for what, and why the others stay."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from joinery.decisions.disruption.candidates import Candidate, Candidates, candidates
from joinery.decisions.disruption.decision import StayingNode
from joinery.objects.annotations.disruption import CommandRecord, Replaces, encoded
from joinery.objects.karpenter.conditions import put, true
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    DISRUPTION_COMMAND,
    DISRUPTION_PRICE,
    DO_NOT_DISRUPT,
    INSTANCE_TYPE,
    INTERRUPTED_AT,
    PLANNED_TAINT,
    REPLACES,
    ZONE,
)
from joinery.objects.kubernetes.core import Pod, Taint
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.claims import observed, with_status
from joinery.objects.snapshot.offerings import Offering, Reservation
from joinery.objects.snapshot.pod_events import PODS_SEEN
from joinery.objects.wording import rfc3339
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import TYPE, Cluster, annotated, on

DRIFTED, EMPTY, UNDERUTILIZED = DisruptionReason.DRIFTED, DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED
MINUTE = timedelta(minutes=1)


def _judged(cluster: Cluster, **given: Any) -> Candidates:
    return candidates(cluster.problem(**given))


def _only(cluster: Cluster, **given: Any) -> Candidate:
    (candidate,) = _judged(cluster, **given).candidates
    return candidate


def _held(cluster: Cluster, **given: Any) -> list[tuple[ObjectionCode, DisruptionReason | None]]:
    judged = _judged(cluster, **given)
    assert not judged.candidates
    return [(held.objection.code, held.disruption) for held in judged.staying]


def _ending(pod: Pod, *, grace: timedelta) -> Pod:
    """The pod, whose deletion gives it so long to end."""
    seconds = int(grace.total_seconds())
    return with_fields(pod, metadata=with_fields(pod.metadata, deletion_grace_period_seconds=seconds))


def _one(*pods: Any, pool: Any = None, **machine: Any) -> Cluster:
    """A cluster of one node."""
    cluster = Cluster(pools=[pool or builders.node_pool()])
    cluster.machine(pods=pods, **machine)
    return cluster


def _command(*names: str, rollback: str = "") -> str:
    record = CommandRecord(
        id="command", reason=EMPTY, started=START, deadline=START + MINUTE, candidates=names, rollback=rollback
    )
    return encoded(record)


class TestWhatANodeIs:
    """Its price, its pods, and what it may be disrupted for."""

    def test_a_node_with_pods_is_underutilized_at_most_and_one_without_is_empty(self) -> None:
        """Each by one reason, so that each is left to one method (Karpenter)."""
        cluster = Cluster()
        cluster.machine("used", [on("web", "used")])
        cluster.machine("idle")
        reasons = {c.view.node: (set(c.reasons), c.is_empty) for c in _judged(cluster).candidates}
        assert reasons == {"used": ({UNDERUTILIZED}, False), "idle": ({EMPTY}, True)}

    def test_it_costs_what_its_own_offering_does_whether_that_can_be_bought_or_not(self) -> None:
        """By the labels of its Node for type, zone and capacity type."""
        taken = replace(TYPE, offerings=tuple(with_fields(offering, available=False) for offering in TYPE.offerings))
        cluster = _one(capacity_type="spot")
        cluster.types = (taken,)
        candidate = _only(cluster)
        assert candidate.price == pytest.approx(0.16)
        assert (candidate.instance_type, candidate.capacity_type) == ("m7a.xlarge", "spot")
        assert candidate.zone == candidate.view.labels[ZONE]

    def test_a_reserved_node_costs_what_the_catalogue_says_of_its_reservation(self) -> None:
        """Next to nothing: it is paid for anyway."""
        cluster = _one(capacity_type="reserved")
        zone = cluster.nodes[0].metadata.labels[ZONE]
        reserved = Offering(zone, "reserved", 4e-8, reservation=Reservation("cr-1"))
        cluster.types = (replace(TYPE, offerings=(*TYPE.offerings, reserved)),)
        assert _only(cluster).price == 4e-8

    def test_only_pods_that_need_another_node_would_move(self) -> None:
        """Not those of DaemonSets, the kubelet's own, finished ones, and those on their way out but a StatefulSet's."""
        pods = [
            on("web"),
            on("agent", owner=builders.owner("DaemonSet", "agent")),
            on("static", owner=builders.owner("Node", "n", api_version="v1")),
            on("done", phase="Succeeded"),
            on("going", deleted=START),
            on("db-0", owner=builders.owner("StatefulSet", "db"), deleted=START),
        ]
        assert {pod.metadata.name for pod in _only(_one(*pods)).pods} == {"web", "db-0"}

    @pytest.mark.parametrize("cost", [-(2**27), -(2**31)])
    def test_pods_whose_eviction_costs_nothing_leave_a_node_empty(self, cost: int) -> None:
        """Karpenter counts them for nothing; they move all the same."""
        annotations = {"controller.kubernetes.io/pod-deletion-cost": str(cost)}
        candidate = _only(_one(on("web", annotations=annotations)))
        assert (candidate.is_empty, set(candidate.reasons), candidate.move_price) == (True, {EMPTY}, 0.0)
        assert [pod.metadata.name for pod in candidate.pods] == ["web"]

    def test_an_eviction_of_each_ordinary_pod_makes_the_price_of_the_moves(self) -> None:
        """A cent each."""
        assert _only(_one(*(on(f"web-{i}") for i in range(3)))).move_price == pytest.approx(0.03)

    def test_a_drifted_node_may_go_for_drift_too(self) -> None:
        """Whatever the policy of its NodePool says of consolidation."""
        assert _only(_one(on("web"), drifted=True)).reasons == {UNDERUTILIZED, DRIFTED}
        never = builders.node_pool(consolidateAfter="Never", consolidationPolicy="WhenEmpty")
        assert _only(_one(on("web"), drifted=True, pool=never)).reasons == {DRIFTED}


class TestWhatKeepsANodeFromAll:
    """The conditions by which Karpenter builds its candidates, in its order."""

    def test_a_node_that_nobody_of_ours_claims_is_not_spoken_of(self) -> None:
        """It has no NodeClaim."""
        cluster = Cluster()
        cluster.nodes.append(builders.node("foreign", node_pool=""))
        assert _held(cluster) == []

    @pytest.mark.parametrize("rollback", ["", "its replacement was lost"])
    def test_a_node_in_a_command_is_in_no_other(self, rollback: str) -> None:
        """Also while the command is being rolled back."""
        cluster = _one(annotations={DISRUPTION_COMMAND: _command("claim-n", rollback=rollback)})
        assert _held(cluster) == [(ObjectionCode.IN_COMMAND, None)]

    def test_a_replacement_is_in_no_command_of_its_own_until_that_is_over(self) -> None:
        """It is bought for pods that are still elsewhere."""
        assert _held(_one(annotations={REPLACES: encoded(Replaces("c", ("old",)))})) == [
            (ObjectionCode.IN_COMMAND, None)
        ]

    def test_a_claim_without_a_node_and_a_node_that_still_boots_stay(self) -> None:
        """Nothing is known of them yet."""
        cluster = _one(node={"initialized": False})
        cluster.claims.append(builders.node_claim("launched", conditions=["Launched"]))
        assert _held(cluster) == [(ObjectionCode.NOT_INITIALIZED, None)] * 2

    def test_a_claim_whose_node_is_not_there_stays_and_is_not_called_leaving(self) -> None:
        """Nobody makes it leave: its Node has vanished, or is not in the files."""
        cluster = Cluster()
        cluster.claims.append(builders.node_claim("lost", node="lost", created=START - timedelta(days=1)))
        (held,) = _judged(cluster).staying
        assert (held.objection.code, held.objection.message) == (
            ObjectionCode.NOT_INITIALIZED,
            "the Node that it had is not there",
        )

    @pytest.mark.parametrize(
        "claim", [{"deleted": START}, {"annotations": {INTERRUPTED_AT: START.isoformat()}}], ids=["deleted", "taken"]
    )
    def test_a_node_that_leaves_is_not_disrupted(self, claim: dict[str, Any]) -> None:
        """Whoever made it leave sees to its pods."""
        assert _held(_one(**claim)) == [(ObjectionCode.LEAVING, None)]

    def test_a_node_that_is_kept_for_its_pods_stays_for_them(self) -> None:
        """They are about to be bound there."""
        taint = {"key": PLANNED_TAINT, "value": "claim-n", "effect": "NoSchedule"}
        assert _held(_one(node={"taints": [taint]})) == [(ObjectionCode.NOMINATED, None)]

    def test_a_node_that_kube_scheduler_nominated_stays(self) -> None:
        """It is pre-empting pods there for another."""
        waiting = builders.pod("waiting")
        waiting = with_fields(waiting, status=with_fields(waiting.status, nominated_node_name="n"))
        assert _held(_one(waiting)) == [(ObjectionCode.NOMINATED, None)]

    @pytest.mark.parametrize(("value", "stays"), [("true", True), ("false", False), ("1h", False)])
    def test_do_not_disrupt_on_a_node_is_true_or_nothing(self, value: str, stays: bool) -> None:
        """A duration is for pods."""
        cluster = _one(node={"annotations": {DO_NOT_DISRUPT: value}}, drifted=True, termination_grace_period="1h")
        judged = _judged(cluster)
        assert [held.objection.code for held in judged.staying] == ([ObjectionCode.DO_NOT_DISRUPT] if stays else [])
        assert len(judged.candidates) == (not stays)

    def test_a_node_whose_node_pool_is_gone_or_can_buy_nothing_stays(self) -> None:
        """Karpenter: "NodePool not found"."""
        assert _held(_one(node_pool="gone")) == [(ObjectionCode.NO_NODE_POOL, None)]
        nothing = _one()
        nothing.types = ()
        assert _held(nothing) == [(ObjectionCode.NO_NODE_POOL, None)]

    def test_a_node_of_a_static_pool_is_left_to_others(self) -> None:
        """``disruption.static_drift`` and ``disruption.scale_down``: it is neither a candidate nor held."""
        assert _held(_one(pool=builders.node_pool(replicas=1), drifted=True)) == []

    def test_an_instance_with_two_nodes_waits_until_one_is_gone(self) -> None:
        """Its pods are listed under either."""
        cluster = _one()
        double = builders.node("renamed", provider_id=cluster.nodes[0].spec.provider_id)
        cluster.nodes.append(double)
        assert _held(cluster) == [(ObjectionCode.NOT_INITIALIZED, None)]


class TestPods:
    """What pods keep, and from what."""

    @pytest.mark.parametrize(
        ("value", "stays"),
        [("true", True), ("2h", True), ("30m", False), ("false", False), ("soon", False), ("-1h", False)],
    )
    def test_a_protected_pod_keeps_its_node_as_long_as_it_says(self, value: str, stays: bool) -> None:
        """``true``, or a duration since it started; it has run for an hour."""
        pod = on("web", annotations={DO_NOT_DISRUPT: value}, started=START - timedelta(hours=1))
        held = [(held.objection.code, held.disruption) for held in _judged(_one(pod)).staying]
        assert held == ([(ObjectionCode.POD, UNDERUTILIZED)] if stays else [])

    def test_a_protected_pod_of_a_daemon_set_keeps_its_node_too(self) -> None:
        """Though it would not move: it would end (Karpenter)."""
        pod = on("agent", owner=builders.owner("DaemonSet", "agent"), annotations={DO_NOT_DISRUPT: "true"})
        assert _held(_one(pod)) == [(ObjectionCode.POD, EMPTY)]

    @pytest.mark.parametrize("allowed", [0, 1])
    def test_a_used_up_budget_of_pods_keeps_the_node(self, allowed: int) -> None:
        """PodDisruptionBudget, `status.disruptionsAllowed`."""
        cluster = _one(on("web", labels={"app": "web"}))
        cluster.budgets = [builders.pdb("web", labels={"app": "web"}, allowed=allowed)]
        held = [(held.objection.code, held.disruption) for held in _judged(cluster).staying]
        assert held == ([] if allowed else [(ObjectionCode.POD_DISRUPTION_BUDGET, UNDERUTILIZED)])

    def test_a_budget_that_lets_nobody_go_keeps_the_node_whatever_its_status_says(self) -> None:
        """The status is older than the spec. No place would be planned for the pod, because it cannot be evicted."""
        cluster = _one(on("web", labels={"app": "web"}), drifted=True)
        cluster.budgets = [builders.pdb("web", labels={"app": "web"}, allowed=1, max_unavailable=0)]
        assert _held(cluster) == [(ObjectionCode.POD_DISRUPTION_BUDGET, None)]

    def test_two_budgets_over_a_pod_always_keep_its_node(self) -> None:
        """The eviction API refuses such a pod."""
        cluster = _one(on("web", labels={"app": "web"}))
        cluster.budgets = [builders.pdb(name, labels={"app": "web"}, allowed=5) for name in ("a", "b")]
        assert _held(cluster) == [(ObjectionCode.POD_DISRUPTION_BUDGET, UNDERUTILIZED)]

    @pytest.mark.parametrize(
        ("grace", "reasons"), [(None, frozenset()), ("1h", frozenset({DRIFTED}))], ids=["without", "with"]
    )
    def test_pods_do_not_stop_drift_where_the_claim_has_a_termination_grace_period(
        self, grace: str | None, reasons: frozenset[DisruptionReason]
    ) -> None:
        """That promises that the node can be replaced; consolidation promises nothing."""
        pod = on("web", annotations={DO_NOT_DISRUPT: "true"})
        judged = _judged(_one(pod, drifted=True, termination_grace_period=grace))
        assert {reason for candidate in judged.candidates for reason in candidate.reasons} == reasons
        expected = [(ObjectionCode.POD, UNDERUTILIZED)] if grace else [(ObjectionCode.POD, None)]
        assert [(held.objection.code, held.disruption) for held in judged.staying] == expected

    def test_pods_are_found_where_the_claim_does_not_name_its_node(self) -> None:
        """A claim in a file may have its instance only."""
        cluster = _one(on("web", annotations={DO_NOT_DISRUPT: "true"}))
        cluster.claims = [with_status(cluster.claims[0], node_name="")]
        assert _held(cluster) == [(ObjectionCode.POD, UNDERUTILIZED)]

    def test_a_price_that_cannot_be_read_keeps_the_node_from_consolidation(self) -> None:
        """Someone meant it to be dear. It says nothing about drift."""
        pod = on("web", annotations={DISRUPTION_PRICE: "much"})
        judged = _judged(_one(pod, drifted=True))
        assert [candidate.reasons for candidate in judged.candidates] == [{DRIFTED}]
        message = (
            f"pod default/web has the annotation {DISRUPTION_PRICE}, and 'much' is no amount of dollars, such as 0.05"
        )
        assert judged.staying == (StayingNode("claim-n", Objection(ObjectionCode.POD, message), UNDERUTILIZED),)

    def test_so_does_one_of_its_node_pool(self) -> None:
        """For all of its nodes."""
        pool = annotated(builders.node_pool(), {DISRUPTION_PRICE: "$1"})
        assert _held(_one(on("web"), pool=pool)) == [(ObjectionCode.POLICY, UNDERUTILIZED)]


class TestPolicies:
    """What a NodePool says of consolidation."""

    @pytest.mark.parametrize("policy", ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"])
    def test_every_policy_gives_up_empty_nodes(self, policy: str) -> None:
        """The three policies of Karpenter 1.14."""
        assert _only(_one(pool=builders.node_pool(consolidationPolicy=policy))).reasons == {EMPTY}

    @pytest.mark.parametrize("policy", ["WhenEmptyOrUnderutilized", "Balanced"])
    def test_two_policies_look_at_nodes_with_pods(self, policy: str) -> None:
        """Whether a move is balanced is asked of commands (``disruption.validation.balance``)."""
        assert _only(_one(on("web"), pool=builders.node_pool(consolidationPolicy=policy))).reasons == {UNDERUTILIZED}

    def test_when_empty_leaves_nodes_with_pods(self) -> None:
        """And says so."""
        cluster = _one(on("web"), pool=builders.node_pool(consolidationPolicy="WhenEmpty"))
        (held,) = _judged(cluster).staying
        text = "its NodePool consolidates empty nodes only (WhenEmpty), and 1 pod would move"
        assert held == StayingNode("claim-n", Objection(ObjectionCode.POLICY, text), UNDERUTILIZED)

    @pytest.mark.parametrize("label", [INSTANCE_TYPE, ZONE, CAPACITY_TYPE])
    def test_a_node_without_a_price_is_not_consolidated_but_given_up_when_empty(self, label: str) -> None:
        """Nobody can say what is saved, but it is something."""
        for pods, code in (([on("web")], ObjectionCode.UNPRICED), ([], None)):
            cluster = _one(*pods)
            node = cluster.nodes[0]
            labels = {key: value for key, value in node.metadata.labels.items() if key != label}
            cluster.nodes = [with_fields(node, metadata=with_fields(node.metadata, labels=labels))]
            assert [held.objection.code for held in _judged(cluster).staying] == ([code] if code else [])

    def test_a_type_that_is_not_sold_has_no_price(self) -> None:
        """Drift still replaces its node."""
        cluster = _one(on("web"), instance_type="m1.small", drifted=True)
        candidate = _only(cluster)
        assert (set(candidate.reasons), candidate.price) == ({DRIFTED}, 0.0)
        (held,) = _judged(cluster).staying
        zone = candidate.zone
        assert held.objection.message == f"nobody knows what m1.small {zone} on-demand costs"


class TestConsolidateAfter:
    """How long a node must have been quiet, and since when it is."""

    @pytest.mark.parametrize(
        ("after", "quiet", "stays"),
        [
            ("0s", timedelta(), False),
            ("5m", 5 * MINUTE, False),
            ("5m", 5 * MINUTE - timedelta(seconds=1), True),
            ("5m", -MINUTE, True),
        ],
    )
    @pytest.mark.parametrize("pods", [(), (on("web"),)], ids=["empty", "used"])
    def test_a_node_is_left_alone_until_it_was_quiet_for_so_long(
        self, after: str, quiet: timedelta, stays: bool, pods: tuple[Any, ...]
    ) -> None:
        """Both for emptiness and for consolidation."""
        cluster = _one(*pods, pool=builders.node_pool(consolidateAfter=after), quiet=quiet)
        reason = UNDERUTILIZED if pods else EMPTY
        held = [(held.objection.code, held.disruption) for held in _judged(cluster).staying]
        assert held == ([(ObjectionCode.CONSOLIDATE_AFTER, reason)] if stays else [])

    @pytest.mark.parametrize("pods", [(), (on("web"),)], ids=["empty", "used"])
    def test_never_is_a_policy_and_not_a_wait(self, pods: tuple[Any, ...]) -> None:
        """So people are told of it, as ``Unconsolidatable``; a wait passes by itself."""
        cluster = _one(*pods, pool=builders.node_pool(consolidateAfter="Never"), quiet=1000 * MINUTE)
        assert _held(cluster) == [(ObjectionCode.POLICY, UNDERUTILIZED if pods else EMPTY)]

    def test_it_runs_from_the_last_pod_event_rather_than_from_initialization(self) -> None:
        """``status.lastPodEventTime``."""
        cluster = _one(pool=builders.node_pool(consolidateAfter="5m"))
        cluster.claims = [with_status(cluster.claims[0], last_pod_event_time=START - MINUTE)]
        assert _held(cluster) == [(ObjectionCode.CONSOLIDATE_AFTER, EMPTY)]

    def test_pods_that_came_since_the_last_look_count_as_coming_now(self) -> None:
        """Nobody has noted them yet (``objects.snapshot.pod_events``)."""
        cluster = _one(on("web"), pool=builders.node_pool(consolidateAfter="5m"))
        seen = true(PODS_SEEN, observed(cluster.claims[0], START)).model_copy(update={"message": "others"})
        cluster.claims = [with_status(cluster.claims[0], conditions=put(cluster.claims[0].status.conditions, seen))]
        assert _held(cluster) == [(ObjectionCode.CONSOLIDATE_AFTER, UNDERUTILIZED)]

    @pytest.mark.parametrize(
        ("pod", "stays"),
        [
            (on("web", started=START - MINUTE), True),
            (on("web", conditions=[("PodScheduled", "True", MINUTE)]), True),
            (on("web", conditions=[("PodScheduled", "True", None)], started=START - MINUTE), True),
            (on("web", started=START - 9 * MINUTE), False),
            (on("web", started=START - 9 * MINUTE, deleted=START + MINUTE), True),
            (_ending(on("web", started=START - 90 * MINUTE, deleted=START + 10 * MINUTE), grace=20 * MINUTE), False),
            (_ending(on("web", started=START - 90 * MINUTE, deleted=START + 10 * MINUTE), grace=12 * MINUTE), True),
            (on("web", phase="Succeeded", conditions=[("Ready", "False", MINUTE)]), True),
            (on("agent", owner=builders.owner("DaemonSet", "agent"), started=START - MINUTE), False),
        ],
        ids=[
            "started",
            "bound",
            "nobody says when it was bound",
            "long ago",
            "ends now",
            "was asked to end long ago",
            "was asked to end lately",
            "has ended",
            "a daemon",
        ],
    )
    @pytest.mark.parametrize("noted", [None, START - 8 * MINUTE], ids=["not looked at", "of another controller"])
    def test_a_node_that_nobody_has_looked_at_is_as_young_as_its_youngest_pod(
        self, pod: Pod, stays: bool, noted: datetime | None
    ) -> None:
        """Also one of a claim that Karpenter has made."""
        cluster = _one(pod, pool=builders.node_pool(consolidateAfter="5m"))
        cluster.claims = [with_status(cluster.claims[0], last_pod_event_time=noted)]
        held = {held.objection.code for held in _judged(cluster).staying}
        assert held == ({ObjectionCode.CONSOLIDATE_AFTER} if stays else set())

    @pytest.mark.parametrize(("created", "stays"), [(START - MINUTE, True), (START - 9 * MINUTE, False), (None, False)])
    def test_without_either_it_runs_from_the_creation_and_without_that_it_is_over(
        self, created: Any, stays: bool
    ) -> None:
        """A file may hold no moments at all; it is judged too."""
        cluster = _one(pool=builders.node_pool(consolidateAfter="5m"), quiet=None, created=created)
        assert bool(_judged(cluster).staying) == stays

    def test_the_message_says_when_it_is_over(self) -> None:
        """A person wants to know how long to wait."""
        (held,) = _judged(_one(pool=builders.node_pool(consolidateAfter="5m"), quiet=MINUTE)).staying
        since, until = (rfc3339(START + n * MINUTE) for n in (-1, 4))
        expected = f"quiet since {since}, and its NodePool's consolidateAfter is 5m: it is looked at from {until} on"
        assert held.objection.message == expected


class TestDestinations:
    """Which nodes may receive pods of those that go."""

    def _destinations(self, cluster: Cluster) -> set[str]:
        return set(_judged(cluster).destinations)

    def test_nodes_that_run_take_pods_whoever_made_them(self) -> None:
        """Also those that are held, of static pools, and nobody's."""
        cluster = Cluster(pools=[builders.node_pool(), builders.node_pool("static", replicas=1)])
        cluster.machine("ours", node={"annotations": {DO_NOT_DISRUPT: "true"}})
        cluster.machine("static", pool="static")
        cluster.nodes.append(builders.node("nobody", node_pool=""))
        assert self._destinations(cluster) == {"ours", "static", "nobody"}

    @pytest.mark.parametrize(("after", "rests"), [("5m", True), ("30s", False), ("0s", False), ("Never", False)])
    def test_a_node_inside_its_own_consolidate_after_rests(self, after: str, rests: bool) -> None:
        """It would never become quiet. ``Never`` and ``0s`` have nothing to wait for (Karpenter)."""
        cluster = _one(pool=builders.node_pool(consolidateAfter=after), quiet=MINUTE)
        assert self._destinations(cluster) == (set() if rests else {"n"})

    def test_nodes_that_boot_leave_or_are_promised_to_others_take_none(self) -> None:
        """A managed node that is not initialised may never come up."""
        cluster = Cluster()
        cluster.machine("boots", node={"initialized": False})
        cluster.machine("leaves", deleted=START)
        cluster.machine("goes", annotations={DISRUPTION_COMMAND: _command("claim-goes")})
        cluster.machine("comes", annotations={REPLACES: encoded(Replaces("c", ("old",)))})
        cluster.machine("kept", node={"taints": [Taint(key=PLANNED_TAINT, value="x", effect="NoSchedule")]})
        assert self._destinations(cluster) == set()


def test_a_node_that_is_kept_from_all_it_could_go_for_by_one_rule_is_held_once() -> None:
    """Who reads it is not told the same twice."""
    pod = on("web", annotations={DO_NOT_DISRUPT: "true"})
    (held,) = _judged(_one(pod, drifted=True)).staying
    assert held == StayingNode("claim-n", Objection(ObjectionCode.POD, "pod default/web must not be disrupted"))
