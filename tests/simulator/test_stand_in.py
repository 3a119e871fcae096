"""How the stand-in of EC2 behaves where EC2 is not at one's wish. Each test names the page that says so of EC2."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from joinery.decisions.interruption.notice import Notice, NoticeKind, parse
from joinery.gateways.ec2.gateway import LaunchRequest, LaunchResult, Override
from joinery.objects.errors import UnavailableError
from joinery.objects.karpenter import labels
from joinery.objects.snapshot.offerings import OfferingKey
from simulator import builders
from simulator.actors.base import Stage
from simulator.actors.ec2 import Ec2
from simulator.awsserver.account import REGION, Account, moto
from simulator.awsserver.guard import guarded
from simulator.cloud.cloud import STOPS_IN
from simulator.cloud.spot_prices import SpotPrices
from simulator.cloud.throttling import Throttle
from simulator.engine import Engine
from simulator.world import World
from tools.cloudformation import Stack
from tools.roles import statements_of
from tools.template import ROOT

POOL = OfferingKey("m7a.large", "us-east-1a", labels.SPOT)
HOUR = timedelta(hours=1)


def launch(world: World, token: str, count: int = 1) -> LaunchResult:
    """So many instances of one pool."""
    override = Override(POOL.instance_type, POOL.zone, 0.05, 29)
    request = LaunchRequest(
        token=token, count=count, node_pool="default", node_class=builders.node_class(), capacity_type=labels.SPOT,
        overrides=(override,), labels={},
    )  # fmt: skip
    return world.cloud.launch(request)


def codes(result: LaunchResult) -> list[str]:
    """Why EC2 launched less."""
    return [failure.code for failure in result.failures]


def test_spot_prices_move_slowly_and_never_above_the_price_on_demand(world: World) -> None:
    """By long-term trends; an instance costs what its pool costs at the time (EC2 User Guide, "Spot Instances")."""
    world.cloud.spot_prices = SpotPrices(seed=3)
    (instance,) = launch(world, "a").instances
    cost, before = world.cloud.price(instance.instance_id), world.cloud.catalog()
    world.clock.advance(HOUR)
    after = world.cloud.catalog()
    changes = []
    most = {(o.instance_type, o.zone): o.price for o in after.offerings if o.capacity_type == labels.ON_DEMAND}
    for old, new in zip(before.offerings, after.offerings, strict=True):
        if new.capacity_type == labels.SPOT:
            changes.append(abs(new.price / old.price - 1))
            assert new.price <= most[new.instance_type, new.zone]
        else:
            assert new == old
    assert 0 < max(changes) < 0.15
    assert world.cloud.price(instance.instance_id) != cost


def test_whoever_asks_too_often_is_refused_until_there_are_tokens_again(world: World) -> None:
    """A hundred at once and twenty a second of what reads, by operation (EC2 Developer Guide, "Request throttling")."""
    world.cloud.throttle = Throttle(world.clock.now)
    for _ in range(100):
        world.cloud.instances()
    with pytest.raises(UnavailableError, match="EC2 DescribeInstances: RequestLimitExceeded"):
        world.cloud.instances()
    world.cloud.impaired()  # another operation has another bucket
    world.clock.advance(timedelta(seconds=1))
    for _ in range(20):
        world.cloud.instances()
    with pytest.raises(UnavailableError, match="RequestLimitExceeded"):
        world.cloud.instances()


def test_instances_are_launched_from_a_bucket_of_their_own(world: World) -> None:
    """A thousand at once and two a second (EC2 Developer Guide, "Request throttling", resource rate limiting)."""
    throttle = Throttle(world.clock.now)
    assert throttle.lets("CreateFleet", 1000)
    assert not throttle.lets("CreateFleet", 1)
    world.clock.advance(timedelta(seconds=1))
    assert throttle.lets("CreateFleet", 2)


def test_a_pool_runs_out_and_has_stock_again_later(world: World) -> None:
    """InsufficientInstanceCapacity passes by itself (EC2 User Guide, "Insufficient instance capacity")."""
    world.cloud.run_out(POOL, left=1, until=world.clock.now() + HOUR)
    first = launch(world, "a", count=2)
    assert (len(first.instances), codes(first)) == (1, ["InsufficientInstanceCapacity"])
    world.clock.advance(HOUR)
    assert len(launch(world, "b", count=2).instances) == 2


def test_a_subnet_runs_out_of_addresses_and_gets_them_back(world: World) -> None:
    """Of instances that have ended (EC2 API, "Error codes": InsufficientFreeAddressesInSubnet)."""
    (subnet,) = (one.id for one in builders.node_class().status.subnets if one.zone == POOL.zone)
    world.cloud.addresses[subnet] = 1
    first = launch(world, "a", count=2)
    assert (len(first.instances), codes(first)) == (1, ["InsufficientFreeAddressesInSubnet"])
    assert codes(launch(world, "b")) == ["InsufficientFreeAddressesInSubnet"]
    world.cloud.terminate([first.instances[0].instance_id])
    world.clock.advance(STOPS_IN)
    assert len(launch(world, "c").instances) == 1


def test_ec2_and_health_send_what_their_pages_show(world: World) -> None:
    """The events' fields are those of the recorded ones (EC2 User Guide, "Automate Amazon EC2 using EventBridge"; AWS
    Health User Guide, "Event format"), and the product reads them.
    """
    sent: list[dict[str, Any]] = []
    engine = Engine(world.clock, 1)
    ec2 = Ec2(Stage(engine, world.cluster, world.cloud), sent.append)
    (instance,) = launch(world, "a").instances
    ec2.recommend(instance.instance_id)
    ec2.retire(world.clock.now() + HOUR, instance.instance_id)
    ec2.stop(instance.instance_id)
    ec2.interrupt(instance.instance_id)
    engine.run_until(world.clock.now() + timedelta(minutes=5))
    kinds = []
    for event in sent:
        recorded = RECORDED[event["detail-type"]]
        assert (event.keys(), event["detail"].keys()) == (recorded.keys(), recorded["detail"].keys())
        notice = parse(event)
        if isinstance(notice, Notice):
            assert notice.instances == (instance.instance_id,)
            kinds.append(notice.kind)
    assert kinds == [
        NoticeKind.REBALANCE_RECOMMENDATION, NoticeKind.SCHEDULED_CHANGE, NoticeKind.INSTANCE_STOPPED,
        NoticeKind.SPOT_INTERRUPTED, NoticeKind.INSTANCE_STOPPED, NoticeKind.INSTANCE_TERMINATED,
        NoticeKind.INSTANCE_TERMINATED,
    ]  # fmt: skip


def _recorded() -> Iterator[dict[str, Any]]:
    for path in (ROOT / "events").glob("interruption_*.json"):
        yield json.loads(json.loads(path.read_text())["Records"][0]["body"])


RECORDED = {event["detail-type"]: event for event in _recorded()}
ROLES = statements_of(Stack({"ClusterName": "joinery"}, {}))


@pytest.fixture
def ec2() -> Iterator[Any]:
    """EC2 of moto, for a caller with the policies of provisioning."""
    with Account().corrected(), guarded(ROLES["provisioning"]), moto() as url:
        yield boto3.Session("test", "test", region_name=REGION).client("ec2", endpoint_url=url)


OWN = {"kubernetes.io/cluster/joinery": "owned", "eks:eks-cluster-name": "joinery", "karpenter.sh/nodepool": "default"}


@pytest.mark.parametrize(
    ("tags", "code"),
    [(OWN, "DryRunOperation"), ({**OWN, "eks:eks-cluster-name": "other"}, "UnauthorizedOperation")],
)
def test_a_dry_run_says_what_the_template_s_policies_allow(ec2: Any, tags: dict[str, str], code: str) -> None:
    """It succeeds with an error, or is denied as the call would be (EC2 API, "DryRun")."""
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    with pytest.raises(ClientError) as refused:
        ec2.create_launch_template(
            DryRun=True, LaunchTemplateName="x", LaunchTemplateData={"InstanceType": "m7a.large"},
            TagSpecifications=[{"ResourceType": "launch-template", "Tags": pairs}],
        )  # fmt: skip
    assert refused.value.response["Error"]["Code"] == code


def test_instances_are_listed_late_and_any_list_may_leave_some_out(world: World) -> None:
    """EC2 API, "Eventual consistency"."""
    world.cloud.lag = timedelta(seconds=30)
    launched = launch(world, "a", 40).instances
    assert world.cloud.instances() == ()
    world.clock.advance(timedelta(seconds=31))
    assert len(world.cloud.instances()) == len(launched)
    world.cloud.omission = 0.5
    lists = [{instance.instance_id for instance in world.cloud.instances()} for _ in range(2)]
    assert lists[0] != lists[1]
    assert all(0 < len(listed) < len(launched) for listed in lists)


def test_an_instance_may_end_at_launch_and_a_spot_instance_after_two_minutes_notice(world: World) -> None:
    """EC2 API, StateReason; EC2 User Guide, "Spot Instance interruption notices"."""
    world.cloud.dooms = lambda _: ("Client.InternalError", "Client error on launch")
    (dead,) = launch(world, "a").instances
    world.cloud.dooms = lambda _: None
    (alive,) = launch(world, "b").instances
    world.clock.advance(timedelta(seconds=5))
    states = {instance.instance_id: instance for instance in world.cloud.look_up([dead.instance_id, alive.instance_id])}
    assert (states[dead.instance_id].serves, states[dead.instance_id].reason_code) == (False, "Client.InternalError")
    assert world.cloud.interrupt(alive.instance_id) == world.clock.now() + timedelta(minutes=2)
    world.clock.advance(timedelta(minutes=2, seconds=1))
    assert not any(instance.serves for instance in world.cloud.look_up([alive.instance_id]))


def test_a_fleet_has_one_answer_for_each_token_with_an_error_for_each_pool_that_is_out() -> None:
    """Another request with the token is refused (EC2 API, CreateFleet, "Ensuring idempotency"). Types and zones of
    instances may be left out of an answer.
    """
    account = Account()
    account.out_of.add(OfferingKey("m5.large", f"{REGION}a", labels.ON_DEMAND))
    with account.corrected(), moto() as url:
        ec2: Any = boto3.Session("test", "test", region_name=REGION).client("ec2", endpoint_url=url)
        data = {"ImageId": ec2.register_image(Name="nodes")["ImageId"]}
        ec2.create_launch_template(LaunchTemplateName="nodes", LaunchTemplateData=data)

        def fleet(*kinds: str) -> dict[str, Any]:
            overrides = [
                {"InstanceType": kind, "AvailabilityZone": f"{REGION}a", "Priority": number}
                for number, kind in enumerate(kinds)
            ]
            template = {"LaunchTemplateName": "nodes", "Version": "$Latest"}
            answer: dict[str, Any] = ec2.create_fleet(
                Type="instant",
                # Another account of this process may be around this one, and knows the tokens of its own tests.
                ClientToken="two-answers",
                TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
                LaunchTemplateConfigs=[{"LaunchTemplateSpecification": template, "Overrides": overrides}],
            )  # fmt: skip
            return answer

        account.is_vague = True
        first, again = fleet("m5.large", "m5.xlarge"), fleet("m5.large", "m5.xlarge")
        assert [error["ErrorCode"] for error in first["Errors"]] == ["InsufficientInstanceCapacity"]
        assert [[*launched] for launched in first["Instances"]] == [["InstanceIds"]]
        assert again["Instances"] == first["Instances"]
        with pytest.raises(ClientError, match="IdempotentParameterMismatch"):
            fleet("m5.xlarge")
