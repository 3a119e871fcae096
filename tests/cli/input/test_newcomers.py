"""Files as people have them who try a plan for the first time: what misleads them is said."""

from typing import Any

import pytest
import yaml

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document
from tests.cli.input.test_workloads import TEMPLATE, workload

PLAN = ("plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE))


def test_a_deployment_alone_is_told_what_else_a_plan_needs(run: Run, write: Write) -> None:
    """It is what everybody tries first."""
    err = run(*PLAN, "-f", write("web.json", workload())).err
    assert "warning: there is no NodePool, so nothing can be bought: a plan needs a NodePool and its node class." in err
    assert "kubectl get nodepools,ec2nodeclasses -o yaml" in err


def test_a_node_pool_without_its_class_is_told_too(run: Run, write: Write) -> None:
    """``kubectl get nodepools`` is half of it."""
    pool = write("pool.yaml", CLUSTER.partition("---")[2])
    assert (
        "there is no EC2NodeClass default, so nothing can be bought"
        in run(*PLAN, "-f", pool, write("web.json", workload())).err
    )


def test_where_nothing_is_pending_nothing_is_missed(run: Run, write: Write) -> None:
    """Whoever gives a node and its pods asks about them."""
    assert "nothing can be bought" not in run(*PLAN, "-f", write("a.json", workload(replicas=0))).err


def test_a_workload_of_no_replicas_is_told(run: Run, write: Write) -> None:
    """Examples have 0, to be scaled up by hand; what a cluster has scaled down needs no word."""
    idle = workload(replicas=0)
    assert (
        "note: no pods of Deployment default/web: its replicas are 0\n" in run(*PLAN, "-f", write("a.json", idle)).err
    )
    idle["metadata"]["uid"] = "a"
    assert "replicas" not in run(*PLAN, "-f", write("a.json", idle)).err


def test_jobs_that_are_suspended_are_told(run: Run, write: Write) -> None:
    """A queue lets them run later, and a plan without them says that nothing is pending; those that ended are over."""
    held = [workload("Job", name, suspend=True) for name in "ab"]
    ended = {
        **workload("Job", "c", suspend=True),
        "status": {"conditions": [{"type": "Complete", "status": "True"}]},
    }
    queue = write("jobs.json", {"apiVersion": "v1", "kind": "List", "items": [*held, ended]})
    said = "note: no pods of Job default/a, Job default/b: they are suspended\n"
    assert said in run(*PLAN, "-f", queue).err


def test_pods_that_request_no_memory_are_named(run: Run, cluster: str, write: Write) -> None:
    """They are put on the smallest of nodes, which surprises; a namespace's defaults are requests as well."""
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    web = workload(replicas=3, template={**TEMPLATE, "spec": {"containers": [container]}})
    said = "note: 3 pods request no memory (default/web): planned as taking none, on nodes that may have little of it\n"
    assert said in run(*PLAN, "-f", cluster, write("web.json", web)).err
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
              "spec": {"limits": [{"type": "Container", "defaultRequest": {"memory": "1Gi"}}]}}  # fmt: skip
    assert "no memory" not in run(*PLAN, "-f", cluster, write("web.json", web), write("limits.json", limits)).err


@pytest.mark.parametrize(
    ("requests", "doubt"),
    [
        ({"cpu": 500, "memory": "1Gi"}, "they request cpu: 500, which is 500 cores; is it 500m?"),
        ({"memory": "512m"}, "they request memory: 512m, which is less than a byte; is it 512Mi?"),
        ({"memory": 512}, "they request memory: 512, which is 512 bytes; is it 512Mi?"),
        ({"memory": "4"}, "they request memory: 4, which is 4 bytes; is it 4Gi?"),
        ({"memory": 500000}, "they request memory: 500000, which is 500,000 bytes"),
    ],
)
def test_a_unit_that_was_forgotten_is_asked_about(
    run: Run, cluster: str, write: Write, requests: dict[str, Any], doubt: str
) -> None:
    """An API server takes both, and hardly anybody means them."""
    container = {"name": "main", "resources": {"requests": requests}}
    web = workload(replicas=3, template={**TEMPLATE, "spec": {"containers": [container]}})
    assert f"warning: pods of default/web: {doubt}\n" in run(*PLAN, "-f", cluster, write("web.json", web)).err


