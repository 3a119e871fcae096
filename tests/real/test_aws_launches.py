"""Every real answer of CreateFleet: what a launch has brought, and what EC2 was out of."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from joinery.controllers.launching.fleet_calls import outcome_of
from joinery.gateways.aws import Clients
from joinery.gateways.ec2.gateway import LaunchRequest, LaunchResult, Override, capacity_pools
from joinery.gateways.ec2.launch.addresses import Addresses
from joinery.gateways.ec2.launch.create_fleet import CreateFleet
from joinery.gateways.ec2.launch.facts import ClusterFacts
from joinery.gateways.ec2.launch.launch_templates import LaunchTemplates
from joinery.objects.codes import VCPU_QUOTAS
from joinery.objects.errors import CapacityError, ConfigurationError, UnavailableError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.snapshot.offerings import ALL_SPOT, OfferingKey, Reservation
from simulator.clock import Clock
from tests.real.answers import ERRORS, REAL, answering, node_class, read

FACTS = ClusterFacts(name="prod", endpoint="https://eks", ca="Q0E=", service_cidr="172.20.0.0/16", version="1.33")


def request(*kinds: str, capacity_type: str, count: int = 1) -> LaunchRequest:
    """A launch of these types in three zones."""
    pools = tuple(Override(kind, f"us-east-1{zone}", 0.031, 58) for kind in kinds for zone in "abc")
    return LaunchRequest(
        token="t-1", count=count, node_pool="general", node_class=node_class(), capacity_type=capacity_type,
        overrides=pools, labels={},
    )  # fmt: skip


def creating_fleets(clients: Clients) -> CreateFleet:
    """What launches for the cluster of the facts."""
    now = Clock().now
    return CreateFleet(clients, now, LaunchTemplates(clients, FACTS.name, now))


def launched(clients: Clients, asked: LaunchRequest, *answers: tuple[str, Any]) -> LaunchResult:
    """What comes of a launch, given what EC2 answers once it has described the types and taken the template.

    Subnets are described before there is a template.
    """
    m5 = read("describe-instance-types")["InstanceTypes"][0]
    names = dict.fromkeys(pool.instance_type for pool in asked.overrides)
    types = {"InstanceTypes": [{**m5, "InstanceType": name} for name in names]}
    about_subnets = [answer for answer in answers if answer[0] == "describe_subnets"]
    others = [answer for answer in answers if answer not in about_subnets]
    script = [("describe_instance_types", types), *about_subnets, ("create_launch_template", {}), *others]
    with answering(clients, *(("ec2", method, answer) for method, answer in script)):
        return creating_fleets(clients).launch(asked, FACTS)


#: File to: what is launched (type and zone), which pools are out, and the errors that are about something else.
FLEETS: dict[str, tuple[LaunchRequest, list[str], list[str], list[str]]] = {
    "create-fleet-ok": (request("c5a.2xlarge", capacity_type="spot"), ["c5a.2xlarge 1a spot"], [], []),
    "create-fleet-ok-with-errors": (
        request("c5a.2xlarge", "c6a.2xlarge", "m5.2xlarge", capacity_type="spot"),
        ["c5a.2xlarge 1a spot"],
        ["c6a.2xlarge 1a spot", "m5.2xlarge 1b spot"],
        [],
    ),
    "create-fleet-partial-3-of-5": (
        request("c5a.2xlarge", "c6a.2xlarge", capacity_type="spot", count=5),
        ["c5a.2xlarge 1a spot", "c5a.2xlarge 1a spot", "c6a.2xlarge 1c spot"],
        ["c5a.2xlarge 1b spot"],
        [],
    ),
    "create-fleet-all-failed": (
        request("g5.xlarge", capacity_type="on-demand"),
        [],
        ["g5.xlarge 1a on-demand", "g5.xlarge 1b on-demand", "g5.xlarge 1c on-demand"],
        [],
    ),
    "create-fleet-capacity-block-full": (
        request("p5.48xlarge", capacity_type="reserved"), [], ["p5.48xlarge 1a reserved"], [],
    ),
    "create-fleet-error-without-overrides": (
        request("m5.large", capacity_type="on-demand"), [], [], ["InvalidParameterValue"],
    ),
    "create-fleet-limits-and-config": (
        request("m5.large", capacity_type="on-demand"),
        [],
        ["m5.large 1a on-demand", "m5.large 1b on-demand", "m5.large 1c on-demand"],
        ["InternalError", "InvalidFleetConfiguration", "RequestLimitExceeded"],
    ),
    "create-fleet-not-sold-there": (
        request("r5d.4xlarge", capacity_type="on-demand"),
        [],
        ["r5d.4xlarge 1a on-demand", "r5d.4xlarge 1b on-demand", "r5d.4xlarge 1c on-demand"],
        [],
    ),
    "create-fleet-spot-limits": (
        request("m5.large", capacity_type="spot"),
        [],
        ["m5.large 1a spot", "m5.large 1b spot", "m5.large 1c spot"],
        [],
    ),
    "create-fleet-unauthorized": (
        request("m5.large", capacity_type="on-demand"), [], [], ["UnauthorizedOperation"],
    ),
}  # fmt: skip


def shown(*place: str) -> str:
    """``m5.large 1a spot``."""
    kind, zone, capacity_type = place
    return f"{kind} {zone.removeprefix('us-east-')} {capacity_type}"


@pytest.mark.parametrize("name", sorted(FLEETS))
def test_a_launch_is_read_as_what_it_brought_and_what_was_out(clients: Clients, name: str) -> None:
    """Instances and errors come in one answer;
    quotas and full subnets are reasons to try another pool, mistakes are not.
    """
    asked, instances, out_of, problems = FLEETS[name]
    result = launched(clients, asked, ("create_fleet", read(name)))
    assert [shown(i.instance_type, i.zone, i.capacity_type) for i in result.instances] == instances
    without_capacity = {
        shown(f.pool.instance_type, f.pool.zone, f.pool.capacity_type) for f in result.failures if f.is_capacity
    }
    assert sorted(without_capacity) == out_of
    assert sorted({f.code for f in result.failures if not f.is_capacity}) == problems


def test_every_launch_has_a_row() -> None:
    """No answer is left out."""
    assert {path.stem for path in REAL.glob("create-fleet-*.json")} == set(FLEETS)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("InsufficientInstanceCapacity", "no"),
        ("VcpuLimitExceeded", "no"),
        ("MaxSpotInstanceCountExceeded", "no"),
        ("InvalidCapacityReservationId.NotFound", "The capacity reservation ID 'cr-0a1b' was not found."),
        ("InvalidFleetConfiguration", "Your requested instance type (null) is not supported in your requested "
         "Availability Zone (us-east-1-dfw-1a)."),
    ],
)  # fmt: skip
def test_a_call_refused_for_want_of_capacity_names_all_its_pools(clients: Clients, code: str, message: str) -> None:
    """EC2 may also say so for the whole call: then none of what was asked for is asked for again at once. A quota is
    used up for all that counts against it.
    """
    refusal = ERRORS["ec2:CreateFleet InsufficientInstanceCapacity"]
    refusal = {**refusal, "Error": {"Code": code, "Message": message}}
    asked = request("m5.large", capacity_type="spot")
    with pytest.raises(CapacityError, match=code) as caught:
        launched(clients, asked, ("create_fleet", refusal))
    pools = {OfferingKey("m5.large", f"us-east-1{zone}", "spot") for zone in "abc"}
    of_quota = {OfferingKey("", "", "spot", scope="quota/standard")}
    assert caught.value.pools == (of_quota if code in VCPU_QUOTAS else pools)


def test_a_call_names_the_cheapest_of_many_templates(clients: Clients) -> None:
    """At most fifty (EC2 API CreateFleet, ``LaunchTemplateConfigs``): 55 reservations would make 55. What EC2 was not
    asked for is not called out of stock."""
    pools = tuple(
        Override("m5.large", f"us-east-1{number:02}", 1 - number / 100, 58, Reservation(f"cr-{number}"))
        for number in range(55)
    )
    asked = replace(request(capacity_type="reserved"), overrides=pools)
    m5 = {"InstanceTypes": [{**read("describe-instance-types")["InstanceTypes"][0], "InstanceType": "m5.large"}]}
    refusal = ERRORS["ec2:CreateFleet InsufficientInstanceCapacity"]
    script = [
        ("ec2", "describe_instance_types", m5),
        *[("ec2", "create_launch_template", {})] * 50,
        ("ec2", "create_fleet", refusal),
    ]
    with answering(clients, *script), pytest.raises(CapacityError) as caught:
        creating_fleets(clients).launch(asked, FACTS)
    assert {pool.reservation for pool in caught.value.pools} == {f"cr-{number}" for number in range(5, 55)}


FULL = "InsufficientFreeAddressesInSubnet"


def two_subnets_in_the_first_zone(asked: LaunchRequest) -> LaunchRequest:
    """The class has another subnet in the zone 1a, with fewer free addresses."""
    document = asked.node_class.model_dump(by_alias=True)
    document["status"]["subnets"].append({"id": "subnet-2nd", "zone": "us-east-1a"})
    return replace(asked, node_class=EC2NodeClass.model_validate(document))


def free(**addresses: int) -> tuple[str, dict[str, Any]]:
    """What EC2 says of the free addresses of the class's subnets: two in the zone 1a, and one in each of two others."""
    first, other, third = (subnet.id for subnet in node_class().status.subnets)
    ids = {"first": first, "second": "subnet-2nd", "other": other, "third": third}
    return "describe_subnets", {
        "Subnets": [{"SubnetId": ids[name], "AvailableIpAddressCount": addresses.get(name, 1000)} for name in ids]
    }


