"""Every real answer of AWS about what there is: instances, subnets, images, the cluster, types and prices."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.gateways.aws import Clients
from joinery.gateways.ec2.adapter import Ec2Cloud
from joinery.gateways.ec2.catalog import listing
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.catalog.pricing import newest, on_demand_prices
from joinery.gateways.ec2.catalog.reservation_queries import active_reservations
from joinery.gateways.ec2.instancetypes.resolve import resolve
from joinery.gateways.ec2.launch.facts import ClusterFacts
from joinery.gateways.ec2.launch.fleet import subnets_by_zone
from joinery.gateways.ec2.launch.running import described
from joinery.gateways.ec2.nodeclass import discovery
from joinery.gateways.ec2.nodeclass.imagesearch import ImageSearch
from joinery.gateways.kubernetes import auth
from joinery.objects.errors import NotFoundError, UnavailableError
from joinery.objects.karpenter.ec2nodeclass import AMISelectorTerm, EC2NodeClass, SubnetSelectorTerm
from joinery.objects.snapshot.offerings import InstanceType
from simulator.clock import Clock
from tests.real.answers import REAL, answering, node_class, read

NOW = datetime(2026, 11, 21, 22, tzinfo=UTC)

# --- what there is ---


def test_instances_say_how_they_were_bought(clients: Clients) -> None:
    """By lifecycle or by preference; a terminated one has no subnet, and is still read."""
    with answering(clients, ("ec2", "describe_instances", read("describe-instances"))):
        instances = described(clients)
    assert [(i.instance_id[-4:], i.state, i.capacity_type, i.reservation) for i in instances] == [
        ("8fd6", "running", "spot", ""),
        ("2db3", "running", "on-demand", ""),
        ("7ff6", "terminated", "spot", ""),
        ("a783", "running", "reserved", "cr-0a1b2c3d4e5f60718"),
        ("8a57", "running", "reserved", "cr-0a1b2c3d4e5f60719"),
        ("5f5f", "running", "reserved", "cr-0a1b2c3d4e5f60720"),
    ]
    assert [(i.subnet_id[-2:], i.security_groups, i.instance_profile) for i in instances[1:4]] == [
        ("03", {"sg-0f1e2d3c4b5a69788"}, "prod_14107402741353021"),
        ("", frozenset(), ""),
        ("01", {"sg-0f1e2d3c4b5a69788"}, "prod_14107402741353021"),
    ]
    assert instances[0].launched_at == datetime(2026, 11, 20, 7, 34, 1, tzinfo=UTC)


def test_the_subnet_with_the_most_addresses_serves_its_zone(clients: Clients) -> None:
    """A local zone is a zone; a full subnet comes last, and one without IPv4 can hold no node."""
    with answering(clients, ("ec2", "describe_subnets", read("describe-subnets"))):
        subnets = discovery.subnets(clients, [SubnetSelectorTerm(tags={"karpenter.sh/discovery": "prod"})])
    assert [(subnet.id[-2:], subnet.zone, subnet.zone_id) for subnet in subnets] == [
        ("10", "us-east-1-atl-2a", "use1-atl2-az1"),
        ("03", "us-east-1c", "use1-az1"),
        ("02", "us-east-1b", "use1-az6"),
        ("01", "us-east-1a", "use1-az4"),
        ("09", "us-east-1a", "use1-az4"),
    ]
    status = node_class().status.model_copy(update={"subnets": subnets})
    assert subnets_by_zone(node_class().model_copy(update={"status": status}))["us-east-1a"].endswith("01")


def test_reservations_say_what_is_left_of_them(clients: Clients) -> None:
    """One that never ends, and a block that does."""
    with answering(clients, ("ec2", "describe_capacity_reservations", read("describe-capacity-reservations"))):
        reservations = active_reservations(clients, [])
    assert [
        (
            reservation.capacity_reservation_id,
            reservation.reservation_type,
            reservation.available_instance_count,
            reservation.is_usable(NOW),
        )
        for reservation in reservations
    ] == [("cr-0a1b2c3d4e5f60719", "default", 3, True), ("cr-0a1b2c3d4e5f60718", "capacity-block", 0, True)]
    assert [reservation.is_expiring(datetime(2026, 11, 22, 10, 50, tzinfo=UTC)) for reservation in reservations] == [
        False,
        True,
    ]


# --- images ---


@pytest.mark.parametrize(
    ("is_windows", "images"),
    [
        (False, [("ami-0b1a4ffbbb3a0b6ad", "amd64"), ("ami-0d3f5a1b2c9f8e7d6", "arm64")]),
        (True, [("ami-08588c41a0509f0b5", "amd64")]),
    ],
)
def test_an_image_of_another_system_is_no_image(
    clients: Clients, is_windows: bool, images: list[tuple[str, str]]
) -> None:
    """Windows' is the newest of x86_64, and boots no Linux node; what is deprecated gives way to what is not."""
    with answering(clients, ("ec2", "describe_images", read("describe-images"))):
        search = ImageSearch(clients, "1.33", NOW, is_windows=is_windows)
        selected = search.find([AMISelectorTerm(name="*1.33*")])
    assert [(image.id, image.requirements[0].values[0]) for image in selected] == images