def test_amounts_that_may_be_meant_are_not_doubted(run: Run, cluster: str, write: Write) -> None:
    """Half a core, a large machine's worth of memory in bytes, and a device that is counted."""
    container = {
        "name": "main",
        "resources": {"requests": {"cpu": "96", "memory": 137438953472, "vpc.amazonaws.com/pod-eni": 1}},
    }
    assert "is it" not in run(*PLAN, "-f", cluster, write("pod.json", pod_document(containers=[container]))).err


@pytest.mark.parametrize(
    ("of_namespace", "labels", "containers", "is_told"),
    [
        ({"istio-injection": "enabled"}, {}, [], True),
        ({"istio-injection": "enabled"}, {"sidecar.istio.io/inject": "false"}, [], False),
        ({"istio-injection": "enabled"}, {}, [{"name": "istio-proxy"}], False),
        ({"istio-injection": "disabled"}, {}, [], False),
        ({}, {"sidecar.istio.io/inject": "true"}, [], True),
    ],
)
def test_a_sidecar_that_the_files_lack_is_told(
    run: Run,
    cluster: str,
    write: Write,
    of_namespace: dict[str, str],
    labels: dict[str, str],
    containers: list[Any],
    is_told: bool,
) -> None:
    """A webhook of Istio adds it to pods of manifests, and what it requests is room that the plan's nodes lack."""
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": of_namespace}}
    template = {
        "metadata": {"labels": {**TEMPLATE["metadata"]["labels"], **labels}},
        "spec": {"containers": [*TEMPLATE["spec"]["containers"], *containers]},
    }
    web = write("web.json", workload(replicas=3, template=template))
    said = "warning: pods of default/web: a webhook of Istio adds a sidecar, which is not counted: "
    assert (said in run(*PLAN, "-f", cluster, write("home.json", home), web).err) is is_told


SPREAD = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize(
    ("spread", "why"),
    [
        (SPREAD, "it has no labelSelector"),
        ({**SPREAD, "labelSelector": {}}, "it has no labelSelector"),
        (
            {**SPREAD, "labelSelector": {"matchLabels": {"app": "wbe"}}},
            "its labelSelector (app=wbe) matches none of them",
        ),
        ({**SPREAD, "labelSelector": {"matchLabels": {"app": "web"}}}, ""),
    ],
)
def test_a_spread_that_does_not_count_its_own_pods_is_told(
    run: Run, cluster: str, write: Write, spread: dict[str, Any], why: str
) -> None:
    """It puts all of them into one zone, which is what it was written against."""
    spec = {**TEMPLATE["spec"], "topologySpreadConstraints": [spread]}
    given = write("web.json", workload(replicas=3, template={**TEMPLATE, "spec": spec}))
    doubt = f"pods of default/web: their topology spread over topology.kubernetes.io/zone spreads nothing: {why}"
    err = run(*PLAN, "-f", cluster, given).err
    assert f"warning: {doubt}\n" in err if why else "spreads nothing" not in err


