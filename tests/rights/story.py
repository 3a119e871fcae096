"""Every door at work on one account and one cluster, so that each right which a door needs is asked for.

The doors are the product's own, built by its composition root for each call as in a cold start; AWS is moto, Kubernetes
the simulator's API server. A scene is as short as it can be: it puts there what makes a door ask. A call that no scene
makes is a call whose right nobody has checked, so whoever adds one adds its scene.
"""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import timedelta
from io import StringIO
from typing import Any

import boto3
import pytest
from msgspec.structs import replace

from joinery import bootstrap
from joinery.gateways.account.aws import AwsAccount
from joinery.gateways.aws import Clients
from joinery.gateways.memory.bucket import CATALOG_KEY
from joinery.objects.karpenter.labels import DISRUPTION_COMMAND, INSTANCE_TAGGED
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Condition
from joinery.objects.kubernetes.webhook_secret import WebhookSecret
from joinery.objects.settings import variable
from joinery.objects.snapshot.offerings import OfferingKey
from simulator import builders
from simulator.awsserver.account import ACCOUNT, DISCOVERY, REGION, age
from simulator.cloud.market import sample
from simulator.doors.doors import TOKEN, Context, handler
from simulator.serve import BUCKET, CLUSTER, ROLE, Served, serving
from tests.rights.recording import Recording, recorded
from tools.template import ROOT, Door, doors, load

#: What the stack is given that is not the default, and the doors with it.
SETTINGS = "ImageParameters=/images/*; ZonalShift=true; NodeRepair=reboot; Commitments=100%"
KARPENTERS_ROLE = f"KarpenterNodeRole-{CLUSTER}"
INSTALLER = f"arn:aws:iam::{ACCOUNT}:role/installer"
SECRET_ARN = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:webhook"
NODES_PROFILE, CATALOG_FUNCTION = "stack-nodes", "catalog"
#: The tags that say who has asked for an instance: a NodePool, or once a Provisioner.
BY = {"default": "karpenter.sh/nodepool", "older": "karpenter.sh/provisioner-name"}
STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/joinery/1"
_ZONE = "us-east-1a"


class Story:
    """The stage: what is served, and a door's call with what is asked of AWS meanwhile."""

    def __init__(self, served: Served, recording: Recording, environment: pytest.MonkeyPatch) -> None:
        self.served, self.recording, self._environment = served, recording, environment
        self._doors = {name: _alone(door) for name, door in doors(load()).items()}

    def call(self, door: str, event: str, **changes: str) -> Any:
        """What the door answers to one of the sample events, in which texts are changed."""
        text = (ROOT / "events" / f"{event}.json").read_text()
        for before, after in changes.items():
            text = text.replace(before, after)
        return self.answer(door, json.loads(text))

    def answer(self, door: str, event: dict[str, Any]) -> Any:
        """What the door answers to an event, with the variables that the template gives it, as after a cold start."""
        needs = {*self._doors[door].variables, variable("region")}
        for name, value in {**self.served.environment, **self._given()}.items():
            if name.startswith("JOINERY_") and name not in needs:
                self._environment.delenv(name, raising=False)
            else:
                self._environment.setenv(name, value)
        bootstrap.reset()
        with self.at_work(door), redirect_stdout(StringIO()):
            return handler(door)(event, Context(f"joinery-{door}", "call"))

    @contextmanager
    def at_work(self, door: str) -> Iterator[None]:
        """Inside the ``with``, what AWS is asked is the door's."""
        self.recording.door = door
        try:
            yield
        finally:
            self.recording.door = ""

    def client(self, service: Any) -> Any:
        """A client of the test's own, whose calls are nobody's."""
        return boto3.client(service, region_name=REGION, endpoint_url=self.served.aws)

    def instance(self, by: str = BY["default"]) -> str:
        """An instance of this cluster's in the account, with that tag of ``BY``. Its id."""
        pairs = [{"Key": f"kubernetes.io/cluster/{CLUSTER}", "Value": "owned"}, {"Key": by, "Value": "default"}]
        ec2 = self.client("ec2")
        image = ec2.describe_images()["Images"][0]["ImageId"]
        made = ec2.run_instances(
            ImageId=image, MinCount=1, MaxCount=1, InstanceType="m7a.xlarge",
            TagSpecifications=[{"ResourceType": "instance", "Tags": pairs}], Placement={"AvailabilityZone": _ZONE},
        )  # fmt: skip
        return str(made["Instances"][0]["InstanceId"])

    def _given(self) -> dict[str, str]:
        return {
            "JOINERY_WEBHOOK_SECRET": SECRET_ARN,
            "JOINERY_SETTINGS": SETTINGS,
            "JOINERY_COMMITMENTS": "100%",
            "JOINERY_MODE": "act",
            "POWERTOOLS_SERVICE_NAME": "joinery",
            "POWERTOOLS_METRICS_NAMESPACE": "Joinery",
        }


