"""Objects of Karpenter v0.31 and v0.32 for tests of the doors."""

from typing import Any

from joinery.objects.karpenter.labels import EMPTY_SINCE
from tests.functional.stand import Stand

DAY = 24 * 3600
SELECTOR = {"joinery.dev/discovery": "simulated"}
XLARGE = {"key": "karpenter.k8s.aws/instance-size", "operator": "In", "values": ["xlarge"]}
#: A Provisioner's name, by which pods of such a cluster select its nodes.
OLD_NAME = "karpenter.sh/provisioner-name"


def provisioner(name: str = "default", **spec: Any) -> dict[str, Any]:
    """A Provisioner of xlarge nodes of any category, made from the template ``default``."""
    given = {"providerRef": {"name": "default"}, "requirements": [XLARGE], **spec}
    return {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": name}, "spec": given}


def template(name: str = "default", **spec: Any) -> dict[str, Any]:
    """An AWSNodeTemplate whose selectors find the simulated network."""
    given = {
        "subnetSelector": SELECTOR, "securityGroupSelector": SELECTOR, "instanceProfile": "nodes",
        "amiSelector": {"aws::name": "al2023-*"}, **spec,
    }  # fmt: skip
    metadata = {"name": name}
    return {"apiVersion": "karpenter.k8s.aws/v1alpha1", "kind": "AWSNodeTemplate", "metadata": metadata, "spec": given}


def beta() -> tuple[dict[str, Any], dict[str, Any]]:
    """An EC2NodeClass and a NodePool of v1beta1, whose nodes go after thirty empty seconds, or two days."""
    terms = {f"{name}SelectorTerms": [{"tags": SELECTOR}] for name in ("subnet", "securityGroup")}
    of_class = {"amiFamily": "AL2023", "amiSelectorTerms": [{"name": "al2023-*"}], "role": "nodes", **terms}
    ref = {"apiVersion": "karpenter.k8s.aws/v1beta1", "name": "default"}
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s", "expireAfter": "48h"}
    template_spec = {"nodeClassRef": ref, "requirements": [XLARGE]}
    spec = {"template": {"spec": template_spec}, "disruption": disruption}
    metadata = {"name": "default"}
    return (
        {"apiVersion": ref["apiVersion"], "kind": "EC2NodeClass", "metadata": metadata, "spec": of_class},
        {"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool", "metadata": metadata, "spec": spec},
    )


def v31(stand: Stand, **spec: Any) -> Stand:
    """A cluster of v0.31, found ready by lifecycle: a Provisioner of that spec and its template."""
    for document in (template(), provisioner(**spec)):
        stand.world.cluster.add_document(document)
    stand.live()
    return stand


def stored(stand: Stand, kind: str, name: str = "default") -> dict[str, Any]:
    """The object as the API server has it."""
    return stand.world.cluster.legacy.get(kind, name)


def emptied(stand: Stand) -> None:
    """Every pod is gone."""
    for pod in list(stand.world.cluster.pods.values()):
        stand.world.cluster.api.delete(pod)


def empty_since(stand: Stand) -> list[str | None]:
    """Since when each node is empty, by its annotation."""
    return [node.metadata.annotations.get(EMPTY_SINCE) for node in stand.world.cluster.nodes.values()]


def tick(stand: Stand, times: int = 5) -> None:
    """So many runs of lifecycle, ten seconds apart."""
    for _ in range(times):
        stand.wait(10)
        stand.live()
