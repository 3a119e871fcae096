"""What the cloud gateway answers about the instance types of several classes at once."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from botocore.stub import Stubber

from joinery.gateways.ec2.adapter import Ec2Cloud
from joinery.gateways.ec2.catalog.document import Catalog, decode, encode
from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from simulator.builders import node_class

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def log() -> list[str]:
    """The lines that the gateway logs."""
    return []


@pytest.fixture
def cloud(log: list[str], monkeypatch: pytest.MonkeyPatch) -> Ec2Cloud:
    """The adapter, which asks AWS nothing unless a test answers."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    return Ec2Cloud("blue", "us-east-1", now=lambda: NOW, log=log.append)


def test_one_class_that_cannot_be_worked_out_keeps_the_others(
    cloud: Ec2Cloud, catalog: Catalog, log: list[str]
) -> None:
    """It is logged by its name. What breaks it here is an amount that is none."""
    broken: Mapping[str, Any] = {"broken": {"m5.large": "8Gi"}}
    types = cloud.instance_types([node_class("broken"), node_class("good")], catalog, NOW, broken)
    assert list(types) == ["good"]
    assert [line.partition(":")[0] for line in log] == ["EC2NodeClass broken"]


def test_a_broken_catalogue_is_nobodys_own_mistake(cloud: Ec2Cloud, catalog: Catalog) -> None:
    """No class has types then, which must not look as if each were wrong."""
    bad = msgspec.structs.replace(catalog, instance_types=(msgspec.Raw(b'{"InstanceType": 5}'),))
    with pytest.raises(ConfigurationError, match="not a catalogue"):
        cloud.instance_types([node_class()], bad, NOW)


def test_reservations_that_cannot_be_counted_keep_nobody_from_types(
    cloud: Ec2Cloud, catalog: Catalog, log: list[str]
) -> None:
    """Nothing is bought in them: nobody knows whether they have room."""
    entry = {"id": "cr-1", "instanceType": "m5.large", "availabilityZone": "us-east-1a"}
    reserving = with_status(node_class("reserving"), capacityReservations=[entry])
    with Stubber(cloud._clients.ec2) as ec2:
        ec2.add_client_error("describe_capacity_reservations", "UnauthorizedOperation", "no", http_status_code=403)
        types = cloud.instance_types([reserving, node_class("other")], catalog, NOW)
    reserved = [o for kind in types["reserving"] for o in kind.offerings if o.capacity_type == "reserved"]
    assert [offering.available for offering in reserved] == [False]
    assert types["other"]
    assert "UnauthorizedOperation" in log[0]


def test_types_that_an_expression_leaves_out_are_logged_once(cloud: Ec2Cloud, catalog: Catalog, log: list[str]) -> None:
    """For each version of the class: nothing else would say why a plan has none of them."""
    asked = node_class(kubelet={"maxPods": "max_pods - 10"})
    for _ in range(2):
        cloud.instance_types([asked], catalog, NOW)
    (line,) = log
    assert line.startswith("EC2NodeClass default: ")
    assert "types are left out: spec.kubelet.maxPods: 'max_pods - 10' for a1.medium: it yields -2" in line


def test_a_reservation_that_ends_without_an_offset_is_refused(catalog: Catalog) -> None:
    """It could not be compared with the moment of a plan."""
    ending = CapacityReservation(
        capacity_reservation_id="cr-1",
        instance_type="m5.large",
        availability_zone="us-east-1a",
        end_date=datetime(2026, 2, 1),  # noqa: DTZ001 - as a file may have it
    )
    document = encode(msgspec.structs.replace(catalog, capacity_reservations=(ending,)))
    with pytest.raises(ConfigurationError, match="EndDate"):
        decode(document)


def with_status(changed: EC2NodeClass, **fields: Any) -> EC2NodeClass:
    """The class with these fields of its status."""
    wire = changed.model_dump(by_alias=True, mode="json")
    return EC2NodeClass.model_validate({**wire, "status": {**wire["status"], **fields}})
