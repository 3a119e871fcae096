"""The rate of a NodePool: how many of its nodes may be disrupted in a time, whatever its budgets allow at once."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.static_drift import to_replace
from joinery.decisions.disruption.validation.budget_check import admit
from joinery.decisions.lifecycle.state.budgets import PoolNodes, allowance
from joinery.objects.annotations.disruption import CommandRecord, encoded
from joinery.objects.annotations.recent_disruptions import retirements, with_retirements
from joinery.objects.karpenter.disruption import DisruptionReason, Rate, rate_of
from joinery.objects.karpenter.labels import DISRUPTED_LATELY, DISRUPTION_COMMAND, DISRUPTION_RATE, RETIRED_FOR
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.validation import validate
from joinery.objects.objections import ObjectionCode
from joinery.objects.wording import rfc3339
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, annotated

EMPTY = DisruptionReason.EMPTY
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def _pool(rate: str | None = "2 nodes per 1h", lately: str | None = None, **pool: Any) -> NodePool:
    annotations = {DISRUPTION_RATE: rate, DISRUPTED_LATELY: lately}
    made = builders.node_pool(**{"budgets": [], **pool})
    return annotated(made, {key: value for key, value in annotations.items() if value is not None})


def _going(name: str, *, since: datetime = START, rollback: str = "", **record: Any) -> NodeClaim:
    """A claim in a disruption command."""
    fields = {"id": name, "reason": EMPTY, "started": since, "deadline": since + HOUR, "candidates": (name,), **record}
    return builders.node_claim(
        name, annotations={DISRUPTION_COMMAND: encoded(CommandRecord(rollback=rollback, **fields))}
    )


def _names(pool: NodePool, *claims: NodeClaim, now: datetime = START) -> list[str]:
    return [one.claim for one in retirements(pool, claims, now)]


class TestTheAnnotation:
    """What may be written."""

    @pytest.mark.parametrize(
        ("text", "rate", "limit"),
        [
            ("10 nodes per 1h", Rate(HOUR, 10), 10),
            ("1 node per 30m", Rate(30 * MINUTE, 1), 1),
            (" 0 nodes per 24h ", Rate(24 * HOUR), 0),
            ("5% per 1h", Rate(HOUR, percent=5), 2),
            ("100% per 1h", Rate(HOUR, percent=100), 21),
        ],
    )
    def test_it_is_a_number_or_a_share_of_nodes_rounded_up_in_a_time(self, text: str, rate: Rate, limit: int) -> None:
        """For a pool of 21 nodes."""
        assert rate_of(text) == rate
        assert rate.limit(21) == limit

    def test_no_more_nodes_than_are_remembered_may_go(self) -> None:
        """A share of a very large pool may be more."""
        assert allowance(_pool("50% per 1h"), EMPTY, PoolNodes(5000), [], START).allowed == 500

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("10", '\'10\' is no rate, such as "10 nodes per 1h" or "5% per 30m"'),
            ("10 nodes per day", '\'10 nodes per day\' is no rate, such as "10 nodes per 1h" or "5% per 30m"'),
            ("10 nodes per 0s", '\'10 nodes per 0s\' is no rate, such as "10 nodes per 1h" or "5% per 30m"'),
            ("10 nodes per Never", '\'10 nodes per Never\' is no rate, such as "10 nodes per 1h" or "5% per 30m"'),
            ("101% per 1h", "'101% per 1h' is more than 100%"),
            ("501 nodes per 1h", "'501 nodes per 1h' is more than 500 nodes"),
        ],
    )
    def test_anything_else_is_told_and_closes_the_pool(self, text: str, told: str) -> None:
        """Like a budget that cannot be read: someone meant to limit something."""
        pool = _pool(text)
        assert validate(pool) == (f"metadata.annotations[{DISRUPTION_RATE}]: {told}",)
        closed = allowance(pool, EMPTY, PoolNodes(20), [], START)
        assert (closed.allowed, closed.why) == (0, f"it has a rate that cannot be read, which closes it: {told}")


class TestWhatCounts:
    """The nodes that Joinery disrupted of its own will, from the start of their commands."""

    def test_nodes_in_commands_count_and_those_of_other_pools_do_not(self) -> None:
        """As long as their claims are there, they say so themselves."""
        other = builders.node_claim("other", node_pool="other", annotations=_going("other").metadata.annotations)
        assert _names(_pool(), _going("a"), other, builders.node_claim("stays")) == ["a"]

    @pytest.mark.parametrize(
        ("claim", "counts"),
        [
            (_going("a", reason=DisruptionReason.DRIFTED), True),
            (_going("a", reason=DisruptionReason.REBALANCE), False),
            (_going("a", rollback="its replacement was lost"), False),
            (_going("a", since=START - HOUR), False),
            (_going("a", since=START - HOUR + MINUTE), True),
            (builders.node_claim("a", deleted=START, annotations={RETIRED_FOR: "Underutilized"}), True),
            (builders.node_claim("a", deleted=START, annotations={RETIRED_FOR: "Expired"}), False),
            (builders.node_claim("a", deleted=START), False),
        ],
        ids=["drift", "rebalance", "rolled back", "an hour ago", "just within", "retired", "expired", "by a person"],
    )
    def test_voluntary_disruption_counts_for_as_long_as_the_rate_says(self, claim: NodeClaim, counts: bool) -> None:
        """What EC2, age or a person demands does not."""
        assert _names(_pool(), claim) == (["a"] if counts else [])

    def test_they_are_remembered_when_their_claims_are_gone(self) -> None:
        """On the pool: a drain takes minutes, and a rate may speak of a day. To read them again changes nothing."""
        claims = [_going("a", since=START - 50 * MINUTE), _going("b", since=START - 10 * MINUTE)]
        noted = with_retirements(_pool(), claims, START)
        assert with_retirements(noted, claims, START) == noted
        assert _names(noted) == ["a", "b"]
        assert _names(noted, now=START + 20 * MINUTE) == ["b"]
        later = with_retirements(noted, [], START + 20 * MINUTE)
        assert "default" not in later.metadata.annotations[DISRUPTED_LATELY]
        assert [one.claim for one in retirements(later, [], START)] == ["b"]
        assert DISRUPTED_LATELY not in with_retirements(later, [], START + 2 * HOUR).metadata.annotations

    def test_one_that_was_remembered_and_stays_after_all_is_forgotten(self) -> None:
        """Its command was rolled back."""
        noted = with_retirements(_pool(), [_going("a")], START)
        assert _names(noted, _going("a", rollback="lost")) == _names(noted, builders.node_claim("a")) == []

    def test_without_a_rate_nothing_is_remembered(self) -> None:
        """And what was is dropped; while a rate cannot be read, it is kept."""
        noted = with_retirements(_pool(), [_going("a")], START).metadata.annotations[DISRUPTED_LATELY]
        assert with_retirements(_pool(None), [_going("a")], START) == _pool(None)
        assert DISRUPTED_LATELY not in with_retirements(_pool(None, noted), [], START).metadata.annotations
        assert with_retirements(_pool("many", noted), [], START) == _pool("many", noted)

    @pytest.mark.parametrize(
        "text",
        ["", "yes", "[", "[" * 5000, "[1]", '[{"claim":"a","at":"2026-01-01T00:00:00"}]'],
        ids=["empty", "word", "torn", "nested", "number", "no zone"],
    )
    def test_an_annotation_that_somebody_broke_counts_for_nothing(self, text: str) -> None:
        """Anybody may edit it."""
        assert _names(_pool(lately=text)) == []

    def test_moments_that_are_still_to_come_count_as_now(self) -> None:
        """Else they would count for ever."""
        pool = _pool("1 node per 1h", '[{"claim":"a","at":"9999-12-31T23:59:59Z"}]')
        noted = with_retirements(pool, [], START)
        assert _names(noted) == ["a"]
        assert _names(noted, now=START + HOUR) == []
        assert allowance(pool, EMPTY, PoolNodes(20), [], START).allowed == 0


class TestWhatItAllows:
    """Budgets and rate together: the stricter counts."""

    def test_the_rate_leaves_what_was_not_used_up_lately_and_says_when_more_may_go(self) -> None:
        """The oldest of as many as the rate allows is the first to be forgotten."""
        claims = [_going("a", since=START - 50 * MINUTE), _going("b", since=START - 10 * MINUTE)]
        assert allowance(_pool("3 nodes per 1h"), EMPTY, PoolNodes(20), claims, START).allowed == 1
        used_up = allowance(_pool("2 nodes per 1h"), EMPTY, PoolNodes(20), claims, START)
        again = rfc3339(START + 10 * MINUTE)
        assert (used_up.allowed, used_up.why) == (
            0,
            "the rate 2 nodes per 1h allows 0 more nodes now: 2 were disrupted in that time, "
            f"and the next may be at {again}",
        )
        assert allowance(_pool("0 nodes per 1h"), EMPTY, PoolNodes(20), [], START).allowed == 0

    def test_a_stricter_budget_counts_and_speaks(self) -> None:
        """It is told as without a rate."""
        pool = _pool("5 nodes per 1h", budgets=[{"nodes": "1"}])
        assert "the budget 1 allows 1 of 20 nodes" in allowance(pool, EMPTY, PoolNodes(20), [], START).why

    def test_commands_are_admitted_within_it(self) -> None:
        """Whatever their reasons, in their order; those that find no room do not hold up the others."""
        cluster = Cluster(pools=[_pool("3 nodes per 1h")])
        for name in "abcde":
            cluster.machine(name)
        cluster.claims.append(_going("gone", since=START - MINUTE))
        problem = cluster.problem()
        wanted = [("claim-a",), ("claim-b", "claim-c"), ("claim-d",), ("claim-e",)]
        reasons = [EMPTY, DisruptionReason.UNDERUTILIZED, DisruptionReason.DRIFTED, EMPTY]
        commands = [
            DecidedCommand(reason=reason, message="", retire=names)
            for names, reason in zip(wanted, reasons, strict=True)
        ]
        admitted = admit(commands, problem, candidates(problem).nodes)
        assert [command.retire for command in admitted.commands] == [("claim-a",), ("claim-d",)]
        assert [(one.command.retire, one.objection.code) for one in admitted.rejected] == [
            (names, ObjectionCode.BUDGET) for names in (("claim-b", "claim-c"), ("claim-e",))
        ]
        assert admitted.rejected[0].objection.message == (
            "NodePool default: the rate 3 nodes per 1h allows 2 more nodes now: 1 were disrupted in that time; "
            "commands before it take 1; its command takes 2"
        )

    def test_drifted_nodes_of_static_pools_are_replaced_within_it(self) -> None:
        """They are voluntary too."""
        cluster = Cluster(pools=[_pool("1 node per 1h", replicas=3)])
        for name in "abc":
            cluster.machine(name, drifted=True)
        assert len(to_replace(cluster.problem().packing.snapshot).candidates) == 1
