"""A deployment from its first command to its last, told once: the tests look at what was seen on the way.

Pods wait and run; EC2 takes a spot node back; a parameter is changed; a new release comes; an update fails and is
rolled back; the stack is deleted too early; it is uninstalled, and its nodes end. Then it is installed once more, and
uninstalled so that nodes stay.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from joinery.decisions.installation.requests import stack_name
from joinery.gateways.memory.bucket import CATALOG_KEY
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.snapshot import Snapshot
from tests.controlplane.story import DEPLOYMENTS
from tests.deploy.living import PATIENCE_SECONDS, Living, all_run, instance_of, now
from tests.deploy.releases import release
from tools.standin import inventory
from tools.standin.stacks import Stack, StackError
from tools.standin.world import StandIn
from tools.template import ROOT

JOINERY = ROOT / ".venv" / "bin" / "joinery"
SAMPLE = ROOT / "events" / "interruption_spot_warning.json"
#: A reserved execution is an environment with its memory: two are enough here.
PARAMETERS = {"StarterNodePool": "true", "Settings": "WebhookConcurrency=2"}
#: Pods of the Deployment: at first, and after the rollback. The second number wants more nodes.
PODS, MORE_PODS = 3, 12
NEXT_RELEASE, BROKEN_RELEASE = "9.9.9", "9.9.10"
_REQUIREMENTS = "/spec/template/spec/requirements"
#: Spot nodes, so that EC2 may take them back, and small ones, so that more pods need more of them.
_SMALL = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": ["5"]}
SMALL_SPOT = [
    {"op": "replace", "path": f"{_REQUIREMENTS}/2/values", "value": ["spot"]},
    {"op": "add", "path": f"{_REQUIREMENTS}/-", "value": _SMALL},
]


@dataclass
class Story:
    """What was seen, in the order in which it happened.

    ``before``, ``after``: everything in account and cluster, by name. ``seconds``: how long each part took.
    ``variables``: the environment of the provisioning function, after each part. ``versions``: what the installer had
    written on the cluster's objects by then. ``first``, ``second``, ``third``: when all pods ran, at the beginning,
    after the interruption, and after the rollback; ``rolled_back``: when the rollback was over. ``fourth``, ``kept``:
    before and after the uninstallation that keeps nodes; ``instances`` are those of both moments, and ``left`` is what
    stayed. ``uninstalled``, ``handed_over``: what the two uninstallations printed.
    """

    standin: StandIn
    stack: Stack
    before: frozenset[str]
    seconds: dict[str, float] = field(default_factory=dict)
    variables: dict[str, dict[str, str]] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    deployed: frozenset[str] = frozenset()
    first: Snapshot | None = None
    interrupted: NodeClaim | None = None
    second: Snapshot | None = None
    failed_update: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    rolled_back: Snapshot | None = None
    third: Snapshot | None = None
    deleted_too_early: str = ""
    after_refusal: frozenset[str] = frozenset()
    uninstalled: dict[str, Any] = field(default_factory=dict)
    after: frozenset[str] = frozenset()
    fourth: Snapshot | None = None
    kept: Snapshot | None = None
    instances: list[set[str]] = field(default_factory=list)
    left: frozenset[str] = frozenset()
    handed_over: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Note how long something takes."""
        began = time.monotonic()
        yield
        self.seconds[part] = time.monotonic() - began


def tell(standin: StandIn) -> Story:
    """All of it."""
    stack = Stack(standin, stack_name(standin.cluster.name))
    story = Story(standin, stack, everything(standin))
    living = Living(standin)
    parameters = {"ClusterName": standin.cluster.name, **PARAMETERS}
    with story.timed("deploy"):
        stack.deploy(parameters)
    story.deployed = everything(standin)
    _note(story, "deployed")
    _run_pods(story, living)
    _interrupt(story, living)
    with story.timed("update of a parameter"):
        stack.deploy({**parameters, "Settings": "WebhookConcurrency=2; MaxLaunches=7"})
    _note(story, "updated")
    _release(story, parameters)
    _fail(story, living, parameters)
    with story.timed("from a pending pod to a running one, after the rollback"):
        _scale(living, MORE_PODS)
        story.third, _ = living.until(all_run(MORE_PODS))
    _delete_too_early(story)
    _retire(story, living)
    _keep(story, living, parameters)
    return story


