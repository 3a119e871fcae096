"""Workloads in files stand for the pods that they will have and that the files do not hold."""

from typing import Any

import pytest
import yaml

from joinery.objects.karpenter.labels import BIND_COMPLETED
from joinery_cli.reading.inputs import Inputs, load
from joinery_cli.sources import SAMPLE
from tests.cli.conftest import NOW, Run, Write, pod_document

PLAN = ("plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE))
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "web"}}, "spec": pod_document()["spec"]}
VERSIONS = {"ReplicationController": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}


def workload(kind: str = "Deployment", name: str = "web", **spec: Any) -> dict[str, Any]:
    """A workload as a person writes it; ``spec`` beside selector and template."""
    selector = {"app": "web"} if kind == "ReplicationController" else {"matchLabels": {"app": "web"}}
    given = {"template": TEMPLATE, **({} if kind in ("Job", "CronJob") else {"selector": selector}), **spec}
    return {"apiVersion": VERSIONS.get(kind, "apps/v1"), "kind": kind, "metadata": {"name": name}, "spec": given}


def owned(name: str, kind: str, owner: str, **status: Any) -> dict[str, Any]:
    """A pod that a controller made."""
    pod = pod_document(name)
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "u", "controller": True}
    pod["metadata"] |= {"labels": {"app": "web", "pod-template-hash": "5d9c"}, "ownerReferences": [reference]}
    return {**pod, "status": status}


def names(inputs: Inputs) -> list[str]:
    """The pods of the inputs."""
    return sorted(inputs.objects["pods"])


def messages(inputs: Inputs) -> list[str]:
    """What a person is told of the inputs."""
    return [notice.message for notice in inputs.all_notices()]


def test_a_deployment_alone_is_planned_for_its_pods(run: Run, cluster: str, write: Write) -> None:
    """Who tries a plan has a manifest and no pods; what was added is said."""
    outcome = run(*PLAN, "-f", cluster, "-f", write("web.yaml", yaml.safe_dump(workload(replicas=3))))
    assert sorted(pod for launch in outcome.document["launch"] for pod in launch["pods"]) == [
        "default/web-1", "default/web-2", "default/web-3",
    ]  # fmt: skip
    assert "note: planned as well: 3 pods of 1 workload: Deployment default/web (3)" in outcome.err


@pytest.mark.parametrize(
    ("given", "pods"),
    [
        (workload(), ["web-1"]),
        (workload(replicas=0), []),
        (workload("ReplicaSet", replicas=2), ["web-1", "web-2"]),
        (workload("ReplicationController", replicas=2), ["web-1", "web-2"]),
        (workload("StatefulSet", replicas=2), ["web-0", "web-1"]),
        (workload("StatefulSet", replicas=2, ordinals={"start": 5}), ["web-5", "web-6"]),
        (workload("Job"), ["web-1"]),
        (workload("Job", parallelism=3), ["web-1", "web-2", "web-3"]),
        (workload("Job", parallelism=3, completions=2), ["web-1", "web-2"]),
        (workload("Job", completions=5), ["web-1"]),
        (workload("Job", suspend=True), []),
        ({**workload("Job"), "status": {"conditions": [{"type": "Complete", "status": "True"}]}}, []),
        ({**workload("Job", parallelism=3, completions=4), "status": {"succeeded": 3}}, ["web-1"]),
        (
            workload("CronJob", schedule="@daily", jobTemplate={"spec": {"parallelism": 2, "template": TEMPLATE}}),
            ["web-1", "web-2"],
        ),
        (workload("CronJob", schedule="@daily", suspend=True, jobTemplate={"spec": {"template": TEMPLATE}}), []),
    ],
)
def test_every_workload_has_the_pods_that_its_controller_makes(read: Any, given: Any, pods: list[str]) -> None:
    """Replicas default to one; a Job runs no more at once than it still has to complete; a CronJob runs once."""
    given["spec"].pop("template") if given["kind"] == "CronJob" else None
    assert names(read(given)) == [f"default/{pod}" for pod in pods]


