"""Files as people have them who try a plan for the first time: what misleads them is said."""

from typing import Any

import pytest
import yaml

from joinery.cli.sources import SAMPLE
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


def test_a_quota_is_told_to_count_for_nothing(run: Run, cluster: str, write: Write) -> None:
    """It may keep out pods that the plan has."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    err = run(*PLAN, "-f", cluster, write("quota.json", quota)).err
    assert "note: ignored 1 object of kind ResourceQuota: a quota may let in fewer pods than are planned" in err


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_restricted_label_is_named(run: Run, write: Write, version: str) -> None:
    """Among a dozen the message says which; an older NodePool is not told what it becomes."""
    pool: Any = yaml.safe_load(CLUSTER.split("---")[1])
    pool["apiVersion"] = f"karpenter.sh/{version}"
    pool["spec"]["template"]["metadata"]["labels"]["karpenter.sh/discovery"] = "prod"
    path = write("pool.json", pool)
    assert run(*PLAN, "-f", path, write("pod.json", pod_document())).err == (
        f"joinery: {path}: NodePool default: spec.template.metadata.labels[karpenter.sh/discovery]: labels of "
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