def test_an_alias_of_windows_stands_for_nodes_of_its_system_and_build(clients: Clients) -> None:
    """Its Core image, of x86_64 alone, whatever devices the node has."""
    parameter = {"Parameter": {**read("ssm-get-parameter")["Parameter"], "Value": "ami-08588c41a0509f0b5"}}
    with answering(clients, ("ssm", "get_parameter", parameter), ("ec2", "describe_images", read("describe-images"))):
        search = ImageSearch(clients, "1.33", NOW, is_windows=True)
        (image,) = search.find([AMISelectorTerm(alias="windows2022@latest")])
    assert image.id == "ami-08588c41a0509f0b5"
    assert {rule.key: rule.values for rule in image.requirements} == {
        "kubernetes.io/arch": ["amd64"],
        "kubernetes.io/os": ["windows"],
        "node.kubernetes.io/windows-build": ["10.0.20348"],
    }


@pytest.mark.parametrize("name", ["ssm-get-parameter", "ssm-get-parameter-recommended-json"])
def test_a_parameter_names_an_image_by_id_or_in_a_document(clients: Clients, name: str) -> None:
    """``recommended`` holds JSON, ``recommended/image_id`` the id alone."""
    script: Any = (
        ("ssm", "get_parameter", read(name)),
        ("ec2", "describe_images", read("describe-images")),
    )
    parameter = read(name)["Parameter"]["Name"]
    with answering(clients, *script):
        selected = ImageSearch(clients, "1.33", NOW).find([AMISelectorTerm(ssm_parameter=parameter)])
    assert "ami-0b1a4ffbbb3a0b6ad" in {image.id for image in selected}


# --- the cluster ---


