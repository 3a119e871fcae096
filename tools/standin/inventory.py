"""What there is in the account and in the cluster, by name, so that two moments can be compared.

Nothing is left behind if what there is after uninstalling is what there was before installing.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tools.controlplane.plane import ControlPlane
from tools.standin.world import StandIn

#: What comes and goes by itself, in any cluster.
_PASSING = ("events", "leases", "endpoints", "endpointslices", "componentstatuses", "apiservices", "csinodes")
#: The stack and the bucket that `sam deploy` makes once in a region, for the artifacts of every stack.
_SAMS_OWN = "aws-sam-cli-managed-default"
#: EC2's own role for spot instances, of which an account has one.
_ACCOUNTS_OWN = "AWSServiceRoleForEC2Spot"
Lister = Callable[[StandIn], list[str]]


def account(standin: StandIn) -> set[str]:
    """Everything in the account that a stack, or a door, may have made: ``kind/name``."""
    listed = {f"{kind}/{name}" for kind, names in _ACCOUNT.items() for name in names(standin)}
    listed |= {f"access entry/{principal}" for principal in standin.cluster.entries}
    return {line for line in listed if _SAMS_OWN not in line and _ACCOUNTS_OWN not in line}


def cluster(plane: ControlPlane) -> set[str]:
    """Every object of the cluster but what passes: ``kind/namespace/name``. Of the Leases, ours."""
    kinds = plane.kubectl("api-resources", "--verbs=list,delete", "--output=name").split()
    kept = sorted({kind for kind in kinds if kind.partition(".")[0] not in _PASSING})
    objects = set(_objects(plane, ",".join(kept)))
    leases = plane.kubectl("get", "leases", "--namespace=kube-system", "--output=name").split()
    return objects | {lease for lease in leases if "joinery" in lease}


def _objects(plane: ControlPlane, kinds: str) -> Iterator[str]:
    for item in json.loads(plane.kubectl("get", kinds, "--all-namespaces", "--output=json"))["items"]:
        meta = item["metadata"]
        yield f"{item['kind']}/{meta.get('namespace', '')}/{meta['name']}"


def _paged(service: str, operation: str, field: str, name: str, **given: Any) -> Lister:
    """Names of everything that an operation lists over all pages. Without ``name`` the elements are names."""

    def names(standin: StandIn) -> list[str]:
        client = standin.client(service)
        if client.can_paginate(operation):
            pages = client.get_paginator(operation).paginate(**given)
        else:
            pages = [getattr(client, operation)(**given)]
        return [str(item[name] if name else item) for page in pages for item in page.get(field, ())]

    return names


def _instances(standin: StandIn) -> list[str]:
    reservations = standin.client("ec2").describe_instances()["Reservations"]
    instances = [instance for reservation in reservations for instance in reservation["Instances"]]
    return [i["InstanceId"] for i in instances if i["State"]["Name"] not in ("shutting-down", "terminated")]


_LIVING = ["CREATE_COMPLETE", "UPDATE_COMPLETE", "DELETE_FAILED", "ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"]
_ACCOUNT: dict[str, Lister] = {
    "stack": _paged("cloudformation", "list_stacks", "StackSummaries", "StackName", StackStatusFilter=_LIVING),
    "function": _paged("lambda", "list_functions", "Functions", "FunctionName"),
    "layer": _paged("lambda", "list_layers", "Layers", "LayerName"),
    "event source mapping": _paged("lambda", "list_event_source_mappings", "EventSourceMappings", "UUID"),
    "queue": _paged("sqs", "list_queues", "QueueUrls", ""),
    "schedule": _paged("scheduler", "list_schedules", "Schedules", "Name"),
    "rule": _paged("events", "list_rules", "Rules", "Name"),
    "table": _paged("dynamodb", "list_tables", "TableNames", ""),
    "bucket": _paged("s3", "list_buckets", "Buckets", "Name"),
    "secret": _paged("secretsmanager", "list_secrets", "SecretList", "Name"),
    "log group": _paged("logs", "describe_log_groups", "logGroups", "logGroupName"),
    "alarm": _paged("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    "dashboard": _paged("cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
    "role": _paged("iam", "list_roles", "Roles", "RoleName"),
    "policy": _paged("iam", "list_policies", "Policies", "PolicyName", Scope="Local"),
    "instance profile": _paged("iam", "list_instance_profiles", "InstanceProfiles", "InstanceProfileName"),
    "launch template": _paged("ec2", "describe_launch_templates", "LaunchTemplates", "LaunchTemplateName"),
    "instance": _instances,
}
