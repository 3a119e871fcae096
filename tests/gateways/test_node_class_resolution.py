"""What a node class stands for, asked of AWS: once for all classes, anew after an upgrade, and what is refused."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse, HTTPHeaders
from botocore.stub import Stubber

from joinery.gateways.ec2.adapter import Ec2Cloud
from joinery.gateways.ec2.catalog.description import Description, PlacementGroupInfo
from joinery.gateways.ec2.gateway import Likely
from joinery.gateways.ec2.instancetypes.resolve import takes
from joinery.gateways.ec2.nodeclass.placement import PlacementGroup
from joinery.objects.errors import NotFoundError, UnavailableError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, PlacementGroupSelector
from joinery.objects.snapshot.offerings import InstanceType, LikelyLaunch
from simulator.awsserver.account import DISCOVERY, REGION, Account
from simulator.clock import Clock
from tests.gateways.eks import create_cluster

#: What EC2 says where a policy denies types (data/real/aws/create-fleet-unauthorized.json).
DENIES_TYPE = (
    "You are not authorized to perform this operation. User: arn:aws:sts::111122223333:assumed-role/a/b is not "
    "authorized to perform: ec2:RunInstances on resource: arn:aws:ec2:us-east-1:111122223333:instance/* with an "
    "explicit deny in a service control policy."
)
RESERVED = {"capacityReservationSelectorTerms": [{"tags": {"team": "a"}}]}


@pytest.fixture
def clock(account: Account) -> Clock:
    """The clock of the functions, in an account with a cluster of 1.33 and a role for its nodes."""
    create_cluster(account)
    return Clock()


def function(clock: Clock) -> Ec2Cloud:
    """A function that has asked nothing yet."""
    return Ec2Cloud("joinery", REGION, now=clock.now)


def node_class(name: str = "default", **spec: Any) -> EC2NodeClass:
    """A class that selects by the discovery tag, nobody has looked at."""
    wire = {
        "subnetSelectorTerms": [{"tags": DISCOVERY}],
        "securityGroupSelectorTerms": [{"tags": DISCOVERY}],
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": "nodes",
    }
    metadata = {"name": name, "uid": f"uid-{name}", "generation": 1}
    return EC2NodeClass.model_validate({"metadata": metadata, "spec": wire | spec})


def prepared(cloud: Ec2Cloud, known: EC2NodeClass) -> EC2NodeClass:
    """The class with the status that the function writes."""
    return known.model_copy(update={"status": cloud.prepare(known)})


def conditions(known: EC2NodeClass) -> dict[str, tuple[str, str, str]]:
    """Condition type to status, reason and message."""
    return {each.type: (each.status, each.reason, each.message) for each in known.status.conditions}


def test_a_placement_group_is_looked_up_and_its_partitions_are_labels(account: Account, clock: Clock) -> None:
    """By name or by id. Types that such a group does not take are not for sale."""
    account.placement_groups.append(
        {"GroupId": "pg-1", "GroupName": "rack", "Strategy": "partition", "PartitionCount": 2}
    )
    cloud, m5 = function(clock), Description("m5.large", placement_group_info=PlacementGroupInfo(("spread",)))
    for selector in ({"name": "rack"}, {"id": "pg-1"}):
        known = prepared(cloud, node_class(placementGroupSelector=selector))
        assert conditions(known)["PlacementGroupReady"][0] == "True"
        group = cloud._placement_groups.known(PlacementGroupSelector.model_validate(selector), cloud._lookups.recent())
        assert group == PlacementGroup("pg-1", "rack", "partition", 2)
        assert group.partition_numbers == ("1", "2")
        assert not takes(m5, group)
    missing = prepared(cloud, node_class("other", placementGroupSelector={"name": "none"}))
    assert conditions(missing)["Ready"][1] == "PlacementGroupNotFound"


def test_what_ec2_said_last_of_a_placement_group_is_good_while_it_does_not_answer(
    account: Account, clock: Clock
) -> None:
    """It is not asked again for a minute."""
    account.placement_groups.append({"GroupId": "pg-1", "GroupName": "rack", "Strategy": "spread"})
    cloud, selector = function(clock), PlacementGroupSelector(name="rack")
    before = cloud._placement_groups.known(selector, cloud._lookups.recent())
    clock.advance(timedelta(minutes=2))
    refuse(cloud, "ec2", "DescribePlacementGroups", "InternalError", "no answer")
    with counted(cloud) as calls:
        for _ in range(3):
            assert cloud._placement_groups.known(selector, cloud._lookups.recent()) == before
            clock.advance(timedelta(seconds=10))
    assert calls["DescribePlacementGroups"] <= 1


def upgrade(account: Account) -> None:
    """The cluster runs 1.34, and Amazon's images for it are newer."""
    eks: Any = boto3.client("eks")
    subnets = eks.describe_cluster(name="joinery")["cluster"]["resourcesVpcConfig"]["subnetIds"]
    eks.delete_cluster(name="joinery")
    arn = "arn:aws:iam::123456789012:role/eks"
    eks.create_cluster(name="joinery", version="1.34", roleArn=arn, resourcesVpcConfig={"subnetIds": subnets})
    account.seed_images("al2023@latest", "1.34", datetime(2026, 11, 1, tzinfo=UTC), release="-of-1.34")


