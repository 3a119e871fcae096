"""``joinery convert``: what is not said to change means the same afterwards, whichever way."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import EXPIRATION_OBEYS_BUDGETS, OVERRIDES
from joinery.objects.karpenter.nodepool import NodePool
from joinery_cli.converting.older import in_older
from joinery_cli.converting.written import in_v1
from joinery_cli.options import Api
from tests.cli.conftest import Outcome, Run, Write

KEYS = ("kubernetes.io/arch", "karpenter.sh/capacity-type", "karpenter.k8s.aws/instance-category", "example.com/team")
VALUES = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2, unique=True)
OLDER = {"v1alpha5": "Provisioner", "v1beta1": "NodePool"}


def some(required: dict[str, Any], **optional: Any) -> Any:
    """Documents with the required values, and with any of the optional ones."""
    return st.fixed_dictionaries({name: st.just(value) for name, value in required.items()}, optional=optional)


REQUIREMENTS = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"key": st.sampled_from(KEYS), "operator": st.sampled_from(["In", "NotIn"]), "values": VALUES}
        ),
        st.builds(lambda n, o: {"key": "karpenter.k8s.aws/instance-cpu", "operator": o, "values": [str(n)]},
                  st.integers(1, 96), st.sampled_from(["Gt", "Lt", "Gte", "Lte"])),
    ),
    max_size=4,
)  # fmt: skip
TAINTS = st.lists(
    st.sampled_from([{"key": "a", "effect": "NoSchedule"}, {"key": "b", "value": "c", "effect": "NoExecute"}]),
    max_size=1,
)
TERMS = st.one_of(
    st.just([{"id": "subnet-1"}, {"id": "subnet-2"}]),
    VALUES.map(lambda values: [{"tags": {"team": value, "net": "*"}} for value in values]),
)
METADATA = st.dictionaries(st.sampled_from([EXPIRATION_OBEYS_BUDGETS, OVERRIDES]), st.just("true")).map(
    lambda annotations: {"name": "default", **({"annotations": annotations} if annotations else {})}
)
CLASSES = st.fixed_dictionaries(
    {"subnetSelectorTerms": TERMS, "securityGroupSelectorTerms": st.just([{"tags": {"a": "b"}}]),
     "instanceProfile": st.just("nodes"),
     "amiSelectorTerms": st.sampled_from([[{"alias": "al2023@latest"}], [{"alias": "bottlerocket@latest"}]])},
    optional={"kubelet": st.just({"maxPods": 9}), "tags": st.just({"a": "b"}), "userData": st.just("#!/bin/sh"),
              "metadataOptions": st.just({"httpTokens": "optional"}), "instanceStorePolicy": st.just("RAID0")},
)  # fmt: skip
TEMPLATES = st.fixed_dictionaries(
    {"requirements": REQUIREMENTS,
     "nodeClassRef": st.just({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}),
     "expireAfter": st.sampled_from(["Never", "24h"])},
    optional={"taints": TAINTS, "startupTaints": TAINTS, "terminationGracePeriod": st.just("1h")},
)  # fmt: skip
PROVISIONERS_BUDGETS = [
    {"nodes": "100%", "reasons": ["Empty"]},
    {"nodes": "10%", "reasons": ["Underutilized", "Drifted"]},
]
DISRUPTIONS = some(
    {}, consolidationPolicy=st.sampled_from(["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"]),
    consolidateAfter=st.sampled_from(["0s", "30s", "Never"]),
    budgets=st.sampled_from([PROVISIONERS_BUDGETS, [{"nodes": "3"}], []]),
)  # fmt: skip
POOLS = st.builds(
    lambda template, node_labels, rest: {
        **rest, "template": {"spec": template, **({"metadata": {"labels": node_labels}} if node_labels else {})}
    },
    TEMPLATES, st.sampled_from([{}, {"team": "web"}]),
    some({}, disruption=DISRUPTIONS, limits=st.sampled_from([{"cpu": "9"}, {"nodes": "3"}]), weight=st.just(7)),
)  # fmt: skip


def _meaning(document: dict[str, Any]) -> dict[str, Any]:
    """With all defaults, and without what is true of every node, or says nothing."""
    if document["kind"] == "EC2NodeClass":
        spec = EC2NodeClass.model_validate(document).spec
        return {"metadata": document["metadata"], **spec.model_dump(), "ami_family": spec.family}
    wire = NodePool.model_validate(document).to_wire()
    listed = wire["spec"]["template"]["spec"]["requirements"]
    wire["spec"]["template"]["spec"]["requirements"] = [
        {**one, "operator": _STRICT.get(one["operator"], one["operator"]), "values": _values(one)}
        for one in listed
        if one["operator"] != "Exists"
    ]
    return wire


_STRICT = {"Gte": "Gt", "Lte": "Lt"}


def _values(one: dict[str, Any]) -> list[str]:
    shift = {"Gte": -1, "Lte": 1}.get(one["operator"])
    return one["values"] if shift is None else [str(int(one["values"][0]) + shift)]


@settings(max_examples=150)
@given(METADATA, CLASSES, POOLS, st.sampled_from([Api.V1BETA1, Api.V1ALPHA5]))
def test_what_is_not_said_to_change_comes_back(
    metadata: dict[str, Any], node_class: dict[str, Any], pool: dict[str, Any], api: Api
) -> None:
    """From v1 to an older API and back: an object without a note means what it meant."""
    objects = [
        {
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "metadata": {"name": "default"},
            "spec": node_class,
        },
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": pool},
    ]
    older = in_older(in_v1(objects), api)
    back = in_v1(one.document for one in older)
    assert {one.document["apiVersion"].rpartition("/")[2] for one in older} <= {api, "v1alpha1"}
    for before, between, after in zip(in_v1(objects), older, back, strict=True):
        if not between.notes:
            assert _meaning(after.document) == _meaning(before.document)


@settings(max_examples=100)
@given(
    REQUIREMENTS.map(lambda listed: [one for one in listed if one["operator"] not in _STRICT]),
    some({}, labels=st.just({"team": "web"}), taints=TAINTS, startupTaints=TAINTS, weight=st.integers(1, 100),
          ttlSecondsUntilExpired=st.integers(0, 10**6), limits=st.just({"resources": {"cpu": "9"}}),
          kubeletConfiguration=st.just({"maxPods": 5}), ttlSecondsAfterEmpty=st.integers(0, 600)),
    st.sampled_from([{"aws-ids": "subnet-1,subnet-2"}, {"team": "a,b", "net": "*"}]),
    st.booleans(),
)  # fmt: skip
def test_a_provisioner_comes_back(
    requirements: list[dict[str, Any]], spec: dict[str, Any], selector: dict[str, str], consolidates: bool
) -> None:
    """From v1alpha5 to v1 and back, nothing is lost, so no note is needed on the way back."""
    if consolidates and "ttlSecondsAfterEmpty" not in spec:
        spec = {**spec, "consolidation": {"enabled": True}}
    of_class = {"subnetSelector": selector, "securityGroupSelector": selector, "instanceProfile": "nodes"}
    objects = [
        {"apiVersion": "karpenter.k8s.aws/v1alpha1", "kind": "AWSNodeTemplate", "metadata": {"name": "default"},
         "spec": of_class},
        {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "default"},
         "spec": {**spec, "requirements": requirements, "providerRef": {"name": "default"}}},
    ]  # fmt: skip
    first = in_v1(objects)
    older = in_older([type(one)(one.document) for one in first], Api.V1ALPHA5)
    assert [one.notes for one in older] == [(), ()]
    assert [one.document for one in in_v1(one.document for one in older)] == [one.document for one in first]


OLD = """
apiVersion: karpenter.sh/v1alpha4
kind: Provisioner
metadata: {name: default}
spec: {instanceTypes: [m6a.large], ttlSecondsUntilExpired: 600, provider: {cluster: {name: shop}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: web}]}
"""


def test_notes_stand_above_the_object_that_they_are_about(run: Run, write: Write) -> None:
    """As comments, so that they stay with it in a file; in JSON there are none."""
    path = write("old.yaml", OLD)
    outcome = run("convert", path)
    assert outcome.status == 0, outcome.err
    node_class, node_pool = yaml.safe_load_all(outcome.out)
    assert (node_class["kind"], node_pool["apiVersion"]) == ("EC2NodeClass", "karpenter.sh/v1")
    assert node_pool["metadata"]["annotations"] == {OVERRIDES: "true", EXPIRATION_OBEYS_BUDGETS: "true"}
    assert "# NodePool default: what pods select overrides what it lists by an annotation" in outcome.out
    as_json = run("convert", path, "-o", "json")
    assert [item["kind"] for item in as_json.document["items"]] == ["EC2NodeClass", "NodePool"]
    assert "note: NodePool default: what pods select overrides" in as_json.err


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("v1", ["nodes lose the label", "expired nodes wait"]),
        ("v1beta1", ["nodes lose the label", "budgets have no reasons"]),
        ("v1alpha5", []),
    ],
)
def test_a_note_is_about_the_api_that_is_written(run: Run, write: Write, to: str, said: list[str]) -> None:
    """What Karpenter 1 does with an object is nothing to whoever asks for an older one."""
    text = (
        "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\nspec: {ttlSecondsUntilExpired: 60, "
        "provider: {instanceProfile: p, subnetSelector: {a: b}, securityGroupSelector: {a: b}}}\n"
    )
    lines = [line for line in run("convert", write("old.yaml", text), "--to", to).out.splitlines() if line[0] == "#"]
    assert [line.removeprefix("# NodePool a: ")[: len(words)] for line, words in zip(lines, said, strict=True)] == said


def test_an_object_that_says_itself_when_its_nodes_expire_gets_no_note(run: Run, write: Write) -> None:
    """Its annotation is a person's word, and Karpenter 1 does the same."""
    annotated = f'{{name: a, annotations: {{{EXPIRATION_OBEYS_BUDGETS}: "false"}}}}'
    text = f"apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {annotated}\nspec: {{template: {{spec: {{"
    text += "nodeClassRef: {name: c}, requirements: []}}}\n"
    assert "#" not in run("convert", write("old.yaml", text)).out


