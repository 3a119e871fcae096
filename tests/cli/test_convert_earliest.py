"""``joinery convert`` to and from v1alpha3 and v1alpha4, whose Provisioners have their class within them."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.objects.karpenter.labels import OVERRIDES
from joinery_cli.converting.earliest_classes import Cluster
from joinery_cli.converting.older import in_older
from joinery_cli.converting.older_classes import NoEquivalentError
from joinery_cli.converting.written import in_v1
from joinery_cli.options import Api
from tests.cli.test_convert import TAINTS, some

CLUSTER = {"name": "shop", "endpoint": "https://shop"}
#: What the releases of each version took (v0.3.0 and v0.4.0).
TAKEN = {
    "v1alpha3": {"cluster", "taints", "labels", "zones", "instanceTypes", "architecture", "operatingSystem",
                 "ttlSecondsAfterEmpty", "ttlSecondsUntilExpired"},
    "v1alpha4": {"taints", "labels", "zones", "instanceTypes", "architectures", "operatingSystems", "provider",
                 "ttlSecondsAfterEmpty", "ttlSecondsUntilExpired"},
}  # fmt: skip
OF_PROVIDER = {"cluster", "instanceProfile", "capacityTypes", "subnetSelector", "securityGroupSelector"}
NAMES = st.lists(st.sampled_from(["c5.large", "m5.large", "a1.large"]), min_size=1, unique=True)
EARLIEST = some(
    {}, instanceTypes=NAMES, zones=st.just(["us-east-1b", "us-east-1a"]), taints=TAINTS,
    ttlSecondsAfterEmpty=st.integers(0, 600), ttlSecondsUntilExpired=st.integers(0, 10**6),
)  # fmt: skip
CAPACITY = st.sampled_from([["spot"], ["on-demand"], ["spot", "on-demand"]])
ALPHA4 = st.tuples(
    EARLIEST,
    some({}, labels=st.just({"team": "web"}), operatingSystems=st.just(["linux"]),
          architectures=st.sampled_from([["arm64"], ["arm64", "amd64"]])),
    some({"cluster": CLUSTER}, capacityTypes=CAPACITY,
          instanceProfile=st.just("nodes"),
          subnetSelector=st.sampled_from([{"Name": "inner", "team": "*"}, {"kubernetes.io/role/internal-elb": ""}]),
          securityGroupSelector=st.just({"Name": "nodes"})),
).map(lambda parts: ("v1alpha4", {**parts[0], **parts[1], "provider": parts[2]}))  # fmt: skip
SETTINGS = some(
    {}, team=st.just("web"),
    **{"node.k8s.aws/capacity-type": st.sampled_from(["spot", "on-demand"]),
       "node.k8s.aws/subnet-name": st.just("inner"), "node.k8s.aws/security-group-name": st.just("nodes"),
       "node.k8s.aws/security-group-tag-key": st.just("team")},
)  # fmt: skip
ALPHA3 = st.tuples(
    EARLIEST, some({"cluster": CLUSTER}, labels=SETTINGS,
                    architecture=st.just("arm64"), operatingSystem=st.just("linux")),
).map(lambda parts: ("v1alpha3", {**parts[0], **parts[1]}))  # fmt: skip
OVERRIDING = st.sampled_from([{}, {OVERRIDES: "true"}, {OVERRIDES: "false"}, {"team": "web"}])


@settings(max_examples=150)
@given(st.one_of(ALPHA3, ALPHA4), OVERRIDING)
def test_the_earliest_provisioners_come_back(said: tuple[str, dict[str, Any]], annotations: dict[str, str]) -> None:
    """From v1alpha3 and v1alpha4 to v1 and back they say the same, in words that their releases knew."""
    api, spec = Api(said[0]), said[1]
    metadata = {"name": "default", **({"annotations": annotations} if annotations else {})}
    document = {"apiVersion": f"karpenter.sh/{api}", "kind": "Provisioner", "metadata": metadata, "spec": spec}
    first = in_v1([document])
    assert [one.document for one in in_older(first, api)] == [document]
    (back,) = in_older(in_v1([one.document for one in first]), api, Cluster("shop", "https://shop"))
    assert [_in_any_order(one.document) for one in in_v1([back.document])] == [
        _in_any_order(one.document) for one in first
    ]
    assert back.notes == (f"EC2NodeClass default: {IMDS}",)
    assert back.document["spec"].keys() <= TAKEN[api]
    assert back.document["spec"].get("provider", {}).keys() <= OF_PROVIDER
    assert (back.document["spec"].get("provider") or back.document["spec"])["cluster"] == CLUSTER


def _in_any_order(document: dict[str, Any]) -> dict[str, Any]:
    """All of them hold, in whichever order."""
    if document["kind"] == "NodePool":
        node = document["spec"]["template"]["spec"]
        node["requirements"] = sorted(node["requirements"], key=lambda one: one["key"])
    return document


IMDS = "spec.metadataOptions has no equivalent: EC2's own hold, by which IMDSv1 is answered too"
MODERN: dict[str, Any] = yaml.safe_load("""
template:
  metadata: {labels: {team: web}, annotations: {note: x}}
  spec:
    nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: nodes}
    requirements:
    - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-east-1b]}
    - {key: failure-domain.beta.kubernetes.io/zone, operator: NotIn, values: [us-east-1b]}
    - {key: node.kubernetes.io/instance-type, operator: NotIn, values: [m5.large]}
    - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c], minValues: 1}
    - {key: karpenter.sh/capacity-type, operator: In, values: [reserved, spot, on-demand]}
    - {key: example.com/tier, operator: In, values: [gold]}
    - {key: example.com/rack, operator: Exists}
    startupTaints: [{key: boot, effect: NoSchedule}]
    terminationGracePeriod: 1h
    expireAfter: 24h
