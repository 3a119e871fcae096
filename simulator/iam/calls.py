"""The rights that a call of AWS's API needs: actions, resources and condition keys.

Of each service as its page of the Service Authorization Reference says. A call that is not listed here is an error, so
that nobody takes it for one that needs no right. What a call names by id is looked up in the ``Holdings``: tags of what
exists, data of launch templates, roles of instance profiles.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from simulator.iam.policies import Request

Params = Mapping[str, Any]
Context = dict[str, list[str]]
#: Types of resources that EC2 makes at a launch, each of which must be allowed.
_MADE = ("instance", "volume", "network-interface")


class Holdings(Protocol):
    """What an account holds."""

    account: str
    region: str

    def tags(self, resource: str) -> Mapping[str, str]:
        """Of an EC2 resource by its id, of an instance profile by its name. Empty for one that is not there."""
        ...

    def template(self, name: str) -> tuple[str, Params]:
        """Id and LaunchTemplateData of a launch template. Both empty for one that is not there."""
        ...

    def profile_path(self, name: str) -> str:
        """The path of an instance profile."""
        ...

    def role_of_profile(self, name: str) -> str:
        """The ARN of the role in an instance profile, empty without one."""
        ...

    def role(self, name: str) -> str:
        """The ARN of a role."""
        ...

    def tags_of_role(self, arn: str) -> Mapping[str, str]:
        """The tags of a role. Empty for one that is not there."""
        ...


def rights(service: str, operation: str, params: Params, holdings: Holdings) -> tuple[Request, ...]:
    """The rights that the call needs. ``service``: as botocore names it. ``LookupError`` for a call not known here."""
    if service == "ec2" and operation.startswith("Describe"):
        # They know no resources.
        return (Request(f"ec2:{operation}", "*", _region(holdings)),)
    try:
        needed = _CALLS[service, operation]
    except KeyError:
        raise LookupError(f"simulator/iam/calls.py does not know the rights of {service}:{operation}") from None
    return tuple(needed(f"{service}:{operation}", params, holdings))


def _region(holdings: Holdings) -> Context:
    return {"aws:RequestedRegion": [holdings.region]}


def _arn(service: str, holdings: Holdings, resource: str) -> str:
    return f"arn:aws:{service}:{holdings.region}:{holdings.account}:{resource}"


def _request_tags(tags: Mapping[str, str]) -> Context:
    return {f"aws:RequestTag/{key}": [value] for key, value in tags.items()} | {"aws:TagKeys": list(tags)}


def _resource_tags(tags: Mapping[str, str]) -> Context:
    return {f"aws:ResourceTag/{key}": [value] for key, value in tags.items()}


def _pairs(tags: Any) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags}


# --- EC2 ---


def _specified(params: Params) -> dict[str, dict[str, str]]:
    """Tags by type of resource."""
    return {one["ResourceType"]: _pairs(one["Tags"]) for one in params.get("TagSpecifications", ())}


def _tagging(kind: str, tags: Mapping[str, str], by: str, holdings: Holdings) -> Iterator[Request]:
    """What is tagged while it is made takes a right to tag (EC2, "Grant permission to tag resources on creation")."""
    if tags:
        context = _region(holdings) | _request_tags(tags) | {"ec2:CreateAction": [by]}
        yield Request("ec2:CreateTags", _arn("ec2", holdings, f"{kind}/*"), context)


def _create_launch_template(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    tags = _specified(params).get("launch-template", {})
    arn = _arn("ec2", holdings, "launch-template/*")
    yield Request(action, arn, _region(holdings) | _request_tags(tags))
    yield from _tagging("launch-template", tags, "CreateLaunchTemplate", holdings)


def _create_fleet(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    """CreateFleet, and the RunInstances that it makes of each template for the caller."""
    of_call = _specified(params)
    fleet = of_call.get("fleet", {})
    yield Request(action, _arn("ec2", holdings, "fleet/*"), _region(holdings) | _request_tags(fleet))
    yield from _tagging("fleet", fleet, "CreateFleet", holdings)
    for config in params["LaunchTemplateConfigs"]:
        name = config["LaunchTemplateSpecification"]["LaunchTemplateName"]
        template, data = holdings.template(name)
        subnets = {one["SubnetId"] for one in config.get("Overrides", ()) if "SubnetId" in one}
        tags = {**_specified(data), **of_call}
        arn, context = _arn("ec2", holdings, f"launch-template/{template or '*'}"), holdings.tags(template)
        for of_both in (action, "ec2:RunInstances"):
            yield Request(of_both, arn, _region(holdings) | _resource_tags(context))
            yield from _launched(of_both, data, subnets, tags, holdings)
        yield from _beside(data, tags, holdings)


def _run_instances(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    """A dry run, or a launch without a fleet; by a launch template or without one."""
    named = params.get("LaunchTemplate", {})
    template, data = holdings.template(named.get("LaunchTemplateName", "")) if named else ("", {})
    asked = {**data, **params}
    if named:
        arn = _arn("ec2", holdings, f"launch-template/{template or '*'}")
        yield Request(action, arn, _region(holdings) | _resource_tags(holdings.tags(template)))
    tags = {**_specified(data), **_specified(params)}
    subnets = {params["SubnetId"]} if "SubnetId" in params else set()
    yield from _launched(action, asked, subnets, tags, holdings)
    yield from _beside(asked, tags, holdings)


def _launched(
    action: str, data: Params, subnets: set[str], tags: Mapping[str, dict[str, str]], holdings: Holdings
) -> Iterator[Request]:
    """What a launch makes, and what it uses."""
    region = _region(holdings)
    for kind in _MADE:
        yield Request(action, _arn("ec2", holdings, f"{kind}/*"), region | _request_tags(tags.get(kind, {})))
    if kind_tags := tags.get("spot-instances-request"):
        arn = _arn("ec2", holdings, "spot-instances-request/*")
        yield Request(action, arn, region | _request_tags(kind_tags))
    for resource in _used(data, subnets):
        # Images and snapshots may be anybody's, so their ARNs name no account.
        own = not resource.startswith(("image/", "snapshot/"))
        arn = _arn("ec2", holdings, resource) if own else f"arn:aws:ec2:{holdings.region}::{resource}"
        yield Request(action, arn, region | _resource_tags(holdings.tags(resource.partition("/")[2])))


def _used(data: Params, subnets: set[str]) -> Iterator[str]:
    if image := data.get("ImageId"):
        yield f"image/{image}"
    for mapping in data.get("BlockDeviceMappings", ()):
        if snapshot := mapping.get("Ebs", {}).get("SnapshotId"):
            yield f"snapshot/{snapshot}"
    interfaces = data.get("NetworkInterfaces", ())
    groups = {group for one in interfaces for group in one.get("Groups", ())} | set(data.get("SecurityGroupIds", ()))
    yield from (f"security-group/{group}" for group in sorted(groups))
    yield from (
        f"subnet/{subnet}" for subnet in sorted(subnets | {o["SubnetId"] for o in interfaces if "SubnetId" in o})
    )
    target = data.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
    if reservation := target.get("CapacityReservationId"):
        yield f"capacity-reservation/{reservation}"
    placement = data.get("Placement", {})
    if group := placement.get("GroupName") or placement.get("GroupId"):
        yield f"placement-group/{group}"


def _beside(data: Params, tags: Mapping[str, dict[str, str]], holdings: Holdings) -> Iterator[Request]:
    """What a launch takes beside the right to launch: whoever gives an instance a role passes it (IAM User Guide,
    "Grant a user permissions to pass a role").
    """
    for kind in (*_MADE, "spot-instances-request"):
        yield from _tagging(kind, tags.get(kind, {}), "RunInstances", holdings)
    if role := holdings.role_of_profile(data.get("IamInstanceProfile", {}).get("Name", "")):
        yield Request("iam:PassRole", role, {"iam:PassedToService": ["ec2.amazonaws.com"]})


def _on_instances(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    for instance in params["InstanceIds"]:
        arn = _arn("ec2", holdings, f"instance/{instance}")
        yield Request(action, arn, _region(holdings) | _resource_tags(holdings.tags(instance)))


#: Of ids of EC2's resources, by their prefix.
_KINDS = {"i": "instance", "vol": "volume", "eni": "network-interface", "lt": "launch-template"}


def _create_tags(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    for resource in params["Resources"]:
        arn = _arn("ec2", holdings, f"{_KINDS[resource.partition('-')[0]]}/{resource}")
        tags = _resource_tags(holdings.tags(resource)) | _request_tags(_pairs(params["Tags"]))
        yield Request(action, arn, _region(holdings) | tags)


def _delete_launch_template(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    template = params.get("LaunchTemplateId") or holdings.template(params.get("LaunchTemplateName", ""))[0]
    arn = _arn("ec2", holdings, f"launch-template/{template}")
    yield Request(action, arn, _region(holdings) | _resource_tags(holdings.tags(template)))


# --- IAM ---


def _profile_arn(params: Params, holdings: Holdings) -> str:
    name = params["InstanceProfileName"]
    path = params.get("Path") or holdings.profile_path(name) or "/"
    return f"arn:aws:iam::{holdings.account}:instance-profile{path}{name}"


def _on_profile(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    tags = holdings.tags(params["InstanceProfileName"])
    yield Request(action, _profile_arn(params, holdings), _resource_tags(tags))


def _list_profiles(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    arn = f"arn:aws:iam::{holdings.account}:instance-profile{params.get('PathPrefix', '/')}"
    yield Request(action, arn, {})


def _create_profile(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    tags = _pairs(params.get("Tags", ()))
    yield Request(action, _profile_arn(params, holdings), _request_tags(tags))
    if tags:
        # What is made with tags counts as having them: Karpenter's own policy, which is in use, relies on that.
        context = _request_tags(tags) | _resource_tags(tags)
        yield Request("iam:TagInstanceProfile", _profile_arn(params, holdings), context)


def _add_role(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    yield from _on_profile(action, params, holdings)
    yield Request("iam:PassRole", holdings.role(params["RoleName"]), {"iam:PassedToService": ["ec2.amazonaws.com"]})


def _on_role(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    yield Request(action, holdings.role(params["RoleName"]), {})


def _spot_role(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    service = params["AWSServiceName"]
    arn = f"arn:aws:iam::{holdings.account}:role/aws-service-role/{service}/AWSServiceRoleForEC2Spot"
    yield Request(action, arn, {"iam:AWSServiceName": [service]})


# --- others ---


def _cluster(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    yield Request(action, _arn("eks", holdings, f"cluster/{params['name']}"), {})


def _create_entry(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    cluster, principal = params["clusterName"], params["principalArn"]
    arn = _arn("eks", holdings, f"cluster/{cluster}")
    yield Request(action, arn, {"eks:principalArn": [principal]})
    if params.get("tags"):
        yield Request("eks:TagResource", _entry_arn(params, holdings), _request_tags(params["tags"]))


def _entry_arn(params: Params, holdings: Holdings) -> str:
    """``.../access-entry/CLUSTER/role/ACCOUNT/NAME/ID`` (Service Authorization Reference, Amazon EKS)."""
    name = params["principalArn"].rpartition("/")[2]
    return _arn("eks", holdings, f"access-entry/{params['clusterName']}/role/{holdings.account}/{name}/0a1b2c3d")


def _on_entry(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    context = {"eks:policyArn": [params["policyArn"]]} if "policyArn" in params else {}
    yield Request(action, _entry_arn(params, holdings), context)


def _parameters(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    for name in params.get("Names") or [params["Name"]]:
        # AWS's own parameters are nobody's account's (Systems Manager User Guide, "Calling public parameters").
        owner = "" if name.startswith("/aws/service/") else holdings.account
        arn = name if name.startswith("arn:") else f"arn:aws:ssm:{holdings.region}:{owner}:parameter{name}"
        yield Request(action, arn, {})


def _s3(action: str, params: Params, _: Holdings) -> Iterator[Request]:
    yield Request(action, f"arn:aws:s3:::{params['Bucket']}/{params['Key']}", {})
    if action == "s3:GetObject":
        # Without it S3 answers 403 and not 404 for what is not there (S3 API, GetObject, "Permissions").
        yield Request("s3:ListBucket", f"arn:aws:s3:::{params['Bucket']}", {})


def _scan(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    yield Request(action, _arn("dynamodb", holdings, f"table/{params['TableName']}"), {})


def _batch_write(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    for table, changes in params["RequestItems"].items():
        items = [one["PutRequest"]["Item"] if "PutRequest" in one else one["DeleteRequest"]["Key"] for one in changes]
        yield Request(action, _arn("dynamodb", holdings, f"table/{table}"), _leading_keys(*items))


def _item(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    key = params["Item"] if "Item" in params else params["Key"]
    yield Request(action, _arn("dynamodb", holdings, f"table/{params['TableName']}"), _leading_keys(key))


def _leading_keys(*items: Mapping[str, Any]) -> Context:
    return {"dynamodb:LeadingKeys": [str(item["pk"]["S"]) for item in items]}


def _assume(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    tags = holdings.tags_of_role(params["RoleArn"])
    yield Request(action, params["RoleArn"], {f"iam:ResourceTag/{key}": [value] for key, value in tags.items()})


def _send(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    yield Request(action, _arn("sqs", holdings, params["QueueUrl"].rpartition("/")[2]), {})


def _secret(action: str, params: Params, _: Holdings) -> Iterator[Request]:
    yield Request(action, params["SecretId"], {})


def _shifts(action: str, params: Params, _: Holdings) -> Iterator[Request]:
    context = {"arc-zonal-shift:ResourceIdentifier": [params["resourceIdentifier"]]}
    yield Request(action, params["resourceIdentifier"], context)


def _products(action: str, _: Params, __: Holdings) -> Iterator[Request]:
    yield Request(action, "*", {})


def _stacks(action: str, params: Params, _: Holdings) -> Iterator[Request]:
    yield Request(action, params["StackName"], {})


def _invoke(_: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    yield Request("lambda:InvokeFunction", _arn("lambda", holdings, f"function:{params['FunctionName']}"), {})


def _savings_plans(action: str, params: Params, holdings: Holdings) -> Iterator[Request]:
    plan = params.get("savingsPlanId", "*")
    yield Request(action, f"arn:aws:savingsplans::{holdings.account}:savingsplan/{plan}", {})


#: By service and operation. Each is given the call's name as an action, which most of them need a right to.
_CALLS: Mapping[tuple[str, str], Callable[[str, Params, Holdings], Iterator[Request]]] = {
    ("ec2", "CreateLaunchTemplate"): _create_launch_template,
    ("ec2", "DeleteLaunchTemplate"): _delete_launch_template,
    ("ec2", "CreateFleet"): _create_fleet,
    ("ec2", "RunInstances"): _run_instances,
    ("ec2", "TerminateInstances"): _on_instances,
    ("ec2", "RebootInstances"): _on_instances,
    ("ec2", "CreateTags"): _create_tags,
    ("savingsplans", "DescribeSavingsPlans"): _savings_plans,
    ("savingsplans", "DescribeSavingsPlanRates"): _savings_plans,
    ("iam", "GetInstanceProfile"): _on_profile,
    ("iam", "ListInstanceProfiles"): _list_profiles,
    ("iam", "CreateInstanceProfile"): _create_profile,
    ("iam", "AddRoleToInstanceProfile"): _add_role,
    ("iam", "RemoveRoleFromInstanceProfile"): _on_profile,
    ("iam", "DeleteInstanceProfile"): _on_profile,
    ("iam", "GetRole"): _on_role,
    ("iam", "ListAttachedRolePolicies"): _on_role,
    ("iam", "DetachRolePolicy"): _on_role,
    ("iam", "DeleteRolePolicy"): _on_role,
    ("iam", "DeleteRole"): _on_role,
    ("iam", "CreateServiceLinkedRole"): _spot_role,
    ("eks", "DescribeCluster"): _cluster,
    ("eks", "CreateAccessEntry"): _create_entry,
    ("eks", "DescribeAccessEntry"): _on_entry,
    ("eks", "DeleteAccessEntry"): _on_entry,
    ("eks", "AssociateAccessPolicy"): _on_entry,
    ("ssm", "GetParameter"): _parameters,
    ("ssm", "GetParameters"): _parameters,
    ("s3", "GetObject"): _s3,
    ("s3", "PutObject"): _s3,
    ("dynamodb", "Scan"): _scan,
    ("dynamodb", "BatchWriteItem"): _batch_write,
    ("dynamodb", "GetItem"): _item,
    ("dynamodb", "PutItem"): _item,
    ("dynamodb", "DeleteItem"): _item,
    ("sts", "AssumeRole"): _assume,
    ("sqs", "SendMessage"): _send,
    ("secretsmanager", "GetSecretValue"): _secret,
    ("secretsmanager", "PutSecretValue"): _secret,
    ("pricing", "GetProducts"): _products,
    ("arc-zonal-shift", "GetManagedResource"): _shifts,
    ("lambda", "Invoke"): _invoke,
    ("cloudformation", "DescribeStacks"): _stacks,
}