@contextmanager
def counted(cloud: Ec2Cloud) -> Iterator[Counter[str]]:
    """How often each call of AWS is made inside the ``with``."""
    calls: Counter[str] = Counter()

    def count(model: Any, **_: Any) -> None:
        calls[model.name] += 1

    clients = [getattr(cloud._clients, name) for name in ("ec2", "eks", "iam", "ssm")]
    for client in clients:
        client.meta.events.register("before-call", count)
    yield calls
    for client in clients:
        client.meta.events.unregister("before-call", count)


def is_of_the_upgrade(known: EC2NodeClass) -> bool:
    """Whether the class's images are those of 1.34. They are all of one version."""
    (upgraded,) = {image.id.endswith("-of-1.34") for image in known.status.amis}
    return upgraded


def test_a_warm_function_sees_an_upgrade(account: Account, clock: Clock) -> None:
    """Within five minutes: the class's images, and what new nodes are told of their cluster."""
    warm = function(clock)
    before = prepared(warm, node_class())
    upgrade(account)
    clock.advance(timedelta(minutes=2))
    assert not is_of_the_upgrade(prepared(warm, before))
    clock.advance(timedelta(minutes=4))
    assert is_of_the_upgrade(prepared(warm, before))
    assert warm.facts.version == "1.34"


def test_images_do_not_go_back_where_two_functions_are_warm(account: Account, clock: Clock) -> None:
    """Nodes would drift to and fro: the one that has not seen the upgrade looks again before it changes the class."""
    first, second = function(clock), function(clock)
    known = prepared(first, node_class())
    assert prepared(second, known) == known
    upgrade(account)
    clock.advance(timedelta(minutes=6))
    known = prepared(first, known)
    assert is_of_the_upgrade(known)
    assert prepared(second, known).status.amis == known.status.amis


@pytest.mark.parametrize("after", [timedelta(seconds=10), timedelta(minutes=4)])
def test_what_another_function_wrote_is_looked_at_anew(account: Account, clock: Clock, after: timedelta) -> None:
    """It has described the cluster since, and this one remembers what it said a moment before."""
    warm = function(clock)
    known = prepared(warm, node_class())
    upgrade(account)
    clock.advance(after)
    known = prepared(function(clock), known)
    assert is_of_the_upgrade(known)
    assert is_of_the_upgrade(prepared(warm, known))


def test_launches_go_on_while_eks_does_not_answer(clock: Clock) -> None:
    """With what it said last. It is not asked again for a minute."""
    warm = function(clock)
    before = warm.facts
    clock.advance(timedelta(minutes=6))
    with Stubber(warm._clients.eks) as eks:
        for _ in range(2):
            eks.add_client_error("describe_cluster", "ThrottlingException", "slow down", http_status_code=400)
        assert (warm.facts, warm.facts) == (before, before)
        clock.advance(timedelta(minutes=2))
        assert warm.facts == before
        eks.assert_no_pending_responses()


