"""The catalogue is kept current."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from joinery.controllers.catalog import LISTED_EVERY, CatalogController
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.ec2.catalog.document import Catalog, Missing
from joinery.objects.errors import ConfigurationError, UnavailableError
from joinery.objects.karpenter.labels import ON_DEMAND, SPOT
from simulator.cloud.cloud import InMemoryCloud
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand


def test_the_catalogue_is_read_from_ec2_and_kept(stand: Stand) -> None:
    """Every decision reads it from the bucket, and none waits for EC2's many pages."""
    stand.world.store.stored = None
    outcome = stand.refresh()
    assert stand.world.store.catalog() == stand.world.cloud.catalog()
    assert outcome["offerings"] == len(stand.world.cloud.catalog().offerings)


def test_the_first_catalogue_wakes_provisioning(stand: Stand) -> None:
    """Pods may wait for it, and what they rang for was given up meanwhile. Later ones wake nobody."""
    stand.world.store.stored = None
    stand.pods(1)
    with pytest.raises(UnavailableError, match="the function catalog makes the first one"):
        stand.provision()
    stand.rung()
    stand.refresh()
    assert stand.rung() == {Bell.PROVISIONING}
    assert stand.provision()["launches"] == 1
    stand.rung()
    for ago in (timedelta(0), LISTED_EVERY):
        _dear(stand, ago)
        stand.refresh()
    assert stand.rung() == set()


def test_a_first_catalogue_that_cannot_be_read_wakes_nobody(stand: Stand) -> None:
    """There would be nothing to plan with."""
    stand.world.store.stored = None
    fuse = Fuse(failing="cloud.catalog", error=UnavailableError("Unavailable"))
    with pytest.raises(UnavailableError):
        CatalogController(fuse.protect(stand.world.gateways), stand.world.clock.now).reconcile()
    assert stand.rung() == set()


def _dear(stand: Stand, ago: timedelta) -> Catalog:
    """A stored catalogue in which everything costs nine dollars, read so long ago."""
    current = stand.world.cloud.catalog()
    dear = tuple(msgspec.structs.replace(offering, price=9.0) for offering in current.offerings)
    listed = (stand.world.clock.now() - ago).isoformat()
    catalog = msgspec.structs.replace(current, offerings=dear, listed=listed)
    stand.world.store.put_catalog(catalog)
    return catalog


def _at_nine(stand: Stand) -> set[str]:
    """The capacity types that still have the old price."""
    return {offering.capacity_type for offering in stand.world.store.catalog().offerings if offering.price == 9.0}


@pytest.mark.parametrize("ago", [LISTED_EVERY, timedelta(days=-365)])
def test_types_of_long_ago_and_of_the_future_are_read_anew(ago: timedelta, stand: Stand) -> None:
    """A wrong clock has written the second, and would keep old prices for a year."""
    _dear(stand, ago)
    stand.refresh()
    assert _at_nine(stand) == set()


def test_spot_prices_are_read_each_time_and_types_twice_a_day(stand: Stand) -> None:
    """Types and on-demand prices change every few days, and to read them takes ten times as long."""
    earlier = _dear(stand, LISTED_EVERY - timedelta(minutes=1))
    stand.refresh()
    assert _at_nine(stand) == {offering.capacity_type for offering in earlier.offerings} - {SPOT}
    assert stand.world.store.catalog().listed == earlier.listed
    _dear(stand, LISTED_EVERY)
    stand.refresh()
    assert _at_nine(stand) == set()


def test_a_catalogue_that_does_not_say_its_age_is_read_anew(stand: Stand) -> None:
    """It was written by an older version, or by hand."""
    earlier = _dear(stand, timedelta(0))
    stand.world.store.put_catalog(msgspec.structs.replace(earlier, listed=""))
    stand.refresh()
    assert _at_nine(stand) == set()


class _HalfBlind(InMemoryCloud):
    """A cloud whose price list may not be read. ``asked``: whether everything was, each time."""

    missing: tuple[Missing, ...] = (Missing("prices", "estimates stand in", "AccessDenied"),)

    def catalog(self, earlier: Catalog | None = None, *, in_full: bool = False) -> Catalog:
        vars(self).setdefault("asked", []).append(in_full)
        read = super().catalog(earlier, in_full=in_full)
        return msgspec.structs.replace(read, missing=self.missing, listed=self.clock.now().isoformat())


def test_a_catalogue_that_lacks_a_source_is_stored_and_the_run_fails(stand: Stand) -> None:
    """Pods get nodes, and the alarm rings for whoever has to give the right. The next run asks for everything again."""
    stand.world.store.stored = None
    cloud = _HalfBlind(stand.world.clock, stand.world.cloud.catalog())
    controller = CatalogController(replace(stand.gateways, cloud=cloud), stand.world.clock.now)
    for _ in range(2):
        with pytest.raises(UnavailableError, match="on-demand prices could not be read: estimates stand in"):
            controller.reconcile()
    assert stand.world.store.catalog().offerings == cloud.catalog(in_full=True).offerings
    assert stand.rung() == {Bell.PROVISIONING}
    cloud.missing = ()
    for _ in range(2):
        controller.reconcile()
    assert vars(cloud)["asked"] == [True, True, True, True, False]


@pytest.mark.parametrize(("lost", "ago"), [(SPOT, timedelta(0)), (SPOT, LISTED_EVERY), (ON_DEMAND, LISTED_EVERY)])
def test_a_list_without_any_price_is_not_believed(lost: str, ago: timedelta, stand: Stand) -> None:
    """Amazon does not stop selling on-demand or spot. The catalogue stored last stays in use, and the run fails."""
    earlier = _dear(stand, ago)
    sold = stand.world.cloud.catalog()
    left = tuple(offering for offering in sold.offerings if offering.capacity_type != lost)
    poor = InMemoryCloud(stand.world.clock, msgspec.structs.replace(sold, offerings=left))
    with pytest.raises(UnavailableError, match=f"no {lost} price"):
        CatalogController(replace(stand.gateways, cloud=poor), stand.world.clock.now).reconcile()
    kept = {offering.capacity_type for offering in stand.world.store.catalog().offerings}
    assert kept == {offering.capacity_type for offering in earlier.offerings}


def test_a_catalogue_that_cannot_be_read_is_replaced(stand: Stand) -> None:
    """Whatever spoilt it: nobody has to delete it by hand."""
    fuse = Fuse(failing="store.catalog", error=ConfigurationError("not a catalogue"))
    CatalogController(fuse.protect(stand.gateways), stand.world.clock.now).reconcile()
    assert fuse.writes == ["store.put_catalog", "doorbell.ring"]
