"""What only the EC2 adapter does: the live catalogue, images by every kind of term, instance profiles, templates."""

import base64
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import boto3
import msgspec
import pytest
from botocore.stub import Stubber

from joinery.gateways.ec2.adapter import Ec2Cloud
from joinery.gateways.ec2.catalog.document import Catalog, CatalogOffering
from joinery.gateways.ec2.gateway import LaunchRequest, Override
from joinery.gateways.ec2.instancetypes.resolve import resolve
from joinery.gateways.ec2.launch.launch_templates import TEMPLATE_TAG
from joinery.objects.codes import TEMPLATE_LIMIT
from joinery.objects.errors import ConfigurationError, JoineryError, NotFoundError, UnavailableError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.snapshot.instances import Instance
from joinery_cli.main import main
from joinery_cli.sources import load_catalog
from simulator import builders
from simulator.awsserver.account import DISCOVERY, REGION, Account
from simulator.clock import Clock
from tests.gateways.eks import create_cluster

PRICES = {"m5.large": "0.096", "m5.metal": "4.608", "m7g.large": "0.0816"}


class _PriceList(BaseHTTPRequestHandler):
    """AWS's price list, which moto lacks: every question gets every price, on one page."""

    def do_POST(self) -> None:  # noqa: N802 - http.server's name
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"PriceList": [self._document(*each) for each in PRICES.items()]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass

    @staticmethod
    def _document(kind: str, price: str) -> str:
        term = {"priceDimensions": {"d": {"pricePerUnit": {"USD": price}}}}
        return json.dumps({"product": {"attributes": {"instanceType": kind}}, "terms": {"OnDemand": {"t": term}}})


@contextmanager
def price_list() -> Iterator[None]:
    """The price list, where boto3 finds it, inside the ``with``."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _PriceList) as server:
        Thread(target=server.serve_forever).start()
        os.environ["AWS_ENDPOINT_URL_PRICING"] = f"http://127.0.0.1:{server.server_port}"
        try:
            yield
        finally:
            del os.environ["AWS_ENDPOINT_URL_PRICING"]
            server.shutdown()


@pytest.fixture(scope="module")
def catalog(served: tuple[str, Account], tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """What the account sees in Oregon, saved by ``joinery catalog`` and read again.

    Read once for all tests: moto takes ten seconds to describe every instance type.
    """
    _, account = served
    entry = {"InstanceType": "m5.large", "AvailabilityZone": "us-west-2a", "AvailableInstanceCount": 2}
    account.reset()
    account.reservations += [
        {"CapacityReservationId": "cr-1", "State": "active", **entry},
        {"CapacityReservationId": "cr-2", "State": "cancelled", **entry},
    ]
    path = tmp_path_factory.mktemp("catalog") / "oregon.json.gz"
    with price_list(), pytest.raises(SystemExit) as ended:
        main(["catalog", "--save", str(path), "--region", "us-west-2"])
    assert ended.value.code == 0
    return load_catalog(str(path)).catalog


@pytest.fixture
def cloud(account: Account) -> Ec2Cloud:
    """A cluster of EKS with a role for its nodes, and AL2023's images."""
    create_cluster(account)
    return Ec2Cloud("joinery", REGION, now=Clock().now)


def node_class(uid: str = "0a1b", generation: int = 1, **spec: Any) -> EC2NodeClass:
    """A class that selects by the discovery tag."""
    wire = {
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "*"}}],
        "securityGroupSelectorTerms": [{"tags": DISCOVERY}],
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": "nodes",
    }
    metadata = {"name": "default", "uid": uid, "generation": generation}
    return EC2NodeClass.model_validate({"metadata": metadata, "spec": wire | spec})


def launch(cloud: Ec2Cloud, token: str = "t-1", *kinds: str, **spec: Any) -> LaunchRequest:
    """A launch of one of several types, each with a pod count of its own."""
    found = node_class(**spec)
    return LaunchRequest(
        token=token,
        count=1,
        node_pool="general",
        node_class=found.model_copy(update={"status": cloud.prepare(found)}),
        capacity_type="on-demand",
        overrides=tuple(Override(kind, "us-east-1a", 0.1 + n, 29 + n) for n, kind in enumerate(kinds or ("m5.large",))),
        labels={},
    )


