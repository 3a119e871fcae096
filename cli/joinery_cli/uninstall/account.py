"""The steps about the account: what doors have made there, the stack itself, and what the stack leaves."""

import contextlib
from collections.abc import Mapping

from joinery.decisions.installation import objects as installed
from joinery.decisions.installation.definitions import is_ours
from joinery.decisions.installation.objects import LEASE, ORDER, PART, Part
from joinery.decisions.installation.removal import Disposal, Nodes
from joinery.gateways.kubernetes.gateway import Objects
from joinery.objects.errors import NotFoundError
from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes.references import KINDS, Reference
from joinery_cli.uninstall.place import Place, UnfinishedError

#: DeleteObjects takes so many keys (S3 API).
_OBJECTS_AT_ONCE = 1000
#: What the stack makes for nodes: its name in the template, what it is, and the operation of IAM that finds it.
_OF_NODES = (
    ("NodeRole", "role", "get_role", "RoleName"),
    ("NodeInstanceProfile", "instance profile", "get_instance_profile", "InstanceProfileName"),
)
#: What a person writes.
_CONFIGURATIONS = ("NodePool", "EC2NodeClass")


def remove_launch_templates(place: Place) -> str:
    """Templates are made anew whenever they are wanted, and no instance needs its own once it runs."""
    filters = [
        {"Name": f"tag:kubernetes.io/cluster/{place.cluster}", "Values": ["owned"]},
        {"Name": "tag-key", "Values": [keys.NODE_POOL]},
    ]
    templates = place.aws.ask("ec2", "describe_launch_templates", Filters=filters)["LaunchTemplates"]
    for template in templates:
        with contextlib.suppress(NotFoundError):
            place.aws.ask("ec2", "delete_launch_template", LaunchTemplateId=template["LaunchTemplateId"])
    return f"{len(templates)} removed"


def remove_instance_profiles(place: Place) -> str:
    """Those that were made for node classes. Nodes that stay need theirs: without it they lose the cluster."""
    path = f"/karpenter/{place.region}/{place.cluster}/"
    profiles = place.aws.ask("iam", "list_instance_profiles", PathPrefix=path)["InstanceProfiles"]
    if not profiles:
        return "none of a node class is left"
    if place.nodes is Nodes.KEEP:
        return f"{len(profiles)} of node classes stay, because kept nodes need them"
    for profile in profiles:
        name = profile["InstanceProfileName"]
        with contextlib.suppress(NotFoundError):
            for role in profile["Roles"]:
                place.aws.ask(
                    "iam", "remove_role_from_instance_profile", InstanceProfileName=name, RoleName=role["RoleName"]
                )
            place.aws.ask("iam", "delete_instance_profile", InstanceProfileName=name)
    return f"{len(profiles)} removed"


def remove_stack(place: Place) -> str:
    """CloudFormation deletes it: the webhook first, then functions, queues and schedules, rights last.

    Raises ``UnfinishedError`` with CloudFormation's reasons.
    """
    stack = place.stack_id()
    if not stack:
        return "was gone"
    if place.described(stack)["StackStatus"] != "DELETE_IN_PROGRESS":
        place.aws.ask("cloudformation", "delete_stack", StackName=stack)
    place.until(lambda: _going(place, stack))
    status = place.described(stack)["StackStatus"]
    if status != "DELETE_COMPLETE":
        raise UnfinishedError(f"stack {place.stack} is {status}: {'; '.join(_reasons(place, stack))}")
    return "removed"


def say_what_nodes_keep(place: Place) -> str:
    """The role of the nodes and its instance profile, where the stack has made them and the installer has left them:
    nodes stay, or something else holds them, or it may not enter the cluster (``AccessEntries=false``).
    """
    left = _left(place)
    there = [
        f"the {kind} {left[name]}"
        for name, kind, operation, key in _OF_NODES
        if name in left and _is_there(place, operation, **{key: left[name]})
    ]
    if not there:
        return "none of the stack's is left"
    return (
        f"{' and '.join(there)} stay{'s' if len(there) == 1 else ''}, because nodes without them lose the cluster: "
        "delete them when the last node is gone"
    )


