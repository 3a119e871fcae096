"""What a resource that says little means, and how it is written."""

from datetime import UTC, datetime
from typing import Any

import pytest

from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec
from joinery.objects.karpenter.meta import Condition, ObjectMeta
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from tests.unit.objects.karpenter.objects import changed, good


def test_a_pool_that_says_little_has_karpenters_defaults() -> None:
    """Nodes live 30 days and are consolidated at once, a tenth of them at a time."""
    spec = NodePool.model_validate(good("NodePool")).spec
    assert spec.template.spec.expire_after == "720h"
    assert spec.template.spec.termination_grace_period is None
    assert spec.disruption.consolidate_after == "0s"
    assert spec.disruption.consolidation_policy == "WhenEmptyOrUnderutilized"
    assert [budget.nodes for budget in spec.disruption.budgets] == ["10%"]
    assert spec.weight is None


def test_a_class_that_says_little_has_karpenters_defaults() -> None:
    """Metadata needs a token and one hop."""
    options = EC2NodeClass.model_validate(good("EC2NodeClass")).spec.metadata_options
    assert (options.http_endpoint, options.http_protocol_ipv6) == ("enabled", "disabled")
    assert (options.http_put_response_hop_limit, options.http_tokens) == (1, "required")


def test_a_pool_with_replicas_is_static() -> None:
    """Also with none of them."""
    assert NodePool.model_validate(changed(good("NodePool"), "spec.replicas", 0)).is_static
    assert not NodePool.model_validate(good("NodePool")).is_static


def test_a_null_says_nothing() -> None:
    """``kubectl create --dry-run`` writes them, and the API server prunes them."""
    document = changed(good("NodePool"), "metadata.creationTimestamp", None)
    document["metadata"]["creationTimestamp"] = None
    document["spec"]["template"]["spec"]["taints"] = None
    assert NodePool.model_validate(document) == NodePool.model_validate(good("NodePool"))


@pytest.mark.parametrize(
    ("terms", "family", "expected"),
    [
        ([{"alias": "al2023@latest"}], None, "AL2023"),
        ([{"alias": "bottlerocket@v1.20.0"}], None, "Bottlerocket"),
        ([{"alias": "al2023@latest"}], "Custom", "Custom"),
        ([{"id": "ami-1"}], "Windows2022", "Windows2022"),
    ],
)
def test_the_family_is_named_or_told_by_the_alias(terms: list[Any], family: str | None, expected: str) -> None:
    """User data, disks and density follow from it."""
    document = changed(changed(good("EC2NodeClass"), "spec.amiSelectorTerms", terms), "spec.amiFamily", family)
    assert EC2NodeClass.model_validate(document).spec.family == expected


def test_seconds_may_be_written_as_a_duration() -> None:
    """Connection tracking counts in seconds either way."""
    document = changed(good("EC2NodeClass"), "spec.connectionTracking", {"udpStreamTimeout": "3m", "udpTimeout": 30})
    spec: EC2NodeClassSpec = EC2NodeClass.model_validate(document).spec
    assert spec.connection_tracking is not None
    assert (spec.connection_tracking.udp_stream_timeout, spec.connection_tracking.udp_timeout) == (180, 30)


def test_what_is_written_leaves_out_what_says_nothing() -> None:
    """The API server refuses an empty role, and would take an absent one."""
    document = good("EC2NodeClass")
    assert "instanceProfile" not in EC2NodeClass.model_validate(document).to_wire()["spec"]
    assert EC2NodeClass.model_validate(document).to_wire()["metadata"] == {"name": "default"}


def test_what_is_empty_on_purpose_is_written() -> None:
    """No requirements is a statement, and no budgets is another than the default."""
    wire = NodePool.model_validate(changed(good("NodePool"), "spec.disruption.budgets", [])).to_wire()
    assert wire["spec"]["disruption"]["budgets"] == []
    assert wire["spec"]["template"]["spec"]["requirements"] == []


def test_times_are_written_as_the_api_writes_them() -> None:
    """RFC 3339, in UTC."""
    created = ObjectMeta(name="a", creation_timestamp=datetime(2026, 8, 24, 8, tzinfo=UTC))
    assert created.model_dump(mode="json", by_alias=True)["creationTimestamp"] == "2026-08-24T08:00:00Z"


def test_a_claim_knows_its_conditions() -> None:
    """By type."""
    claim = NodeClaim.model_validate(good("NodeClaim"))
    launched = Condition(type="Launched", status="True")
    status = claim.status.model_copy(update={"conditions": [launched]})
    claim = claim.model_copy(update={"status": status})
    assert claim.condition("Launched") == launched
    assert claim.is_true("Launched")
    assert not claim.is_true("Registered")
