"""A cluster of EKS in moto's account, for tests of what AWS's adapters do."""

from datetime import UTC, datetime
from typing import Any

import boto3

from simulator.awsserver.account import DISCOVERY, Account


def create_cluster(account: Account) -> None:
    """The cluster, subnets and a security group with its discovery tag, a role for its nodes, and AL2023's images."""
    ec2: Any = boto3.client("ec2")
    subnets = [subnet["SubnetId"] for subnet in ec2.describe_subnets()["Subnets"]]
    group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
    ec2.create_tags(Resources=[*subnets, group], Tags=[{"Key": key, "Value": v} for key, v in DISCOVERY.items()])
    arn = "arn:aws:iam::123456789012:role/eks"
    boto3.client("eks").create_cluster(
        name="joinery", version="1.33", roleArn=arn, resourcesVpcConfig={"subnetIds": subnets[:2]}
    )
    boto3.client("iam").create_role(RoleName="nodes", AssumeRolePolicyDocument="{}")
    account.seed_images("al2023@latest", "1.33", datetime(2026, 8, 1, tzinfo=UTC))