def test_pods_that_are_there_are_not_made_again(read: Any) -> None:
    """Through the ReplicaSet, with or without it in the files; dead ones do not count."""
    replica_set = workload("ReplicaSet", "web-5d9c", replicas=2)
    replica_set["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    ]
    pods = [owned("web-5d9c-a", "ReplicaSet", "web-5d9c"), owned("web-5d9c-b", "ReplicaSet", "web-5d9c")]
    assert len(names(read(workload(replicas=2), replica_set, *pods))) == 2
    assert len(names(read(workload(replicas=2), *pods))) == 2
    dead = owned("web-5d9c-c", "ReplicaSet", "web-5d9c", phase="Failed")
    inputs = read(workload(replicas=4), replica_set, *pods, dead)
    assert names(inputs)[:2] == ["default/web-1", "default/web-2"]
    assert inputs.objects["pods"]["default/web-1"].metadata.labels["pod-template-hash"] == "5d9c"


def test_pods_without_owner_that_a_selector_fits_are_its_own(read: Any) -> None:
    """The controller would adopt them."""
    pod = pod_document("mine")
    pod["metadata"]["labels"] = {"app": "web"}
    assert names(read(workload(replicas=2), pod)) == ["default/mine", "default/web-1"]


def test_only_the_missing_ordinals_of_a_stateful_set_are_made(read: Any) -> None:
    """Its pods are told apart by number."""
    assert names(read(workload("StatefulSet", replicas=3), owned("web-1", "StatefulSet", "web"))) == [
        "default/web-0", "default/web-1", "default/web-2",
    ]  # fmt: skip


def test_jobs_that_run_or_have_run_are_not_planned_again(read: Any) -> None:
    """A pod of the Job, or of the CronJob's Job; and a CronJob that is idle in a cluster that runs."""
    assert len(names(read(workload("Job"), owned("web-x", "Job", "web")))) == 1
    cron = workload("CronJob", "night", schedule="@daily", jobTemplate={"spec": {"template": TEMPLATE}})
    del cron["spec"]["template"]
    assert len(names(read(cron, owned("night-1-x", "Job", "night-1")))) == 1
    bound = owned("web-x", "Job", "other")
    bound["spec"]["nodeName"] = "n"
    idle = read({**cron, "status": {"lastScheduleTime": NOW}}, bound)
    assert len(names(idle)) == 1
    assert "CronJob default/night: does not run at the moment, no run of it is planned" in messages(idle)


def test_a_stateful_set_gets_its_volume_claims(run: Run, cluster: str, write: Write) -> None:
    """One for each pod and template; a class that the files lack is taken for one of EBS's, and that is said."""
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "gp3",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    given = write("db.json", workload("StatefulSet", "db", replicas=2, volumeClaimTemplates=[claim]))
    outcome = run(*PLAN, "-f", cluster, "-f", given)
    assert outcome.document["unschedulable"] == []
    assert "StorageClass gp3 is not in the files: 2 volume claims taken as EBS volumes" in outcome.err
    claims = load([given]).objects["volume_claims"]
    assert sorted(claims) == ["default/data-db-0", "default/data-db-1"]
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gp3"},
        "provisioner": "x",
    }
    by_hand = {**storage, "provisioner": "kubernetes.io/no-provisioner"}
    waiting = run(*PLAN, "-f", cluster, "-f", given, "-f", write("class.json", by_hand))
    assert len(waiting.document["unschedulable"]) == 2


