"""What the cloud promises, in memory and over EC2."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Protocol

import boto3
import msgspec
import pytest

from joinery.gateways.ec2.adapter import Ec2Cloud
from joinery.gateways.ec2.catalog.document import Catalog, CatalogOffering, Zone, entry
from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.gateways.ec2.gateway import Cloud, LaunchRequest, Override, capacity_pools
from joinery.objects.errors import ConfigurationError, NotFoundError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, EC2NodeClassStatus
from joinery.objects.karpenter.labels import GPU_SHARING
from joinery.objects.snapshot.offerings import OfferingKey, Reservation
from simulator.awsserver.account import DISCOVERY, REGION, Account
from simulator.clock import Clock
from simulator.cloud.cloud import InMemoryCloud

CLUSTER = "joinery"
ZONES = ("us-east-1a", "us-east-1b")
CHEAP, DEAR = Override("m5.large", ZONES[0], 0.05, 29), Override("m6g.large", ZONES[1], 0.06, 29)


class Region(Protocol):
    """A cloud with two zones and EKS images, and its pools to run out of."""

    @property
    def cloud(self) -> Ec2Cloud | InMemoryCloud:
        """The form under test."""
        ...

    def run_out(self, *pools: OfferingKey) -> None:
        """From now on the pools are out."""
        ...

    def reserve(self, *reservations: dict[str, Any]) -> None:
        """There are these capacity reservations, as EC2 prints them."""
        ...


class _InMemory:
    def __init__(self) -> None:
        self.cloud = InMemoryCloud(Clock(), small_catalog(), cluster=CLUSTER)

    def run_out(self, *pools: OfferingKey) -> None:
        self.cloud.run_out(*pools)

    def reserve(self, *reservations: dict[str, Any]) -> None:
        for each in reservations:
            self.cloud.reserved[each["CapacityReservationId"]] = msgspec.convert(each, CapacityReservation)


class _Ec2:
    def __init__(self, account: Account) -> None:
        self._account = account
        self.cloud = Ec2Cloud(CLUSTER, REGION, now=Clock().now)
        seed(account)

    def run_out(self, *pools: OfferingKey) -> None:
        self._account.out_of.update(pools)

    def reserve(self, *reservations: dict[str, Any]) -> None:
        self._account.reservations.extend(reservations)


def seed(account: Account) -> None:
    """Tag the default network for discovery, in two zones; make the cluster, the role and AL2023's images."""
    ec2: Any = boto3.client("ec2")
    tags = [{"Key": key, "Value": value} for key, value in DISCOVERY.items()]
    filters = [{"Name": "availability-zone", "Values": list(ZONES)}]
    ids = [subnet["SubnetId"] for subnet in ec2.describe_subnets(Filters=filters)["Subnets"]]
    group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
    ec2.create_tags(Resources=[*ids, group], Tags=tags)
    arn = "arn:aws:iam::123456789012:role/eks"
    boto3.client("eks").create_cluster(name=CLUSTER, version="1.33", roleArn=arn, resourcesVpcConfig={"subnetIds": ids})
    boto3.client("iam").create_role(RoleName="nodes", AssumeRolePolicyDocument="{}")
    account.seed_images("al2023@latest", "1.33", datetime(2026, 8, 1, tzinfo=UTC))


def small_catalog() -> Catalog:
    """Two types in two zones, one of each architecture."""
    kinds = {"m5.large": "x86_64", "m6g.large": "arm64"}
    card = {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 3}
    return Catalog(
        region=REGION,
        zones=tuple(Zone(zone, f"use1-{zone[-1]}") for zone in ZONES),
        instance_types=tuple(
            entry(
                {
                    "InstanceType": name,
                    "SupportedUsageClasses": ["on-demand", "spot"],
                    "ProcessorInfo": {"SupportedArchitectures": [arch]},
                    "VCpuInfo": {"DefaultVCpus": 2},
                    "MemoryInfo": {"SizeInMiB": 8192},
                    "NetworkInfo": {"NetworkCards": [card], "Ipv4AddressesPerInterface": 10},
                }
            )
            for name, arch in kinds.items()
        ),
        offerings=tuple(
            CatalogOffering(name, zone, way, 0.1) for name in kinds for zone in ZONES for way in ("spot", "on-demand")
        ),
    )


@pytest.fixture(params=["memory", "ec2"])
def region(request: pytest.FixtureRequest) -> Region:
    """Both forms."""
    return _InMemory() if request.param == "memory" else _Ec2(request.getfixturevalue("account"))


def node_class(**spec: Any) -> EC2NodeClass:
    """A class that selects by the discovery tag."""
    wire = {
        "subnetSelectorTerms": [{"tags": DISCOVERY}],
        "securityGroupSelectorTerms": [{"tags": DISCOVERY}],
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": "nodes",
    }
    metadata = {"name": "default", "uid": "0a1b", "generation": 3}
    return EC2NodeClass.model_validate({"metadata": metadata, "spec": wire | spec})


