"""Labels, values and classes that nothing has, beside one with a similar name:
whoever wrote them is asked "is it ...?".
"""

from typing import Any

import pytest

from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.spelling import label_meant_by, value_meant_by
from joinery_cli.sources import SAMPLE
from joinery_cli.warnings.labels import misspelt_labels
from simulator.builders import EPOCH, instance_type, pod
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document

SPREAD = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "a"}}}
ZONE_ID, ON_DEMAND = "topology.k8s.aws/zone-id", "karpenter.sh/capacity-type"


def _terms(key: str, *values: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def _with_requirement(key: str, value: str) -> str:
    """The cluster, whose NodePool asks for the label as well."""
    return CLUSTER.replace(
        "requirements:\n", f"requirements:\n      - {{key: {key}, operator: In, values: [{value}]}}\n"
    )


def _anti(key: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "a"}}}
    return {
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    }


@pytest.fixture
def warned(run: Run, write: Write) -> Any:
    """``warned(text, pod)``: the questions in the plan of a cluster and a pod."""

    def call(cluster: str, pod: Any) -> list[str]:
        files = "-f", write("cluster.yaml", cluster), "-f", write("pod.json", pod)
        outcome = run("plan", "--now", NOW, "--catalog", str(SAMPLE), *files)
        assert outcome.status == 0, outcome.err
        return [line for line in outcome.err.splitlines() if "is it " in line]

    return call


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {"nodeSelector": {"kubernetes.io/arhc": "amd64"}},
            "nodeSelector: no node is known to have the label kubernetes.io/arhc; is it kubernetes.io/arch?",
        ),
        (
            {"nodeSelector": {"kubernetes.io/arch": "x86_64"}},
            "nodeSelector: kubernetes.io/arch is nowhere x86_64; is it amd64?",
        ),
        (
            {"affinity": _terms(ON_DEMAND, "ondemand")},
            f"nodeAffinity: {ON_DEMAND} is nowhere ondemand; is it on-demand?",
        ),
        (
            {"affinity": _anti("topology.kubernetes.io/zones")},
            (
                "podAntiAffinity: no node is known to have the label topology.kubernetes.io/zones; is it "
                "topology.kubernetes.io/zone?"
            ),
        ),
        (
            {"topologySpreadConstraints": [{**SPREAD, "topologyKey": "zone"}]},
            "topologySpreadConstraints: no node is known to have the label zone; is it topology.kubernetes.io/zone?",
        ),
    ],
)
def test_a_pods_slip_is_asked_about(warned: Any, spec: dict[str, Any], words: str) -> None:
    """It waits for ever otherwise, or is spread over nothing."""
    assert warned(CLUSTER, pod_document(**spec)) == [f"warning: Pod default/web: {words}"]


def test_a_slip_that_stops_a_node_pool_is_told_once(warned: Any) -> None:
    """As the reason why nothing is bought of it, which is a warning already."""
    assert warned(CLUSTER.replace("[on-demand]", "[ondemand]"), pod_document()) == [
        "warning: NodePool default: spec.template.spec.requirements[1].values: none of ondemand is one of on-demand, "
        "reserved, spot; is it on-demand?"
    ]


def test_a_node_pools_slip_is_asked_about(warned: Any) -> None:
    """A value that is nowhere, and a class with a similar name."""
    assert warned(CLUSTER.replace("[on-demand]", "[on-demand, sport]"), pod_document()) == [
        f"warning: NodePool default: spec.template.spec.requirements: {ON_DEMAND} is nowhere sport; is it spot?"
    ]
    other = CLUSTER.replace("kind: EC2NodeClass, name: default", "kind: EC2NodeClass, name: defalt")
    assert warned(other, pod_document()) == [
        (
            "warning: NodePool default: spec.template.spec.nodeClassRef.name: there is no EC2NodeClass defalt; is it "
            "default?"
        )
    ]