def answer_of(*launched_in: str, full: str = "") -> dict[str, Any]:
    """One instance in each of these subnets, and no address left in that one."""

    def where(subnet: str) -> dict[str, Any]:
        return {"Overrides": {"InstanceType": "m5.large", "SubnetId": subnet}}

    instances = [
        {"LaunchTemplateAndOverrides": where(subnet), "Lifecycle": "spot", "InstanceIds": [f"i-{n}-{subnet[-3:]}"]}
        for n, subnet in enumerate(launched_in)
    ]
    error = {"LaunchTemplateAndOverrides": where(full), "Lifecycle": "spot", "ErrorCode": FULL, "ErrorMessage": "none"}
    return {"FleetId": "fleet-1", "Instances": instances, "Errors": [error] if full else []}


def test_a_launch_is_split_where_a_subnet_has_addresses_for_some_of_its_nodes(clients: Clients) -> None:
    """Ten nodes of 58 pods fit into the second, then one into the first; the last call is for all that is left."""
    first = node_class().status.subnets[0].id
    asked = two_subnets_in_the_first_zone(request("m5.large", capacity_type="spot", count=14))
    asked = replace(asked, overrides=asked.overrides[:1])
    served = [["subnet-2nd"] * 10, [first], ["subnet-2nd"] * 3]
    fleets = (("create_fleet", answer_of(*subnets)) for subnets in served)
    assert len(launched(clients, asked, free(first=60, second=600), *fleets).instances) == 14


