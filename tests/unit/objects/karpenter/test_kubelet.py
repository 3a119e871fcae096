"""Settings of the kubelet that Joinery only passes on."""

from typing import Any

import pytest

from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.meta import Origin
from simulator import builders
from tools.crds import definition

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
        ({"podPerCore": 2}, "spec.kubelet.podPerCore: the kubelet has no such setting; is it podsPerCore?"),
        ({"colour": "red"}, "spec.kubelet.colour: the kubelet has no such setting"),
        ({"registryPullQPS": "20"}, "spec.kubelet.registryPullQPS: '20' is not a whole number"),
        ({"registryPullQPS": True}, "spec.kubelet.registryPullQPS: True is not a whole number"),
        ({"featureGates": ["NodeSwap"]}, "spec.kubelet.featureGates: ['NodeSwap'] is not an object"),
        ({"clusterDNS": ["10.0.0.10' ; touch X ; echo '"]}, "is no IP address"),
        ({"registerWithTaints": []}, "spec.kubelet.registerWithTaints: Joinery sets it"),
        ({"evictionMinimumReclaim": {"memory": "1Gi"}}, "spec.kubelet.evictionMinimumReclaim: memory is no signal"),
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
    ((reason, message),) = problems(**kubelet)
    assert reason == "InvalidKubeletConfiguration"
    assert told in message