@pytest.mark.parametrize(("provisioner", "is_told"), [("ebs.csi.aws.com", True), ("efs.csi.aws.com", False)])
def test_a_volume_that_is_made_at_once_is_planned_where_its_pod_is(
    run: Run, cluster: str, write: Write, provisioner: str, is_told: bool
) -> None:
    """AWS' own StorageClass of EFS has no binding mode: Immediate. Its zone is no matter, that of a disk is chance."""
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}}
    claim: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
    claim["spec"] = {
        "storageClassName": "s", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    }  # fmt: skip
    pod = pod_document(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    given = (write("class.json", {**storage, "provisioner": provisioner}), write("pod.json", pod))
    outcome = run(*PLAN, "-f", cluster, *given, write("claim.json", claim))
    assert outcome.document["unschedulable"] == []
    said = (
        "warning: StorageClass s has volumes made at once, in whatever zone: 1 volume claim planned as if in the zone"
    )
    assert (said in outcome.err) is is_told
    claim["metadata"]["uid"] = "a"
    waiting = run(*PLAN, "-f", cluster, *given, write("claim.json", claim)).document["unschedulable"]
    assert waiting[0]["reasons"] == ["its volume claim default/data waits for a volume (binding mode Immediate)"]


@pytest.mark.parametrize(
    ("storage_class", "said"),
    [({"storageClassName": "gp3"}, "StorageClass gp3 is"), ({}, "a default StorageClass is")],
)
def test_so_is_the_class_of_a_claim_beside_a_deployment(
    run: Run, cluster: str, write: Write, storage_class: dict[str, str], said: str
) -> None:
    """As charts have it, or as a generic ephemeral volume; no chart brings the cluster's storage classes."""
    spec = {**storage_class, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}},
    ]
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "volumes": volumes}}
    given = [write("claim.json", claim), write("web.json", workload(template=template))]
    outcome = run(*PLAN, "-f", cluster, *given)
    assert outcome.document["unschedulable"] == []
    assert f"note: {said} not in the files: 2 volume claims taken as EBS volumes" in outcome.err


def test_a_claim_that_a_cluster_has_had_wants_its_own_class(run: Run, cluster: str, write: Write) -> None:
    """There the class was deleted, and nobody makes the volume."""
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "uid": "u"},
             "spec": {"storageClassName": "gone"}}  # fmt: skip
    pod = pod_document(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    outcome = run(*PLAN, "-f", cluster, write("claim.json", claim), write("pod.json", pod))
    assert outcome.document["unschedulable"][0]["reasons"] == [
        "the storage class gone of claim default/data does not exist"
    ]


def test_claims_without_a_class_get_the_default_one(read: Any) -> None:
    """As admission writes it in; an empty class is a class."""
    claims = [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
        for name, spec in (("none", {}), ("empty", {"storageClassName": ""}))
    ]
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "ebs.csi.aws.com"}
    storage["metadata"] = {"name": "gp3", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}  # type: ignore[assignment]
    found = read(*claims, storage).objects["volume_claims"]
    assert {key: claim.spec.storage_class_name for key, claim in found.items()} == {
        "default/none": "gp3",
        "default/empty": "",
    }


def test_a_namespaces_limit_range_gives_containers_their_requests(read: Any) -> None:
    """Containers that say nothing get the defaults; what they say counts; pods of a cluster have been through it."""
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}}
    limits["spec"] = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "2", "memory": "1Gi"}}]}
    bare = {"containers": [{"name": "main", "resources": {"requests": {"memory": "64Mi"}}}]}
    served = pod_document("served", **bare)
    served["metadata"]["uid"] = "1"
    found = read(limits, pod_document("fresh", **bare), served).objects["pods"]
    assert found["default/fresh"].spec.containers[0].resources.requests == {"cpu": "2", "memory": "64Mi"}
    assert found["default/served"].spec.containers[0].resources.requests == {"memory": "64Mi"}


@pytest.mark.parametrize(
    ("bounds", "requests", "limits"),
    [
        ({"max": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}),
        ({"min": {"cpu": "100m"}}, {"cpu": "100m"}, {}),
        ({"min": {"cpu": "100m"}, "max": {"cpu": "2"}, "default": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "1"}),
        ({"min": {"cpu": "100m"}, "max": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "2"}),
    ],
)
def test_the_bounds_of_a_limit_range_are_defaults_where_it_has_none(
    read: Any, bounds: dict[str, Any], requests: dict[str, str], limits: dict[str, str]
) -> None:
    """The API server fills in a LimitRange as it stores it: the limit from the maximum, the request from the limit, or
    from the minimum.
    """
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}}
    limit_range["spec"] = {"limits": [{"type": "Container", **bounds}]}
    pods = read(limit_range, pod_document("fresh", containers=[{"name": "main"}])).objects["pods"]
    resources = pods["default/fresh"].spec.containers[0].resources
    assert (resources.requests, resources.limits) == (requests, limits)