def test_karpenters_own_instance_profile_goes_back_unsaid(run: Run, write: Write) -> None:
    """It was a setting, and its name in v1 is none that EC2 has."""
    text = (
        "apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: a}\nspec: "
        "{subnetSelector: {a: b}, securityGroupSelector: {a: b}}\n"
    )
    new = run("convert", write("old.yaml", text)).out
    assert (
        "instanceProfile" not in yaml.safe_load(run("convert", write("new.yaml", new), "--to", "v1alpha5").out)["spec"]
    )


def test_what_karpenters_conversion_webhook_has_written_is_nothing_to_apply(run: Run, write: Write) -> None:
    """Karpenter 1.0 read kubelet settings in an annotation; whoever relies on it hears where they belong (Karpenter's
    provider, issues 7235 and 7833).
    """
    text = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: dense
  annotations:
    compatibility.karpenter.sh/v1beta1-kubelet-conversion: '{"maxPods":110}'
    compatibility.karpenter.sh/v1beta1-nodeclass-reference: '{"name":"default"}'
    karpenter.sh/stored-version-migrated: "true"
spec:
  template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: []}}
"""
    outcome = run("convert", write("pool.yaml", text))
    assert yaml.safe_load(outcome.out)["metadata"] == {"name": "dense"}
    assert (
        "# NodePool dense: kubelet settings in the annotation compatibility.karpenter.sh/v1beta1-kubelet" in outcome.out
    )
    assert "write them into spec.kubelet of the EC2NodeClass" in outcome.out


def test_without_a_file_it_asks_for_one(run: Run) -> None:
    """Nothing is wrong with files that nobody gave."""
    asked = "joinery: which objects? joinery convert -f FILE, or -f - for standard input\n"
    assert run("convert") == Outcome(2, "", asked)


def test_what_pods_override_is_the_pool_s_and_not_its_inline_class_s(run: Run, write: Write) -> None:
    """Nothing would read it there, and joinery plan would say so."""
    text = (
        "apiVersion: karpenter.sh/v1alpha4\nkind: Provisioner\nmetadata: {name: a}\nspec: {provider: {"
        "instanceProfile: p, subnetSelector: {a: b}, securityGroupSelector: {a: b}}}\n"
    )
    node_class, node_pool = yaml.safe_load_all(run("convert", write("old.yaml", text)).out)
    assert "annotations" not in node_class["metadata"]
    assert node_pool["metadata"]["annotations"] == {OVERRIDES: "true"}


def test_an_inline_class_gets_those_annotations_of_ours_that_are_about_classes(run: Run, write: Write) -> None:
    """A share on demand is the pool's. What is not ours may be about either."""
    text = (
        "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a, annotations: {team: web, "
        'joinery.dev/on-demand: "2", joinery.dev/canary: 5% for 1h}}\nspec: {provider: {instanceProfile: p, '
        "subnetSelector: {a: b}, securityGroupSelector: {a: b}}}\n"
    )
    node_class, node_pool = yaml.safe_load_all(run("convert", write("old.yaml", text)).out)
    assert node_class["metadata"]["annotations"] == {"joinery.dev/canary": "5% for 1h", "team": "web"}
    assert node_pool["metadata"]["annotations"]["joinery.dev/on-demand"] == "2"


