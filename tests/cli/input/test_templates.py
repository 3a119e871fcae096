"""Files that a tool has yet to fill in, and what it fills in besides what a cluster runs."""

from typing import Any

import pytest

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document
from tests.cli.input.test_workloads import workload

PLAN = ("plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE))


def _asking(**requests: Any) -> dict[str, Any]:
    return pod_document(containers=[{"name": "main", "resources": {"requests": requests}}])


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (
            workload(replicas="${REPLICAS}"),
            (
                "spec.replicas: '${REPLICAS}' is a placeholder that nobody has filled in: "
                "run envsubst, or what fills it in, first"
            ),
        ),
        (
            _asking(cpu="{{ .Values.cpu }}"),
            (
                "spec.containers[0].resources.requests.cpu: '{{ .Values.cpu }}' is a "
                "placeholder that nobody has filled in: run helm template, or what fills "
                "it in, first"
            ),
        ),
        (
            pod_document(nodeSelector={"karpenter.sh/nodepool": "${POOL}"}),
            (
                "spec.nodeSelector[karpenter.sh/nodepool]: '${POOL}' is a placeholder that nobody has filled in: run "
                "envsubst, or what fills it in, first"
            ),
        ),
        (
            _asking(cpu="${CPU}", memory="${MEM:-1Gi}"),
            (
                "spec.containers[0].resources.requests.cpu: '${CPU}' is a placeholder that nobody has filled in, as in "
                "1 other field: run envsubst, or what fills it in, first"
            ),
        ),
        (
            {**pod_document(), "metadata": {"name": "${NAME}"}},
            (
                "metadata.name: '${NAME}' is a placeholder that nobody has filled in: run envsubst, or what fills it "
                "in, first"
            ),
        ),
    ],
)
def test_a_placeholder_is_one_error_that_says_what_fills_it_in(
    run: Run, write: Write, document: Any, problem: str
) -> None:
    """Not that of the quantity or the name that it is not; and never a plan for what it is not."""
    path = write("object.json", document)
    outcome = run(*PLAN, "-f", path)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == f"joinery: {path}:1: {document['kind']} {document['metadata']['name']}: {problem}\n"


def test_a_placeholder_of_a_node_class_is_a_warning(run: Run, write: Write) -> None:
    """Everybody's first EC2NodeClass comes from a page that pipes it through envsubst;
    a plan needs neither role nor tags.
    """
    given = CLUSTER.replace("role: nodes", "role: KarpenterNodeRole-${CLUSTER_NAME}").replace(
        "{a: b}", "{c: '${CLUSTER_NAME}'}"
    )
    path = write("cluster.yaml", given)
    outcome = run(*PLAN, "-f", path, "-f", write("pod.json", pod_document()))
    assert (outcome.status, len(outcome.document["launch"])) == (0, 1)
    assert outcome.err == (
        f"warning: {path}: EC2NodeClass default: spec.role: 'KarpenterNodeRole-${{CLUSTER_NAME}}' is a placeholder "
        "that nobody has "
        "filled in, as in 2 other fields: planned as it stands\n"
    )  # fmt: skip


def test_what_looks_like_a_placeholder_elsewhere_may_be_meant(run: Run, cluster: str, write: Write) -> None:
    """The kubelet fills in ``$(POD_NAME)`` itself, and a text of a pod's is nobody's business."""
    volume = {"name": "logs", "hostPath": {"path": "/var/log/<pod>/$x"}}
    pod = pod_document(volumes=[volume], hostname="web")
    assert "placeholder" not in run(*PLAN, "-f", cluster, "-f", write("pod.json", pod)).err