def resolved(cloud: Cloud, found: EC2NodeClass) -> EC2NodeClass:
    """The class with its status written."""
    return found.model_copy(update={"status": cloud.prepare(found)})


def request_for(cloud: Cloud, *, count: int = 1, token: str = "t-1") -> LaunchRequest:
    """A spot launch of nodes that may be either of two types."""
    return LaunchRequest(
        token=token,
        count=count,
        node_pool="general",
        node_class=resolved(cloud, node_class()),
        capacity_type="spot",
        overrides=(CHEAP, DEAR),
        labels={"team": "a"},
    )


def conditions(cloud: Cloud, found: EC2NodeClass) -> dict[str, tuple[str, str]]:
    """Condition type to status and reason."""
    return {c.type: (c.status, c.reason) for c in cloud.prepare(found).conditions}


def test_a_class_that_selects_something_of_everything_is_ready(region: Region) -> None:
    """Its status lists what a launch needs, and the generation it speaks of."""
    status = region.cloud.prepare(node_class())
    assert {subnet.zone for subnet in status.subnets} == set(ZONES)
    assert len(status.security_groups) == 1
    assert {rule.values[0] for ami in status.amis for rule in ami.requirements if rule.values} == {"amd64", "arm64"}
    assert status.instance_profile
    assert {(c.type, c.status, c.observed_generation) for c in status.conditions} >= {("Ready", "True", 3)}


@pytest.mark.parametrize(
    ("spec", "kind", "reason"),
    [
        ({"subnetSelectorTerms": [{"tags": {"a": "b"}}]}, "SubnetsReady", "SubnetsNotFound"),
        ({"securityGroupSelectorTerms": [{"name": "absent"}]}, "SecurityGroupsReady", "SecurityGroupsNotFound"),
        ({"amiSelectorTerms": [{"name": "absent-*"}], "amiFamily": "AL2023"}, "AMIsReady", "AMINotFound"),
        (
            {"amiFamily": "Windows2022", "amiSelectorTerms": [{"name": "*"}], "instanceStorePolicy": "RAID0"},
            "ValidationSucceeded",
            "UnsupportedInstanceStorePolicy",
        ),
        ({"placementGroupSelector": {"name": "rack"}}, "PlacementGroupReady", "PlacementGroupNotFound"),
        ({"hostResourceGroupSelectorTerms": [{"tags": {"a": "b"}}]}, "ValidationSucceeded", "UnknownField"),
        ({"userData": "Content-Type: text/plain\n\nhello"}, "ValidationSucceeded", "InvalidUserData"),
    ],
)
def test_what_is_missing_is_named_in_a_condition(region: Region, spec: dict[str, Any], kind: str, reason: str) -> None:
    """And the class is not Ready, for that reason."""
    found = conditions(region.cloud, node_class(**spec))
    assert found[kind] == ("False", reason)
    assert found["Ready"][0] == "False"


@pytest.mark.parametrize(
    ("said", "is_ready"),
    [("memory", True), ("4", True), ("disabled", True), ("", True), ("0", False), ("-1", False), ("1Gi", False)],
)
def test_gpus_are_shared_in_a_way_that_their_driver_has(region: Region, said: str, is_ready: bool) -> None:
    """Or the class is not Ready (Karpenter's provider, "NVIDIA Consumable Capacity Validation")."""
    told = node_class()
    told.metadata.annotations[GPU_SHARING] = said
    found = conditions(region.cloud, told)
    wrong = ("False", "NVIDIAConsumableCapacityInvalid")
    assert (found["ValidationSucceeded"] == wrong, found["Ready"][0]) == (not is_ready, str(is_ready))


def _reservation(name: str, **given: Any) -> dict[str, Any]:
    return {
        "CapacityReservationId": name,
        "InstanceType": "m5.large",
        "AvailabilityZone": ZONES[0],
        "OwnerId": "111122223333",
        "TotalInstanceCount": 5,
        "AvailableInstanceCount": 2,
        "InstanceMatchCriteria": "targeted",
        "State": "active",
        "ReservationType": "default",
        "Tags": [{"Key": "team", "Value": "a"}],
        **given,
    }


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([{"id": "cr-1"}, {"id": "cr-9"}], ["cr-1"]),
        ([{"tags": {"team": "*"}}], ["cr-1", "cr-2"]),
        ([{"tags": {"team": "a"}, "ownerID": "444455556666"}], []),
        ([{"instanceMatchCriteria": "open"}, {"id": "cr-1"}], ["cr-1", "cr-2"]),
        ([{"tags": {"absent": "*"}}], []),
    ],
)
def test_terms_select_active_capacity_reservations(region: Region, terms: list[Any], expected: list[str]) -> None:
    """By id, of which one that EC2 does not know is nothing; by tags,
    owner and criteria; and the class is Ready in any case.
    """
    region.reserve(
        _reservation("cr-1"),
        _reservation("cr-2", InstanceMatchCriteria="open", Tags=[{"Key": "team", "Value": "b"}]),
        _reservation("cr-3", State="expired"),
    )
    status = region.cloud.prepare(node_class(capacityReservationSelectorTerms=terms))
    assert [found.id for found in status.capacity_reservations] == expected
    told = {c.type: c.status for c in status.conditions}
    assert (told["CapacityReservationsReady"], told["Ready"]) == ("True", "True")