@pytest.mark.parametrize(
    ("key", "value", "meant"),
    [
        ("karpenter.k8s.aws/instance-family", "m5.large", "node.kubernetes.io/instance-type"),
        ("karpenter.k8s.aws/instance-category", "m5", "karpenter.k8s.aws/instance-family"),
        ("node.kubernetes.io/instance-type", "m5", "karpenter.k8s.aws/instance-family"),
        ("topology.kubernetes.io/zone", "use1-az1", "topology.k8s.aws/zone-id"),
    ],
)
def test_a_value_of_another_label_is_asked_about(warned: Any, key: str, value: str, meant: str) -> None:
    """Of a NodePool and of a pod: it chooses nothing."""
    question = f"{key} is nowhere {value}; is it {meant}?"
    own = _with_requirement(key, value)
    assert f"warning: NodePool default: spec.template.spec.requirements: {question}" in warned(own, pod_document())
    assert f"warning: Pod default/web: nodeSelector: {question}" in warned(
        CLUSTER, pod_document(nodeSelector={key: value})
    )


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("kubernetes.io/architecture", "kubernetes.io/arch"),
        ("node.kubernetes.io/instancetype", "node.kubernetes.io/instance-type"),
        ("topology.kubernetes.io/zones", "topology.kubernetes.io/zone"),
    ],
)
def test_a_node_pool_is_asked_about_a_label_that_is_almost_one_of_types(warned: Any, key: str, meant: str) -> None:
    """Its nodes would have the label, and would be of any kind."""
    assert warned(_with_requirement(key, "a"), pod_document()) == [
        f"warning: NodePool default: spec.template.spec.requirements: {key} chooses nothing, nodes are only labelled "
        f"with it; is it {meant}?"
    ]


@pytest.mark.parametrize("domain", ["kubernetes.amazonaws.com", "eks.amazonaws.com"])
def test_a_node_pool_that_chooses_types_by_another_domains_label_is_asked(warned: Any, domain: str) -> None:
    """It would choose none: every node is given the label, and the pool buys the smallest. Pods may ask for it."""
    given = CLUSTER.replace("node.kubernetes.io/instance-type", f"{domain}/instance-category")
    given = given.replace("[m7a.large, m7a.xlarge]", "[c, m]")
    assert warned(given, pod_document(nodeSelector={f"{domain}/instance-category": "c"})) == [
        f"warning: NodePool default: spec.template.spec.requirements: {domain}/instance-category chooses nothing, "
        "nodes are only labelled with it; is it karpenter.k8s.aws/instance-category?"
    ]


def test_a_label_by_which_a_node_pool_chooses_is_asked_about(warned: Any) -> None:
    """It is a requirement like any other."""
    assert warned(CLUSTER.replace("{team: web}", "{kubernetes.io/arch: x86_64}"), pod_document()) == [
        "warning: NodePool default: spec.template.metadata.labels: kubernetes.io/arch is nowhere x86_64; is it amd64?"
    ]


def test_what_a_node_pool_gives_its_nodes_is_not_doubted(warned: Any) -> None:
    """However near to a well-known label it is."""
    own = CLUSTER.replace("{team: web}", "{zone: blue}")
    assert warned(own, pod_document(nodeSelector={"zone": "blue"})) == []


def test_a_restricted_label_that_is_a_slip_is_asked_about(run: Run, write: Write) -> None:
    """The error says which label was meant."""
    path = write("cluster.yaml", CLUSTER.replace(ON_DEMAND, "karpenter.sh/capacity-typ"))
    assert run("plan", "--now", NOW, "-f", path).err.endswith(f"are restricted; is it {ON_DEMAND}?\n")


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("karpenter.sh/instance-family", "karpenter.k8s.aws/instance-family"),
        ("topology.kubernets.io/zone", "topology.kubernetes.io/zone"),
        ("instance-type", "node.kubernetes.io/instance-type"),
        ("kubernetes.io/architecture", "kubernetes.io/arch"),
        ("karpenter.sh/capacitytype", "karpenter.sh/capacity-type"),
        ("karpenter.k8s.aws/instance-type", "node.kubernetes.io/instance-type"),
        ("karpenter.k8s.aws/family", "karpenter.k8s.aws/instance-family"),
        ("karpenter.k8s.aws/instance-memory-mib", "karpenter.k8s.aws/instance-memory"),
        ("architecture", ""),
        ("example.com/architecture", ""),
        ("node.kubernetes.io/lifecycle", ""),
        ("eks.amazonaws.com/instance-category", ""),
        ("eks.amazonaws.com/capacityType", ""),
        ("topology.fsx.csi.aws.com/zone", ""),
        ("topology.kubernetes.io/rack", ""),
        ("beta.kubernetes.io/arch", ""),
        (ZONE_ID, ""),
        ("team", ""),
    ],
)
def test_labels_of_others_are_no_slips(key: str, meant: str) -> None:
    """EKS's own, a CSI driver's, a team's."""
    assert label_meant_by(key) == meant


