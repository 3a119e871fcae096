"""A catalogue of which one source may not be read: the others are in it, it says so, and what was stored stays."""

from datetime import timedelta
from typing import Any

import pytest

from joinery.gateways.aws import Clients
from joinery.gateways.ec2.catalog import listing
from joinery.gateways.ec2.catalog.document import Catalog, decode, encode
from joinery.gateways.ec2.catalog.pricing import estimates
from joinery.objects.errors import JoineryError
from joinery.objects.karpenter.labels import ON_DEMAND, SPOT
from tests.real.answers import ERRORS, answering
from tests.real.test_aws_answers import NOW, catalogue, questions

DENIED = ERRORS["ec2:CreateFleet UnauthorizedOperation"]
THROTTLED = ERRORS["ec2:DescribeInstances RequestLimitExceeded"]
LATER = NOW + timedelta(hours=13)
#: Each source by the call, and what is said of it where no catalogue is stored.
SOURCES = {
    "get_products": "on-demand prices could not be read: estimates stand in, which are those of us-east-1",
    "describe_spot_price_history": "spot prices could not be read: nothing is sold as spot",
    "describe_instance_type_offerings": (
        "the zones of instance types could not be read: each is sold where it has a spot price"
    ),
    "describe_availability_zones": "zone ids could not be read: none is known",
    "describe_capacity_reservations": "capacity reservations could not be read: none is known",
}


def _refusing(call: str, error: Any = DENIED) -> list[tuple[str, str, Any]]:
    """The questions for a catalogue, of which one is refused. The price list is asked no second time then."""
    asked = [(client, method, error if method == call else answer) for client, method, answer in questions()]
    return asked[1:] if call == "get_products" else asked


def _sold(catalog: Catalog, capacity_type: str) -> dict[tuple[str, str], float]:
    return {(o.instance_type, o.zone): o.price for o in catalog.offerings if o.capacity_type == capacity_type}


@pytest.mark.parametrize("call", SOURCES)
def test_a_first_catalogue_is_made_of_the_sources_that_answer(clients: Clients, call: str) -> None:
    """Pods get nodes, and whoever reads the catalogue hears what it lacks."""
    whole = catalogue(clients)
    with answering(clients, *_refusing(call)):
        poor = decode(encode(listing.read(clients, NOW)))
    (missing,) = poor.missing
    assert str(missing).startswith(SOURCES[call])
    assert "UnauthorizedOperation" in missing.reason
    lost = {
        "get_products": SPOT, "describe_spot_price_history": ON_DEMAND, "describe_instance_type_offerings": SPOT
    }.get(call)  # fmt: skip
    if lost is None:
        assert poor.offerings == whole.offerings
    else:
        assert _sold(poor, lost) == _sold(whole, lost)
    assert poor.offerings


def test_estimates_stand_in_for_a_price_list_that_is_denied(clients: Clients) -> None:
    """They are dollars of another region; what one type costs beside another is much the same."""
    with answering(clients, *_refusing("get_products")):
        poor = listing.read(clients, NOW)
    assert _sold(poor, ON_DEMAND)["m5.large", "us-east-1a"] == estimates("us-east-1")["m5.large"]


@pytest.mark.parametrize("call", [*SOURCES, "describe_instance_types"])
def test_what_was_stored_stays_while_its_source_is_silent(clients: Clients, call: str) -> None:
    """Nothing is lost, and the catalogue says of which moment it is."""
    whole = catalogue(clients)
    with answering(clients, *_refusing(call, THROTTLED)):
        kept = listing.read(clients, LATER, whole)
    assert (kept.offerings, kept.instance_types, kept.zones) == (whole.offerings, whole.instance_types, whole.zones)
    assert kept.capacity_reservations == whole.capacity_reservations
    (missing,) = kept.missing
    assert missing.instead == f"those of {whole.listed} stand in"


def test_what_stands_in_is_said_for_as_long_as_it_does(clients: Clients) -> None:
    """Estimates do not become prices because a catalogue with them was stored."""
    with answering(clients, *_refusing("get_products")):
        first = listing.read(clients, NOW)
    with answering(clients, *_refusing("get_products")):
        second = listing.read(clients, LATER, first)
    hourly = [
        each for each in questions() if each[1] in {"describe_spot_price_history", "describe_capacity_reservations"}
    ]
    with answering(clients, *hourly):
        third = listing.read(clients, LATER, second, in_full=False)
    assert {missing.instead for each in (first, second, third) for missing in each.missing} == {
        "estimates stand in, which are those of us-east-1"
    }
    with answering(clients, *questions()):
        whole = listing.read(clients, LATER, third)
    assert (whole.missing, _sold(whole, ON_DEMAND)["m5.large", "us-east-1a"]) == ((), 1.0)


def test_without_any_instance_type_there_is_no_catalogue(clients: Clients) -> None:
    """Nothing could be planned, so the run fails with AWS's own words."""
    with (
        answering(clients, *_refusing("describe_instance_types")),
        pytest.raises(JoineryError, match="describing instance"),
    ):
        listing.read(clients, NOW)