def _alone(door: Door) -> Door:
    """A door of a stack without members: what only those with members have is no variable of it."""
    given = {name: one for name, one in door.variables.items() if "HasMembers" not in str(one)}
    return dataclasses.replace(door, variables=given)


def told(environment: pytest.MonkeyPatch) -> Recording:
    """The whole story. What every door has needed."""
    with serving() as served, recorded() as recording:
        for name, value in served.environment.items():
            environment.setenv(name, value)
        story = Story(served, recording, environment)
        for scene in (
            _reviews, _first_catalogue, _class_with_a_role, _launches, _joining, _reboots, _ends, _leftovers,
            _replacement, _interruptions, _expiration, _installation,
        ):  # fmt: skip
            scene(story)
        return recording


def _reviews(story: Story) -> None:
    """The API server calls the webhook, which reads its token and rings two bells."""
    secret = SECRET_ARN.rpartition(":")[2]
    story.client("secretsmanager").create_secret(Name=secret, SecretString=WebhookSecret(TOKEN).text)
    for event in ("webhook_failed_scheduling", "webhook_node_ready"):
        answer = story.call("webhook", event, **{"sample-token-4f9Jq2xWm7Rk0TzB8vLc": TOKEN})
        assert answer["statusCode"] == 200


def _first_catalogue(story: Story) -> None:
    """There is none yet: it is read, stored, and provisioning is woken. The account has a Savings Plan."""
    story.client("s3").delete_object(Bucket=BUCKET, Key=CATALOG_KEY)
    plan = {"savingsPlanId": "sp-1", "savingsPlanType": "Compute", "commitment": "1.5", "state": "active"}
    story.served.account.savings_plans.append(plan)
    assert story.call("catalog", "catalog_schedule")["instance_types"] > 0


def _class_with_a_role(story: Story) -> None:
    """Lifecycle resolves a class whose profile it must make, with an image by a parameter of the user's own."""
    iam = story.client("iam")
    iam.create_role(RoleName=KARPENTERS_ROLE, AssumeRolePolicyDocument="{}")
    image = story.client("ec2").describe_images()["Images"][0]["ImageId"]
    story.client("ssm").put_parameter(Name="/images/ours", Value=image, Type="String")
    reservation = {
        "CapacityReservationId": "cr-1", "OwnerId": ACCOUNT, "State": "active", "InstanceType": "m7a.xlarge",
        "AvailabilityZone": _ZONE, "InstancePlatform": "Linux/UNIX", "Tenancy": "default", "TotalInstanceCount": 4,
        "AvailableInstanceCount": 4, "InstanceMatchCriteria": "targeted", "EndDateType": "unlimited",
    }  # fmt: skip
    story.served.account.reservations.append(reservation)
    story.served.account.placement_groups.append({"GroupId": "pg-1", "GroupName": "rack", "Strategy": "cluster"})
    _second_subnet(story)
    terms = [{"tags": DISCOVERY}]
    story.served.cluster.add(
        builders.node_class(
            "ours", ready=False, role=KARPENTERS_ROLE, subnetSelectorTerms=terms, securityGroupSelectorTerms=terms,
            amiFamily="AL2023", amiSelectorTerms=[{"ssmParameter": "/images/ours"}],
            capacityReservationSelectorTerms=[{"id": "cr-1"}], placementGroupSelector={"id": "pg-1"},
            blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi", "snapshotID": "snap-0"}}],
        ),
        builders.node_pool("ours", node_class="ours", requirements=["karpenter.sh/capacity-type=reserved"]),
    )  # fmt: skip
    story.call("lifecycle", "lifecycle_bell")