def _is_there(place: Place, operation: str, **named: str) -> bool:
    try:
        place.aws.ask("iam", operation, **named)
    except NotFoundError:
        return False
    return True


def remove_bucket(place: Place) -> str:
    """The catalogue and the records of decisions. CloudFormation leaves the bucket, because it is a user's data."""
    bucket = _left_bucket(place)
    if not bucket:
        return "was gone"
    if place.bucket is Disposal.KEEP:
        return f"s3://{bucket} stays"
    try:
        count = _empty(place, bucket)
        place.aws.ask("s3", "delete_bucket", Bucket=bucket)
    except NotFoundError:
        return "was gone"
    return f"s3://{bucket} removed with {count} objects"


def remove_rights(place: Place) -> str:
    """What the installer removes. It may not have had the right to (``AccessEntries=false``), or manifests were
    applied by hand.
    """
    if place.objects is None:
        return "there is no cluster"
    stored = [one for part in Part for kind in ORDER for one in place.objects.labelled(kind, PART, part)]
    removed = [place.objects.remove(name) for name in (*installed.outdated(stored, ()), LEASE)]
    return f"{sum(removed)} removed"


def remove_definitions(place: Place) -> str:
    """CustomResourceDefinitions with all their objects, where the user asked for it. Karpenter's own stay."""
    if place.objects is None or place.definitions is Disposal.KEEP:
        return "they stay, and so do NodePools and EC2NodeClasses"
    if place.nodes is Nodes.KEEP or place.objects.labelled("NodeClaim"):  # by now those of another provider alone
        return "they stay, because NodeClaims do"
    definitions = [one for one in place.objects.labelled("CustomResourceDefinition") if is_ours(one)]
    ours = {str(definition["metadata"]["name"]) for definition in definitions}
    for kind in _CONFIGURATIONS:
        if KINDS[kind].definition in ours:
            _release(place.objects, kind)
    for name in sorted(ours):
        place.objects.remove(Reference("CustomResourceDefinition", name))
    return f"{len(ours)} removed, with all their objects"


def _release(objects: Objects, kind: str) -> None:
    """Take finalizers off every object of a kind: nobody is left who would, and the definition would wait for ever."""
    for document in objects.labelled(kind):
        objects.patch(Reference(kind, document["metadata"]["name"]), {"metadata": {"finalizers": None}})


def _going(place: Place, stack: str) -> str:
    status = place.described(stack)["StackStatus"]
    return "CloudFormation is deleting" if status == "DELETE_IN_PROGRESS" else ""


def _reasons(place: Place, stack: str) -> list[str]:
    events = place.aws.ask("cloudformation", "describe_stack_events", StackName=stack)["StackEvents"]
    failed = [one for one in events if one["ResourceStatus"] == "DELETE_FAILED" and one["PhysicalResourceId"] != stack]
    return [f"{one['LogicalResourceId']}: {one.get('ResourceStatusReason', '')}" for one in failed[:3]]


def _left(place: Place) -> Mapping[str, str]:
    """What CloudFormation has left of the last stack of this name, by its name in the template (the stack's events)."""
    stack = place.stack_id("DELETE_COMPLETE")
    if not stack:
        return {}
    events = place.aws.ask("cloudformation", "describe_stack_events", StackName=stack)["StackEvents"]
    left = (one for one in events if one["ResourceStatus"] == "DELETE_SKIPPED")
    return {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in left}


def _left_bucket(place: Place) -> str:
    name = _left(place).get("Bucket", "")
    there = {one["Name"] for one in place.aws.ask("s3", "list_buckets")["Buckets"]}
    return name if name in there else ""


def _empty(place: Place, bucket: str) -> int:
    listed = place.aws.ask("s3", "list_objects_v2", Bucket=bucket).get("Contents") or []
    names = [{"Key": one["Key"]} for one in listed]
    for start in range(0, len(names), _OBJECTS_AT_ONCE):
        batch = {"Objects": names[start : start + _OBJECTS_AT_ONCE], "Quiet": True}
        place.aws.ask("s3", "delete_objects", Bucket=bucket, Delete=batch)
    return len(names)