def test_pods_of_a_daemon_set_get_their_requests_from_the_limit_range_too(read: Any) -> None:
    """They take room on every node. A cluster fills in the pods, and never the template of the DaemonSet."""
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}}
    limit_range["spec"] = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}}]}
    spec = {"template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "main"}]}}}
    agents = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}
        for metadata in ({"name": "fresh"}, {"name": "served", "uid": "1"})
    ]
    daemon_sets = read(limit_range, *agents).objects["daemon_sets"]
    requests = {key: found.spec.template.spec.containers[0].resources.requests for key, found in daemon_sets.items()}
    assert requests == {"default/fresh": {"cpu": "1"}, "default/served": {"cpu": "1"}}


@pytest.mark.parametrize(("replicas", "least", "planned"), [(1, 3, 3), (None, 3, 3), (4, 2, 4), (0, 3, 0)])
def test_an_autoscaler_keeps_its_fewest_replicas(read: Any, replicas: int | None, least: int, planned: int) -> None:
    """The plan is for the larger of replicas and minReplicas, and says so; a workload of none is switched off."""
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": least,
            "maxReplicas": 9,
        },
    }
    given = workload()
    given["spec"]["replicas"] = replicas
    inputs = read(given, scaler)
    assert len(names(inputs)) == planned
    lines = [line for line in messages(inputs) if "Autoscaler" in line]
    ending = f"the larger of its replicas and minReplicas; the autoscaler may make it {least} to 9"
    assert [line.endswith(f"is planned with {planned} replicas, {ending}") for line in lines] == [True] * bool(planned)


@pytest.mark.parametrize(
    ("replicas", "given", "planned", "span"),
    [
        (None, {}, 1, "0 to 100"),
        (0, {"maxReplicaCount": 10}, 0, "0 to 10"),
        (0, {"minReplicaCount": 2, "maxReplicaCount": 10}, 2, "2 to 10"),
        (1, {"minReplicaCount": 2, "idleReplicaCount": 0, "maxReplicaCount": 10}, 2, "0 to 10"),
    ],
)
def test_so_does_kedas_which_may_begin_with_none(
    read: Any, replicas: int | None, given: dict[str, int], planned: int, span: str
) -> None:
    """Without a kind it scales a Deployment; its many other fields are none of a plan's business."""
    scaler = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "by-queue"},
        "spec": {"scaleTargetRef": {"name": "web"}, "triggers": [{"type": "aws-sqs-queue"}], **given},
    }
    target = workload()
    target["spec"]["replicas"] = replicas
    inputs = read(target, scaler)
    assert len(names(inputs)) == planned
    (line,) = [line for line in messages(inputs) if "ScaledObject" in line]
    number = "1 replica" if planned == 1 else f"{planned} replicas"
    assert line == (
        f"ScaledObject default/by-queue: Deployment default/web is planned with {number}, the larger of its replicas "
        f"and minReplicaCount; the autoscaler may make it {span}"
    )


def test_a_scaled_object_of_no_version_is_refused(run: Run, cluster: str, write: Write) -> None:
    """``keda.sh/v2`` is in tutorials, because KEDA itself is 2.x."""
    path = write("keda.json", {"apiVersion": "keda.sh/v2", "kind": "ScaledObject", "metadata": {"name": "a"}})
    outcome = run(*PLAN, "-f", cluster, "-f", path)
    assert outcome.status == 2
    assert "apiVersion: there is no ScaledObject in keda.sh/v2; is it keda.sh/v1alpha1?" in outcome.err


