"""An installation for ``joinery doctor`` to look at, in memory: in order, unless a test says otherwise."""

import gzip
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

from joinery import __version__
from joinery.decisions.installation import shipped
from joinery.decisions.installation.objects import WEBHOOK, preparation
from joinery.decisions.installation.shipped import definitions, rights
from joinery.gateways.ec2.catalog.document import Catalog, encode
from joinery.gateways.memory.bucket import CATALOG_KEY, PAID_FOR_KEY
from joinery.gateways.workers import OneByOne
from joinery.objects.errors import NotFoundError
from joinery.objects.kubernetes.references import reference
from joinery.objects.settings import SETTINGS, in_force
from joinery_cli.doctor.command import checks
from joinery_cli.doctor.findings import CheckStatus, Finding, examine
from joinery_cli.doctor.site import Site

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DOORS = ("Webhook", "Provisioning", "Interruption", "Expiration", "Disruption", "Lifecycle", "Catalog")
STACK_ID = "arn:aws:cloudformation:us-east-1:123456789012:stack/joinery-blue/1"
STACK_PARAMETERS = {
    "ClusterName": "blue",
    "Mode": "act",
    "AlarmTopicArn": "arn:aws:sns:us-east-1:1:night",
}
URL = "https://abc.lambda-url.us-east-1.on.aws/"
Answer = Any


