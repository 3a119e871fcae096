"""What VPC endpoints are called."""

import pytest

from joinery_cli.doctor.reachable import ENDPOINTS


@pytest.mark.parametrize(("name", "region", "service"), [
    ("sqs", "eu-central-1", "com.amazonaws.eu-central-1.sqs"),
    ("s3", "eu-central-1", "com.amazonaws.eu-central-1.s3"),
    ("sqs", "cn-north-1", "cn.com.amazonaws.cn-north-1.sqs"),
    ("s3", "cn-north-1", "com.amazonaws.cn-north-1.s3"),
])  # fmt: skip
def test_endpoints_in_china_have_another_name_but_for_gateways(name: str, region: str, service: str) -> None:
    """As DescribeVpcEndpoints has them: under another name the doctor would miss an endpoint that is there."""
    (endpoint,) = (one for one in ENDPOINTS if one.name == name)
    assert endpoint.service(region) == service