def test_ten_classes_ask_a_dozen_times(clock: Clock) -> None:
    """In a cold function. What they have in common is asked once, and once more a minute later."""
    classes = [prepared(function(clock), node_class(f"class-{number}")) for number in range(10)]
    cold = function(clock)
    for _ in range(2):
        with counted(cold) as calls:
            assert [prepared(cold, known) for known in classes] == classes
        assert calls.total() <= 12, calls
        clock.advance(timedelta(minutes=2))


@pytest.mark.parametrize(
    ("client", "call", "condition", "spec"),
    [
        ("ec2", "DescribeSubnets", "SubnetsReady", {}),
        ("ec2", "DescribeSecurityGroups", "SecurityGroupsReady", {}),
        (
            "ec2",
            "DescribeImages",
            "AMIsReady",
            {"amiSelectorTerms": [{"id": "ami-al2023amd64standard"}], "amiFamily": "AL2023"},
        ),
        ("ssm", "GetParameter", "AMIsReady", {}),
        ("eks", "DescribeCluster", "AMIsReady", {}),
        ("iam", "InstanceProfile", "InstanceProfileReady", {}),
        ("ec2", "DescribeCapacityReservations", "CapacityReservationsReady", RESERVED),
    ],
)
def test_a_call_that_is_denied_is_a_condition(
    clock: Clock, client: str, call: str, condition: str, spec: dict[str, Any]
) -> None:
    """It names the call and what AWS says, the same each time. The class's other parts are looked at all the same.

    A class that was resolved before keeps what it had and stays Ready: see its reason.
    """
    known = prepared(function(clock), node_class(**spec))
    for tried, status in ((node_class(**spec), "False"), (known, "Unknown")):
        denied = _denied(function(clock), client, call, tried)
        assert conditions(denied)[condition][:2] == (status, f"{condition.removesuffix('Ready')}NotResolved")
        message = conditions(denied)[condition][2]
        assert "not authorized" in message
        assert "Encoded" not in message
        others = {name: each for name, each in conditions(known).items() if name not in (condition, "Ready")}
        assert others.items() <= conditions(denied).items()
        if status == "False":
            assert conditions(denied)["Ready"] == conditions(denied)[condition]
    assert conditions(denied)["Ready"] == conditions(known)["Ready"]
    assert denied.status.model_dump(exclude={"conditions"}) == known.status.model_dump(exclude={"conditions"})


def _denied(cloud: Ec2Cloud, client: str, call: str, known: EC2NodeClass) -> EC2NodeClass:
    """The class as it is where calls of that name are not allowed."""
    text = "You are not authorized to perform this operation. Encoded authorization failure message: x1Y-"
    refuse(cloud, client, call, "UnauthorizedOperation", text)
    return prepared(cloud, known)


def refuse(cloud: Ec2Cloud, client: str, call: str, code: str, text: str) -> None:
    """From now on AWS refuses calls of that name."""

    def answer(model: Any, **_: Any) -> tuple[Any, dict[str, Any]] | None:
        refusal = {"Error": {"Code": code, "Message": text}}
        return (AWSResponse("", 403, HTTPHeaders(), None), refusal) if call in model.name else None

    getattr(cloud._clients, client).meta.events.register("before-call", answer)


def test_a_security_group_of_another_vpc_is_said(clock: Clock) -> None:
    """EC2 refuses every launch: "belong to different networks"."""
    ec2 = boto3.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="theirs", Description="of another VPC", VpcId=vpc)["GroupId"]
    found = conditions(prepared(function(clock), node_class(securityGroupSelectorTerms=[{"id": group}])))
    assert found["SecurityGroupsReady"][:2] == ("False", "SecurityGroupsOfAnotherVPC")
    assert vpc in found["Ready"][2]