class FakeAws:
    """Answers by operation: a constant, or a function of the parameters. What is an error is raised."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = {**healthy(), **answers}

    def ask(self, service: str, operation: str, **parameters: Any) -> Mapping[str, Any]:
        answer = self.answers[operation]
        if isinstance(answer, Exception):
            raise answer
        document: Mapping[str, Any] = answer(**parameters) if callable(answer) else answer
        return document


class FakeApi:
    """An API server by path; everything that the manifests hold is there."""

    def __init__(self, **answers: Answer) -> None:
        self.answers: dict[str, Answer] = {"/version": {"minor": "33+", "gitVersion": "v1.33.1-eks"}}
        for one in preparation(
            definitions(), rights(), {**in_force(""), **STACK_PARAMETERS}, stack=STACK_ID, version=__version__
        ):
            self.answers[reference(one).path] = one
        self.answers[WEBHOOK.path] = {"webhooks": [{"clientConfig": {"url": URL + "secret"}}]}
        self.answers["/apis/karpenter.sh/v1/nodepools"] = {"items": [node_pool()]}
        self.answers["/apis/karpenter.k8s.aws/v1/ec2nodeclasses"] = {"items": [node_class()]}
        self.answers |= answers

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Mapping[str, Any]]:
        if path.endswith("subjectaccessreviews"):
            answer = self.answers.get("review", lambda attributes: True)
            return 201, {"status": {"allowed": answer(body["spec"]["resourceAttributes"])}}
        if method == "POST":
            return 201, {"metadata": {"creationTimestamp": self.answers.get("clock", NOW).isoformat()}}
        answer = self.answers.get(path)
        if isinstance(answer, Exception):
            raise answer
        return (200, answer) if answer is not None else (404, {})


class FakeWeb:
    """A webhook that answers with this status."""

    def __init__(self, status: int = 200) -> None:
        self.status = status

    def post(self, url: str, body: bytes) -> tuple[int, bytes]:
        uid = json.loads(body)["request"]["uid"]
        return self.status, json.dumps({"response": {"uid": uid, "allowed": True}}).encode()


GROUPS = sorted({group for door in shipped.DOORS for group in shipped.groups_of(door)})
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def node_pool(**limits: str) -> dict[str, Any]:
    """One that is ready and buys both capacity types."""
    requirement = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand", "spot"]}
    spec = {"limits": limits or {"cpu": "100"}, "template": {"spec": {"requirements": [requirement]}}}
    return {"kind": "NodePool", "metadata": {"name": "default"}, "spec": spec, "status": READY}


def node_class(**status: Any) -> dict[str, Any]:
    """One that is ready, in two subnets."""
    selected = {"subnets": [{"id": "subnet-1"}, {"id": "subnet-2"}], "securityGroups": [{"id": "sg-1"}]}
    spec = {"subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "blue"}}]}
    return {"kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": spec, "status": READY | selected | status}


def described(**parameters: str) -> dict[str, Any]:
    """The stack, as CloudFormation describes it."""
    settings = "; ".join(f"{key}={value}" for key, value in parameters.items() if key in SETTINGS)
    given = {**STACK_PARAMETERS, "Settings": settings, **parameters}
    outputs = {"Version": __version__, "WebhookUrl": URL, "Bucket": "bucket"}
    stack = {
        "StackName": "joinery-blue",
        "StackId": STACK_ID,
        "StackStatus": "UPDATE_COMPLETE",
        "Description": "Joinery: just-in-time nodes",
        "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in given.items()],
        "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()],
    }
    return {"Stacks": [stack]}


def healthy() -> dict[str, Answer]:
    """What AWS answers about an installation without a fault, by operation."""
    resources = [(f"{door}Function", "AWS::Lambda::Function", f"fn-{door}") for door in DOORS]
    resources += [("LogGroup", "AWS::Logs::LogGroup", "logs"), ("FailuresAlarm", "AWS::CloudWatch::Alarm", "failures")]
    resources += [("BellDeadLetters", "AWS::SQS::Queue", "https://sqs/dead.fifo")]
    resources += [("ProvisioningQueue", "AWS::SQS::Queue", "https://sqs/provisioning.fifo")]
    resources += [("LifecycleSchedule", "AWS::Scheduler::Schedule", "every-minute")]
    keys = ("LogicalResourceId", "ResourceType", "PhysicalResourceId")
    subnets = [{"SubnetId": f"subnet-{n}", "AvailabilityZone": zone} for n, zone in ((1, "a"), (2, "b"))]
    return {
        "describe_stacks": described(),
        "list_stack_resources": {"StackResourceSummaries": [dict(zip(keys, one, strict=True)) for one in resources]},
        "get_function_configuration": {"Role": "arn:role", "State": "Active", "MemorySize": 1024},
        "get_function_concurrency": {},
        "list_event_source_mappings": {"EventSourceMappings": [{"UUID": "u-1", "State": "Enabled"}]},
        "get_schedule": {"State": "ENABLED", "ScheduleExpression": "rate(1 minute)"},
        "describe_cluster": {
            "cluster": {
                "accessConfig": {"authenticationMode": "API"},
                "resourcesVpcConfig": {},
                "scoring": "MostAllocated",
            }
        },
        "get_caller_identity": {
            "ResponseMetadata": {"HTTPHeaders": {"date": NOW.strftime("%a, %d %b %Y %H:%M:%S GMT")}}
        },
        # Doors and nodes have one role here, so that is in all their groups.
        "describe_access_entry": {"accessEntry": {"kubernetesGroups": GROUPS, "type": "EC2_LINUX"}},
        "simulate_principal_policy": {"EvaluationResults": [{"EvalDecision": "allowed"}]},
        "get_role": {"Role": {"RoleName": "nodes", "Arn": "arn:nodes"}},
        "list_attached_role_policies": {"AttachedPolicies": [{"PolicyName": "AmazonEKSWorkerNodePolicy"}]},
        "describe_subnets": {"Subnets": [{**subnet, "VpcId": "vpc-1"} for subnet in subnets]},
        "get_service_quota": {"Quota": {"Value": 500.0}},
        "get_account_settings": {"AccountLimit": {"UnreservedConcurrentExecutions": 900, "ConcurrentExecutions": 1000}},
        "list_objects_v2": {"Contents": [{"Key": "catalog.json.gz", "LastModified": NOW - timedelta(minutes=10)}]},
        "get_object": bucket(),
        "get_queue_attributes": {"Attributes": {"ApproximateNumberOfMessages": "0"}},
        "describe_alarms": {"MetricAlarms": [{"AlarmName": "failures", "StateValue": "OK"}]},
        "get_metric_statistics": metrics(),
        "list_metrics": {"Metrics": [{}, {}]},
        "list_dashboards": {"DashboardEntries": [{}] * 4},
    }


def bucket(paid_for: bytes | None = None, **catalogue: Any) -> Callable[..., Any]:
    """What is stored: a catalogue, of which a test says what is in it, and the document of commitments, if any."""
    objects = {CATALOG_KEY: gzip.compress(encode(Catalog(region="us-east-1", **catalogue))), PAID_FOR_KEY: paid_for}

    def get(Key: str, **_: Any) -> Any:  # noqa: N803 - S3's word
        if (stored := objects[Key]) is None:
            raise NotFoundError("NoSuchKey")
        return {"Body": BytesIO(stored)}

    return get


def metrics(**values: float) -> Callable[..., Any]:
    """What CloudWatch says of metrics by name; of calls of the webhook there were some."""
    known = {"Invocations": 700.0, **values}
    return lambda **asked: {"Datapoints": [{"Sum": known.get(asked["MetricName"], 0.0)}]}


def site(aws: FakeAws | None = None, api: FakeApi | None = None, web: FakeWeb | None = None) -> Site:
    """A site in order, but for what is given."""
    return Site(
        cluster="blue",
        region="us-east-1",
        stack="joinery-blue",
        aws=aws or FakeAws(),
        api=api or FakeApi(),
        web=web or FakeWeb(),
        now=lambda: NOW,
    )


def diagnosed(given: Site) -> list[Finding]:
    """All findings, one check after the other."""
    return examine(checks(), given, OneByOne())


def wrong(findings: list[Finding]) -> set[tuple[str, CheckStatus]]:
    """What is not in order."""
    return {(one.topic, one.status) for one in findings if one.status in (CheckStatus.WARN, CheckStatus.FAIL)}