def everything(standin: StandIn) -> frozenset[str]:
    """What there is in account and cluster."""
    return frozenset(inventory.account(standin) | inventory.cluster(standin.plane))


def _run_pods(story: Story, living: Living) -> None:
    """Pods arrive, and nobody wakes anybody: the scheduler's Event does, through the webhook."""
    story.standin.plane.kubectl("patch", "nodepool", "default", "--type=json", "-p", json.dumps(SMALL_SPOT))
    with story.timed("until the first catalogue"):
        wait_for_catalogue(story.standin, story.stack)
    with story.timed("from pending pods to running ones"):
        start_pods(living)
        story.first, _ = living.until(all_run(PODS))


def wait_for_catalogue(standin: StandIn, stack: Stack) -> None:
    """Deploying does not wait for it. Without it a bell is tried twice, and then only the schedule rings."""
    there = {"Bucket": stack.outputs["Bucket"], "Key": CATALOG_KEY}
    patience = {"Delay": 1, "MaxAttempts": PATIENCE_SECONDS}
    standin.client("s3").get_waiter("object_exists").wait(**there, WaiterConfig=patience)


def start_pods(living: Living) -> None:
    """The Deployment, of so many pods."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "700m", "memory": "1Gi"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": PODS, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    living.admin.request("POST", DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})


def stop_pods(living: Living) -> None:
    """Until the Deployment and its pods are gone."""
    living.standin.plane.kubectl("delete", "deployment", "web", "--cascade=foreground", "--wait=false")
    living.until_over(lambda: not json.loads(living.admin.get("/api/v1/pods"))["items"])


def _interrupt(story: Story, living: Living) -> None:
    """EC2 warns. EventBridge takes no events of AWS from anybody else, so the warning is put into its queue."""
    assert story.first is not None
    claim = story.interrupted = story.first.node_claims[0]
    with story.timed("from a spot warning to the replacement, drained and terminated"):
        warn(story.standin, story.stack, claim)
        story.second, _ = living.until(is_replaced(claim))


def warn(standin: StandIn, stack: Stack, claim: NodeClaim) -> None:
    """EC2's warning about a claim's instance, in the stack's queue."""
    warning = json.loads(json.loads(SAMPLE.read_text())["Records"][0]["body"])
    warning |= {"time": now().strftime("%Y-%m-%dT%H:%M:%SZ"), "detail": {"instance-id": instance_of(claim)}}
    warning["detail"]["instance-action"] = "terminate"
    queue = stack.outputs["InterruptionQueue"]
    standin.client("sqs").send_message(QueueUrl=queue, MessageBody=json.dumps(warning))


def is_replaced(claim: NodeClaim) -> Callable[[Snapshot], Snapshot | None]:
    """A question: the snapshot, once the claim is gone and all pods run elsewhere."""

    def answer(seen: Snapshot) -> Snapshot | None:
        gone = claim.metadata.name not in {one.metadata.name for one in seen.node_claims}
        return all_run(PODS)(seen) if gone else None

    return answer


def _release(story: Story, parameters: dict[str, str]) -> None:
    """Another release."""
    with release(NEXT_RELEASE, story.standin.folder) as template, story.timed("another release"):
        story.stack.deploy({**parameters, "Settings": "WebhookConcurrency=2; MaxLaunches=7"}, template)
    _note(story, "upgraded")


