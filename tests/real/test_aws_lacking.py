"""AWS's answers without any one of their fields, at any depth: a line that names call and field, or one entry less."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from joinery.gateways.aws import Clients
from joinery.gateways.ec2.catalog.pricing import on_demand_prices
from joinery.gateways.ec2.catalog.reservation_queries import active_reservations, reservations_by_id
from joinery.gateways.ec2.instancetypes.resolve import resolve
from joinery.gateways.ec2.launch.facts import cluster_facts
from joinery.gateways.ec2.launch.fleet import result
from joinery.gateways.ec2.launch.running import described
from joinery.gateways.ec2.nodeclass import discovery
from joinery.gateways.ec2.nodeclass.imagesearch import ImageSearch
from joinery.gateways.kubernetes import auth
from joinery.objects.errors import UnavailableError
from joinery.objects.karpenter.ec2nodeclass import AMISelectorTerm, SecurityGroupSelectorTerm, SubnetSelectorTerm
from tests.real.answers import answering, read
from tests.real.test_aws_answers import NOW, anyone, catalogue
from tests.real.test_aws_launches import FACTS, creating_fleets, launched, request

GROUPS = {
    "SecurityGroups": [
        {"GroupId": "sg-1", "GroupName": "nodes", "VpcId": "vpc-1", "Tags": [{"Key": "a", "Value": "b"}]},
        {"GroupId": "sg-2", "GroupName": "eks-cluster-sg-prod-111222333", "VpcId": "vpc-1"},
    ]
}
#: Client, method, answer and what is asked of the adapter; the ids that it gives.
LISTS: dict[str, tuple[str, str, Any, Callable[[Clients], list[str]]]] = {
    "DescribeSubnets": (
        "ec2", "describe_subnets", read("describe-subnets"),
        lambda clients: [subnet.id for subnet in discovery.subnets(clients, [SubnetSelectorTerm(id="subnet-1")])],
    ),
    "DescribeSecurityGroups": (
        "ec2", "describe_security_groups", GROUPS,
        lambda clients: [
            group.id for group in discovery.security_groups(clients, [SecurityGroupSelectorTerm(id="sg-1")])
        ],
    ),
    "DescribeCapacityReservations": (
        "ec2", "describe_capacity_reservations", read("describe-capacity-reservations"),
        lambda clients: [reservation.capacity_reservation_id for reservation in reservations_by_id(clients, ["cr-1"])],
    ),
    "DescribeImages": (
        "ec2", "describe_images", read("describe-images"),
        lambda clients: [image.id for image in ImageSearch(clients, "1.33", NOW).find([AMISelectorTerm(name="*")])],
    ),
    "DescribeInstances": (
        "ec2", "describe_instances", read("describe-instances"),
        lambda clients: [instance.instance_id for instance in described(clients)],
    ),
}  # fmt: skip


def shorn(value: Any, *, by: str) -> Iterator[tuple[str, Any]]:
    """The answer each time without another of its fields, or with an empty one:
    the first entry of each list stands for all.
    """
    for path in _paths(value):
        changed = copy.deepcopy(value)
        holder = changed
        for step in path[:-1]:
            holder = holder[step]
        if by == "absent":
            del holder[path[-1]]
        elif by == "null":
            holder[path[-1]] = None
        elif isinstance(holder[path[-1]], str | list | dict):
            holder[path[-1]] = type(holder[path[-1]])()
        yield ".".join(map(str, path)), changed


def _paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield (*before, key)
            yield from _paths(member, (*before, key))
    elif isinstance(value, list) and value:
        yield from _paths(value[0], (*before, 0))


def is_moment(path: str) -> bool:
    """Whether an empty text cannot be there: EC2's parser makes a moment of it."""
    return path.endswith(("Time", "Date", "StartDate", "EndDate")) and "Images" not in path


