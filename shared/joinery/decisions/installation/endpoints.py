"""The services that functions in a VPC must reach, and the VPC endpoints by which they do without the internet.

Names are those of PrivateLink: ``com.amazonaws.REGION.NAME``, of interfaces in China ``cn.com.amazonaws.REGION.NAME``.
Logs need none, because Lambda delivers them itself; nor does STS, because the cluster asks it who we are, and not we.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VpcEndpoint:
    """``name``: the service in the endpoint's name. ``is_gateway``: a route, which costs nothing; else an interface.
    ``what_for``: which part of Joinery is at a standstill without it. ``only_if``: what it takes for it to be needed;
    empty for one that always is.
    """

    name: str
    what_for: str
    is_gateway: bool = False
    only_if: str = ""

    def service(self, region: str) -> str:
        """The service's name in a region, as DescribeVpcEndpoints has it."""
        prefix = "cn." if region.startswith("cn-") and not self.is_gateway else ""
        return f"{prefix}com.amazonaws.{region}.{self.name}"


ENDPOINTS: Sequence[VpcEndpoint] = (
    VpcEndpoint("eks", "finding the cluster; the installer's access to it"),
    VpcEndpoint("sqs", "ringing bells"),
    VpcEndpoint("ec2", "launching and ending instances, the catalogue"),
    VpcEndpoint("s3", "the catalogue, decision records, answers to CloudFormation", is_gateway=True),
    VpcEndpoint("dynamodb", "remembering what EC2 was out of", is_gateway=True),
    VpcEndpoint("ssm", "AMIs by alias", only_if="an EC2NodeClass selects its AMI by alias or SSM parameter"),
    VpcEndpoint("secretsmanager", "the webhook's secret", only_if="WebhookEndpoint is not none"),
    VpcEndpoint("execute-api", "the webhook", only_if="WebhookEndpoint is private"),
    VpcEndpoint("lambda", "the first catalogue at once; without it, within half an hour"),
    VpcEndpoint("cloudformation", "telling the deletion of the stack from a rollback"),
    VpcEndpoint("arc-zonal-shift", "zonal shifts", only_if="ZonalShift is true"),
)
#: Services that most regions have no endpoint for, and what becomes of Joinery without a way to them.
WITHOUT_ENDPOINTS: Sequence[tuple[str, str]] = (
    ("iam", "name an instanceProfile in EC2NodeClasses instead of a role; the service-linked role of spot is not made"),
    ("pricing.api", "say OnDemandPrices=estimated: those of us-east-1, which come with the release"),
)