def test_the_live_catalogue_lists_the_active_reservations(catalog: Catalog) -> None:
    """With what is left of each, so that a plan on somebody's desk can count on them."""
    reservations = catalog.capacity_reservations
    assert [(one.capacity_reservation_id, one.available_instance_count) for one in reservations] == [("cr-1", 2)]


def test_the_live_catalogue_holds_what_has_a_price(catalog: Catalog) -> None:
    """Types as EC2 describes them, bare metal among them, in the zones that sell them, at their prices."""
    assert ("us-west-2a", "usw2-az2") in {(zone.name, zone.id) for zone in catalog.zones}
    assert len(catalog.described) > 1000
    sold = {(o.capacity_type, o.price) for o in catalog.sold["m5.large"]}
    assert sold == {("on-demand", 0.096), ("spot", 0.00001)}
    assert {o.price for o in catalog.sold["m5.metal"] if o.capacity_type == "on-demand"} == {4.608}
    assert {o.capacity_type for o in catalog.sold["c5.large"]} == {"spot"}
    assert {kind.name: kind for kind in resolve(catalog, node_class())}["m5.large"].allocatable["cpu"] == 1930


def test_subnets_come_by_id_or_by_tags(cloud: Ec2Cloud) -> None:
    """Terms are alternatives, and the results are united."""
    every = [subnet.id for subnet in cloud.prepare(node_class()).subnets]
    one = cloud.prepare(node_class(subnetSelectorTerms=[{"id": every[0]}, {"tags": {"a": "b"}}])).subnets
    assert len(every) == 6
    assert [subnet.id for subnet in one] == every[:1]


def test_a_term_selects_by_its_id_or_else_its_name_or_else_its_tags(cloud: Ec2Cloud) -> None:
    """The API server stores such terms beside one that is plain. All other subnets and groups have the tags, too."""
    every = cloud.prepare(node_class())
    subnet, group = every.subnets[0].id, every.security_groups[0]
    other = boto3.client("ec2").create_security_group(GroupName="other", Description="tagged as well")["GroupId"]
    boto3.client("ec2").create_tags(
        Resources=[other], Tags=[{"Key": key, "Value": DISCOVERY[key]} for key in DISCOVERY]
    )
    for term in ({"id": group.id, "tags": DISCOVERY}, {"name": group.name, "tags": DISCOVERY}):
        found = cloud.prepare(
            node_class(
                subnetSelectorTerms=[{"id": subnet}, {"id": subnet, "tags": DISCOVERY}],
                securityGroupSelectorTerms=[{"id": group.id}, term],
            )
        )
        assert [each.id for each in found.subnets] == [subnet]
        assert [each.id for each in found.security_groups] == [group.id]


def test_images_come_by_name_id_or_parameter(cloud: Ec2Cloud) -> None:
    """Without an alias only the architecture limits which types an image is for. A parameter counts before a name, and
    an id before both (Karpenter for AWS, amifamily).
    """
    path = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/arm64/standard/recommended/image_id"
    for term in (
        {"id": "ami-al2023arm64standard"}, {"name": "ami-al2023arm64st*"}, {"ssmParameter": path},
        {"id": "ami-al2023arm64standard", "ssmParameter": path.replace("arm64", "x86_64")},
        {"name": "ami-al2023amd64st*", "ssmParameter": path},
    ):  # fmt: skip
        (ami,) = cloud.prepare(node_class(amiSelectorTerms=[term], amiFamily="AL2023")).amis
        assert ami.id == "ami-al2023arm64standard"
        assert [(rule.key, rule.values) for rule in ami.requirements] == [("kubernetes.io/arch", ["arm64"])]


def test_an_alias_without_images_is_explained(cloud: Ec2Cloud) -> None:
    """AL2 ended with Kubernetes 1.33, and the condition says so."""
    conditions = {c.type: c for c in cloud.prepare(node_class(amiSelectorTerms=[{"alias": "al2@latest"}])).conditions}
    assert conditions["AMIsReady"].reason == "UnsupportedAlias"
    assert "no images for Kubernetes 1.33" in conditions["AMIsReady"].message