def _second_subnet(story: Story) -> None:
    """Launches choose by free addresses where a zone has several."""
    ec2 = story.client("ec2")
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    made = ec2.create_subnet(VpcId=vpc, CidrBlock="172.31.240.0/24", AvailabilityZone="us-east-1b")["Subnet"]
    ec2.create_tags(Resources=[made["SubnetId"]], Tags=[{"Key": k, "Value": v} for k, v in DISCOVERY.items()])


def _launches(story: Story) -> None:
    """EC2 is out of a zone, and does not say what it has launched. One pod asks for a reservation, and a claim was left
    behind by a run that was killed.
    """
    story.served.account.is_vague = True
    keys = {(one.instance_type, one.capacity_type) for one in sample().offerings}
    story.served.account.out_of |= {OfferingKey(name, _ZONE, kind) for name, kind in keys}
    story.served.cluster.add(builders.pod("reserved", cpu="1", node_selector={"karpenter.sh/nodepool": "ours"}))
    story.served.cluster.add(_left_behind("first", story, "m7a.large"))
    answer = story.call("provisioning", "provisioning_bell")
    assert answer["launched"] >= 1, answer


def _joining(story: Story) -> None:
    """A kubelet has registered, so the instance is told its claim's name. Another claim was left behind."""
    cluster = story.served.cluster
    for claim in list(cluster.node_claims.values()):
        cluster.add(builders.node(claim.metadata.name, provider_id=claim.status.provider_id, initialized=False))
    cluster.add(_left_behind("second", story, "m7a.xlarge"))
    story.call("lifecycle", "lifecycle_bell")


def _reboots(story: Story) -> None:
    """Nodes are broken and booted anew, one at a time: many at once are nobody's to repair."""
    cluster = story.served.cluster
    for name, by in BY.items():
        claim, node = _running(f"broken-{name}", story.instance(by), story, annotations={INSTANCE_TAGGED: "true"})
        since = cluster.clock.now() - timedelta(hours=1)
        silent = Condition(type="Ready", status="Unknown", last_transition_time=since)
        broken = replace(node, status=replace(node.status, conditions=[silent]))
        cluster.add(claim, broken)
        story.call("lifecycle", "lifecycle_bell")
        cluster.remove(claim)
        cluster.remove(broken)


def _left_behind(name: str, story: Story, instance_type: str) -> NodeClaim:
    requirements = [
        f"node.kubernetes.io/instance-type={instance_type}",
        f"topology.kubernetes.io/zone={_ZONE},us-east-1b",
    ]
    since = story.served.cluster.clock.now() - timedelta(minutes=2)
    return builders.node_claim(name, conditions=(), created=since, requirements=requirements)


def _running(name: str, instance: str, story: Story, **given: Any) -> tuple[NodeClaim, Any]:
    provider_id, since = f"aws:///{_ZONE}/{instance}", story.served.cluster.clock.now() - timedelta(hours=2)
    claim = builders.node_claim(name, node=name, provider_id=provider_id, created=since, **given)
    return claim, builders.node(name, provider_id=provider_id, created=since)


def _ends(story: Story) -> None:
    """Nodes that are drained end, of a NodePool and of a Provisioner's time. One had gone for disruption's sake."""
    for name, by in BY.items():
        retired = {DISRUPTION_COMMAND: "{}"} if name == "default" else {}
        now = story.served.cluster.clock.now()
        claim, _ = _running(f"ending-{name}", story.instance(by), story, deleted=now, annotations=retired)
        story.served.cluster.add(claim)
    for _ in range(2):  # their instances are ended, and then seen to be gone
        story.call("lifecycle", "lifecycle_bell")