def test_what_is_left_of_reservations_is_asked_by_id(region: Region) -> None:
    """One that EC2 has forgotten does not keep the others from being answered."""
    region.reserve(_reservation("cr-1"))
    assert _left(region.cloud, "cr-1", "cr-9") == {"cr-1": 2, "cr-9": 0}
    assert _left(region.cloud, "cr-9") == {"cr-9": 0}
    assert _left(region.cloud) == {}


def _left(cloud: Cloud, *reservations: str) -> dict[str, int]:
    """What a class whose status has these reservations may still launch in each."""
    entries = [{"id": name, "instanceType": "m5.large", "availabilityZone": ZONES[0]} for name in reservations]
    status = EC2NodeClassStatus.model_validate({"capacityReservations": entries})
    asked = node_class().model_copy(update={"status": status})
    (types,) = cloud.instance_types([asked], small_catalog(), Clock().now()).values()
    offerings = [offering for kind in types for offering in kind.offerings]
    return {found.reservation.id: found.reservation.remaining for found in offerings if found.reservation}


def test_a_launch_in_a_reservation_says_so(region: Region) -> None:
    """Its instance is reserved, in the one that was asked for."""
    region.reserve(_reservation("cr-1"))
    override = Override("m5.large", ZONES[0], 0.0, 29, Reservation("cr-1", remaining=2))
    asked = replace(request_for(region.cloud), capacity_type="reserved", overrides=(override,))
    (launched,) = region.cloud.launch(asked).instances
    assert (launched.instance_type, launched.capacity_type, launched.reservation) == ("m5.large", "reserved", "cr-1")


def test_a_condition_that_did_not_change_keeps_its_time(region: Region) -> None:
    """Resolving again tells a watcher nothing new."""
    first = resolved(region.cloud, node_class())
    assert region.cloud.prepare(first).conditions == first.status.conditions


def test_a_launch_takes_the_cheapest_pool_in_stock(region: Region) -> None:
    """And says what it launched, with the image of its architecture."""
    result = region.cloud.launch(request_for(region.cloud))
    (launched,) = result.instances
    assert (launched.instance_type, launched.zone, launched.capacity_type) == ("m5.large", ZONES[0], "spot")
    assert launched.image_id.startswith("ami-al2023")
    assert result.failures == ()


def test_a_pool_that_is_out_is_reported_and_the_next_one_taken(region: Region) -> None:
    """So the caller remembers it even though it has its instances."""
    out = OfferingKey("m5.large", ZONES[0], "spot")
    region.run_out(out)
    result = region.cloud.launch(request_for(region.cloud, count=2))
    assert [i.instance_type for i in result.instances] == ["m6g.large"] * 2
    assert capacity_pools(result.failures) == {out}


def test_no_capacity_at_all_is_a_result(region: Region) -> None:
    """Not an exception: the failures say which pools to leave out of the next plan."""
    pools = (OfferingKey("m5.large", ZONES[0], "spot"), OfferingKey("m6g.large", ZONES[1], "spot"))
    region.run_out(*pools)
    result = region.cloud.launch(request_for(region.cloud))
    assert result.instances == ()
    assert capacity_pools(result.failures) == set(pools)


def test_the_same_token_gives_the_same_instances(region: Region) -> None:
    """A launch whose answer was lost is repeated without launching twice."""
    first = region.cloud.launch(request_for(region.cloud, count=2))
    assert region.cloud.launch(request_for(region.cloud, count=2)) == first
    assert len(region.cloud.instances()) == 2
    region.cloud.launch(request_for(region.cloud, token="t-2"))
    assert len(region.cloud.instances()) == 3


def test_the_same_token_gives_the_same_instances_even_if_the_request_has_changed(region: Region) -> None:
    """Between a lost answer and its repetition prices change; what was launched is still the claims'."""
    first = region.cloud.launch(request_for(region.cloud))
    again = region.cloud.launch(replace(request_for(region.cloud), overrides=(DEAR,)))
    assert again.instances == first.instances
    assert len(region.cloud.instances()) == 1