@pytest.mark.parametrize(("generation", "ready"), [(1, "True"), (2, "False")])
def test_an_alias_that_lost_its_images_keeps_them(generation: int, ready: str, cloud: Ec2Cloud) -> None:
    """A pinned one has none for the next version of Kubernetes: nodes are launched with those that were there. One that
    somebody has just written never had any.
    """
    new = node_class(generation=1)
    status = cloud.prepare(new)
    known = node_class(generation=generation).model_copy(update={"status": status})
    cloud = Ec2Cloud("joinery", REGION, now=Clock().now)
    with Stubber(cloud._clients.ssm) as ssm:
        for _ in range(5):
            ssm.add_client_error("get_parameter", "ParameterNotFound", "no", http_status_code=400)
        after = cloud.prepare(known)
    assert {condition.type: condition.status for condition in after.conditions}["Ready"] == ready
    assert after.amis == (status.amis if ready == "True" else [])


def test_a_role_gets_an_instance_profile_of_its_own(cloud: Ec2Cloud) -> None:
    """Made once, with the cluster's tags, and found again; another class has another."""
    name = cloud.prepare(node_class()).instance_profile
    profile = boto3.client("iam").get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    assert [role["RoleName"] for role in profile["Roles"]] == ["nodes"]
    assert profile["Path"] == "/karpenter/us-east-1/joinery/0a1b/"
    assert {"Key": "kubernetes.io/cluster/joinery", "Value": "owned"} in profile["Tags"]
    assert cloud.prepare(node_class()).instance_profile == name
    assert cloud.prepare(node_class(uid="2c3d")).instance_profile != name


def test_a_profile_that_another_controller_made_is_kept(cloud: Ec2Cloud) -> None:
    """A class adopted from Karpenter names its profile in the status; nothing is made while the role is right."""
    iam = boto3.client("iam")
    tags = [{"Key": "kubernetes.io/cluster/joinery", "Value": "owned"}]
    iam.create_instance_profile(InstanceProfileName="theirs", Tags=tags)
    iam.add_role_to_instance_profile(InstanceProfileName="theirs", RoleName="nodes")
    adopted = node_class().model_copy(
        update={"status": cloud.prepare(node_class()).model_copy(update={"instance_profile": "theirs"})}
    )
    assert cloud.prepare(adopted).instance_profile == "theirs"


def test_a_role_that_does_not_exist_is_named(cloud: Ec2Cloud) -> None:
    """The class is not Ready until there is one."""
    conditions = {c.type: c for c in cloud.prepare(node_class(role="absent")).conditions}
    assert (conditions["InstanceProfileReady"].status, conditions["InstanceProfileReady"].reason) == (
        "False",
        "RoleNotFound",
    )
    assert "spec.role absent" in conditions["Ready"].message


def test_a_given_instance_profile_is_taken_as_it_is(cloud: Ec2Cloud) -> None:
    """Without asking IAM."""
    found = EC2NodeClass.model_validate({
        "metadata": {"name": "default"},
        "spec": node_class().spec.model_dump(by_alias=True, exclude={"role"}) | {"instanceProfile": "mine"},
    })  # fmt: skip
    assert cloud.prepare(found).instance_profile == "mine"


def test_pools_are_grouped_by_the_template_they_need(cloud: Ec2Cloud) -> None:
    """Two architectures are two images and two templates; a second launch makes none."""
    cloud.launch(launch(cloud, "t-1", "m5.large", "m7g.large"))
    made = [t["LaunchTemplateName"] for t in boto3.client("ec2").describe_launch_templates()["LaunchTemplates"]]
    assert len(made) == 2
    assert all(name.startswith("karpenter.k8s.aws/") for name in made)
    Ec2Cloud("joinery", REGION, now=Clock().now).launch(launch(cloud, "t-2", "m5.large", "m7g.large"))
    assert len(boto3.client("ec2").describe_launch_templates()["LaunchTemplates"]) == 2


def test_nodes_are_told_what_expressions_yield_for_their_type(cloud: Ec2Cloud) -> None:
    """Which is what their room was counted with, each type in a template of its own."""
    kubelet = {"maxPods": "max_pods / 2", "kubeReserved": {"cpu": "vcpus * 30", "memory": "1Gi"}}
    cloud.launch(launch(cloud, "t-1", "m5.large", "m5.metal", kubelet=kubelet))
    ec2 = boto3.client("ec2")
    written = [
        base64.b64decode(
            ec2.describe_launch_template_versions(LaunchTemplateId=made["LaunchTemplateId"])["LaunchTemplateVersions"][
                0
            ]["LaunchTemplateData"]["UserData"]
        ).decode()
        for made in ec2.describe_launch_templates()["LaunchTemplates"]
    ]
    assert sorted(re.findall(r'"(?:maxPods|cpu|memory)": (.*?),?\n', "".join(written))) == [
        '"1Gi"', '"1Gi"', '"2880m"', '"60m"', "29", "30",
    ]  # fmt: skip


