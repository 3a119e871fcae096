"""Capacity reservations: what a class's terms select, and what that is as offerings."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from joinery.gateways.ec2.catalog.document import Catalog, decode, encode
from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.gateways.ec2.instancetypes.resolve import resolve
from joinery.gateways.ec2.nodeclass.reservations import selected, uncounted
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import (
    AMISelectorTerm,
    CapacityReservationSelectorTerm,
    EC2NodeClass,
    EC2NodeClassSpec,
)
from joinery.objects.snapshot.offerings import InstanceType, Offering
from tests.unit.gateways.ec2.test_instance_types import node_class

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ZONE = "us-east-1a"


def _entry(name: str = "cr-1", **given: Any) -> dict[str, Any]:
    """As EC2 prints it."""
    return {
        "CapacityReservationId": name, "InstanceType": "m5.large", "AvailabilityZone": ZONE, "OwnerId": "111122223333",
        "AvailableInstanceCount": 3, "TotalInstanceCount": 5, "InstanceMatchCriteria": "targeted",
        "ReservationType": "default", "State": "active", "Tags": [{"Key": "team", "Value": "web"}], **given,
    }  # fmt: skip


def _reservation(name: str = "cr-1", **given: Any) -> CapacityReservation:
    return msgspec.convert(_entry(name, **given), CapacityReservation)


def _block(end: timedelta) -> CapacityReservation:
    return _reservation(ReservationType="capacity-block", EndDate=(NOW + end).isoformat())


def _spec(term: dict[str, Any], family: str = "AL2023") -> EC2NodeClassSpec:
    """A class of that family with that term."""
    term_of_it = CapacityReservationSelectorTerm.model_validate(term)
    return node_class().spec.model_copy(
        update={"capacity_reservation_selector_terms": [term_of_it], "ami_family": family}
    )


def _ids(term: dict[str, Any], *known: CapacityReservation) -> list[str]:
    return [found.id for found in selected(_spec(term), known, NOW)]


def _reserved(
    of: EC2NodeClass, catalog: Catalog, *known: CapacityReservation
) -> tuple[InstanceType, tuple[Offering, ...]]:
    """m5.large as nodes of the class have it, and its reserved offerings."""
    kinds = resolve(msgspec.structs.replace(catalog, capacity_reservations=known), of, now=NOW)
    kind = next(kind for kind in kinds if kind.name == "m5.large")
    return kind, tuple(o for o in kind.offerings if o.capacity_type == labels.RESERVED)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({"id": "cr-2"}, ["cr-2"]),
        ({"id": "cr-9"}, []),
        ({"tags": {"team": "web"}}, ["cr-1"]),
        ({"tags": {"team": "*"}}, ["cr-1", "cr-2"]),
        ({"tags": {"team": "web", "other": "*"}}, []),
        ({"tags": {"team": "w*"}}, ["cr-1"]),
        ({"tags": {"team": "*b"}}, ["cr-1", "cr-2"]),
        ({"tags": {"team": "?b"}}, ["cr-2"]),
        ({"tags": {"team": "db?"}}, ["cr-2"]),
        ({"tags": {"team": "d"}}, []),
        ({"tags": {"team": "x*"}}, []),
        ({"tags": {"team": "\\*b"}}, []),
        ({"tags": {"team": "*" + "b*" * 200}}, []),
        ({"tags": {"team": "*"}, "ownerID": "444455556666"}, ["cr-2"]),
        ({"instanceMatchCriteria": "open"}, ["cr-2"]),
    ],
)
def test_terms_select_by_id_tags_owner_and_criteria(term: dict[str, Any], expected: list[str]) -> None:
    """A tag's value may be anything, or what EC2's wildcards let pass; all that a term says must hold; ids come in
    order.
    """
    other = _reservation(
        "cr-2", OwnerId="444455556666", InstanceMatchCriteria="open", Tags=[{"Key": "team", "Value": "db"}]
    )
    assert _ids(term, other, _reservation()) == expected


@pytest.mark.parametrize(
    "given",
    [
        {"State": "expired"},
        {"EndDate": "2025-12-31T00:00:00Z"},
        {"ReservationType": "scheduled"},
        {"InstanceMatchCriteria": "whatever"},
    ],
)
def test_what_is_over_or_of_an_unknown_sort_is_not_selected(given: dict[str, Any]) -> None:
    """EC2 may know sorts of reservation that we do not."""
    assert _ids({"id": "cr-1"}, _reservation(**given)) == []


@pytest.mark.parametrize(
    ("platform", "classes"),
    [
        ("Linux/UNIX", ["AL2023 alias", "AL2023 id", "Custom id"]),
        ("Red Hat Enterprise Linux", ["AL2023 id", "Custom id"]),
        ("Windows", ["Windows2022 id"]),
        ("Windows with SQL Server Web", ["Windows2022 id"]),
        ("", ["AL2023 alias", "AL2023 id", "Custom id", "Windows2022 id"]),
    ],
)
def test_a_reservation_takes_instances_of_its_platform_alone(platform: str, classes: list[str]) -> None:
    """EC2 refuses all others, and a node would ask for it first, because it is paid for. One's own image may be of any
    Linux, whatever family it boots like.
    """
    known = _reservation(InstancePlatform=platform)
    images = {"alias": AMISelectorTerm(alias="al2023@latest"), "id": AMISelectorTerm(id="ami-1")}
    asked = {
        name: _spec({"id": "cr-1"}, family).model_copy(update={"ami_selector_terms": [images[by]]})
        for name in ("AL2023 alias", "AL2023 id", "Custom id", "Windows2022 id")
        for family, by in [name.split()]
    }
    assert [name for name, spec in asked.items() if selected(spec, [known], NOW)] == classes


@pytest.mark.parametrize(
    ("selector", "remaining"), [(None, []), ({"name": "web"}, []), ({"name": "hpc"}, [3]), ({"id": "pg-1"}, [3])]
)
def test_a_reservation_in_a_placement_group_takes_instances_of_that_group_alone(
    catalog: Catalog, selector: dict[str, str] | None, remaining: list[int]
) -> None:
    """EC2 User Guide, "Use Capacity Reservations with placement groups". Its ARN does not have the group's id,
    so then the user is believed.
    """
    known = _reservation(PlacementGroupArn="arn:aws:ec2:us-east-1:111122223333:placement-group/hpc")
    of = node_class(capacityReservationSelectorTerms=[{"id": "cr-1"}], placementGroupSelector=selector)
    _, found = _reserved(of, catalog, known)
    assert [offering.reservation and offering.reservation.remaining for offering in found] == remaining


@pytest.mark.parametrize(("minutes", "state"), [(41, "active"), (40, "expiring")])
def test_a_capacity_block_expires_forty_minutes_before_its_end(minutes: int, state: str) -> None:
    """EC2 takes its instances back half an hour before the end."""
    (found,) = selected(_spec({"id": "cr-1"}), [_block(timedelta(minutes=minutes))], NOW)
    assert found.state == state


def test_a_reservation_is_an_offering_of_its_type_for_next_to_nothing(catalog: Catalog) -> None:
    """It costs a ten-millionth of the on-demand price, says how much is left of it, and the type's labels name it."""
    kind, (found,) = _reserved(node_class(capacityReservationSelectorTerms=[{"id": "cr-1"}]), catalog, _reservation())
    assert found.price == pytest.approx((kind.price(ZONE, labels.ON_DEMAND) or 0) / 10_000_000)
    assert (found.available, found.zone, found.reservation and found.reservation.remaining) == (True, ZONE, 3)
    assert found.reservation is not None
    assert found.reservation.labels == {
        labels.RESERVATION_ID: "cr-1", labels.RESERVATION_TYPE: "default", labels.RESERVATION_INTERRUPTIBLE: "false",
    }  # fmt: skip
    assert labels.RESERVED in kind.labels[labels.CAPACITY_TYPE]
    assert kind.labels[labels.RESERVATION_ID] == ("cr-1",)


