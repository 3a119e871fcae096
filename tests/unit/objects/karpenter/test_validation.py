"""What no schema can say about a NodePool, and how errors read."""

from typing import Any

import pytest
from pydantic import ValidationError

from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.validation import explain, path, validate
from tests.unit.objects.karpenter.objects import changed, good

LONG = "a" * 64


def reasons(**template: Any) -> tuple[str, ...]:
    """What is wrong with a NodePool whose template spec has these fields."""
    document = good("NodePool")
    document["spec"]["template"]["spec"] |= template
    return validate(NodePool.model_validate(document))


def requirement(key: str, operator: str, *values: str, **more: Any) -> dict[str, Any]:
    """One requirement."""
    return {"key": key, "operator": operator, "values": list(values), **more}


def test_a_good_pool_has_no_reasons() -> None:
    """Nothing to report."""
    assert reasons() == ()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (requirement(LONG, "Exists"), "key"),
        (requirement(f"{'a' * 254}/b", "Exists"), "key"),
        (requirement("karpenter.k8s.aws/ec2nodeclass", "Exists"), "key"),
        (requirement("a", "In", "b c"), "values[0]"),
        (requirement("a", "NotIn", "b", LONG), "values[1]"),
        (requirement("karpenter.sh/capacity-type", "In", "spott"), "values"),
        (requirement("karpenter.sh/capacity-type", "In", "spot", "on-demnd", minValues=2), "values"),
        (requirement("karpenter.k8s.aws/instance-tenancy", "In", "host"), "values"),
        (requirement("a", "In", "b", "b", minValues=2), "values"),
    ],
)
def test_a_requirement_that_nothing_can_satisfy_is_a_reason(given: dict[str, Any], field: str) -> None:
    """It names the requirement and what is wrong in it."""
    found = reasons(requirements=[requirement("a", "Exists"), given])
    assert [reason.partition(": ")[0] for reason in found] == [f"spec.template.spec.requirements[1].{field}"]


@pytest.mark.parametrize(
    "given",
    [
        requirement("karpenter.sh/capacity-type", "In", "spot", "on-demand", "reserved"),
        requirement("karpenter.sh/capacity-type", "In", "spot", "unheard-of"),
        requirement("karpenter.sh/capacity-type", "NotIn", "unheard-of"),
        requirement("karpenter.k8s.aws/instance-tenancy", "In", "default", "dedicated"),
        requirement("beta.kubernetes.io/arch", "In", "arm64"),
        requirement("failure-domain.beta.kubernetes.io/zone", "In", "a"),
        requirement("example.com/a", "In", *(str(n) for n in range(60))),
        requirement("kops.k8s.io/x", "In", ""),
    ],
)
def test_a_requirement_that_something_satisfies_is_none(given: dict[str, Any]) -> None:
    """One known value among unknown ones is enough."""
    assert reasons(requirements=[given]) == ()


def test_a_taint_may_be_given_once() -> None:
    """Across taints and start-up taints; with another effect it is another taint."""
    taint = {"key": "a", "effect": "NoSchedule"}
    other = {**taint, "effect": "NoExecute"}
    assert reasons(taints=[taint, other]) == ()
    assert reasons(taints=[taint], startupTaints=[other, {**taint, "value": "b"}]) == (
        "spec.template.spec.startupTaints[1]: duplicate taint a:NoSchedule in taints and startupTaints",
    )


def test_a_taint_key_and_value_have_lengths() -> None:
    """The patterns of the schema do not say so."""
    found = reasons(taints=[{"key": LONG, "value": LONG, "effect": "NoSchedule"}])
    assert [reason.partition(": ")[0] for reason in found] == [
        "spec.template.spec.taints[0].key",
        "spec.template.spec.taints[0].value",
    ]


@pytest.mark.parametrize("key", [f"{LONG}.b", "karpenter.k8s.aws/ec2nodeclass", "a b", "UPPER.example.com/a"])
def test_a_label_that_cannot_be_set_is_a_reason(key: str) -> None:
    """The key is named, in brackets: it is no field."""
    document = changed(good("NodePool"), "spec.template.metadata.labels", {key: "v"})
    reason = validate(NodePool.model_validate(document))[0]
    assert reason.startswith("spec.template.metadata.labels")
    assert f"[{key}]: " in reason


def test_all_reasons_are_reported_together() -> None:
    """Whoever mends a pool does not want to learn of its faults one by one."""
    assert len(reasons(requirements=[requirement("a", "In", "b c"), requirement(LONG, "Exists")])) == 2


def test_an_error_names_the_path_to_the_field() -> None:
    """Lists are indexed, keys with dots are bracketed, and each error is one clause of one line."""
    document = good("NodePool")
    document["spec"] |= {"limits": {"nvidia.com/gpu": "many"}, "weight": 0}
    with pytest.raises(ValidationError) as refusal:
        NodePool.model_validate(document)
    assert explain(refusal.value) == (
        "spec.limits[nvidia.com/gpu]: 'many' is not a quantity: write a quantity such as 500m, 2 or 4Gi; "
        "spec.weight: must be at least 1, is 0"
    )


def test_an_object_with_many_errors_is_still_one_line() -> None:
    """The first five say enough."""
    document = changed(good("NodePool"), "spec.limits", {str(n): "x" for n in range(9)})
    with pytest.raises(ValidationError) as refusal:
        NodePool.model_validate(document)
    assert explain(refusal.value).endswith("; and 4 more")


def test_something_that_is_no_object_is_said_to_be_none() -> None:
    """A list where a NodePool should be."""
    with pytest.raises(ValidationError) as refusal:
        NodePool.model_validate([])
    assert explain(refusal.value).startswith("object: ")


def test_a_path_reads_as_kubernetes_writes_it() -> None:
    """``spec.a[0].b``, and brackets where a dot would mislead."""
    assert path(("spec", "a", 0, "b")) == "spec.a[0].b"
    assert path(("metadata", "labels", "example.com/a")) == "metadata.labels[example.com/a]"
