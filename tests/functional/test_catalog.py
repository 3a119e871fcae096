"""The catalogue is kept current."""

from tests.functional.stand import Stand


def test_the_catalogue_is_read_from_ec2_and_kept(stand: Stand) -> None:
    """Every decision reads it from the bucket, and none waits for EC2's many pages."""
    stand.world.store.stored = None
    outcome = stand.refresh()
    assert stand.world.store.catalog() == stand.world.cloud.catalog()
    assert outcome["offerings"] == len(stand.world.cloud.catalog().offerings)