def _leftovers(story: Story) -> None:
    """What was made for launches, days ago, and serves nobody any more."""
    tags = {f"kubernetes.io/cluster/{CLUSTER}": "owned", "topology.kubernetes.io/region": REGION}
    tags |= {"karpenter.sh/nodepool": "gone", "karpenter.k8s.aws/ec2nodeclass": "gone"}
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    name, path = "karpenter.k8s.aws/1", f"/karpenter/{REGION}/{CLUSTER}/gone/"
    iam, ec2 = story.client("iam"), story.client("ec2")
    ec2.create_launch_template(
        LaunchTemplateName=name, LaunchTemplateData={"InstanceType": "m7a.large"},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": pairs}],
    )  # fmt: skip
    iam.create_instance_profile(InstanceProfileName="gone", Path=path, Tags=pairs)
    iam.add_role_to_instance_profile(InstanceProfileName="gone", RoleName=ROLE)
    age(timedelta(days=2), template=name, profile="gone")
    story.call("lifecycle", "lifecycle_bell")
    assert name not in {one["LaunchTemplateName"] for one in ec2.describe_launch_templates()["LaunchTemplates"]}
    assert "gone" not in {one["InstanceProfileName"] for one in iam.list_instance_profiles()["InstanceProfiles"]}


def _replacement(story: Story) -> None:
    """Disruption buys for a node that has drifted, while EC2 is out of a zone. Without a catalogue it comes again."""
    cluster = story.served.cluster
    for item in (*cluster.node_claims.values(), *cluster.nodes.values(), *cluster.pods.values()):
        cluster.remove(item)
    conditions = ("Launched", "Registered", "Initialized", "Consolidatable", "Drifted")
    claim, node = _running("drifted", story.instance(), story, conditions=conditions)
    cluster.add(claim, node, builders.pod("held", cpu="1", node="drifted", owner="web"))
    answer = story.call("disruption", "disruption_bell")
    assert answer["launches"] >= 1, answer
    story.client("s3").delete_object(Bucket=BUCKET, Key=CATALOG_KEY)
    story.call("disruption", "disruption_bell")  # fails, and rings its own bell


def _interruptions(story: Story) -> None:
    """EC2 warns of a spot instance, and is asked about the rest."""
    instance = story.instance()
    claim, node = _running("warned", instance, story, capacity_type="spot")
    story.served.cluster.add(claim, node)
    story.call("interruption", "interruption_spot_warning", **{"i-0a1b2c3d4e5f60718": instance})
    polling = load()["Resources"]["InstanceStatusSchedule"]["Properties"]["Target"]["Input"]
    story.answer("interruption", json.loads(polling))


def _expiration(story: Story) -> None:
    """A node is older than its pool allows."""
    claim, node = _running("aged", story.instance(), story, expire_after="1h")
    story.served.cluster.add(claim, node)
    assert story.call("expiration", "expiration_schedule")["expired"] == 1


def _installation(story: Story) -> None:
    """The installer's account, each of its calls once."""
    account = AwsAccount(REGION, INSTALLER, webhook_secret=SECRET_ARN)
    iam = story.client("iam")
    for one in iam.list_instance_profiles_for_role(RoleName=ROLE)["InstanceProfiles"]:  # of a class that is gone by now
        iam.remove_role_from_instance_profile(InstanceProfileName=one["InstanceProfileName"], RoleName=ROLE)
    iam.create_instance_profile(InstanceProfileName=NODES_PROFILE)
    iam.add_role_to_instance_profile(InstanceProfileName=NODES_PROFILE, RoleName=ROLE)
    policy = iam.create_policy(PolicyName="any", PolicyDocument=_ANYTHING)["Policy"]["Arn"]
    iam.attach_role_policy(RoleName=ROLE, PolicyArn=policy)
    with story.at_work("installer"):
        Clients(REGION).eks.describe_cluster(name=CLUSTER)
        account.grant_access(CLUSTER, {"joinery.dev/run": "1"})
        account.access(CLUSTER)
        account.ensure_spot_role()
        account.refresh_catalog(CATALOG_FUNCTION)
        secret = account.webhook_secret()
        account.put_webhook_secret(secret.text, after=secret.version)
        account.stack_status(STACK)
        account.remove_node_role(CLUSTER, ROLE, NODES_PROFILE)
        account.revoke_access(CLUSTER)


_ANYTHING = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'