def test_placeholders_of_older_apis_are_told_too(run: Run, write: Write) -> None:
    """Before v1 the pages had them as well."""
    text = """\
{apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, metadata: {name: a}, spec: {amiFamily: AL2, role: "${ROLE}",
  subnetSelectorTerms: [{tags: {a: b}}], securityGroupSelectorTerms: [{tags: {a: b}}]}}
---
{apiVersion: karpenter.sh/v1beta1, kind: NodePool, metadata: {name: b}, spec: {weight: 1, template: {spec: {
  nodeClassRef: {name: a}, requirements: [
    {key: "karpenter.k8s.aws/instance-family", operator: In, values: ["${FAMILY}"]}]}}}}
"""
    refused = run(*PLAN, "-f", write("beta.yaml", text)).err
    assert "NodePool b: spec.template.spec.requirements[0].values[0]: '${FAMILY}' is a placeholder" in refused
    fine = run(*PLAN, "-f", write("beta.yaml", text.replace("${FAMILY}", "m5")))
    assert (
        "EC2NodeClass a: spec.role: '${ROLE}' is a placeholder that nobody has filled in: planned as it stands"
        in fine.err
    )


def test_what_a_shell_or_a_program_fills_in_is_none(run: Run, cluster: str, write: Write) -> None:
    """Commands, variables and annotations are for whoever runs on the node."""
    container = {
        "name": "main",
        "command": ["sh", "-c", "echo ${HOME} {{ .Name }}"],
        "env": [{"name": "A", "value": "${B}"}],
    }
    pod = pod_document(containers=[container])
    pod["metadata"]["annotations"] = {"note": "{{ $labels.pod }} ${x}"}
    assert "placeholder" not in run(*PLAN, "-f", cluster, "-f", write("pod.json", pod)).err


def test_hooks_of_helm_are_named(run: Run, cluster: str, write: Write) -> None:
    """They run during an install or a test, and are planned beside what stays."""
    job, test = workload("Job", "migrate"), pod_document("web-test")
    job["metadata"]["annotations"] = {"helm.sh/hook": "pre-install,pre-upgrade"}
    test["metadata"]["annotations"] = {"helm.sh/hook": "test"}
    listed = write("release.json", {"apiVersion": "v1", "kind": "List", "items": [job, test, pod_document()]})
    outcome = run(*PLAN, "-f", cluster, "-f", listed)
    assert (
        "note: planned as well: 2 hooks of Helm, which run only while it installs, upgrades or tests: Job "
        "default/migrate "
        "(pre-install,pre-upgrade), Pod default/web-test (test); helm template --no-hooks leaves them out\n"
    ) in outcome.err
    served = [{**one, "metadata": {**one["metadata"], "uid": "u"}} for one in (job, test)]
    again = run(*PLAN, "-f", cluster, "-f", write("live.json", {"apiVersion": "v1", "kind": "List", "items": served}))
    assert "hook" not in again.err


def test_braces_that_are_no_helm_are_told_too(run: Run, write: Write) -> None:
    """Jinja and ApplicationSets: what YAML makes of them is an unhashable key."""
    path = write("job.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  priority: {{ rank }}\n")
    err = run("plan", "--now", NOW, "-f", path).err
    assert err == f"joinery: {path}:5: looks like a template: run helm template, or what fills it in, first\n"


@pytest.mark.parametrize("written", ["$CLUSTER_NAME", "<your AWS role here>"])
def test_a_node_class_has_placeholders_of_every_spelling(run: Run, write: Write, written: str) -> None:
    """AWS allows neither of these letters in the name of a role, nor in a tag; Karpenter's own converter wrote the
    second (aws/karpenter-provider-aws#4822).
    """
    path = write("cluster.yaml", CLUSTER.replace("role: nodes", f"role: {written}"))
    said = f"EC2NodeClass default: spec.role: '{written}' is a placeholder that nobody has filled in: planned as it"
    assert f"warning: {path}: {said}" in run(*PLAN, "-f", path).err


def test_a_tab_is_named(run: Run, write: Write) -> None:
    """A parser's words (``found character that cannot start any token``) do not say which."""
    path = write("given.yaml", "apiVersion: v1\nkind: Namespace\nmetadata:\n\tname: a\n")
    assert run(*PLAN, "-f", path).err.endswith("(a tab? YAML takes spaces only)\n")