@pytest.mark.parametrize("call", LISTS)
@pytest.mark.parametrize("by", ["absent", "empty"])
def test_an_entry_that_lacks_anything_takes_no_other_with_it(clients: Clients, call: str, by: str) -> None:
    """Whatever it lacks; and who is left out is told, with the call and the field."""
    client, method, answer, ask = LISTS[call]
    with answering(clients, (client, method, answer)):
        whole = ask(clients)
    told: list[str] = []
    clients.log = told.append
    for path, changed in shorn(answer, by=by):
        if by == "empty" and is_moment(path):
            continue
        told.clear()
        with answering(clients, (client, method, changed)):
            left = ask(clients)
        if ".0." in path and not path.endswith(".Instances"):
            assert len(left) >= len(whole) - 1, path
        for line in told:
            assert line.startswith(f"EC2 {call}: "), path
            assert path.rpartition(".")[2] in line, path


@pytest.mark.parametrize("field", ["CapacityReservationId", "InstanceType", "AvailabilityZone"])
def test_one_bad_reservation_does_not_fail_the_whole_read(clients: Clients, field: str) -> None:
    """The others are used, and the line says which one is not and why."""
    answer = read("describe-capacity-reservations")
    bad, *others = answer["CapacityReservations"]
    name = bad["CapacityReservationId"] if field != "CapacityReservationId" else "0"
    told: list[str] = []
    clients.log = told.append
    changed = {"CapacityReservations": [{key: bad[key] for key in bad if key != field}, *others]}
    with answering(clients, ("ec2", "describe_capacity_reservations", changed)):
        active = active_reservations(clients, [])
    assert [reservation.capacity_reservation_id for reservation in active] == [
        reservation["CapacityReservationId"] for reservation in others
    ]
    assert told == [f"EC2 DescribeCapacityReservations: CapacityReservations[{name}] has no {field} and is left out"]


def test_an_instance_that_says_less_is_there_all_the_same(clients: Clients) -> None:
    """Left out, it would be taken for gone, and its claim be given up; undated, it is never old enough to be a leak."""
    (instance,) = read("describe-instances")["Reservations"][0]["Instances"][:1]
    bare = {"Reservations": [{"Instances": [{"InstanceId": instance["InstanceId"]}]}]}
    with answering(clients, ("ec2", "describe_instances", bare)):
        (seen,) = described(clients)
    assert (seen.instance_id, seen.is_going, seen.launched_at > NOW) == (instance["InstanceId"], False, True)


@pytest.mark.parametrize("by", ["absent", "empty"])
def test_a_type_that_lacks_anything_at_any_depth_takes_no_other_with_it(clients: Clients, by: str) -> None:
    """The catalogue is of the others."""
    answer = read("describe-instance-types")
    others = {kind["InstanceType"] for kind in answer["InstanceTypes"][1:]} - {"mac2.metal"}
    for path, changed in shorn({"InstanceTypes": answer["InstanceTypes"]}, by=by):
        if path != "InstanceTypes":
            assert {kind.name for kind in resolve(catalogue(clients, changed), anyone())} >= others, path


@pytest.mark.parametrize("name", ["ssm-get-parameter", "ssm-get-parameter-recommended-json"])
@pytest.mark.parametrize("by", ["absent", "empty"])
def test_a_parameter_without_a_value_is_one_line(clients: Clients, name: str, by: str) -> None:
    """It names the call, the parameter and the field."""
    answer = {"Parameter": read(name)["Parameter"]}
    parameter = answer["Parameter"]["Name"]
    for path, changed in shorn(answer, by=by):
        if path not in ("Parameter", "Parameter.Value"):
            continue
        with (
            answering(clients, ("ssm", "get_parameter", changed)),
            pytest.raises(UnavailableError, match=f"^SSM GetParameter {parameter}: the answer has no Parameter.Value$"),
        ):
            ImageSearch(clients, "1.33", NOW).find([AMISelectorTerm(ssm_parameter=parameter)])


@pytest.mark.parametrize("name", ["eks-describe-cluster", "eks-describe-cluster-ipv6", "eks-describe-cluster-creating"])
@pytest.mark.parametrize("by", ["absent", "empty", "null"])
def test_a_cluster_that_lacks_what_it_is_reached_by_is_one_line(name: str, by: str) -> None:
    """Nothing else that is missing keeps anybody from it."""
    for path, changed in shorn(read(name), by=by):
        lacks = path.partition(".")[2] in ("", "endpoint", "certificateAuthority", "certificateAuthority.data")
        if lacks or name.endswith("creating"):
            with pytest.raises(UnavailableError, match="prod"):
                auth.described("prod", 200, json.dumps(changed).encode())
        else:
            assert cluster_facts(auth.described("prod", 200, json.dumps(changed).encode())).endpoint


