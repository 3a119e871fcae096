"""Which changes of claims make a plan out of date."""

from datetime import UTC, datetime

import pytest

from joinery.objects.karpenter.labels import INTERRUPTED_AT, NODE_POOL_HASH, PLANNED_PODS
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claim_changes import changed_claims
from joinery.objects.snapshot.claims import annotated, with_status
from joinery.objects.snapshot.snapshot import ClaimsSnapshot
from simulator import builders

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def _claim(name: str = "a") -> NodeClaim:
    return with_metadata(builders.node_claim(name), uid=f"uid-of-{name}")


def _changed(before: list[NodeClaim], after: list[NodeClaim]) -> tuple[str, ...]:
    return changed_claims(
        ClaimsSnapshot(now=NOW, node_claims=tuple(before)), ClaimsSnapshot(now=NOW, node_claims=tuple(after))
    )


def test_a_new_claim_is_a_change() -> None:
    """It may have been bought for the same pods."""
    assert _changed([_claim("a")], [_claim("a"), _claim("b")]) == ("b",)


def test_a_claim_that_is_gone_is_a_change() -> None:
    """The plan counted on its room, or on its NodePool's limit being used."""
    assert _changed([_claim("a"), _claim("b")], [_claim("a")]) == ("b",)


def test_another_claim_of_the_same_name_is_a_change() -> None:
    """Its room is another."""
    assert _changed([_claim()], [with_metadata(_claim(), uid="another")]) == ("a",)


@pytest.mark.parametrize(
    "after",
    [
        with_metadata(_claim(), deletion_timestamp=NOW),
        annotated(_claim(), {INTERRUPTED_AT: NOW.isoformat()}),
        annotated(_claim(), {PLANNED_PODS: '["default/web"]'}),
    ],
    ids=["deleted", "interrupted", "promised to other pods"],
)
def test_a_claim_whose_room_is_given_away_is_a_change(after: NodeClaim) -> None:
    """What the plan put there has to go elsewhere."""
    assert _changed([_claim()], [after]) == ("a",)


@pytest.mark.parametrize(
    "after",
    [
        with_status(_claim(), provider_id="aws:///us-east-1a/i-1"),
        annotated(_claim(), {NODE_POOL_HASH: "1"}),
        with_metadata(_claim(), resource_version="2"),
    ],
    ids=["launched", "annotated", "written"],
)
def test_a_claim_that_has_come_further_is_none(after: NodeClaim) -> None:
    """Lifecycle writes to claims all the time."""
    assert _changed([_claim()], [after]) == ()


def test_the_end_of_a_claim_that_was_leaving_is_none() -> None:
    """Its room was not counted."""
    assert _changed([with_metadata(_claim(), deletion_timestamp=NOW)], []) == ()
