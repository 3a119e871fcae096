"""The global stop: one annotation on any NodePool, and no node of the cluster is disrupted voluntarily."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.decision import StayingNode
from joinery.decisions.disruption.static_drift import to_replace
from joinery.decisions.lifecycle.disrupting.new_commands import as_candidate
from joinery.decisions.lifecycle.state.command_outlook import NextStep, started_commands
from joinery.decisions.lifecycle.state.disruption_check import DisruptionCheck
from joinery.objects.annotations.disruption import CommandRecord, Readiness
from joinery.objects.karpenter.disruption import DisruptionReason, stop_of
from joinery.objects.karpenter.labels import DISRUPTION
from joinery.objects.karpenter.validation import validate
from joinery.objects.objections import Objection, ObjectionCode
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, annotated, on

#: A Wednesday.
NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def _stopped(text: str = "stop", **pool: Any) -> Cluster:
    """A cluster with an empty node, a used one and a drifted one, and another NodePool that has the annotation."""
    cluster = Cluster(pools=[builders.node_pool(**pool), annotated(builders.node_pool("other"), {DISRUPTION: text})])
    cluster.machine("empty")
    cluster.machine("used", [on("web", "used")])
    cluster.machine("drifted", drifted=True)
    return cluster


class TestTheAnnotation:
    """What may be written, and when it is in force."""

    @pytest.mark.parametrize(
        ("text", "in_force"),
        [
            ("stop", True),
            (" stop ", True),
            ("stop from 0 9 * * mon-fri for 8h", True),
            ("stop from 0 9 * * sat,sun for 8h", False),
            ("stop from 0 20 * * * for 6h; from 0 9 * * mon-fri for 8h", True),
            ("stop from @daily for 12h", False),
            ("stop from  0  9 * * mon-fri  for  8h", True),
            ("stop from @daily for 12h1m", True),
        ],
    )
    def test_it_stops_always_or_in_windows(self, text: str, in_force: bool) -> None:
        """In UTC, with cron expressions as budgets have them; any of several windows will do."""
        assert stop_of(text).is_in_force(NOON) == in_force

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("", '\'\' is neither "stop" nor "stop from CRON for DURATION"'),
            ("pause", '\'pause\' is neither "stop" nor "stop from CRON for DURATION"'),
            ("stopped", '\'stopped\' is neither "stop" nor "stop from CRON for DURATION"'),
            ("stop at 9", "'stop at 9': 'at 9' is not \"from CRON for DURATION\""),
            ("stop from @daily for 1h;", "'stop from @daily for 1h;': '' is not \"from CRON for DURATION\""),
            ("stop from 9 for 1h", "'stop from 9 for 1h': schedule '9': '9' has 1 fields, not 5"),
            ("stop from @daily for Never", "'stop from @daily for Never': duration 'Never' does not end"),
        ],
    )
    def test_anything_else_is_told_and_stops_disruption_all_the_same(self, text: str, told: str) -> None:
        """Someone meant to stop it. The NodePool says so in its condition, like other wrong annotations."""
        cluster = _stopped(text)
        assert validate(cluster.pools[1]) == (f"metadata.annotations[{DISRUPTION}]: {told}",)
        held = candidates(cluster.problem()).staying
        message = f"NodePool other has the annotation {DISRUPTION}, which stops disruption: {told}"
        assert {(one.objection.code, one.objection.message) for one in held} == {(ObjectionCode.STOPPED, message)}


class TestWhatItStops:
    """All that Joinery does because it is worth it."""

    def test_no_node_of_any_pool_is_a_candidate_and_each_says_why(self) -> None:
        """For emptiness, consolidation and drift alike."""
        judged = candidates(_stopped().problem())
        text = f"NodePool other stops disruption in the whole cluster ({DISRUPTION}: stop)"
        assert judged.candidates == ()
        assert set(judged.staying) == {
            StayingNode("claim-empty", Objection(ObjectionCode.STOPPED, text)),
            StayingNode("claim-used", Objection(ObjectionCode.STOPPED, text)),
            StayingNode("claim-drifted", Objection(ObjectionCode.STOPPED, text)),
        }

    def test_outside_of_its_windows_it_stops_nothing(self) -> None:
        """The hour of the snapshot counts, and nobody's clock."""
        later = START + timedelta(hours=2)
        cluster = _stopped(f"stop from {later.minute} {later.hour} * * * for 1h")
        assert len(candidates(cluster.problem()).candidates) == 3

    def test_who_ignores_budgets_ignores_it(self) -> None:
        """That asks what the cluster could cost."""
        assert len(candidates(_stopped().problem(ignore_budgets=True)).candidates) == 3

    def test_drifted_nodes_of_static_pools_are_not_replaced(self) -> None:
        """Another door replaces these."""
        cluster = _stopped(replicas=3)
        drift = to_replace(cluster.problem().packing.snapshot)
        assert drift.candidates == ()
        assert [news.reason for news in drift.announcements] == ["DisruptionBlocked"]

    @pytest.mark.parametrize(
        ("reason", "waits_for", "next_step"),
        [
            (DisruptionReason.UNDERUTILIZED, Readiness.INITIALIZED, NextStep.ROLL_BACK),
            (DisruptionReason.REBALANCE, Readiness.INITIALIZED, NextStep.FINISH),
            (DisruptionReason.EXPIRED, Readiness.LAUNCHED, NextStep.FINISH),
        ],
    )
    def test_a_command_that_has_begun_is_rolled_back_if_it_is_voluntary(
        self, reason: DisruptionReason, waits_for: Readiness, next_step: NextStep
    ) -> None:
        """A person who stops disruption means what is under way too; what EC2 or age demands goes on."""
        cluster = _stopped()
        record = CommandRecord(
            id="command",
            reason=reason,
            started=START,
            deadline=START + timedelta(hours=1),
            candidates=("claim-used",),
            waits_for=waits_for,
        )
        cluster.claims = [
            as_candidate(claim, record) if claim.metadata.name == "claim-used" else claim for claim in cluster.claims
        ]
        outlook = started_commands(cluster.problem().packing.snapshot).outlooks["command"]
        assert outlook.next_step is next_step
        assert ("stops disruption" in str(outlook.objection)) == (next_step is NextStep.ROLL_BACK)

    def test_nothing_else_is_said_of_a_node_while_it_is_in_force(self) -> None:
        """The stop comes first: what else keeps the node does not matter now."""
        cluster = _stopped()
        cluster.pods = [on("web", "used", annotations={"karpenter.sh/do-not-disrupt": "true"})]
        look = DisruptionCheck(cluster.problem().packing.snapshot)
        objection = look.objection(cluster.claims, DisruptionReason.EMPTY)
        assert objection is not None
        assert objection.message.startswith("NodePool other stops disruption")