@pytest.mark.parametrize("second", ["serves", "is full", "is refused"])
def test_where_a_subnet_is_full_the_rest_is_launched_in_another_of_its_zone(clients: Clients, second: str) -> None:
    """The subnet alone is full, and stays so for whoever launches next. What was launched is never forgotten."""
    first = node_class().status.subnets[0].id
    asked = two_subnets_in_the_first_zone(request("m5.large", capacity_type="spot", count=3))
    more = {
        "serves": answer_of("subnet-2nd", "subnet-2nd"),
        "is full": answer_of("subnet-2nd", full="subnet-2nd"),
        "is refused": ERRORS["ec2:CreateFleet InsufficientInstanceCapacity"],
    }[second]
    fleets = (("create_fleet", answer_of(first, full=first)), ("create_fleet", more))
    result = launched(clients, asked, free(first=600, second=60), *fleets)
    assert len(result.instances) == {"serves": 3, "is full": 2, "is refused": 1}[second]
    assert {i.zone for i in result.instances} == {"us-east-1a"}
    full = {
        OfferingKey("", "us-east-1a", "", scope=subnet) for subnet in (first, "subnet-2nd")[: 1 + (second == "is full")]
    }
    assert capacity_pools(result.failures) == full


def test_a_zone_without_another_subnet_is_out_though_its_neighbour_zone_serves(clients: Clients) -> None:
    """The second call passes over both full subnets, and only one of their zones has more."""
    first, other, _ = (subnet.id for subnet in node_class().status.subnets)
    both = answer_of(full=first)
    both["Errors"] += answer_of(full=other)["Errors"]
    asked = two_subnets_in_the_first_zone(request("m5.large", capacity_type="spot", count=1))
    fleets = (("create_fleet", both), ("create_fleet", answer_of("subnet-2nd")))
    result = launched(clients, asked, free(first=600, second=60), *fleets)
    assert (len(result.instances), {f.scope for f in capacity_pools(result.failures)}) == (1, {first, other})