def test_an_instance_carries_the_tags_that_say_whose_it_is(region: Region) -> None:
    """Karpenter's tags, so either controller can take over."""
    region.cloud.launch(request_for(region.cloud))
    (instance,) = region.cloud.instances()
    assert (instance.tags or {}).items() >= {
        "karpenter.sh/nodepool": "general",
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "eks:eks-cluster-name": CLUSTER,
        "kubernetes.io/cluster/joinery": "owned",
    }.items()
    assert instance.provider_id == f"aws:///{ZONES[0]}/{instance.instance_id}"
    assert instance.capacity_type == "spot"


def test_an_instance_says_what_it_was_made_of(region: Region) -> None:
    """What drift compares with what the class selects today."""
    request = request_for(region.cloud)
    region.cloud.launch(request)
    (instance,) = region.cloud.instances()
    status = request.node_class.status
    assert isinstance(status, EC2NodeClassStatus)
    assert instance.subnet_id in {subnet.id for subnet in status.subnets if subnet.zone == instance.zone}
    assert instance.security_groups == {group.id for group in status.security_groups}
    assert instance.instance_profile == status.instance_profile
    assert instance.image_id in {ami.id for ami in status.amis}


def test_the_users_tags_are_kept_and_ours_are_not_the_users_to_set(region: Region) -> None:
    """A class that sets an ownership tag is refused, by name and field."""
    tagged = resolved(region.cloud, node_class(tags={"team": "a", "Name": "node"}))
    region.cloud.launch(replace(request_for(region.cloud), node_class=tagged))
    (instance,) = region.cloud.instances()
    assert (instance.tags or {}).items() >= {"team": "a", "Name": "node"}.items()
    spec = tagged.spec.model_copy(update={"tags": {"karpenter.sh/nodepool": "mine"}})
    wrong = replace(request_for(region.cloud, token="t-2"), node_class=tagged.model_copy(update={"spec": spec}))
    with pytest.raises(ConfigurationError, match="EC2NodeClass default: spec.tags: karpenter.sh/nodepool"):
        region.cloud.launch(wrong)


def test_a_class_without_images_cannot_launch(region: Region) -> None:
    """The error names the class."""
    with pytest.raises(ConfigurationError, match="EC2NodeClass default: status"):
        region.cloud.launch(replace(request_for(region.cloud), node_class=node_class()))


def test_a_terminated_instance_goes(region: Region) -> None:
    """Repeating it is harmless, also together with one that never was."""
    launched = region.cloud.launch(request_for(region.cloud)).instances[0].instance_id
    region.cloud.terminate([launched])
    region.cloud.terminate([launched, "i-00000000000000fff"])
    assert all(instance.is_going for instance in region.cloud.instances())


def test_a_terminated_instance_is_known_by_its_id(region: Region) -> None:
    """That it is gone is said then, and not only that no list has it. What never was is left out."""
    launched = region.cloud.launch(request_for(region.cloud)).instances[0].instance_id
    asked = [launched, "i-00000000000000fff"]
    assert [(one.instance_id, one.is_going) for one in region.cloud.look_up(asked)] == [(launched, False)]
    region.cloud.terminate([launched])
    assert [(one.instance_id, one.is_going) for one in region.cloud.look_up(asked)] == [(launched, True)]
    assert region.cloud.look_up([]) == ()


def test_an_instance_that_never_was_is_not_found(region: Region) -> None:
    """Whatever is asked of it."""
    absent = "i-00000000000000fff"
    with pytest.raises(NotFoundError):
        region.cloud.terminate([absent])
    with pytest.raises(NotFoundError):
        region.cloud.tag(absent, {"a": "b"})
    with pytest.raises(NotFoundError):
        region.cloud.reboot(absent)


def test_an_instance_that_is_rebooted_stays(region: Region) -> None:
    """It is the same instance, and runs."""
    launched = region.cloud.launch(request_for(region.cloud)).instances[0].instance_id
    region.cloud.reboot(launched)
    (instance,) = region.cloud.instances()
    assert instance.instance_id == launched
    assert not instance.is_going


def test_nothing_is_wrong_with_an_instance_that_runs(region: Region) -> None:
    """Its checks pass, and nothing is scheduled for it."""
    region.cloud.launch(request_for(region.cloud))
    assert region.cloud.impaired() == ()


def test_no_zone_is_shifted_away_from(region: Region) -> None:
    """Where nobody has asked to look, and where there is no shift."""
    assert region.cloud.shifted_zones() == frozenset()


def test_tags_are_added(region: Region) -> None:
    """The node's name, once it is known."""
    launched = region.cloud.launch(request_for(region.cloud)).instances[0].instance_id
    region.cloud.tag(launched, {"Name": "ip-10-0-0-1"})
    (instance,) = region.cloud.instances()
    tags = instance.tags or {}
    assert (tags["Name"], tags["karpenter.sh/nodepool"]) == ("ip-10-0-0-1", "general")