def test_an_answer_that_is_no_json_is_one_line() -> None:
    """As of a proxy that asks for a login."""
    with pytest.raises(UnavailableError, match="^EKS DescribeCluster prod: the answer is not JSON: <html>"):
        auth.described("prod", 200, b"<html>login</html>")


@pytest.mark.parametrize("by", ["absent", "empty", "null"])
@pytest.mark.parametrize(
    "name", ["create-fleet-ok", "create-fleet-partial-3-of-5", "create-fleet-ok-with-errors", "create-fleet-all-failed"]
)
def test_what_a_fleet_did_is_read_from_what_it_says(name: str, by: str) -> None:
    """Whatever an entry lacks, the instances of the others are ours."""
    answer, asked = read(name), request("c5a.2xlarge", capacity_type="spot")
    for path, changed in shorn(answer, by=by):
        ids = {one.instance_id for one in result(asked, changed, {}, {}).instances}
        given = {one for entry in changed.get("Instances") or () for one in entry.get("InstanceIds") or ()}
        assert ids == given, path


def test_an_instance_of_a_fleet_that_does_not_say_its_zone_is_asked_for(clients: Clients) -> None:
    """A claim finds its node by a provider ID that has the zone in it."""
    (instance,) = read("describe-instances")["Reservations"][0]["Instances"][:1]
    bare = {"Instances": [{"InstanceIds": [instance["InstanceId"]], "Lifecycle": "spot"}]}
    asked = request("c5a.2xlarge", capacity_type="spot")
    answer = {"Reservations": [{"Instances": [instance]}]}
    (completed,) = launched(clients, asked, ("create_fleet", bare), ("describe_instances", answer)).instances
    assert (completed.instance_type, completed.zone) == (
        instance["InstanceType"],
        instance["Placement"]["AvailabilityZone"],
    )


def test_an_instance_whose_zone_nobody_says_is_asked_for_again(clients: Clients) -> None:
    """The same call with the same token launches nothing more."""
    bare = {"Instances": [{"InstanceIds": ["i-0abc"], "InstanceType": "c5a.2xlarge"}]}
    answer = {"Reservations": [{"Instances": [{"InstanceId": "i-0abc"}]}]}
    asked = request("c5a.2xlarge", capacity_type="spot")
    with pytest.raises(
        UnavailableError, match="^EC2 CreateFleet: i-0abc has no InstanceType or no AvailabilityZone yet$"
    ):
        launched(clients, asked, ("create_fleet", bare), ("describe_instances", answer))


def test_a_type_that_ec2_does_not_describe_is_not_launched(clients: Clients) -> None:
    """The others are."""
    (m5,) = read("describe-instance-types")["InstanceTypes"][:1]
    types = {"InstanceTypes": [m5, {"InstanceType": "m6i.large", "MemoryInfo": {}}, {"Hypervisor": "nitro"}]}
    script = [
        ("describe_instance_types", types),
        ("create_launch_template", {}),
        ("create_fleet", read("create-fleet-ok")),
    ]
    with answering(clients, *(("ec2", method, answer) for method, answer in script)):
        asked = request("m5.large", "m7i.large", capacity_type="spot")
        assert len(creating_fleets(clients).launch(asked, FACTS).instances) == 1


def test_a_product_that_cannot_be_read_takes_no_other_with_it() -> None:
    """The price list is a text of JSON for each."""
    good, *_ = read("pricing-get-products")["PriceList"]
    told: list[str] = []
    text = good if isinstance(good, str) else json.dumps(good)
    document = json.loads(text)
    for _, changed in shorn(document, by="null"):
        assert on_demand_prices([json.dumps(changed), text], "USD", log=told.append)
    assert on_demand_prices(["no JSON", text], "USD", log=told.append)
    assert any(line.startswith("Pricing GetProducts: a product is left out") for line in told)