def test_a_zone_that_is_left_out_is_not_called_out_of_stock(clients: Clients) -> None:
    """Its subnet has no addresses for a whole node, so EC2 was asked for the others alone."""
    asked = request("m5.large", capacity_type="spot")
    refusal = ERRORS["ec2:CreateFleet InsufficientInstanceCapacity"]
    with pytest.raises(CapacityError) as caught:
        launched(clients, asked, free(other=57), ("create_fleet", refusal))
    assert {pool.zone for pool in caught.value.pools} == {"us-east-1a", "us-east-1c"}


def test_a_refusal_for_lack_of_addresses_is_about_the_subnet_that_was_asked(clients: Clients) -> None:
    """The call went to the subnet with the most free addresses, which is not the first of the status."""
    asked = two_subnets_in_the_first_zone(request("m5.large", capacity_type="spot"))
    asked = replace(asked, overrides=asked.overrides[:1])
    refusal = ERRORS["ec2:CreateFleet InsufficientInstanceCapacity"] | {"Error": {"Code": FULL, "Message": "none"}}
    with pytest.raises(CapacityError) as caught:
        launched(clients, asked, free(first=60, second=600), ("create_fleet", refusal))
    assert caught.value.pools == {OfferingKey("", "us-east-1a", "", scope="subnet-2nd")}


def test_a_subnet_that_was_full_lately_is_passed_over(clients: Clients) -> None:
    """Another run found it full; EC2 need not say so again."""
    first = node_class().status.subnets[0].id
    asked = two_subnets_in_the_first_zone(request("m5.large", capacity_type="spot"))
    asked = replace(asked, overrides=asked.overrides[:1], full_subnets=frozenset({first}))
    with answering(clients):
        places = Addresses(lambda names: {}, Clock().now).choose(asked, ipv6=False)
    assert places.subnets["us-east-1a"] == "subnet-2nd"


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        ("InstanceLimitExceeded", "no", OfferingKey("m5.large", "", "spot")),
        ("VolumeTypeNotAvailableInZone", "no", OfferingKey("", "us-east-1a", "", scope="class/default/0")),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "no", ALL_SPOT),
        ("InsufficientInstanceCapacity", "no", OfferingKey("m5.large", "us-east-1a", "spot")),
    ],
)
def test_a_shortage_is_as_wide_as_its_code_says(
    clients: Clients, code: str, message: str, expected: OfferingKey
) -> None:
    """EC2 API, error codes: a limit of a type's instances, a zone without the class's disks, no spot at all."""
    answer = answer_of(full=node_class().status.subnets[0].id)
    answer["Errors"][0] |= {"ErrorCode": code, "ErrorMessage": message}
    result = launched(clients, request("m5.large", capacity_type="spot"), ("create_fleet", answer))
    assert capacity_pools(result.failures) == {expected}


def test_a_full_subnet_that_has_no_neighbour_is_not_asked_again(clients: Clients) -> None:
    """Nor is one of which enough was launched elsewhere."""
    first, other, _ = (subnet.id for subnet in node_class().status.subnets)
    alone = request("m5.large", capacity_type="spot", count=2)
    result = launched(clients, alone, ("create_fleet", answer_of(other, full=first)))
    assert (len(result.instances), [f.code for f in result.failures]) == (1, [FULL])
    assert [f.pool.zone for f in result.failures] == ["us-east-1a"]
    enough = two_subnets_in_the_first_zone(replace(alone, count=1))
    result = launched(clients, enough, free(first=600, second=60), ("create_fleet", answer_of(other, full=first)))
    assert (len(result.instances), [f.code for f in result.failures]) == (1, [FULL])