def test_kubelet_settings_without_a_class_to_have_them_are_said_to_be_lost(run: Run, write: Write) -> None:
    """The files may lack the class, or have it in v1 already."""
    text = (
        "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: a}\nspec: {template: {spec: "
        "{nodeClassRef: {name: c}, kubelet: {maxPods: 30}, requirements: []}}}\n"
    )
    said = (
        "# NodePool a: kubelet settings are dropped (maxPods): v1 has them on the EC2NodeClass, and no older c is here"
    )
    assert said in run("convert", write("old.yaml", text)).out


@pytest.mark.parametrize(
    ("text", "to", "problem"),
    [
        (OLD.partition("---")[2], "v1", "no NodePool, Provisioner or node class in these files"),
        (OLD.replace("instanceTypes", "instanceType"), "v1", "spec.instanceType: no such field; is it instanceTypes?"),
        (
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec: {replicas: 3, template: {spec: "
            "{nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}, requirements: []}}}\n",
            "v1alpha5", "NodePool a: spec.replicas: has no equivalent",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_bad_input(run: Run, write: Write, text: str, to: str, problem: str) -> None:
    """One line with object and field, and nothing is printed that would be half of it."""
    outcome = run("convert", write("in.yaml", text), "--to", to)
    assert (outcome.status, outcome.out) == (2, "")
    assert problem in outcome.err


def test_no_note_ends_its_comment(run: Run, write: Write) -> None:
    """Whoever wrote the objects writes no lines of what they become."""
    pool = """
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {name: default}
      requirements: []
      kubelet: {"x\\nkind: Evil": 1}
"""
    out = run("convert", "-f", write("pool.yaml", pool)).out
    assert [one["kind"] for one in yaml.safe_load_all(out)] == ["NodePool"]
    assert not any(line.startswith("kind: Evil") for line in out.splitlines())
