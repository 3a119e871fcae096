"""``joinery doctor`` over sites that are wrong in one place each."""

from datetime import timedelta
from typing import Any

import pytest

from joinery.decisions.installation.objects import MARKED, STACK
from joinery.gateways.ec2.catalog.document import Missing
from joinery.objects.errors import ConfigurationError, NotFoundError, UnavailableError
from joinery.objects.karpenter.labels import VERSION
from joinery_cli.doctor.findings import CheckStatus, exit_status
from tests.functional.doctored import (
    NOW,
    FakeApi,
    FakeAws,
    bucket,
    described,
    diagnosed,
    metrics,
    node_class,
    node_pool,
    site,
)

Answer = Any


def of_role(role: str, family: str = "AL2023") -> dict[str, Any]:
    """A class that names the role."""
    return node_class() | {"spec": {**node_class()["spec"], "role": role, "amiFamily": family}}


WARN, FAIL = CheckStatus.WARN, CheckStatus.FAIL
DENIED = ConfigurationError("iam simulate_principal_policy: AccessDenied: no")
FAULTS: dict[str, tuple[dict[str, Answer], dict[str, Answer], str, CheckStatus, str]] = {
    "a failed update": (
        {"describe_stacks": {"Stacks": [described()["Stacks"][0] | {"StackStatus": "UPDATE_ROLLBACK_COMPLETE"}]}},
        {},
        "stack",
        WARN,
        "rolled back",
    ),
    "a second stack": (
        {
            "describe_stacks": lambda **_: {
                "Stacks": described()["Stacks"] + [described()["Stacks"][0] | {"StackName": "joinery-two"}]
            }
        },
        {},
        "stack",
        FAIL,
        "joinery-two",
    ),
    "a stack elsewhere": (
        {},
        {MARKED.path: {"metadata": {"annotations": {STACK: "arn:aws:cloudformation:eu-west-1:2:stack/other/1"}}}},
        "stack",
        FAIL,
        "stack/other",
    ),
    "a source of the catalogue that could not be read": (
        {"get_object": bucket(missing=(Missing("the price list", "the prices of before", "AccessDenied"),))},
        {},
        "catalogue",
        WARN,
        "the price list could not be read: the prices of before (AccessDenied)",
    ),
    "observe mode": ({"describe_stacks": described(Mode="observe")}, {}, "settings", WARN, "nothing is done"),
    "an off-switch": (
        {"describe_stacks": described(SwitchedOff="lifecycle")},
        {},
        "settings",
        WARN,
        "lifecycle",
    ),
    "alarms for nobody": ({"describe_stacks": described(AlarmTopicArn="")}, {}, "settings", WARN, "nobody"),
    "a stopped function": (
        {"get_function_concurrency": {"ReservedConcurrentExecutions": 0}},
        {},
        "functions",
        FAIL,
        "stopped",
    ),
    "a broken function": (
        {"get_function_configuration": {"Role": "r", "State": "Failed"}},
        {},
        "functions",
        FAIL,
        "Failed",
    ),
    "a disabled queue": (
        {"list_event_source_mappings": {"EventSourceMappings": [{"UUID": "u-1", "State": "Disabled"}]}},
        {},
        "wake-ups",
        FAIL,
        "Disabled",
    ),
    "a disabled schedule": ({"get_schedule": {"State": "DISABLED"}}, {}, "wake-ups", FAIL, "LifecycleSchedule"),
    "an old Kubernetes": ({}, {"/version": {"minor": "29", "gitVersion": "v1.29"}}, "api server", FAIL, "1.29"),
    "no API server": ({}, {"/version": UnavailableError("timed out")}, "api server", FAIL, "timed out"),
    "a definition that is missing": (
        {},
        {"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.karpenter.sh": None},
        "version",
        FAIL,
        "nodepools.karpenter.sh",
    ),
    "a definition of another version": (
        {},
        {
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.karpenter.sh": {
                "metadata": {"annotations": {VERSION: "0.0.1"}}
            }
        },
        "version",
        WARN,
        "0.0.1",
    ),
    "a lacking right": ({}, {"review": lambda asked: asked["resource"] != "nodes"}, "rights", FAIL, "nodes"),
    "a role that the cluster does not know": (
        {"describe_access_entry": NotFoundError("none")},
        {},
        "access",
        FAIL,
        "Lifecycle",
    ),
    "a role in the group of all doors only": (
        {"describe_access_entry": {"accessEntry": {"kubernetesGroups": ["joinery"], "type": "EC2_LINUX"}}},
        {},
        "access",
        FAIL,
        "Lifecycle",
    ),
    "a boundary": (
        {"simulate_principal_policy": {"EvaluationResults": [{"EvalDecision": "implicitDeny"}]}},
        {},
        "account",
        FAIL,
        "ec2:CreateFleet",
    ),
    "a right of one's own that is missing": (
        {"simulate_principal_policy": DENIED},
        {},
        "account",
        WARN,
        "AccessDenied",
    ),
    "no role for nodes": ({"get_role": NotFoundError("none")}, {}, "node role", FAIL, "KarpenterNodeRole-blue"),
    "a class whose role may not be passed": (
        {"describe_stacks": described(MoreNodeRoles="batch team/gpu")},
        {"/apis/karpenter.k8s.aws/v1/ec2nodeclasses": {"items": [of_role("gpu"), of_role("web")]}},
        "node role",
        FAIL,
        "EC2NodeClass default names web,",
    ),
    "Windows with an entry of Linux": (
        {},
        {"/apis/karpenter.k8s.aws/v1/ec2nodeclasses": {"items": [of_role("KarpenterNodeRole-blue", "Windows2022")]}},
        "node role",
        WARN,
        "EC2_LINUX",
    ),
    "a closed egress": (
        {"describe_cluster": {"cluster": {"resourcesVpcConfig": {"controlPlaneEgressMode": "ISOLATED"}}}},
        {},
        "egress",
        WARN,
        "ISOLATED",
    ),
    "an API server that is private": (
        {"describe_cluster": {"cluster": {"resourcesVpcConfig": {"endpointPublicAccess": False}}}},
        {},
        "egress",
        FAIL,
        "private",
    ),
    "a webhook that nobody calls": ({"get_metric_statistics": metrics(Invocations=0)}, {}, "webhook", WARN, "a day"),
    "no NodePool": ({}, {"/apis/karpenter.sh/v1/nodepools": {"items": []}}, "nodepools", WARN, "none"),
    "a NodePool that is not ready": (
        {},
        {
            "/apis/karpenter.sh/v1/nodepools": {
                "items": [
                    node_pool()
                    | {"status": {"conditions": [{"type": "Ready", "status": "False", "message": "no class"}]}}
                ]
            }
        },
        "nodepools",
        FAIL,
        "no class",
    ),
    "a NodePool whose instances die at launch": (
        {},
        {
            "/apis/karpenter.sh/v1/nodepools": {
                "items": [
                    node_pool()
                    | {
                        "status": {
                            "conditions": [
                                {"type": "Ready", "status": "True"},
                                {"type": "NodeRegistrationHealthy", "status": "False", "message": "InvalidKMSKey"},
                            ]
                        }
                    }
                ]
            }
        },
        "nodepools",
        WARN,
        "InvalidKMSKey",
    ),
    "no subnets": (
        {},
        {"/apis/karpenter.k8s.aws/v1/ec2nodeclasses": {"items": [node_class(subnets=[])]}},
        "network",
        FAIL,
        "karpenter.sh/discovery",
    ),
    "full subnets": (
        {
            "describe_subnets": {
                "Subnets": [
                    {"SubnetId": "subnet-1", "AvailabilityZone": zone, "AvailableIpAddressCount": 3} for zone in "ab"
                ]
            }
        },
        {},
        "network",
        WARN,
        "subnet-1",
    ),
    "a small quota": ({"get_service_quota": {"Quota": {"Value": 32.0}}}, {}, "quotas", WARN, "100 vCPUs"),
    "a NodePool without limits": (
        {},
        {"/apis/karpenter.sh/v1/nodepools": {"items": [node_pool(memory="1Ti")]}},
        "quotas",
        WARN,
        "without limits",
    ),
    "little concurrency": (
        {"get_account_settings": {"AccountLimit": {"UnreservedConcurrentExecutions": 3}}},
        {},
        "concurrency",
        WARN,
        "3",
    ),
    "no catalogue": ({"list_objects_v2": {}}, {}, "catalogue", FAIL, "none"),
    "old prices": (
        {"list_objects_v2": {"Contents": [{"Key": "catalog.json.gz", "LastModified": NOW - timedelta(days=1)}]}},
        {},
        "catalogue",
        WARN,
        "1,440 minutes",
    ),
    "commitments that nobody has written": (
        {"describe_stacks": described(Commitments="file"), "get_object": bucket()},
        {},
        "commitments",
        WARN,
        "no commitments.json in the bucket yet",
    ),
    "commitments of which a part is missing": (
        {
            "describe_stacks": described(Commitments="100%"),
            "get_object": bucket(b'{"missing": ["Savings Plans could not be read: x"]}'),
        },
        {},
        "commitments",
        WARN,
        "Savings Plans could not be read",
    ),
    "dead letters": (
        {"get_queue_attributes": {"Attributes": {"ApproximateNumberOfMessages": "2"}}},
        {},
        "dead letters",
        FAIL,
        "2 in",
    ),
    "an alarm": (
        {"describe_alarms": {"MetricAlarms": [{"AlarmName": "failures", "StateValue": "ALARM"}]}},
        {},
        "alarms",
        FAIL,
        "FailuresAlarm",
    ),
    "throttling": ({"get_metric_statistics": metrics(Throttles=4)}, {}, "throttling", WARN, "turned away"),
    "failing runs": (
        {"get_metric_statistics": metrics(joinery_runs_failed_total=7)},
        {},
        "runs",
        WARN,
        "7 runs failed",
    ),
    "a clock that is off": ({}, {"clock": NOW + timedelta(minutes=4)}, "clock", WARN, "240 s"),
    "a Karpenter beside it": (
        {},
        {
            "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io/name%3Dkarpenter": {
                "items": [{"metadata": {"name": "karpenter", "namespace": "kube-system"}, "spec": {"replicas": 2}}]
            }
        },
        "karpenter",
        FAIL,
        "kube-system/karpenter",
    ),
    "a webhook that Karpenter left": (
        {},
        {
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": {
                "items": [{"metadata": {"name": name}} for name in ("validation.webhook.config.karpenter.sh", "other")]
            }
        },
        "karpenter",
        WARN,
        "validation.webhook.config.karpenter.sh: with Karpenter at zero",
    ),
    "objects that only Karpenter converts": (
        {},
        {
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.karpenter.sh": {
                "metadata": {},
                "spec": {"conversion": {"strategy": "Webhook"}},
                "status": {"storedVersions": ["v1beta1", "v1"]},
            }
        },
        "karpenter",
        FAIL,
        "nodepools.karpenter.sh is stored as v1beta1, v1",
    ),
    "a VPC without a way out": (
        {
            "describe_stacks": described(SubnetIds="subnet-1"),
            "describe_vpc_endpoints": {"VpcEndpoints": []},
            "describe_route_tables": {"RouteTables": []},
        },
        {},
        "vpc",
        FAIL,
        "sqs",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_topic_s_and_has_a_remedy(fault: str) -> None:
    """Whatever is wrong in one place leaves the other lines as they are."""
    aws, api, topic, status, words = FAULTS[fault]
    findings = diagnosed(site(FakeAws(**aws), FakeApi(**api)))
    told = [one for one in findings if (one.topic, one.status) == (topic, status)]
    assert any(words in one.text for one in told), findings
    assert all(one.remedy for one in findings if one.status in (WARN, FAIL))
    assert exit_status(findings) == (2 if FAIL in {one.status for one in findings} else 1)