@pytest.mark.parametrize(
    ("said", "pools"),
    [
        ({"InstanceType": "m5.large"}, {("m5.large", "a"), ("m5.large", "b"), ("m5.large", "c")}),
        ({"AvailabilityZone": "us-east-1b"}, {("m5.large", "b"), ("m7i.large", "b")}),
        ({"InstanceType": "m7i.large", "SubnetId": "subnet-0a1b2c3d4e5f60001"}, {("m7i.large", "a")}),
    ],
)
def test_want_of_capacity_is_about_every_pool_that_may_be_meant(
    clients: Clients, said: dict[str, str], pools: set[tuple[str, str]]
) -> None:
    """What an entry does not say may be any: a pool that nobody knows is left out of no plan."""
    answer = read("create-fleet-error-without-overrides")
    answer["Errors"][0] |= {
        "ErrorCode": "UnfulfillableCapacity",
        "LaunchTemplateAndOverrides": {"Overrides": said},
    }
    result = launched(clients, request("m5.large", "m7i.large", capacity_type="spot"), ("create_fleet", answer))
    assert {(f.pool.instance_type, f.pool.zone[-1:]) for f in result.failures} == pools


def test_want_of_capacity_without_a_pool_is_about_all_of_them(clients: Clients) -> None:
    """An error may name no override."""
    answer = read("create-fleet-error-without-overrides")
    answer["Errors"][0]["ErrorCode"] = "UnfulfillableCapacity"
    result = launched(clients, request("m5.large", capacity_type="spot"), ("create_fleet", answer))
    assert {(f.pool.instance_type, f.pool.zone, f.is_capacity) for f in result.failures} == {
        ("m5.large", f"us-east-1{zone}", True) for zone in "abc"
    }


@pytest.mark.parametrize("code", ["InvalidParameterValue", "RequestLimitExceeded"])
def test_a_fleet_that_got_less_for_another_reason_is_no_want_of_capacity(clients: Clients, code: str) -> None:
    """EC2 says UnfulfillableCapacity as well (karpenter-provider-aws issues 3051, 8923). Believed of all pools, one
    class's mistake, or a second of throttling, would keep every class from them for minutes.
    """
    answer = answer_of(full=node_class().status.subnets[0].id)
    answer["Errors"][0] |= {"ErrorCode": code, "ErrorMessage": "no"}
    answer["Errors"].append({"ErrorCode": "UnfulfillableCapacity", "ErrorMessage": "Unable to fulfill capacity"})
    result = launched(clients, request("m5.large", capacity_type="spot"), ("create_fleet", answer))
    assert capacity_pools(result.failures) == set()
    assert outcome_of(result, Clock().now()).problem == f"{code}: no"


def test_types_that_no_image_boots_are_the_users_mistake(clients: Clients) -> None:
    """Other pools would not help, so it is no lack of capacity: the class has to select other images."""
    asked = request("m5.large", capacity_type="spot")
    arm64 = [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]
    status = {**node_class().status.model_dump(by_alias=True), "amis": [{"id": "ami-1", "requirements": arm64}]}
    only_arm64 = EC2NodeClass.model_validate({**node_class().model_dump(by_alias=True), "status": status})
    m5 = read("describe-instance-types")["InstanceTypes"][0]
    script = [("ec2", "describe_instance_types", {"InstanceTypes": [m5]})]
    with answering(clients, *script), pytest.raises(ConfigurationError, match="default: no image boots"):
        creating_fleets(clients).launch(replace(asked, node_class=only_arm64), FACTS)


def test_a_template_that_is_there_is_used(clients: Clients) -> None:
    """Another run made it in the meantime."""
    taken = ERRORS["ec2:CreateLaunchTemplate InvalidLaunchTemplateName.AlreadyExistsException"]
    m5 = read("describe-instance-types")["InstanceTypes"][0]
    script = [("describe_instance_types", {"InstanceTypes": [m5]}), ("create_launch_template", taken)]
    script.append(("create_fleet", read("create-fleet-ok")))
    with answering(clients, *(("ec2", method, answer) for method, answer in script)):
        asked = request("m5.large", capacity_type="spot")
        assert len(creating_fleets(clients).launch(asked, FACTS).instances) == 1


GONE = {
    "Code": "InvalidLaunchTemplateName.NotFoundException",
    "Message": "The specified launch template does not exist.",
}
NO_TEMPLATE = {"Error": GONE, "ResponseMetadata": {"HTTPStatusCode": 400}}