def test_a_priority_class_that_the_files_lack_is_named(read: Any) -> None:
    """The pod gets the default priority; classes that every cluster has need no file."""
    inputs = read(
        pod_document("a", priorityClassName="urgent"), pod_document("b", priorityClassName="system-node-critical")
    )
    assert messages(inputs) == ["PriorityClass urgent is not in the files: 1 pod planned with the default priority"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (workload(replicas=10**9), "Deployment default/web: 1,000,000,000 pods are more than a cluster holds"),
        (workload(replica=2), "Deployment web: spec.replica: no such field; is it replicas?"),
        (
            workload(nodeSelector={}),
            "Deployment web: spec.nodeSelector: no such field here; it belongs to spec.template.spec",
        ),
        (workload(template={"spec": {}}), "Deployment web: spec.template.spec.containers: a pod needs a container"),
        (workload(replicas=-3), "Deployment web: spec.replicas: must not be negative"),
        (workload("Job", parallelism=-2), "Job web: spec.parallelism: must not be negative"),
        (
            workload("CronJob", schedule="@daily", jobTemplate={"spec": {"completions": -1, "template": TEMPLATE}}),
            "CronJob web: spec.jobTemplate.spec.completions: must not be negative",
        ),
        (
            workload(template={**TEMPLATE, "metadata": {"labels": {"app": "v1.0 beta"}}}),
            "Deployment web: spec.template.metadata.labels.app: 'v1.0 beta' is no label value: ",
        ),
    ],
)
def test_a_workload_that_no_cluster_takes_is_refused(run: Run, write: Write, given: Any, problem: str) -> None:
    """One line, exit status 2."""
    outcome = run(*PLAN, "-f", write("web.json", given))
    assert (outcome.status, outcome.out) == (2, "")
    assert problem in outcome.err


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicationController"])
def test_a_selector_that_does_not_match_its_own_template_is_a_warning(read: Any, kind: str) -> None:
    """An API server refuses it; the pods are what they would be."""
    selector = {"app": "wbe"} if kind == "ReplicationController" else {"matchLabels": {"app": "wbe"}}
    said = f"{kind} default/web: its selector matches none of its own pods, so that an API server refuses it"
    assert said in messages(read(workload(kind, selector=selector)))
    assert said not in messages(read(workload(kind)))


def test_names_that_the_api_server_generates_are_numbered(read: Any) -> None:
    """``kubectl create`` takes objects with ``generateName``; so does a plan."""
    pod = pod_document()
    pod["metadata"] = {"generateName": "run-"}
    assert names(read(pod, pod)) == ["default/run-1", "default/run-2"]


@pytest.mark.parametrize(
    ("field", "kind", "spec"),
    [
        ("namespaces", "v1 Namespace", {}),
        ("volumes", "v1 PersistentVolume", {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}}),
        ("volume_claims", "v1 PersistentVolumeClaim", {"resources": {"requests": {"storage": "1Gi"}}}),
        ("node_pools", "karpenter.sh/v1alpha5 Provisioner", {"providerRef": {"name": "default"}}),
    ],
)
def test_names_of_every_kind_may_be_generated(read: Any, field: str, kind: str, spec: Any) -> None:
    """A namespace for a run of tests, say."""
    version, _, kind = kind.partition(" ")
    given = {"apiVersion": version, "kind": kind, "metadata": {"generateName": "run-"}, "spec": spec}
    assert sorted(read(given, given).objects[field])[-1].endswith("run-2")


def test_an_exported_workload_with_an_empty_template_makes_no_pods(read: Any) -> None:
    """The API server takes such a StatefulSet, and no pod of it."""
    given = workload("StatefulSet", template={"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}})
    given["metadata"]["uid"] = "1"
    inputs = read(given)
    assert names(inputs) == []
    assert messages(inputs) == ["StatefulSet default/web: its template has no containers, none of its pods is planned"]


def test_a_claim_that_names_its_volume_is_bound(read: Any) -> None:
    """Who writes a claim with its volume leaves the rest to the cluster;
    a claim of a cluster says itself whether it is bound.
    """
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "written"},
        "spec": {"volumeName": "v"},
    }
    served = {**claim, "metadata": {"name": "served"}, "status": {"phase": "Pending"}}
    tidied = {**claim, "metadata": {"name": "tidied"}, "status": {"phase": "Bound"}}
    claims = read(claim, served, tidied).objects["volume_claims"]
    assert BIND_COMPLETED in claims["default/written"].metadata.annotations
    assert BIND_COMPLETED in claims["default/tidied"].metadata.annotations
    assert BIND_COMPLETED not in claims["default/served"].metadata.annotations


def test_the_replicas_that_workloads_keep_are_known_by_kind_and_name(write: Write) -> None:
    """For the price of a move: the only pod of a workload is dearer. Jobs keep no number of pods."""
    objects = [
        workload(),
        workload("StatefulSet", "db", replicas=3),
        workload("Job", "once"),
        workload("ReplicaSet", "web-5d9c", replicas=0),
    ]
    inputs = load([write("workloads.yaml", yaml.safe_dump_all(objects))])
    assert inputs.replicas() == {
        "Deployment default/web": 1,
        "StatefulSet default/db": 3,
        "ReplicaSet default/web-5d9c": 0,
    }