def test_a_template_that_was_deleted_is_made_again(cloud: Ec2Cloud) -> None:
    """Somebody cleaned up while a warm function remembered it."""
    cloud.launch(launch(cloud))
    ec2 = boto3.client("ec2")
    for found in ec2.describe_launch_templates()["LaunchTemplates"]:
        ec2.delete_launch_template(LaunchTemplateId=found["LaunchTemplateId"])
    assert len(cloud.launch(launch(cloud, "t-2")).instances) == 1


def test_what_ec2_throttles_is_left_alone_ever_longer(account: Account) -> None:
    """Two seconds, then four: by the runs to come as well. What is answered is asked for as ever, and so is the rest
    meanwhile (EC2 API, "Request throttling": each action has a bucket of its own).
    """
    clock = Clock()
    cloud = Ec2Cloud("joinery", REGION, now=clock.now)
    with Stubber(cloud._clients.ec2) as ec2:
        for seconds in (2, 4):
            ec2.add_client_error("describe_instances", "RequestLimitExceeded", "slow down", http_status_code=503)
            with pytest.raises(UnavailableError, match="slow down"):
                cloud.instances()
            clock.advance(timedelta(seconds=seconds - 1))
            with pytest.raises(UnavailableError, match="EC2 DescribeInstances: RequestLimitExceeded: not asked"):
                cloud.instances()
            ec2.add_response("reboot_instances", {})
            cloud.reboot("i-1")
            clock.advance(timedelta(seconds=1))
        for _ in range(2):
            ec2.add_response("describe_instances", {})
            assert cloud.instances() == ()
        ec2.assert_no_pending_responses()


def templates() -> set[str]:
    """The names of the launch templates in the account."""
    listed = boto3.client("ec2").describe_launch_templates()["LaunchTemplates"]
    return {template["LaunchTemplateName"] for template in listed}


def test_a_template_goes_a_day_after_it_was_used_last(account: Account) -> None:
    """By its age, and by the instances that EC2 says are of it. Others' templates, and other clusters', stay."""
    create_cluster(account)
    clock = Clock()
    cloud = Ec2Cloud("joinery", REGION, now=clock.now)
    cloud.launch(launch(cloud, "t-1", "m5.large", "m7g.large"))
    data, ec2 = {"InstanceType": "m5.large"}, boto3.client("ec2")
    owned = [{"Key": "kubernetes.io/cluster/joinery", "Value": "owned"}]
    other = [{"Key": "kubernetes.io/cluster/other", "Value": "owned"}]
    for name, tags in (("theirs", owned), ("karpenter.k8s.aws/1", other)):
        spec: Any = [{"ResourceType": "launch-template", "Tags": tags}]
        ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data, TagSpecifications=spec)  # type: ignore[arg-type]
    ours = templates() - {"theirs", "karpenter.k8s.aws/1"}
    cloud.remove_unused([], [], cloud.instances())
    assert len(ours & templates()) == 2
    (used,) = (t for t in ec2.describe_launch_templates()["LaunchTemplates"] if t["LaunchTemplateName"] == min(ours))
    clock.move_to(used["CreateTime"] + timedelta(hours=25))
    young = replace(cloud.instances()[0], launched_at=clock.now(), tags={TEMPLATE_TAG: used["LaunchTemplateId"]})
    cloud.remove_unused([], [], [young])
    assert templates() == {min(ours), "theirs", "karpenter.k8s.aws/1"}
    assert len(cloud.launch(launch(cloud, "t-2", "m5.large", "m7g.large")).instances) == 1


