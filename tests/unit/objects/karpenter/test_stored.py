"""Objects that an API server stored under other rules than ours."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from joinery.gateways.kubernetes.lists import NODE_CLAIMS, NODE_POOLS, as_stored
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import DEFAULT_KIND
from joinery.objects.snapshot.snapshot import Invalid

KARPENTER = Path(__file__).parents[3] / "data" / "real" / "karpenter"


def document(name: str) -> dict[str, Any]:
    """One of the stored objects."""
    loaded: dict[str, Any] = next(yaml.load_all((KARPENTER / f"{name}.yaml").read_text(), Loader=yaml.BaseLoader))
    return loaded


def read(given: dict[str, Any], custom: Any = NODE_CLAIMS) -> Any:
    """What becomes of it."""
    return as_stored(msgspec.json.encode(given), custom, DEFAULT_KIND.group)


def test_a_claim_of_karpenter_1_0_is_ours() -> None:
    """It leaves the group of its class blank: left unread it would neither drain nor expire."""
    claim = read(document("nodeclaim-v1.0-migrated-empty-group"))
    assert isinstance(claim, NodeClaim)
    assert claim.spec.node_class_ref.of_kind == DEFAULT_KIND
    assert claim.status.provider_id


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (
            ("spec", "requirements", 0),
            {"key": "karpenter.k8s.aws/instance-colour", "operator": "Near", "values": ["x"]},
        ),
        (("spec", "taints"), [{"key": "a", "effect": "Sometimes"}, {"key": "b", "effect": "NoSchedule"}]),
        (("spec", "expireAfter"), "soon"),
        (("spec", "resources", "requests", "cpu"), "much"),
        (("status", "capacity"), {"memory": "1Zi", "cpu": "4"}),
        (("status", "conditions", 0, "status"), "Maybe"),
        (("metadata", "ownerReferences"), "none"),
    ],
    ids=lambda given: ".".join(map(str, given)) if isinstance(given, tuple) else "",
)
def test_a_claim_with_an_instance_is_read_as_far_as_it_can_be(where: tuple[Any, ...], value: Any) -> None:
    """A newer version's operator must not keep its node from being drained."""
    given = document("nodeclaim-v1-spot")
    whole = read(given)
    *outside, last = where
    parent: Any = given
    for step in outside:
        parent = parent[step]
    parent[last] = value
    claim = read(given)
    assert isinstance(claim, NodeClaim)
    assert claim.status.provider_id == whole.status.provider_id
    assert claim.metadata.name == whole.metadata.name
    assert len(claim.spec.requirements) >= len(whole.spec.requirements) - 1


def test_a_claim_without_an_instance_must_be_understood_as_a_whole() -> None:
    """Launched without the requirement that we cannot read it would be another node than was asked for."""
    given = document("nodeclaim-v1-launching")
    given["spec"]["requirements"][0]["operator"] = "Near"
    given["status"].pop("providerID", None)
    unread = read(given)
    assert isinstance(unread, Invalid)
    assert (unread.name, unread.node_pool) == (
        given["metadata"]["name"],
        given["metadata"]["labels"]["karpenter.sh/nodepool"],
    )
    assert unread.node_class == given["spec"]["nodeClassRef"]["name"]
    assert unread.created is not None


def test_what_another_provider_s_rules_allow_is_nothing_to_complain_about() -> None:
    """EKS Auto Mode may store what our rules refuse: no condition of ours on its objects."""
    pool, claim = document("nodepools-eks-auto-mode"), document("nodeclaim-eks-auto-mode")
    pool = pool["items"][0] if "items" in pool else pool
    pool["spec"]["weight"] = 1000
    claim["spec"]["requirements"][0]["operator"] = "Near"
    del claim["status"]["providerID"]
    assert read(pool, NODE_POOLS) is None
    assert read(claim) is None