def test_kinds_of_others_that_make_pods_are_told(run: Run, cluster: str, write: Write) -> None:
    """An Argo Rollout is a Deployment to whoever wrote it; in a cluster's export its pods are there."""
    rollout = {**workload(), "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    path = write("rollout.json", rollout)
    assert (
        f"warning: {path}: Rollout web: its pods are not planned: a plan does not read Rollout"
        in run(*PLAN, "-f", cluster, path).err
    )
    served = write("served.json", {**rollout, "metadata": {"name": "web", "uid": "u"}})
    assert "note: ignored 1 object of kind Rollout: not used in a plan" in run(*PLAN, "-f", cluster, served).err


def test_many_of_a_kind_are_told_in_one_line(run: Run, cluster: str, write: Write) -> None:
    """An export has fifty Workflows."""
    rollouts = [{**workload(), "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"} for _ in range(50)]
    for number, rollout in enumerate(rollouts):
        rollout["metadata"] = {"name": f"web-{number}"}
    path = write("rollouts.json", {"apiVersion": "v1", "kind": "List", "items": rollouts})
    (line,) = [line for line in run(*PLAN, "-f", cluster, path).err.splitlines() if "Rollout" in line]
    assert "Rollout web-2 and 47 more: their pods are not planned: a plan does not read Rollout.argoproj.io" in line
    assert line.endswith("give a Deployment or a Job in their place, or the pods (kubectl get pods)")


INNER = {"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}


@pytest.mark.parametrize(
    ("kind", "version", "spec"),
    [
        ("JobSet", "jobset.x-k8s.io/v1alpha2", {"replicatedJobs": [{"name": "w", "template": {"spec": INNER}}]}),
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", {"leaderWorkerTemplate": {"workerTemplate": TEMPLATE}}),
        ("RayCluster", "ray.io/v1", {"headGroupSpec": INNER}),
        ("PyTorchJob", "kubeflow.org/v1", {"pytorchReplicaSpecs": {"Worker": INNER}}),
    ],
)  # fmt: skip
def test_so_are_those_that_have_the_template_further_in(
    run: Run, cluster: str, write: Write, kind: str, version: str, spec: Any
) -> None:
    """Most of the pods that ask for GPUs are made by kinds of others."""
    path = write("other.json", {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec})
    assert f"warning: {path}: {kind} a: its pods are not planned" in run(*PLAN, "-f", cluster, path).err


@pytest.mark.parametrize(
    ("kind", "version", "spec"),
    [
        ("Workflow", "argoproj.io/v1alpha1", {"templates": [{"name": "a", "container": {"image": "b"}}]}),
        ("SparkApplication", "sparkoperator.k8s.io/v1beta2", {"driver": {"cores": 1}, "executor": {"instances": 8}}),
        ("Rollout", "argoproj.io/v1alpha1", {"replicas": 4, "workloadRef": {"kind": "Deployment", "name": "web"}}),
    ],
)
def test_and_those_that_have_pods_without_a_template(
    run: Run, cluster: str, write: Write, kind: str, version: str, spec: Any
) -> None:
    """A plan without eight executors is believed; what a cluster has, it has with its pods."""
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    path = write("other.json", document)
    assert f"warning: {path}: {kind} a: its pods are not planned" in run(*PLAN, "-f", cluster, path).err
    served = write("served.json", {**document, "metadata": {"name": "a", "uid": "u"}})
    assert f"note: ignored 1 object of kind {kind}: not used in a plan" in run(*PLAN, "-f", cluster, served).err


@pytest.mark.parametrize(
    ("kind", "version", "instead"),
    [
        ("Job", "batch.volcano.sh/v1alpha1", "one of batch/v1"),
        ("DaemonSet", "apps.kruise.io/v1alpha1", "one of apps/v1"),
        ("Service", "serving.knative.dev/v1", "a Deployment or a Job"),
    ],
)
def test_a_kind_of_another_group_is_told_with_it(
    run: Run, cluster: str, write: Write, kind: str, version: str, instead: str
) -> None:
    """A plan does read Jobs and DaemonSets, of Kubernetes' own. What has no name yet has a part of one."""
    given = {"apiVersion": version, "kind": kind, "metadata": {"generateName": "a-"}, "spec": INNER}
    path = write("other.json", given)
    assert (
        f"warning: {path}: {kind} a-: its pods are not planned: a plan does not read {kind}."
        f"{version.partition('/')[0]}; give {instead} in its place, or the pods (kubectl get pods)"
    ) in run(*PLAN, "-f", cluster, path).err


@pytest.mark.parametrize("kind", ["List", "NodePoolList"])
def test_a_list_whose_items_are_null_is_empty(run: Run, cluster: str, write: Write, kind: str) -> None:
    """Go writes a slice of nothing as null."""
    path = write("none.json", {"apiVersion": "v1", "kind": kind, "metadata": {}, "items": None})
    err = run(*PLAN, "-f", cluster, path).err
    assert f"warning: {path}: no objects in it" in err
    assert f"of kind {kind}" not in err


def test_an_object_whose_kind_ends_as_a_list_does_is_none(run: Run, cluster: str, write: Write) -> None:
    """It has a name, and no items."""
    path = write("allow.json", {"apiVersion": "example.org/v1", "kind": "AllowList", "metadata": {"name": "a"}})
    assert "note: ignored 1 object of kind AllowList" in run(*PLAN, "-f", cluster, path).err


def test_a_policy_about_pods_makes_none(run: Run, cluster: str, write: Write) -> None:
    """Kyverno's rules have templates as patterns."""
    policy = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "a"},
              "spec": {"rules": [{"validate": {"pattern": {"spec": INNER}}}]}}  # fmt: skip
    assert "not planned" not in run(*PLAN, "-f", cluster, write("policy.json", policy)).err