def test_a_cluster_that_is_not_there_is_said(clock: Clock) -> None:
    """Of a class with an alias. Launches say it, too."""
    cloud = Ec2Cloud("absent", REGION, now=clock.now)
    assert conditions(prepared(cloud, node_class()))["AMIsReady"][:2] == ("False", "AMIsNotResolved")
    with pytest.raises(NotFoundError, match="absent"):
        _ = cloud.facts


@pytest.mark.parametrize(
    ("call", "code", "text", "reason"),
    [
        ("CreateLaunchTemplate", "UnauthorizedOperation", "no", "CreateLaunchTemplateAuthCheckFailed"),
        ("CreateFleet", "UnauthorizedOperation", "no", "CreateFleetAuthCheckFailed"),
        ("RunInstances", "UnauthorizedOperation", "no", "RunInstancesAuthCheckFailed"),
        ("RunInstances", "InvalidGroup.NotFound", "The security group does not exist", "RunInstancesDryRunFailed"),
        ("CreateLaunchTemplate", "InvalidUserData.Malformed", "limited to 16384 bytes", "UserDataSizeLimitExceeded"),
        ("RunInstances", "UnauthorizedOperation", DENIES_TYPE, ""),
        ("CreateFleet", "UnauthorizedOperation", DENIES_TYPE.replace("a service control", "an identity-based"), ""),
        (
            "RunInstances",
            "UnauthorizedOperation",
            DENIES_TYPE.replace(":instance/", ":subnet/"),
            "RunInstancesAuthCheckFailed",
        ),
        ("RunInstances", "Unsupported", "m5.large is not supported in your requested Availability Zone", ""),
    ],
)
def test_what_a_launch_would_be_refused_for_is_said_before(
    clock: Clock, call: str, code: str, text: str, reason: str
) -> None:
    """By dry runs (Karpenter for AWS, nodeclass/validation). What EC2 says of the tried type alone counts for nothing.

    As soon as the right is there, the class is ready.
    """
    cloud = function(clock)
    refuse(cloud, "ec2", call, code, text)
    found = prepared(cloud, node_class())
    expected = ("False", reason) if reason else ("True", "ValidationSucceeded")
    assert conditions(found)["ValidationSucceeded"][:2] == expected
    assert conditions(found)["Ready"][0] == expected[0]
    assert conditions(prepared(function(clock), found))["Ready"][0] == "True"
    assert boto3.client("ec2").describe_launch_templates()["LaunchTemplates"] == []


def test_the_dry_run_says_how_instances_ask_for_metadata(clock: Clock) -> None:
    """As the template does: policies look at the call (Karpenter for AWS, issue 9018)."""
    cloud, calls = function(clock), list[dict[str, Any]]()
    events = cloud._clients.ec2.meta.events
    events.register("provide-client-params.ec2.RunInstances", lambda params, **_: calls.append(params))
    prepared(cloud, node_class(metadataOptions={"httpTokens": "required"}))
    assert [call["MetadataOptions"]["HttpTokens"] for call in calls] == ["required"]


def test_the_dry_run_names_what_a_nodepool_would_launch(clock: Clock) -> None:
    """Policies deny by type and tenancy. It has the image that the type boots; a common type stands in for none."""
    graviton = InstanceType("c7g.large", {labels.ARCH: ("arm64",)}, {}, {}, ())
    calls = list[Any]()

    def fleet(params: dict[str, Any], **_: Any) -> None:
        (config,) = params["LaunchTemplateConfigs"]
        name = config["LaunchTemplateSpecification"]["LaunchTemplateName"]
        ec2 = boto3.client("ec2")
        (version,) = ec2.describe_launch_template_versions(LaunchTemplateName=name)["LaunchTemplateVersions"]
        data = version["LaunchTemplateData"]
        (kind,) = {override["InstanceType"] for override in config["Overrides"]}
        calls.append((kind, data["ImageId"], data["Placement"]["Tenancy"]))

    def as_likely(launch: LikelyLaunch | None) -> Likely:
        return lambda _: launch

    for number, launch in enumerate((LikelyLaunch(graviton, "dedicated"), None)):
        cloud = function(clock)
        events = cloud._clients.ec2.meta.events
        events.register("provide-client-params.ec2.CreateFleet", fleet)
        events.register(
            "provide-client-params.ec2.RunInstances", lambda params, **_: calls.append(params["InstanceType"])
        )
        cloud.prepare(node_class(f"class-{number}"), as_likely(launch))
    graviton_fleet, graviton_run, common_fleet, common_run = calls
    assert graviton_fleet == ("c7g.large", "ami-al2023arm64standard", "dedicated")
    assert common_fleet == ("m5.large", "ami-al2023amd64standard", "default")
    assert (graviton_run, common_run) == ("c7g.large", "m5.large")