def test_a_class_without_terms_has_no_reserved_offering(catalog: Catalog) -> None:
    """What the catalogue knows is for those who select it."""
    kind, found = _reserved(node_class(), catalog, _reservation())
    assert found == ()
    assert labels.RESERVATION_ID not in kind.labels
    assert labels.RESERVED not in kind.labels[labels.CAPACITY_TYPE]


@pytest.mark.parametrize(
    "known",
    [
        _reservation(AvailableInstanceCount=0),
        _reservation(AvailabilityZone="us-east-1z"),
        _block(timedelta(minutes=39)),
        msgspec.structs.replace(_reservation(), available_instance_count=None),
    ],
    ids=["nothing left", "a zone out of reach", "about to end", "nobody knows how much is left"],
)
def test_nothing_is_launched_into_what_cannot_take_it(catalog: Catalog, known: CapacityReservation) -> None:
    """The offering is there, so that a reason can name it, and is not available."""
    _, (found,) = _reserved(node_class(capacityReservationSelectorTerms=[{"id": "cr-1"}]), catalog, known)
    assert not found.available


def test_a_status_is_believed_before_the_terms(catalog: Catalog) -> None:
    """Whoever looked at EC2 has the last word on what the class has; the catalogue only tells how much is left."""
    seen = {
        "id": "cr-2", "availabilityZone": ZONE, "instanceType": "m5.large", "ownerID": "111122223333",
        "instanceMatchCriteria": "open", "reservationType": "default", "state": "active",
    }  # fmt: skip
    of = node_class({"capacityReservations": [seen]}, capacityReservationSelectorTerms=[{"id": "cr-1"}])
    _, (found,) = _reserved(of, catalog, _reservation("cr-1"), _reservation("cr-2"))
    assert found.reservation_id == "cr-2"
    assert uncounted(of, [_reservation("cr-1")], NOW) == ["cr-2"]
    none = node_class(
        {"conditions": [{"type": "CapacityReservationsReady", "status": "True"}]},
        capacityReservationSelectorTerms=[{"id": "cr-1"}],
    )
    assert _reserved(none, catalog, _reservation("cr-1"))[1] == ()


def test_a_catalogue_keeps_its_reservations() -> None:
    """Written and read again they are the same, and a catalogue of before has none."""
    document = {"region": "us-east-1", "capacityReservations": [_entry(EndDate="2026-02-01T00:00:00Z")]}
    read = decode(msgspec.json.encode({"apiVersion": "joinery.dev/v1", "kind": "Catalog", **document}))
    assert decode(encode(read)) == read
    assert read.capacity_reservations[0].available_instance_count == 3
    assert decode(b'{"kind": "Catalog", "region": "us-east-1"}').capacity_reservations == ()
