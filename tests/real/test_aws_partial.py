"""AWS's answers with fields missing, as its APIs allow: one entry that says less takes no other with it."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from joinery.gateways.aws import Clients
from joinery.gateways.ec2.catalog.pricing import newest
from joinery.gateways.ec2.instancetypes.resolve import resolve
from joinery.gateways.ec2.nodeclass import discovery
from joinery.gateways.ec2.nodeclass.imagesearch import ImageSearch
from joinery.objects.karpenter.ec2nodeclass import AMISelectorTerm, SubnetSelectorTerm
from tests.real.answers import answering, read
from tests.real.test_aws_answers import NOW, anyone, catalogue


def lacking(answer: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """The answer, each time without another field of its first entry."""
    first, *others = answer[name]
    for field in first:
        yield {**answer, name: [{key: value for key, value in first.items() if key != field}, *others]}


def test_a_type_that_lacks_anything_takes_no_other_with_it(clients: Clients) -> None:
    """A type that EC2 has only announced may not say all; the catalogue is of the others."""
    others = {kind["InstanceType"] for kind in read("describe-instance-types")["InstanceTypes"][1:]} - {"mac2.metal"}
    for answer in lacking(read("describe-instance-types"), "InstanceTypes"):
        assert {kind.name for kind in resolve(catalogue(clients, answer), anyone())} >= others


def test_a_subnet_that_lacks_anything_takes_no_other_with_it(clients: Clients) -> None:
    """One without a zone serves none."""
    others = {subnet["SubnetId"] for subnet in read("describe-subnets")["Subnets"][1:] if not subnet.get("Ipv6Native")}
    for answer in lacking(read("describe-subnets"), "Subnets"):
        if all("SubnetId" in subnet for subnet in answer["Subnets"]):
            with answering(clients, ("ec2", "describe_subnets", answer)):
                assert {
                    subnet.id for subnet in discovery.subnets(clients, [SubnetSelectorTerm(id="subnet-1")])
                } >= others


def test_an_image_that_does_not_say_its_age_is_older_than_any_other(clients: Clients) -> None:
    """EC2 documents the date of creation as one more field that may be absent."""
    images = read("describe-images")["Images"]
    undated = [{**image, "CreationDate": ""} for image in images]
    for answer in (undated, [{key: image[key] for key in image if key != "CreationDate"} for image in images]):
        with answering(clients, ("ec2", "describe_images", {"Images": [*answer, *images]})):
            selected = ImageSearch(clients, "1.33", NOW).find([AMISelectorTerm(name="*1.33*")])
        assert {image.id for image in selected} == {"ami-0b1a4ffbbb3a0b6ad", "ami-0d3f5a1b2c9f8e7d6"}


def test_a_row_of_the_history_that_lacks_anything_is_none() -> None:
    """And the others are."""
    answer = read("describe-spot-price-history")
    for lack in lacking(answer, "SpotPriceHistory"):
        dated = [
            {**row, "Timestamp": datetime.fromisoformat(row["Timestamp"])} if "Timestamp" in row else row
            for row in lack["SpotPriceHistory"]
        ]
        assert newest(dated).keys() <= {
            ("c5a.2xlarge", "us-east-1a"),
            ("c5a.2xlarge", "us-east-1b"),
            ("m5.large", "us-east-1a"),
        }
        assert len(newest(dated)) >= 2