def test_a_node_pool_is_asked_about_eks_own_label(warned: Any) -> None:
    """Managed node groups have ``capacityType``; a NodePool's nodes would be labelled with one of the values by chance
    (aws/karpenter-provider-aws#5521).
    """
    (line,) = warned(_with_requirement("eks.amazonaws.com/capacityType", "SPOT"), pod_document())
    assert line.endswith("eks.amazonaws.com/capacityType chooses nothing, nodes are only labelled with it; is it "
                         f"{ON_DEMAND}?")  # fmt: skip


def test_numbers_are_no_slips() -> None:
    """A newer instance type or another zone is not a misspelt one."""
    assert value_meant_by("node.kubernetes.io/instance-type", "m9.large", ["m5.large"]) == ""
    assert value_meant_by("node.kubernetes.io/instance-type", "m5.larg", ["m5.large", "m5.xlarge"]) == "m5.large"
    assert value_meant_by("node.kubernetes.io/instance-type", "m7.large", ["m7a.large", "m7g.large"]) == ""
    assert value_meant_by("topology.kubernetes.io/zone", "eu-central-1x", ["eu-central-1a", "eu-central-1b"]) == ""
    assert value_meant_by("topology.kubernetes.io/zone", "eu-central1a", ["eu-central-1a"]) == "eu-central-1a"


def test_of_several_that_are_alike_the_nearest_is_meant(warned: Any) -> None:
    """A list with one misspelt type is shorter than its writer thinks, and nothing else tells of it."""
    assert warned(CLUSTER.replace("[m7a.large, m7a.xlarge]", "[m5.lrage, m7a.xlarge]"), pod_document()) == [
        "warning: NodePool default: spec.template.spec.requirements: node.kubernetes.io/instance-type is nowhere "
        "m5.lrage; is it m5.large?"
    ]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ("{cpus: 1000}", ["spec.limits.cpus: no instance type has cpus, so that limits nothing; is it cpu?"]),
        ("{memory: 1000}", ["spec.limits.memory: 1000 is 1,000 bytes, and no node is so small; is it 1000Gi?"]),
        ("{memory: 500m}", ["spec.limits.memory: 500m is less than a byte, and no node is so small; is it 500Gi?"]),
        ("{memory: 0}", []),
        ("{cpu: 1000, memory: 10Ti, nodes: 9, nvidia.com/gpu: 4}", []),
    ],
)
def test_a_limit_on_nothing_is_asked_about(warned: Any, limits: str, words: list[str]) -> None:
    """An API server takes any name there; a budget that holds nothing back is noticed on the bill."""
    cluster = CLUSTER.replace("  template:\n", f"  limits: {limits}\n  template:\n")
    assert warned(cluster, pod_document()) == [f"warning: NodePool default: {line}" for line in words]


def test_thousands_of_names_that_are_nowhere_are_no_slips() -> None:
    """A pod may name as many as it likes. So many are compared with those that exist; a note says that others were
    not.
    """
    values = [f"us-east-{number:04}a" for number in range(1200)]
    types = {"default": (instance_type(),)}
    asking = pod(affinity=_terms("topology.kubernetes.io/zone", "us-east1a"))
    snapshot = Snapshot(now=EPOCH, pods=(pod(affinity=_terms("topology.kubernetes.io/zone", *values)), asking))
    *_, told = misspelt_labels(snapshot, types)
    assert "more than 1,000 names are nowhere" in told.message
    assert "is it us-east-1a?" in next(misspelt_labels(Snapshot(now=EPOCH, pods=(asking,)), types)).message
