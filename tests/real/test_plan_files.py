"""``joinery plan`` on what real systems print: all of a cluster, and each piece by itself."""

from pathlib import Path

import pytest

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import NOW, Run
from tests.real.files import CLUSTER, PIECES, name, objects

PLAN = ("plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE), "-f")
#: Of an object of another's kind that stands for pods.
_NOT_PLANNED = (
    "{}: its pods are not planned: a plan does not read {}; give {} in its place, or the pods (kubectl get pods)"
)
_ANY, _TYPES = "a Deployment or a Job", "NodePool event-worker: spec.template.spec.requirements: "
#: What is said of a piece; of all others nothing, for there is nothing to say.
WARNINGS = {
    "events": ["ignored 1 object of kind Event: not used in a plan"],
    "karpenter/nodepool-v1": ["NodePool general: EC2NodeClass default does not exist"],
    "karpenter/nodepool-v1-gpu": ["NodePool gpu: EC2NodeClass gpu does not exist"],
    "karpenter/nodepool-v1beta1": [
        "NodePool general: kubelet settings are dropped (kubeReserved, maxPods): v1 has them on the EC2NodeClass, and "
        "no older default is here",
        "NodePool general: EC2NodeClass default does not exist",
    ],
    "karpenter/nodepool-v1-types-by-labels-of-nobody": [
        *(
            f"{_TYPES}kubernetes.amazonaws.com/{label} chooses nothing, nodes are only labelled with it; is it "
            f"karpenter.k8s.aws/{label}?"
            for label in ("instance-category", "instance-cpu")
        ),
        "NodePool event-worker: EC2NodeClass default does not exist",
    ],
    "others/argo-workflow-generate-name": [
        _NOT_PLANNED.format("Workflow nightly-import-", "Workflow.argoproj.io", _ANY),
    ],
    "others/argo-rollout-workload-ref": [
        _NOT_PLANNED.format("Rollout shop/checkout", "Rollout.argoproj.io", _ANY),
    ],
    "others/spark-application": [
        _NOT_PLANNED.format("SparkApplication spark-team-a/taxi-trips", "SparkApplication.sparkoperator.k8s.io", _ANY),
    ],
    "others/volcano-job": [_NOT_PLANNED.format("Job train", "Job.batch.volcano.sh", "one of batch/v1")],
    "others/kruise-daemonset": [
        _NOT_PLANNED.format("DaemonSet kube-system/agent", "DaemonSet.apps.kruise.io", "one of apps/v1"),
    ],
    "others/keda-queue": [
        "ScaledObject queue/aws-sqs-queue-scaledobject: Deployment queue/worker is planned with 0 replicas, the larger "
        "of its replicas and minReplicaCount; the autoscaler may make it 0 to 2000",
        "ignored 1 object of kind TriggerAuthentication: not used in a plan",
    ],
    "karpenter/nodepools-eks-auto-mode": [
        "NodePool system: its node class is a NodeClass.eks.amazonaws.com, which Joinery does not serve",
        "NodePool general-purpose: its node class is a NodeClass.eks.amazonaws.com, which Joinery does not serve",
    ],
    "karpenter/provisioner-v1alpha5": [
        (
            "AWSNodeTemplate default: spec.instanceProfile is missing: "
            "the one of Karpenter's settings is taken for granted"
        ),
        "Provisioner default: kubelet setting containerRuntime has no equivalent and is dropped",
    ],
    "pods/every-optional-field": [
        "StorageClass gp3 is not in the files: 1 volume claim taken as EBS volume, made in the zone of its pod's node",
    ],
    "pods/scheduling-gated": [
        "1 pod is gated (shop/kueue-gated; schedulingGates kueue.x-k8s.io/admission): not planned",
    ],
    "pods/fargate-pending-no-condition": [
        "1 pod waits for Fargate (schedulerName fargate-scheduler): no EC2 node is planned",
    ],
}  # fmt: skip
#: Pods that wait, and why they must: nothing but they is in the file.
UNSCHEDULABLE = {
    "pods/every-optional-field": [
        "its volume claim default/y does not exist",
        "its resource claim gpu: there is no ResourceClaim default/everything-gpu-abc",
    ],
    "pods/pending-unschedulable": ["there is no NodePool that could launch a node for it"],
    "pods/pod-level-resources-pending": ["there is no NodePool that could launch a node for it"],
    "pods/statefulset-ebs-pending-other-zone": ["its volume claim data/data-postgres-3 does not exist"],
}


@pytest.mark.parametrize("path", PIECES, ids=name)
def test_each_piece_is_read_and_only_what_matters_is_said(path: Path, run: Run) -> None:
    """No real object stops a plan, and none is read with a warning about nothing."""
    outcome = run(*PLAN, str(path))
    assert outcome.status == 0, outcome.err
    told = [line.partition(": ")[2].removeprefix(f"{path}: ") for line in outcome.err.splitlines()]
    # Nodes of other regions, pods without any pool and pods without their node are other tests'.
    of_others = ("PRICES ARE AN ESTIMATE", "there is no NodePool, so", "1 pod is on a node that is not in the files")
    told = [line for line in told if not line.startswith(of_others)]
    assert told == WARNINGS.get(name(path), WARNINGS.get(path.parent.name, []))
    left = [reason for entry in outcome.document["unschedulable"] for reason in entry["reasons"]]
    assert left == UNSCHEDULABLE.get(name(path), [])


def test_a_whole_cluster_is_planned(run: Run) -> None:
    """Every pod that the scheduler marked gets a place, and the one that waits for Fargate gets none on EC2."""
    outcome = run(*PLAN, str(CLUSTER))
    assert outcome.status == 0, outcome.err
    plan = outcome.document
    assert "1 pod waits for Fargate" in outcome.err
    marked = {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for pod in objects(CLUSTER)
        if pod["kind"] == "Pod"
        for condition in pod["status"].get("conditions", [])
        if condition.get("reason") == "Unschedulable"
    }
    placed = {key for part in ("launch", "existing") for node in plan[part] for key in node["pods"]}
    assert (placed, len(placed)) == (marked, 9)
    assert plan["unschedulable"] == []