def test_a_capacity_buffer_without_its_reference_is_told_to_keep_no_room(run: Run, cluster: str, write: Write) -> None:
    """It may be in a file that was not given. An older version's is read as today's."""
    buffer = {"apiVersion": "autoscaling.x-k8s.io/v1alpha1", "kind": "CapacityBuffer", "metadata": {"name": "b"}}
    spec = {"podTemplateRef": {"name": "chunk"}, "replicas": 5}
    err = run(*PLAN, "-f", cluster, write("buffer.json", {**buffer, "spec": spec})).err
    assert "warning: CapacityBuffer default/b keeps no room: podtemplates 'chunk' not found" in err


KATA = {
    "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata",
    "overhead": {"podFixed": {"cpu": "2", "memory": "160Mi"}},
    "scheduling": {"nodeSelector": {"topology.kubernetes.io/zone": "us-east-1b"},
                   "tolerations": [{"key": "sandbox", "operator": "Exists"}]},
}  # fmt: skip


def test_pods_of_a_runtime_class_take_its_overhead_and_its_nodes(run: Run, cluster: str, write: Write) -> None:
    """In a cluster, admission writes that into the pod."""
    pod = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}
    web = workload(replicas=1, template={**TEMPLATE, "spec": {**pod, "runtimeClassName": "kata"}})
    told = run(*PLAN, "-f", cluster, write("web.json", web), write("kata.json", KATA), "-o", "json")
    launch = told.document["launch"][0]
    assert (launch["offering"]["instanceType"], launch["offering"]["zone"]) == ("m7a.xlarge", "us-east-1b")
    assert "RuntimeClass" not in told.err


def test_a_runtime_class_that_is_not_there_is_named(run: Run, cluster: str, write: Write) -> None:
    """What its sandbox takes is not in the plan."""
    web = workload(replicas=2, template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "runtimeClassName": "kata"}})
    assert (
        "warning: RuntimeClass kata is not in the files: 2 pods planned without its overhead and node selector"
    ) in run(*PLAN, "-f", cluster, write("web.json", web)).err


def test_a_group_with_its_version_is_no_other_provider(run: Run, write: Write) -> None:
    """As one of Karpenter's own examples has it, and an API server refuses."""
    path = write("pool.yaml", CLUSTER.replace("group: karpenter.k8s.aws", "group: karpenter.k8s.aws/v1"))
    outcome = run(*PLAN, "-f", path)
    assert outcome.status == 2
    assert (
        "NodePool default: spec.template.spec.nodeClassRef.group: 'karpenter.k8s.aws/v1' will not do: write the API "
        "group alone, such as karpenter.k8s.aws"
    ) in outcome.err


@pytest.mark.parametrize(
    ("right", "slip"),
    [
        ("group: karpenter.k8s.aws, kind: EC2NodeClass", "group: karpenter.sh, kind: EC2NodeClass"),
        ("group: karpenter.k8s.aws, kind: EC2NodeClass", "group: karpenter.k8s.aws, kind: Ec2NodeClass"),
    ],
)
def test_a_node_class_that_is_almost_ours_is_asked_about(run: Run, write: Write, right: str, slip: str) -> None:
    """No other provider has a kind of that name."""
    err = run(*PLAN, "-f", write("pool.yaml", CLUSTER.replace(right, slip))).err
    assert "is it EC2NodeClass.karpenter.k8s.aws?" in err


