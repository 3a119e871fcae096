"""Settings of the kubelet: a map that the API server takes as it is, and that a class answers for."""

from typing import Any

import pytest

from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.meta import Origin
from simulator import builders
from tools.crds import definition

#: As the kubelet's own file says them.
OF_ITS_FILE = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": 1073741824, "hugepages-2Mi": "64Mi"}}],
}
PASSED_ON = {"registryPullQPS": 20, "cpuManagerPolicy": "static", "featureGates": {"NodeSwap": True}}


def problems(family: str = "AL2023", **kubelet: Any) -> list[tuple[str, str]]:
    """Reason and message of what keeps a class with these settings from being used."""
    node_class = builders.node_class(amiFamily=family, kubelet=kubelet, amiSelectorTerms=[{"id": "ami-1"}])
    return [(each.reason, str(each)) for each in node_class.unsupported]


def test_a_class_keeps_every_setting_of_the_kubelet() -> None:
    """Also what Joinery does not understand, in the words of the user."""
    wire = builders.node_class(kubelet={**PASSED_ON, "maxPods": 20}).to_wire()
    assert wire["spec"]["kubelet"] == {**PASSED_ON, "maxPods": 20}


def test_the_api_server_keeps_them_too() -> None:
    """What a definition does not name is pruned unless it says otherwise."""
    schema = definition(EC2NodeClass)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    kubelet = schema["properties"]["spec"]["properties"]["kubelet"]
    assert kubelet["x-kubernetes-preserve-unknown-fields"] is True
    assert "additionalProperties" not in kubelet


def test_a_change_of_one_is_drift() -> None:
    """The kubelets that run were told another one."""
    one, other = (builders.node_class(kubelet={"registryPullQPS": number}) for number in (20, 30))
    assert one.static_hash != other.static_hash


@pytest.mark.parametrize("family", ["AL2023", "Custom"])
def test_some_families_take_every_setting(family: str) -> None:
    """Custom writes its own user data, and is not told of any."""
    assert problems(family, **PASSED_ON) == []
    assert problems(family, **OF_ITS_FILE) == []


@pytest.mark.parametrize(
    ("family", "kubelet", "told"),
    [
        ("AL2", {"registryPullQPS": 20}, "spec.kubelet.registryPullQPS: nodes of the family AL2 do not get it"),
        ("Bottlerocket", {"seccompDefault": True}, "spec.kubelet.seccompDefault: nodes of the family Bottlerocket"),
        ("Bottlerocket", {"podsPerCore": 2}, "spec.kubelet.podsPerCore: nodes of the family Bottlerocket"),
        ("AL2", {"clusterDNS": ["10.0.0.10", "10.0.0.11"]}, "spec.kubelet.clusterDNS: the family AL2 takes one"),
    ],
)
def test_a_setting_that_would_be_dropped_keeps_the_class_from_being_used(
    family: str, kubelet: dict[str, Any], told: str
) -> None:
    """Nodes without what the user asked for would be worse than none (Karpenter, UnsupportedKubeletConfiguration)."""
    ((reason, message),) = problems(family, **kubelet)
    assert reason == "UnsupportedKubeletConfiguration"
    assert told in message


def test_a_class_of_an_older_api_may_go_on_asking_for_what_its_nodes_are_not_told() -> None:
    """Karpenter passed it over in silence up to v1.14, and such a class has nodes."""
    node_class = builders.node_class(
        amiFamily="Bottlerocket", kubelet={"podsPerCore": 2}, amiSelectorTerms=[{"id": "ami-1"}]
    )
    older = Origin("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate", "default")
    assert node_class.unsupported
    assert node_class.made_from(older).unsupported == ()


