"""Commitments of a document: what counts of it, for which types, and in which order."""

from datetime import UTC, datetime, timedelta

import pytest

from joinery.decisions.scheduling.paid_for import commitments_of
from joinery.objects.commitments import PaidFor, ReservedInstances, SavingsPlan
from joinery.objects.snapshot.offerings import Offering

NOW = datetime(2026, 8, 24, 9, tzinfo=UTC)
SOLD = {
    name: (Offering("us-east-1a", "on-demand", price),)
    for name, price in {"m7a.large": 0.1, "m7a.xlarge": 0.2, "g6.xlarge": 0.8, "g6.2xlarge": 1.0}.items()
}


@pytest.mark.parametrize(
    ("kind", "zone", "rates"),
    [
        ("m7a.xlarge", "", {"m7a.large": 0.5, "m7a.xlarge": 1.0}),
        ("m7a.xlarge", "us-east-1a", {"m7a.xlarge": 1.0}),
        ("g6.xlarge", "", {"g6.xlarge": 1.0}),
    ],
)
def test_a_size_is_flexible_in_the_region_and_not_with_accelerators(
    kind: str, zone: str, rates: dict[str, float]
) -> None:
    """EC2 User Guide, "How Reserved Instance discounts are applied", names G and Inf families that are not."""
    (found,) = commitments_of(
        PaidFor(reserved_instances=(ReservedInstances(name="ri", instance_type=kind, count=3, zone=zone),)), SOLD, NOW
    )
    assert (found.stock, found.rates) == (3, rates)


def test_the_narrower_come_first_and_what_has_ended_is_not_there() -> None:
    """Savings Plans after all Reserved Instances ("Understanding how Savings Plans apply to your usage")."""
    document = PaidFor(
        savings_plans=(
            SavingsPlan(name="compute", commitment=5, discount=0.2),
            SavingsPlan(name="family", commitment=5, used_elsewhere=7, family="m7a", discount=0.3),
        ),
        reserved_instances=(
            ReservedInstances(name="region", instance_type="m7a.large", count=1),
            ReservedInstances(name="zone", instance_type="m7a.large", count=1, zone="us-east-1a"),
            ReservedInstances(name="over", instance_type="m7a.large", count=1, end=NOW),
        ),
    )
    found = commitments_of(document, SOLD, NOW)
    assert [one.name for one in found] == ["zone", "region", "family", "compute"]
    assert (found[2].stock, set(found[2].rates), set(found[3].rates)) == (0.0, {"m7a.large", "m7a.xlarge"}, set(SOLD))


def test_what_aws_said_a_day_ago_says_nothing_of_what_is_left() -> None:
    """The function that reads it has not run since. What a person has written has no such moment."""
    mine = PaidFor(reserved_instances=(ReservedInstances(name="ri", instance_type="m7a.large", count=1),))
    for age, count in ((timedelta(hours=23), 1), (timedelta(hours=25), 0)):
        read = PaidFor(reserved_instances=mine.reserved_instances, read=NOW - age)
        assert len(commitments_of(read, SOLD, NOW)) == count
    assert len(commitments_of(mine, SOLD, NOW)) == 1