def test_a_template_that_is_gone_for_one_pool_is_made_again_by_the_next_call(clients: Clients) -> None:
    """EC2 tells of it as of any other failure of a pool; a warm function would go on without it for ever."""
    error = {"ErrorCode": GONE["Code"], "ErrorMessage": GONE["Message"], "Lifecycle": "spot"}
    where = {"Overrides": {"InstanceType": "m5.large", "AvailabilityZone": "us-east-1a"}}
    m5 = read("describe-instance-types")["InstanceTypes"][0]
    script = [
        ("describe_instance_types", {"InstanceTypes": [m5]}),
        ("create_launch_template", {}),
        ("create_fleet", {"Errors": [{"LaunchTemplateAndOverrides": where, **error}]}),
        ("create_launch_template", {}),
        ("create_fleet", read("create-fleet-ok")),
    ]
    fleets, asked = creating_fleets(clients), request("m5.large", capacity_type="spot")
    with answering(clients, *(("ec2", method, answer) for method, answer in script)):
        assert not fleets.launch(asked, FACTS).instances
        assert len(fleets.launch(asked, FACTS).instances) == 1


def test_a_template_that_ec2_does_not_see_yet_is_waited_for(clients: Clients) -> None:
    """It was made a moment ago, so nobody has anything to mend."""
    fleets = [("create_fleet", NO_TEMPLATE), ("create_launch_template", {}), ("create_fleet", NO_TEMPLATE)]
    with pytest.raises(UnavailableError, match="launch templates are not seen yet"):
        launched(clients, request("m5.large", capacity_type="spot"), *fleets)


def test_an_instance_that_ec2_does_not_know_yet_is_asked_for_again(clients: Clients) -> None:
    """CreateFleet has launched it and leaves its type out, and DescribeInstances is a moment behind."""
    bare = {"Instances": [{"InstanceIds": ["i-0abc"]}]}
    unknown = ERRORS["ec2:DescribeInstances InvalidInstanceID.NotFound"]
    answers = (("create_fleet", bare), ("describe_instances", unknown))
    with pytest.raises(UnavailableError, match="^EC2 CreateFleet: i-0abc has no InstanceType"):
        launched(clients, request("m5.large", capacity_type="spot"), *answers)


def test_a_token_that_was_used_gives_what_it_has_launched(clients: Clients) -> None:
    """The request has changed since; the instances are those of the first one, without what is gone."""
    refused = ERRORS["ec2:CreateFleet IdempotentParameterMismatch"]
    answers = (("create_fleet", refused), ("describe_instances", read("describe-instances")))
    result = launched(clients, request("m5.large", capacity_type="spot"), *answers)
    assert len(result.instances) == 5


@pytest.mark.parametrize("says_when", [True, False])
@pytest.mark.parametrize("listed", [{"Reservations": []}, read("describe-instances")], ids=["none", "some"])
def test_what_a_lost_answer_has_not_launched_is_asked_anew_after_a_minute(
    clients: Clients, listed: dict[str, Any], *, says_when: bool
) -> None:
    """DescribeInstances shows what is new late, or leaves some out: to ask at once might buy it a second time.

    From when they were launched, or where none is seen, or none says when, from when this is met.
    """
    clock, refused = Clock(), ERRORS["ec2:CreateFleet IdempotentParameterMismatch"]
    found = [instance for reservation in listed["Reservations"] for instance in reservation["Instances"]]
    when = {"LaunchTime": clock.now()} if says_when else {}
    bare = [{key: value for key, value in instance.items() if key != "LaunchTime"} for instance in found]
    listed = {"Reservations": [{"Instances": [each | when for each in bare]}]}
    fleets = CreateFleet(clients, clock.now, LaunchTemplates(clients, FACTS.name, clock.now))
    asked = replace(request("m5.large", capacity_type="spot"), count=9)
    types = {"InstanceTypes": read("describe-instance-types")["InstanceTypes"][:1]}
    types["InstanceTypes"][0]["InstanceType"] = "m5.large"
    first = [("describe_instance_types", types), ("create_launch_template", {})]
    again = [("create_fleet", refused), ("describe_instances", listed)]
    with answering(clients, *(("ec2", method, answer) for method, answer in [*first, *again, *again])):
        with pytest.raises(UnavailableError, match="not all seen yet"):
            fleets.launch(asked, FACTS)
        clock.advance(timedelta(minutes=1))
        launched_before = fleets.launch(asked, FACTS)
    assert len(launched_before.instances) == (5 if found else 0)
    outcome = outcome_of(launched_before, clock.now())
    assert (bool(outcome.problem), outcome.shortage) == (True, "")