@pytest.mark.parametrize("code", sorted(TEMPLATE_LIMIT))
def test_where_the_region_takes_no_more_templates_old_ones_of_ours_make_room(code: str, cloud: Ec2Cloud) -> None:
    """The oldest first (karpenter-provider-aws issue 8686). Without any the launch fails, and says so."""
    asked, now = launch(cloud), Clock().now()
    ages = {"lt-old": 3, "lt-young": 0, "lt-oldest": 9}
    listed = [
        {
            "LaunchTemplateId": name,
            "LaunchTemplateName": f"karpenter.k8s.aws/{age}",
            "CreateTime": now - timedelta(hours=age),
        }
        for name, age in ages.items()
    ]
    cloud._create_fleet._describe([asked.overrides[0].instance_type])
    with Stubber(cloud._clients.ec2) as ec2:
        for answer in (listed, []):
            ec2.add_client_error("create_launch_template", code, "no more", http_status_code=400)
            ec2.add_response("describe_launch_templates", {"LaunchTemplates": answer})
            if answer:
                ec2.add_response("delete_launch_template", {}, {"LaunchTemplateId": "lt-oldest"})
                ec2.add_response("delete_launch_template", {}, {"LaunchTemplateId": "lt-old"})
                ec2.add_response("create_launch_template", {})
                ec2.add_client_error("create_fleet", "UnauthorizedOperation", "so far so good", http_status_code=403)
            with pytest.raises(ConfigurationError, match="so far so good" if answer else code):
                cloud.launch(asked)
            cloud._templates.forget()
        ec2.assert_no_pending_responses()


@pytest.mark.parametrize(("code", "asked_for"), [("InternalError", 2), ("UnauthorizedOperation", 1)])
def test_a_template_that_is_not_removed_keeps_no_other(code: str, asked_for: int, cloud: Ec2Cloud) -> None:
    """But who may remove none asks once."""
    listed = [
        {
            "LaunchTemplateId": name,
            "LaunchTemplateName": f"karpenter.k8s.aws/{name}",
            "CreateTime": Clock().now() - timedelta(days=9),
        }
        for name in ("lt-1", "lt-2")
    ]
    with Stubber(cloud._clients.ec2) as ec2:
        ec2.add_response("describe_launch_templates", {"LaunchTemplates": listed})
        ec2.add_client_error("delete_launch_template", code, "no", http_status_code=400)
        if asked_for == 2:
            ec2.add_response("delete_launch_template", {}, {"LaunchTemplateId": "lt-2"})
            cloud._templates.remove_unused([])
        else:
            with pytest.raises(JoineryError, match="removing launch templates"):
                cloud._templates.remove_unused([])
        ec2.assert_no_pending_responses()


def test_a_profile_that_nobody_uses_any_more_goes(account: Account) -> None:
    """Not one that a class, a claim or an instance names, and none of the last hour."""
    create_cluster(account)
    clock = Clock()
    cloud = Ec2Cloud("joinery", REGION, now=clock.now)
    classes = [node_class(uid) for uid in ("kept", "claimed", "running", "gone")]
    kept, claimed, running, gone = (cloud.prepare(one).instance_profile for one in classes)
    claim = builders.node_claim(annotations={labels.INSTANCE_PROFILE: claimed})
    machine = Instance("i-1", "m5.large", "us-east-1a", "spot", "running", clock.now(), instance_profile=running)
    made = boto3.client("iam").get_instance_profile(InstanceProfileName=gone)["InstanceProfile"]["CreateDate"]
    for hours, left in ((0, {kept, claimed, running, gone}), (2, {kept, claimed, running})):
        clock.move_to(made + timedelta(hours=hours))
        cloud.remove_unused(classes[:1], [claim], [machine])
        listed = boto3.client("iam").list_instance_profiles()["InstanceProfiles"]
        assert {profile["InstanceProfileName"] for profile in listed} == left


