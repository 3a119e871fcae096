"""Instance types of a class are worked out once for as long as nothing that decides them has changed."""

from datetime import UTC, datetime

import msgspec
import pytest

from joinery import bootstrap
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.gateways.ec2.instancetypes.remembered import types_of
from joinery.gateways.ec2.instancetypes.resolve import resolve
from joinery.objects.settings import NEEDS, variable
from tests.unit.gateways.ec2.test_instance_types import node_class

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_same_class_and_catalogue_get_the_same_objects(catalog: Catalog) -> None:
    """They are what ``resolve`` answers, at any moment."""
    first = types_of(catalog, node_class())
    assert types_of(catalog, node_class(), now=NOW, reservations=()) is first
    assert first == resolve(catalog, node_class())


def test_another_spec_has_other_types(catalog: Catalog) -> None:
    """As it does with ``resolve``."""
    dense = node_class(kubelet={"maxPods": 8})
    assert types_of(catalog, dense) == resolve(catalog, dense) != types_of(catalog, node_class())


def test_what_was_learned_of_memory_has_other_types(catalog: Catalog) -> None:
    """And the same again as long as it is the same."""
    learned = types_of(catalog, node_class(), memory={"m5.large": 1 << 33})
    assert types_of(catalog, node_class(), memory={"m5.large": 1 << 33}) is learned != types_of(catalog, node_class())


def test_another_catalogue_has_other_types(catalog: Catalog) -> None:
    """One of new prices, or one that says the same."""
    dearer = tuple(msgspec.structs.replace(one, price=one.price * 2) for one in catalog.offerings)
    other = msgspec.structs.replace(catalog, offerings=dearer)
    assert types_of(other, node_class()) == resolve(other, node_class()) != types_of(catalog, node_class())


def test_what_is_left_of_reservations_is_never_remembered(catalog: Catalog) -> None:
    """It changes from one run to the next."""
    entry = {"CapacityReservationId": "cr-1", "InstanceType": "m5.large", "AvailabilityZone": "us-east-1a"}
    left = (msgspec.convert(entry | {"State": "active", "AvailableInstanceCount": 1}, CapacityReservation),)
    types_of(catalog, node_class())
    answers = [types_of(catalog, node_class(), now=NOW, reservations=left) for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0] is not answers[1]


def test_what_settings_say_of_nodes_reaches_the_core(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the stack's parameter to what a door plans with; m5.large has three interfaces of ten addresses."""
    for name in NEEDS["provisioning"]:
        monkeypatch.setenv(variable(name), {"mode": "act", "commitments": "off"}.get(name, "any"))
    for chosen, pods, mib in (("", 29, 6903), ("ReservedEnis=1; VmMemoryOverheadPercent=0", 20, 7518)):
        monkeypatch.setenv("JOINERY_SETTINGS", chosen)
        bootstrap.reset()
        types = bootstrap.door("provisioning").gateways.cloud.instance_types([node_class()], catalog, NOW)["default"]
        (kind,) = (kind for kind in types if kind.name == "m5.large")
        assert (kind.allocatable["pods"], kind.allocatable["memory"] >> 20) == (pods, mib)
    bootstrap.reset()