class _Eks(BaseHTTPRequestHandler):
    """EKS, as far as DescribeCluster: the cluster's name is the file."""

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        path = REAL / f"{self.path.rpartition('/')[2]}.json"
        exists = path.exists()
        refusal = {"message": "No cluster found for name: prod."}
        body = path.read_bytes() if exists else json.dumps(refusal).encode()
        self.send_response(200 if exists else 404)
        if not exists:
            self.send_header("x-amzn-ErrorType", "ResourceNotFoundException:http://internal.amazon.com/coral/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def eks(clients: Clients) -> Iterator[None]:
    """EKS, where boto3 and we find it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Eks) as server:
        Thread(target=server.serve_forever).start()
        os.environ["AWS_ENDPOINT_URL_EKS"] = f"http://127.0.0.1:{server.server_port}"
        yield
        del os.environ["AWS_ENDPOINT_URL_EKS"]
        server.shutdown()


def facts(name: str) -> ClusterFacts:
    """What nodes are told of the cluster."""
    return Ec2Cloud(name, "us-east-1", now=Clock().now).facts


@pytest.mark.parametrize(
    ("name", "cidr", "ipv6"),
    [("eks-describe-cluster", "172.20.0.0/16", False), ("eks-describe-cluster-ipv6", "fd30:1c53:5f8a::/108", True)],
)
def test_nodes_find_a_cluster_of_either_family(eks: None, name: str, cidr: str, ipv6: bool) -> None:
    """Endpoint, authority, version and the Services' range."""
    cluster = facts(name)
    assert (cluster.name, cluster.version, cluster.service_cidr, cluster.ipv6) == ("prod", "1.33", cidr, ipv6)
    assert (cluster.endpoint, bool(cluster.ca)) == (read(name)["cluster"]["endpoint"], True)
    assert auth.for_eks(name, "us-east-1", now=Clock().now).host == cluster.endpoint


def test_a_cluster_that_is_being_made_is_waited_for(eks: None) -> None:
    """It has no endpoint yet: a node launched now would never join, and the API cannot be asked."""
    for ask in (facts, lambda name: auth.for_eks(name, "us-east-1", now=Clock().now)):
        with pytest.raises(UnavailableError, match="prod is CREATING"):
            ask("eks-describe-cluster-creating")


def test_a_cluster_that_is_not_there_is_not_found(eks: None) -> None:
    """Whoever asks."""
    for ask in (facts, lambda name: auth.for_eks(name, "us-east-1", now=Clock().now)):
        with pytest.raises(NotFoundError, match="No cluster found"):
            ask("elsewhere")


# --- the catalogue ---


def questions(types: dict[str, Any] | None = None) -> list[tuple[str, str, Any]]:
    """What is asked for a catalogue, and answered; ``types`` may say less than the one that is sold."""
    whole = read("describe-instance-types")
    sold = [
        {"InstanceType": kind["InstanceType"], "LocationType": "availability-zone", "Location": f"us-east-1{zone}"}
        for kind in whole["InstanceTypes"]
        for zone in "ab"
    ]
    prices = {kind["InstanceType"]: "1.0" for kind in whole["InstanceTypes"]}
    listed = [*read("pricing-get-products")["PriceList"], *(_price(*item) for item in prices.items())]
    zones = [{"ZoneName": "us-east-1a", "ZoneId": "use1-az4"}, {"ZoneName": "us-east-1b", "ZoneId": "use1-az6"}]
    return [
        ("pricing", "get_products", {"PriceList": listed}),
        ("pricing", "get_products", {"PriceList": []}),
        ("ec2", "describe_spot_price_history", read("describe-spot-price-history")),
        ("ec2", "describe_instance_types", types or whole),
        ("ec2", "describe_instance_type_offerings", {"InstanceTypeOfferings": sold}),
        ("ec2", "describe_availability_zones", {"AvailabilityZones": zones}),
        ("ec2", "describe_capacity_reservations", read("describe-capacity-reservations")),
    ]


def catalogue(clients: Clients, types: dict[str, Any] | None = None) -> Catalog:
    """The live catalogue, of what the answers say."""
    with answering(clients, *questions(types)):
        return listing.read(clients, NOW)


def _price(kind: str, price: str) -> str:
    term = {"priceDimensions": {"d": {"pricePerUnit": {"USD": price}}}}
    return json.dumps({"product": {"attributes": {"instanceType": kind}}, "terms": {"OnDemand": {"t": term}}})


def anyone() -> EC2NodeClass:
    """A class whose nodes may be of any type, anywhere."""
    selecting = node_class()
    return selecting.model_copy(update={"status": selecting.status.model_copy(update={"amis": [], "subnets": []})})


@pytest.fixture
def types(clients: Clients) -> dict[str, InstanceType]:
    """The types of the answers as nodes of a class."""
    return {kind.name: kind for kind in resolve(catalogue(clients), anyone())}


AWS = "karpenter.k8s.aws/instance-"


@pytest.mark.parametrize(
    ("name", "resources", "labels"),
    [
        ("m5.large", {}, {"kubernetes.io/arch": "amd64", f"{AWS}cpu-sustained-clock-speed-mhz": "3100"}),
        ("t2.micro", {}, {"kubernetes.io/arch": "amd64", f"{AWS}hypervisor": "xen"}),
        ("m7g.xlarge", {}, {"kubernetes.io/arch": "arm64"}),
        ("g5.xlarge", {"nvidia.com/gpu": 1}, {f"{AWS}gpu-count": "1", f"{AWS}gpu-memory": "22888"}),
        (
            "g6f.large",
            {"nvidia.com/gpu": 1},
            {f"{AWS}gpu-count": "0", f"{AWS}gpu-fractional": "true", f"{AWS}gpu-memory": "2861"},
        ),
        ("p5.4xlarge", {"nvidia.com/gpu": 1}, {f"{AWS}gpu-count": "1", f"{AWS}gpu-memory": "81559"}),
        ("inf2.xlarge", {"aws.amazon.com/neuron": 1, "aws.amazon.com/neuroncore": 2}, {f"{AWS}accelerator-count": "1"}),
        (
            "inf1.xlarge",
            {"aws.amazon.com/neuron": 1, "aws.amazon.com/neuroncore": 4},
            {
                f"{AWS}accelerator-name": "inferentia",
                f"{AWS}accelerator-manufacturer": "aws",
                f"{AWS}accelerator-count": "1",
            },
        ),
        ("dl1.24xlarge", {"habana.ai/gaudi": 8}, {f"{AWS}gpu-count": "8", f"{AWS}gpu-manufacturer": "habana"}),
        # No clock speed is 0 to Karpenter too, so that a rule over it (Gt, Lt) can be answered.
        ("m8a.xlarge", {}, {"kubernetes.io/arch": "amd64", f"{AWS}cpu-sustained-clock-speed-mhz": "0"}),
    ],
)  # fmt: skip
def test_a_type_is_described_as_its_nodes_will_be(
    types: dict[str, InstanceType], name: str, resources: dict[str, int], labels: dict[str, str]
) -> None:
    """Parts of a GPU are devices too, i386 may come first, and one device may be told of twice."""
    has = types[name].capacity
    devices = {key: has[key] for key in has if key.split("/")[0] in ("nvidia.com", "aws.amazon.com", "habana.ai")}
    assert devices == resources
    assert {key: types[name].labels[key] for key in labels} == {key: (value,) for key, value in labels.items()}


def test_a_mac_is_no_node(types: dict[str, InstanceType]) -> None:
    """Its architecture is none that Kubernetes has a name for."""
    assert {kind["InstanceType"] for kind in read("describe-instance-types")["InstanceTypes"]} - set(types) == {
        "mac2.metal"
    }


def test_offerings_have_the_prices_of_the_lists(types: dict[str, InstanceType]) -> None:
    """On-demand in every zone, spot where its history has a price for Linux."""
    prices = {(o.zone, o.capacity_type): o.price for o in types["m5.large"].offerings}
    assert prices[("us-east-1a", "spot")] == 0.0412
    assert set(prices) == {("us-east-1a", "spot"), ("us-east-1a", "on-demand"), ("us-east-1b", "on-demand")}


def test_a_price_of_zero_has_a_twin_that_costs() -> None:
    """What a reservation has paid for already is listed at nothing, after what it costs without one."""
    listed = read("pricing-get-products")["PriceList"]
    expected = {"m5.large": 0.096, "c5a.2xlarge": 0.308, "m5.metal": 4.608}
    assert on_demand_prices(listed, "USD") == on_demand_prices(reversed(listed), "USD") == expected


@given(rows=st.permutations(read("describe-spot-price-history")["SpotPriceHistory"]))
def test_of_a_history_the_newest_price_counts(rows: list[dict[str, Any]]) -> None:
    """Whatever the order, and over pages; Windows' prices are none of ours."""
    dated = [{**row, "Timestamp": datetime.fromisoformat(row["Timestamp"])} for row in rows]
    assert newest(dated) == {
        ("c5a.2xlarge", "us-east-1a"): 0.1284,
        ("c5a.2xlarge", "us-east-1b"): 0.1197,
        ("m5.large", "us-east-1a"): 0.0412,
    }


def test_every_answer_is_read_by_some_test() -> None:
    """No file of the folder is left out."""
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    assert [path.stem for path in REAL.glob("*.json") if f'"{path.stem}"' not in tests] == []


@pytest.mark.parametrize("price", ["-1", "nan", "inf", "2000000"])
def test_what_is_no_price_is_left_out(price: str) -> None:
    """Written into the catalogue it would keep every decision from reading it."""
    row = {"InstanceType": "m5.large", "AvailabilityZone": "us-east-1a", "SpotPrice": price, "Timestamp": Clock().now()}
    assert newest([row]) == {}