def test_what_may_not_be_removed_keeps_nothing_else(cloud: Ec2Cloud) -> None:
    """Neither launch templates that may not be listed, nor a profile that another tool protects: both would stay
    refused for ever, and profiles have a quota of their own (karpenter-provider-aws issue 8838).
    """
    old = Clock().now() - timedelta(days=9)
    listed = [
        {"InstanceProfileName": name, "InstanceProfileId": "AIPA0123456789ABCDEF", "CreateDate": old}
        | {"Path": "/karpenter/", "Arn": f"arn:aws:iam::111122223333:instance-profile/{name}", "Roles": []}
        for name in ("protected", "unused")
    ]
    with Stubber(cloud._clients.ec2) as ec2, Stubber(cloud._clients.iam) as iam:
        ec2.add_client_error("describe_launch_templates", "UnauthorizedOperation", "no", http_status_code=403)
        iam.add_response("list_instance_profiles", {"InstanceProfiles": listed})
        iam.add_client_error("delete_instance_profile", "AccessDenied", "protected", http_status_code=403)
        iam.add_response("delete_instance_profile", {}, {"InstanceProfileName": "unused"})
        with pytest.raises(ConfigurationError, match="removing instance profile protected: AccessDenied"):
            cloud.remove_unused([], [], [])
        iam.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("refusal", "asked"),
    [
        ("The instance IDs 'i-3, ip-10-0-1-2' do not exist", [["i-1", "i-2"]]),
        # EC2 says nothing of use: each half is asked for alone.
        ("no", [["i-1", "i-2"], ["ip-10-0-1-2", "i-3"]]),
    ],
)
def test_ids_that_ec2_does_not_know_keep_no_other_instance(
    refusal: str, asked: list[list[str]], cloud: Ec2Cloud
) -> None:
    """It refuses the whole call for them. Of a hundred instances one that is gone costs one more call, not a hundred
    (EC2 API TerminateInstances)."""
    with Stubber(cloud._clients.ec2) as ec2:
        ec2.add_client_error("terminate_instances", "InvalidInstanceID.NotFound", refusal, http_status_code=400)
        for ids in asked:
            ec2.add_response("terminate_instances", {}, {"InstanceIds": ids})
        cloud.terminate(["i-1", "i-2", "ip-10-0-1-2", "i-3"])
        ec2.assert_no_pending_responses()


def test_instances_of_others_are_not_ours(cloud: Ec2Cloud) -> None:
    """Only what carries the cluster's tags is listed."""
    boto3.client("ec2").run_instances(ImageId="ami-al2023amd64standard", MinCount=1, MaxCount=1)
    cloud.launch(launch(cloud))
    assert len(cloud.instances()) == 1


def test_instances_of_an_older_karpenter_are_listed(cloud: Ec2Cloud) -> None:
    """Those of v0.31 and of v1beta1, by their older tags; not those of another cluster."""
    ec2 = boto3.client("ec2")
    for pool, cluster in (("provisioner-name", "joinery"), ("nodepool", "joinery"), ("provisioner-name", "other")):
        tags = {
            f"karpenter.sh/{pool}": "default",
            "karpenter.sh/managed-by": cluster,
            f"kubernetes.io/cluster/{cluster}": "owned",
        }
        listed: Any = [{"Key": key, "Value": value} for key, value in tags.items()]
        specifications: Any = [{"ResourceType": "instance", "Tags": listed}]
        ec2.run_instances(ImageId="ami-al2023amd64standard", MinCount=1, MaxCount=1, TagSpecifications=specifications)
    instances = cloud.instances()
    assert len(instances) == 2
    assert all(instance.is_of_older_karpenter for instance in instances)


def test_an_unknown_cluster_is_not_found(account: Account) -> None:
    """The error names the cluster."""
    with pytest.raises(NotFoundError, match="describing EKS cluster absent: ResourceNotFound"):
        _ = Ec2Cloud("absent", REGION, now=Clock().now).facts


def test_the_catalogue_of_any_region_is_saved_and_planned_with(catalog: Catalog) -> None:
    """``joinery catalog --save FILE --region R``: what the account sees there, as a file that every command takes."""
    assert (catalog.region, {zone.name[:-1] for zone in catalog.zones}) == ("us-west-2", {"us-west-2"})
    assert catalog.priced.endswith("Z")


def test_a_catalogue_that_is_known_gets_new_spot_prices_alone(catalog: Catalog, cloud: Ec2Cloud) -> None:
    """Types and on-demand prices are taken over, also where the price list does not answer. What was spot and has no
    price any more is not sold as spot.
    """
    zones = [(zone, way) for zone in ("nowhere-1a", "us-east-1a") for way in ("on-demand", "spot")]
    known = msgspec.structs.replace(
        catalog, offerings=tuple(CatalogOffering("m5.large", zone, way, 9.0) for zone, way in zones)
    )
    current = cloud.catalog(known)
    assert [(o.zone, o.capacity_type, o.price) for o in current.offerings] == [
        ("nowhere-1a", "on-demand", 9.0),
        ("us-east-1a", "on-demand", 9.0),
        ("us-east-1a", "spot", 0.00001),
    ]
    assert (current.instance_types, current.listed) == (catalog.instance_types, catalog.listed)
    assert current.priced != known.priced