@pytest.mark.parametrize(
    ("kubelet", "told"),
    [
        ({"maxPods": -1}, "spec.kubelet.maxPods: -1 is negative"),
        ({"podsPerCore": -1}, "spec.kubelet.podsPerCore: -1 is negative"),
        ({"maxPods": 2**31}, f"spec.kubelet.maxPods: {2**31} is not a whole number"),
        ({"maxPods": 20.5}, "spec.kubelet.maxPods: 20.5 is not a whole number"),
        ({"systemReserved": {"gpu": "1"}}, "spec.kubelet.systemReserved: gpu is none of cpu, memory"),
        ({"kubeReserved": {"cpu": "-1"}}, "spec.kubelet.kubeReserved: '-1' is negative"),
        ({"evictionHard": {"memory": "5%"}}, "spec.kubelet.evictionHard: memory is none of memory.available"),
        ({"evictionHard": {"memory.available": "110%"}}, "spec.kubelet.evictionHard: '110%' is neither"),
        ({"evictionHard": ["5%"]}, "spec.kubelet.evictionHard: ['5%'] is not an object"),
        ({"evictionSoft": {"memory.available": "5%"}}, "spec.kubelet.evictionSoft: memory.available needs one in"),
        ({"evictionSoftGracePeriod": {"memory.available": "1m"}}, "spec.kubelet.evictionSoftGracePeriod: memory.avail"),
        (
            {"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 60},
            "spec.kubelet.imageGCHighThresholdPercent: must be above imageGCLowThresholdPercent",
        ),
        ({"imageGCHighThresholdPercent": 101}, "spec.kubelet.imageGCHighThresholdPercent: 101 is not between 0"),
        (
            {"memorySwap": {"swapBehaviorr": "LimitedSwap"}},
            "spec.kubelet.memorySwap.swapBehaviorr: the kubelet has no such setting; is it swapBehavior?",
        ),
        ({"memorySwap": {"swapBehavior": 1}}, "spec.kubelet.memorySwap.swapBehavior: 1 is not a text"),
        ({"authentication": {"x509": {"clientCaFile": "/x"}}}, "spec.kubelet.authentication.x509.clientCaFile: the"),
        ({"reservedMemory": [{"numaNode": 0, "limits": {"memory": "x"}}]}, "spec.kubelet.reservedMemory[0].limits[mem"),
        ({"shutdownGracePeriod": "1 minute"}, "spec.kubelet.shutdownGracePeriod: '1 minute' is not a duration"),
        ({"featureGates": {"NodeSwap": "true"}}, "spec.kubelet.featureGates[NodeSwap]: 'true' is not true or false"),
        ({"clusterDNS": [10]}, "spec.kubelet.clusterDNS[0]: 10 is not a text"),
        ({"podPerCore": 2}, "spec.kubelet.podPerCore: the kubelet has no such setting; is it podsPerCore?"),
        ({"colour": "red"}, "spec.kubelet.colour: the kubelet has no such setting"),
        ({"registryPullQPS": "20"}, "spec.kubelet.registryPullQPS: '20' is not a whole number"),
        ({"registryPullQPS": True}, "spec.kubelet.registryPullQPS: True is not a whole number"),
        ({"featureGates": ["NodeSwap"]}, "spec.kubelet.featureGates: ['NodeSwap'] is not an object"),
        ({"clusterDNS": ["10.0.0.10' ; touch X ; echo '"]}, "is no IP address"),
        ({"registerWithTaints": []}, "spec.kubelet.registerWithTaints: Joinery sets it"),
        ({"evictionMinimumReclaim": {"memory": "1Gi"}}, "spec.kubelet.evictionMinimumReclaim: memory is none of"),
        ({"evictionHard": {"memory.available": "-1Gi"}}, "spec.kubelet.evictionHard: '-1Gi' is negative"),
        ({"evictionMinimumReclaim": {"memory.available": "-1Gi"}}, "spec.kubelet.evictionMinimumReclaim: '-1Gi'"),
        (
            {
                "evictionSoft": {"memory.available": "1Gi"},
                "evictionSoftGracePeriod": {"memory.available": "-1m"},
            },
            "spec.kubelet.evictionSoftGracePeriod: '-1m' is negative",
        ),
        ({"evictionMinimumReclaim": {"memory.available": "much"}}, "spec.kubelet.evictionMinimumReclaim: 'much'"),
    ],
)
def test_what_the_kubelet_does_not_take_keeps_the_class_from_being_used(kubelet: dict[str, Any], told: str) -> None:
    """It would ignore the setting, or not start (Karpenter, InvalidKubeletConfiguration)."""
    found = problems(**kubelet)
    assert {reason for reason, _ in found} == {"InvalidKubeletConfiguration"}
    assert any(told in message for _, message in found)


@pytest.mark.parametrize(
    ("kubelet", "told"),
    [
        (
            {"maxPods": "max_pods *"},
            "spec.kubelet.maxPods: 'max_pods *' is neither an amount nor an expression",
        ),
        ({"maxPods": ""}, "spec.kubelet.maxPods: '' is neither"),
        ({"maxPods": "vcpu * 10"}, "'vcpu' is unknown; there are default_enis, instance_type"),
        ({"kubeReserved": {"cpu": "vcpus > 4"}}, "spec.kubelet.kubeReserved[cpu]: 'vcpus > 4' is neither"),
        ({"systemReserved": {"memory": "vcpus * 2.5"}}, "there is no int * double"),
    ],
)
def test_what_is_no_expression_keeps_the_class_from_being_used(kubelet: dict[str, Any], told: str) -> None:
    """Of whatever is neither a number nor an amount (Karpenter, KubeletExpressionInvalid)."""
    ((reason, message),) = problems(**kubelet)
    assert reason == "KubeletExpressionInvalid"
    assert told in message


@pytest.mark.parametrize("family", ["AL2023", "AL2", "Bottlerocket"])
def test_expressions_are_values_to_every_family(family: str) -> None:
    """A node is told what they yield."""
    assert problems(family, maxPods="min(110, max_pods)", kubeReserved={"cpu": "max(60, vcpus * 30)"}) == []


def test_of_a_class_of_an_older_api_what_joinery_reads_must_be_right() -> None:
    """Its definition saw to that, where it was stored; a file may say anything."""
    node_class = builders.node_class(kubelet={"maxPods": -1, "colour": "red"})
    older = Origin("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate", "default")
    assert [each.field for each in node_class.made_from(older).unsupported] == ["spec.kubelet.maxPods"]