disruption: {consolidateAfter: 30s, budgets: [{nodes: "3"}]}
limits: {cpu: "9"}
weight: 7
""")
CLASS: dict[str, Any] = yaml.safe_load("""
instanceProfile: KarpenterNodeInstanceProfile-shop
amiSelectorTerms: [{alias: al2023@v20240807}]
subnetSelectorTerms: [{tags: {kubernetes.io/cluster/shop: "*", team: "*"}}]
securityGroupSelectorTerms: [{tags: {Name: nodes}}]
userData: echo
kubelet: {maxPods: 9}
tags: {team: web}
""")


def _modern(pool: dict[str, Any] = MODERN, node_class: dict[str, Any] = CLASS) -> list[dict[str, Any]]:
    annotated = {"name": "nodes", "annotations": {"joinery.dev/canary": "off"}}
    return [
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": pool},
        {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": annotated, "spec": node_class},
    ]


LOST = [
    "expired nodes wait for budgets, as they did up to v0.37",
    "spec.template.metadata.annotations has no equivalent and is dropped",
    "spec.template.spec.startupTaints has no equivalent and is dropped",
    "spec.template.spec.terminationGracePeriod has no equivalent and is dropped",
    "spec.limits has no equivalent and is dropped",
    "spec.weight has no equivalent and is dropped",
    "minValues of karpenter.k8s.aws/instance-category has no equivalent and is dropped",
    "karpenter.sh/capacity-type reserved has no equivalent and is dropped",
    "the requirement on karpenter.k8s.aws/instance-category has no equivalent and is dropped",
    "the requirement on example.com/rack has no equivalent and is dropped",
    "the requirement on node.kubernetes.io/instance-type has no equivalent and is dropped: it only excludes values",
    "budgets are dropped: nothing limits how many nodes go at once",
    "nodes are not consolidated: they go when they are empty, or too old",
]
LOST_OF_CLASS = [
    f"EC2NodeClass nodes: {note}"
    for note in (
        IMDS,
        "spec.amiSelectorTerms has no equivalent: its nodes boot the newest image of {}",
        "spec.kubelet has no equivalent and is dropped",
        "spec.tags has no equivalent and is dropped",
        "spec.userData has no equivalent and is dropped",
        "its annotations are dropped: joinery.dev/canary",
    )
]


def test_what_v1alpha4_cannot_say_is_said_line_by_line() -> None:
    """It has neither classes nor requirements; what it has fields for is in them."""
    (made,) = in_older(in_v1(_modern()), Api.V1ALPHA4, Cluster("shop", ""))
    assert made.document["metadata"]["annotations"] == {OVERRIDES: "false"}
    assert made.document["spec"] == {
        "labels": {"team": "web", "example.com/tier": "gold"},
        "zones": ["us-east-1a"],
        "architectures": ["amd64", "arm64"],
        "ttlSecondsAfterEmpty": 30,
        "ttlSecondsUntilExpired": 86400,
        "provider": {
            "cluster": {"name": "shop"},
            "instanceProfile": "KarpenterNodeInstanceProfile-shop",
            "capacityTypes": ["spot", "on-demand"],
            "subnetSelector": {"kubernetes.io/cluster/shop": "*", "team": "*"},
            "securityGroupSelector": {"Name": "nodes"},
        },
    }
    asked = "spec.provider.cluster.endpoint is needed, and no NodePool says it: --cluster-endpoint"
    assert sorted(made.notes) == sorted([*LOST, *(note.format("AL2") for note in LOST_OF_CLASS), asked])


def test_v1alpha3_has_one_architecture_and_selects_by_labels() -> None:
    """Its subnets and security groups had to have the cluster's tag, whatever else they were selected by."""
    (made,) = in_older(in_v1(_modern()), Api.V1ALPHA3, Cluster("", "https://shop"))
    assert made.document["spec"] == {
        "cluster": CLUSTER,
        "labels": {
            "team": "web",
            "example.com/tier": "gold",
            "node.k8s.aws/capacity-type": "on-demand",
            "node.k8s.aws/subnet-tag-key": "team",
            "node.k8s.aws/security-group-name": "nodes",
        },
        "zones": ["us-east-1a"],
        "architecture": "amd64",
        "ttlSecondsAfterEmpty": 30,
        "ttlSecondsUntilExpired": 86400,
    }
    assert {*made.notes} - {*LOST, *(note.format("Bottlerocket") for note in LOST_OF_CLASS)} == {
        "Karpenter v0.3 lets pods override what it lists; Joinery layers both, by joinery.dev/overrides",
        "kubernetes.io/arch has one value in v1alpha3, amd64: pods get arm64 only if they select it",
        "karpenter.sh/capacity-type has one value in v1alpha3, on-demand: pods get spot only if they select it",
        "EC2NodeClass nodes: spec.securityGroupSelectorTerms: in v1alpha3 they must also have the tag "
        "kubernetes.io/cluster/shop",
    }