def test_a_class_of_another_provider_is_not_doubted(run: Run, write: Write) -> None:
    """Azure's and Google's are not ours with slips."""
    others = CLUSTER.replace(
        "group: karpenter.k8s.aws, kind: EC2NodeClass", "group: karpenter.azure.com, kind: AKSNodeClass"
    )
    assert "is it" not in run(*PLAN, "-f", write("pool.yaml", others)).err


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"type": "Container", "max": {"cpu": "100m"}}, "at most 100m of cpu for a container"),
        ({"type": "Container", "min": {"memory": "64Gi"}}, "at least 64Gi of memory for a container"),
        ({"type": "Pod", "max": {"memory": "3Gi"}}, "at most 3Gi of memory for a pod"),
        ({"type": "Pod", "min": {"memory": "64Gi"}}, "at least 64Gi of memory for a pod"),
        ({"type": "Pod", "max": {"cpu": "8"}}, "at most 8 of cpu for a pod"),
        ({"type": "Container", "max": {"memory": "2Gi"}, "min": {"cpu": "500m"}}, ""),
        ({"type": "Pod", "max": {"memory": "4Gi"}, "min": {"cpu": "1"}}, ""),
    ],
)
def test_pods_of_workloads_that_a_limit_range_keeps_out_are_told(
    run: Run, cluster: str, write: Write, bounds: Any, said: str
) -> None:
    """A node bought for them would stay empty: their ReplicaSet cannot make them. A pod has
    to have a limit where there is a bound.
    """
    ask = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
    template = {**TEMPLATE, "spec": {"containers": [{"name": name, "resources": ask} for name in ("main", "log")]}}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [bounds]}}
    web = write("web.json", workload(replicas=3, template=template))
    err = run(*PLAN, "-f", cluster, web, write("limits.json", limits)).err
    line = f"warning: LimitRange default/l: {said}: the API server will refuse 3 pods that are planned\n"
    assert line in err if said else "LimitRange" not in err


def test_a_bound_that_is_no_quantity_is_one_line(run: Run, cluster: str, write: Write) -> None:
    """A plan stumbled over it later, with a traceback."""
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {
        "limits": [{"type": "Container", "max": {"cpu": "100mm"}}]}}  # fmt: skip
    path = write("limits.json", limits)
    assert (
        f"{path}:1: LimitRange l: spec.limits[0].max.cpu: '100mm' is not a quantity"
        in run(*PLAN, "-f", cluster, path).err
    )


def test_a_vertical_autoscaler_without_a_recommendation_counts_for_nothing(
    run: Run, cluster: str, write: Write
) -> None:
    """What it will write into pods as they are made is not what their Deployment requests."""
    scaler = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": "v"}}
    err = run(*PLAN, "-f", cluster, write("vpa.json", scaler)).err
    assert (
        "note: VerticalPodAutoscaler default/v recommends nothing yet: its pods may be made with other requests than "
        "are planned"
    ) in err


def test_pods_of_workloads_are_made_as_a_vertical_autoscaler_says(run: Run, cluster: str, write: Write) -> None:
    """As its admission plugin will make them: eight cores are more than any node has."""
    container = {"name": "web", "resources": {"requests": {"cpu": "8", "memory": "1Gi"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}}, "template": template}}  # fmt: skip
    target = {"containerName": "web", "target": {"cpu": "100m"}}
    scaler = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": "v"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
        "status": {"recommendation": {"containerRecommendations": [target]}}}  # fmt: skip
    files = "-f", cluster, write("web.json", web)
    left = [
        run(*PLAN, *more, "-o", "json").document["unschedulable"]
        for more in (files, (*files, write("vpa.json", scaler)))
    ]
    assert list(map(len, left)) == [1, 0]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_restricted_label_is_named(run: Run, write: Write, version: str) -> None:
    """Among a dozen the message says which; an older NodePool is not told what it becomes."""
    pool: Any = yaml.safe_load(CLUSTER.split("---")[1])
    pool["apiVersion"] = f"karpenter.sh/{version}"
    pool["spec"]["template"]["metadata"]["labels"]["karpenter.sh/discovery"] = "prod"
    path = write("pool.json", pool)
    assert run(*PLAN, "-f", path, write("pod.json", pod_document())).err == (
        f"joinery: {path}:1: NodePool default: spec.template.metadata.labels[karpenter.sh/discovery]: labels of "
        "karpenter.sh are restricted\n"
    )


def test_a_node_with_next_to_no_memory_shows_what_it_has(run: Run, write: Write) -> None:
    """``0.0Gi`` would look like a mistake."""
    nano = CLUSTER.replace("[m7a.large, m7a.xlarge]", "[t4g.nano]")
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    pod = write("pod.json", pod_document(containers=[container]))
    out = run("plan", "--now", NOW, "--catalog", str(SAMPLE), "-f", write("nano.yaml", nano), pod).out
    assert "of 0.0Gi" not in out
    assert "of 0.0" in out