def _fail(story: Story, living: Living, parameters: dict[str, str]) -> None:
    """A release that has changed functions and cluster before it fails: a queue that SQS does not accept comes last."""

    def break_it(template: dict[str, Any]) -> None:
        template["Resources"]["Broken"] = {
            "Type": "AWS::SQS::Queue",
            "DependsOn": "Connection",
            "Properties": {"MessageRetentionPeriod": 1},
        }

    with (
        release(BROKEN_RELEASE, story.standin.folder, break_it) as template,
        story.timed("a release that fails, and its rollback"),
    ):
        try:
            story.stack.deploy({**parameters, "Settings": "WebhookConcurrency=2; MaxLaunches=8"}, template)
        except StackError as error:
            story.failed_update = str(error)
    _note(story, "rolled back")
    # Nobody plays kubelets during an update, so one that lasts may find a node to replace, with the failing release.
    story.rolled_back = living.look()


def _scale(living: Living, replicas: int) -> None:
    living.admin.request(
        "PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": replicas}}, content_type="application/merge-patch+json"
    )


def _delete_too_early(story: Story) -> None:
    """The stack alone, while nodes run."""
    before = everything(story.standin)
    with story.timed("a deletion that is refused"):
        try:
            story.stack.delete()
        except StackError as error:
            story.deleted_too_early = str(error)
    story.statuses["deleted too early"] = story.stack.status
    story.after_refusal = before - everything(story.standin)


def _retire(story: Story, living: Living) -> None:
    """As `make undeploy CLUSTER=blue NODES=retire BUCKET=delete CRDS=delete` does it."""
    with story.timed("uninstalling, with every node drained"):
        story.uninstalled = uninstalling(story.standin, living, "--nodes=retire", "--bucket=delete", "--crds=delete")
    stop_pods(living)
    story.after = everything(story.standin)


def _keep(story: Story, living: Living, parameters: dict[str, str]) -> None:
    """Installed once more, and `make undeploy CLUSTER=blue NODES=keep BUCKET=delete`."""
    with story.timed("installing again, with its catalogue"):
        story.stack.deploy(parameters)
        wait_for_catalogue(story.standin, story.stack)
    with story.timed("from pending pods to running ones, once more"):
        start_pods(living)
        story.fourth, _ = living.until(all_run(PODS))
    story.instances.append(living.instances("pending", "running"))
    with story.timed("uninstalling, with every node kept"):
        story.handed_over = uninstalling(story.standin, living, "--nodes=keep", "--bucket=delete")
    story.instances.append(living.instances("pending", "running"))
    story.kept, story.left = living.look(), everything(story.standin) - story.before


def uninstalling(standin: StandIn, living: Living, *choices: str) -> dict[str, Any]:
    """`joinery uninstall` with the user's kubeconfig, while the cluster lives on. What it prints."""
    command = [str(JOINERY), "uninstall", standin.cluster.name, *choices, "--output=json"]
    environment = {**os.environ, **standin.environment, "KUBECONFIG": str(_kubeconfig(standin))}
    with (standin.folder / "uninstall.json").open("w+") as output:
        process = subprocess.Popen(command, env=environment, stdout=output)
        try:
            living.until_over(lambda: process.poll() is not None)
        finally:
            process.kill()
            process.wait()
        output.seek(0)
        printed: dict[str, Any] = json.load(output)
    return printed


def _kubeconfig(standin: StandIn) -> Path:
    """A kubeconfig whose context names the cluster as `aws eks update-kubeconfig` does."""
    path = standin.folder / "kubeconfig"
    path.write_text(standin.plane.kubeconfig().read_text().replace("local", standin.cluster.description["arn"]))
    return path


def _note(story: Story, part: str) -> None:
    """The stack's status, the environment of a function, and the version that the cluster's objects carry."""
    story.statuses[part] = story.stack.status
    functions = story.standin.client("lambda").list_functions()["Functions"]
    (one,) = [f for f in functions if "ProvisioningFunction" in f["FunctionName"]]
    story.variables[part] = one["Environment"]["Variables"]
    stored = json.loads(story.standin.plane.kubectl("get", "clusterrole", "joinery", "--output=json"))
    story.versions[part] = stored["metadata"].get("annotations", {}).get(keys.VERSION, "")