@pytest.mark.parametrize(
    ("of_pool", "of_class", "api", "problem"),
    [
        ([{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}], {}, "v1alpha4",
         "NodePool default: spec.template.spec.requirements: kubernetes.io/os windows has no equivalent"),
        ([{"key": "team", "operator": "In", "values": ["a"]}], {}, "v1alpha4",
         "NodePool default: spec.template.spec.requirements: they leave no value for team"),
        ([{"key": "team", "operator": "In", "values": []}], {}, "v1alpha4",
         "NodePool default: spec.template.spec.requirements: team In [] is not a valid requirement"),
        ([], {"instanceProfile": None, "role": "nodes"}, "v1alpha4",
         "EC2NodeClass nodes: spec.role: has no equivalent; name an instance profile in spec.instanceProfile"),
        ([], {"instanceProfile": "mine"}, "v1alpha3",
         "spec.instanceProfile: v1alpha3 has KarpenterNodeInstanceProfile-shop alone, and this is mine"),
        ([], {"subnetSelectorTerms": [{"id": "subnet-1"}]}, "v1alpha4",
         "spec.subnetSelectorTerms: has no equivalent; select by tags, in one term, one value for each"),
        ([], {"subnetSelectorTerms": [{"tags": {"Name": "a", "b": "*"}}]}, "v1alpha3",
         "spec.subnetSelectorTerms: b has no equivalent; v1alpha3 selects by the tag Name, or by a tag's key"),
        ([], {"securityGroupSelectorTerms": [{"tags": {"team": "web"}}]}, "v1alpha3",
         "spec.securityGroupSelectorTerms: team has no equivalent; v1alpha3 selects by the tag Name"),
    ],
)  # fmt: skip
def test_what_the_earliest_would_do_to_instances_is_refused(
    of_pool: list[dict[str, Any]], of_class: dict[str, Any], api: str, problem: str
) -> None:
    """Other rights, other networks, another operating system: no note makes that harmless."""
    template = {**MODERN["template"], "spec": {**MODERN["template"]["spec"], "requirements": of_pool}}
    objects = _modern({**MODERN, "template": template}, {**CLASS, **of_class})
    with pytest.raises(NoEquivalentError) as raised:
        in_older(in_v1(objects), Api(api))
    assert problem in str(raised.value)


@pytest.mark.parametrize(("left_out", "problem"), [
    (1, "NodePool default: v1alpha4 has what nodes says in the Provisioner: give it, too"),
    (0, "EC2NodeClass nodes: v1alpha4 has classes in its Provisioners alone, and no NodePool here refers to it"),
])  # fmt: skip
def test_pool_and_class_are_one_object_there(left_out: int, problem: str) -> None:
    """Half of it would be no Provisioner."""
    given = [one for index, one in enumerate(_modern()) if index != left_out]
    with pytest.raises(NoEquivalentError, match=problem):
        in_older(in_v1(given), Api.V1ALPHA4)