def test_dry_runs_may_be_switched_off(clock: Clock) -> None:
    """Nothing is tried, and the class is ready."""
    cloud = Ec2Cloud("joinery", REGION, now=clock.now, dry_runs=False)
    refuse(cloud, "ec2", "CreateFleet", "UnauthorizedOperation", "no")
    assert _tries(cloud, node_class()) == 0


def test_an_instance_profile_that_is_not_there_is_said(clock: Clock) -> None:
    """Of a class that names one, without asking IAM, which may be out of reach. It is tried again after a minute."""
    cloud, named = function(clock), node_class()
    named = named.model_copy(update={"spec": named.spec.model_copy(update={"role": "", "instance_profile": "mine"})})
    with counted(cloud) as calls:
        found = conditions(prepared(cloud, named))
    assert found["ValidationSucceeded"][:2] == ("False", "InstanceProfileNotFound")
    assert "mine" in found["Ready"][2]
    assert not any("Profile" in call for call in calls)
    boto3.client("iam").create_instance_profile(InstanceProfileName="mine")
    clock.advance(timedelta(minutes=2))
    assert conditions(prepared(cloud, named))["Ready"][0] == "True"


def test_a_class_that_names_a_role_now_gives_back_the_profile_that_it_named_before(clock: Clock) -> None:
    """Its owner may remove that. Ours are listed by their path, and theirs are not among them.

    https://github.com/aws/karpenter-provider-aws/issues/9028
    """
    iam, by_role = boto3.client("iam"), node_class()
    iam.create_instance_profile(InstanceProfileName="theirs")
    iam.add_role_to_instance_profile(InstanceProfileName="theirs", RoleName="nodes")
    status = by_role.status.model_copy(update={"instance_profile": "theirs"})
    cloud = function(clock)
    # moto lists them all, whatever their path.
    refuse(cloud, "iam", "ListInstanceProfiles", "AccessDenied", "no")
    found = prepared(cloud, by_role.model_copy(update={"status": status}))
    assert conditions(found)["InstanceProfileReady"][0] == "True"
    assert found.status.instance_profile not in ("", "theirs")


def test_a_new_instance_profile_is_waited_for(clock: Clock) -> None:
    """EC2 sees it seconds later than IAM has made it, and would refuse launches until then."""
    cloud = function(clock)
    text = "Value (p) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
    refuse(cloud, "ec2", "RunInstances", "InvalidParameterValue", text)
    with pytest.raises(UnavailableError, match="does not see instance profile"):
        cloud.prepare(node_class())


def test_a_class_is_tried_once_and_after_half_an_hour_again(clock: Clock) -> None:
    """A function that is cold believes what the class says. Where the class has changed, or a launch was refused, it is
    tried at once.
    """
    known = prepared(function(clock), node_class())
    cold = function(clock)
    assert _tries(cold, known) == 0
    clock.advance(timedelta(minutes=31))
    assert (_tries(cold, known), _tries(cold, known)) == (1, 0)
    tagged = known.spec.model_copy(update={"tags": {"team": "a"}})
    assert _tries(cold, known.model_copy(update={"spec": tagged})) == 1


def _tries(cloud: Ec2Cloud, known: EC2NodeClass) -> int:
    with counted(cloud) as calls:
        assert conditions(prepared(cloud, known))["Ready"][0] == "True"
    assert calls["CreateFleet"] == calls["RunInstances"]
    return calls["RunInstances"]
