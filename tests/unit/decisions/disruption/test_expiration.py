"""Claims that have lived long enough."""

from datetime import timedelta
from typing import Any

import pytest

from joinery.decisions.disruption.expiration import expire
from joinery.objects.actions import DeleteClaim
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import RESERVATION_ID
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START


def _expired(*claims: Any) -> list[str]:
    chains = expire(Snapshot(now=START, node_claims=claims))
    return [c.claim.metadata.name for chain in chains for c in chain if isinstance(c, DeleteClaim)]


@pytest.mark.parametrize(
    ("expire_after", "age", "is_due"),
    [
        ("1h", timedelta(minutes=59, seconds=59), False),
        ("1h", timedelta(hours=1), True),
        ("1h30m", timedelta(hours=1, minutes=20), False),
        ("1h30m", timedelta(hours=2), True),
        ("Never", timedelta(days=10_000), False),
        ("720h", timedelta(days=30), True),
    ],
)
def test_a_claim_expires_at_its_own_age(expire_after: str, age: timedelta, is_due: bool) -> None:
    """A node is retired when its claim is as old as the claim itself allows, and never before."""
    claim = builders.node_claim("old", expire_after=expire_after, created=START - age)
    assert _expired(claim) == (["old"] if is_due else [])


def test_a_claim_that_goes_already_is_not_retired_again() -> None:
    """Its end has begun; deleting it again would be noise."""
    assert (
        _expired(builders.node_claim("old", expire_after="1h", created=START - timedelta(days=1), deleted=START)) == []
    )


def test_claims_of_other_providers_are_none_of_our_business() -> None:
    """Another controller's node class means another controller's node."""
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    claim = builders.node_claim("old", expire_after="1h", created=START - timedelta(days=1), nodeClassRef=ref)
    assert _expired(claim) == []


def test_the_oldest_claim_goes_first() -> None:
    """If a run is cut short, those that waited longest are served."""
    claims = [
        builders.node_claim(f"c{days}", expire_after="1h", created=START - timedelta(days=days)) for days in (1, 3, 2)
    ]
    assert _expired(*claims) == ["c3", "c2", "c1"]


@pytest.mark.parametrize(("state", "expected"), [("active", []), ("expiring", ["within"])])
def test_a_claim_leaves_a_capacity_block_that_ends(state: str, expected: list[str]) -> None:
    """EC2 takes its instances back before the end; nodes elsewhere stay."""
    block = {
        "id": "cr-1", "availabilityZone": "us-east-1a", "instanceType": "p5.48xlarge", "ownerID": "111122223333",
        "instanceMatchCriteria": "targeted", "reservationType": "capacity-block", "state": state,
    }  # fmt: skip
    given = builders.node_class().to_wire()
    node_class = EC2NodeClass.model_validate({**given, "status": {"capacityReservations": [block]}})
    within = builders.node_claim("within", labels={RESERVATION_ID: "cr-1"}, capacity_type="reserved", created=START)
    others = [
        builders.node_claim("other", labels={RESERVATION_ID: "cr-2"}, created=START),
        builders.node_claim("plain", created=START),
    ]
    chains = expire(Snapshot(now=START, node_claims=(within, *others), node_classes=(node_class,)))
    assert [c.claim.metadata.name for chain in chains for c in chain if isinstance(c, DeleteClaim)] == expected
