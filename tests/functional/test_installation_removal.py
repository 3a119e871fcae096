"""What deleting the stack does with nodes, with their role, and with what the installer has made."""

import pytest

from joinery.decisions.installation.objects import APPLIED, MARKED, WEBHOOK
from joinery.decisions.installation.removal import UNINSTALLING
from joinery.objects.errors import ConflictError
from simulator.world import World
from tests.functional.installing import (
    CONNECTION,
    refused,
    request,
    succeeded,
)

CLAIM = {"kind": "NodeClaim", "metadata": {"name": "default-1"}}
ROLE = {"NodeRole": "nodes-1", "NodeInstanceProfile": "profile-1"}


def test_a_stack_is_not_deleted_while_nodes_would_be_left_to_nobody(world: World) -> None:
    """It says what to run. The webhook stays, so that everything goes on working."""
    succeeded(world, request("Create"))
    succeeded(world, request("Create", CONNECTION))
    world.objects.put(CLAIM)
    reason = refused(world, request("Delete", CONNECTION))

    assert "The cluster still has 1 NodeClaim (default-1)" in reason
    assert "make undeploy" in reason
    assert "NODES=keep" in reason
    assert world.objects.read(WEBHOOK)


def test_a_stack_is_deleted_whatever_nodes_another_provider_has(world: World) -> None:
    """EKS Auto Mode's NodeClaims are of the same kind. Neither the stack nor the role of our nodes waits for them."""
    succeeded(world, request("Create", **ROLE))
    succeeded(world, request("Create", CONNECTION))
    reference = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    world.objects.put({**CLAIM, "spec": {"nodeClassRef": reference}})
    succeeded(world, request("Delete", CONNECTION))
    succeeded(world, request("Delete", **ROLE))

    assert "remove_node_role nodes-1 profile-1" in world.account.calls


@pytest.mark.parametrize("group", [{}, {"group": ""}, {"group": "karpenter.k8s.aws"}])
def test_a_claim_that_names_no_provider_is_ours(world: World, group: dict[str, str]) -> None:
    """Karpenter up to 1.0 knew one kind of class only."""
    succeeded(world, request("Create"))
    succeeded(world, request("Create", CONNECTION))
    world.objects.put({**CLAIM, "spec": {"nodeClassRef": {"name": "default", **group}}})

    assert "1 NodeClaim (default-1)" in refused(world, request("Delete", CONNECTION))


@pytest.mark.parametrize("kind", ["Machine", "NodeClaim.v1beta1"])
def test_a_legacy_node_keeps_the_stack_and_its_own_role(world: World, kind: str) -> None:
    """Where a Karpenter up to v0.37 was, claims are stored as Machines or in v1beta1, and v1 may not be served."""
    succeeded(world, request("Create", **ROLE))
    succeeded(world, request("Create", CONNECTION))
    world.objects.put({**CLAIM, "kind": kind})

    assert "1 NodeClaim (default-1)" in refused(world, request("Delete", CONNECTION))
    assert "because 1 NodeClaims are left" in succeeded(world, request("Delete", **ROLE))["Notes"]


def test_a_claim_that_is_served_in_two_versions_is_one(world: World) -> None:
    """As by Karpenter 1.0."""
    succeeded(world, request("Create"))
    succeeded(world, request("Create", CONNECTION))
    for kind in ("NodeClaim", "NodeClaim.v1beta1"):
        world.objects.put({**CLAIM, "kind": kind})

    assert "1 NodeClaim (default-1)" in refused(world, request("Delete", CONNECTION))


def test_a_stack_is_deleted_once_somebody_has_said_that_nodes_stay(world: World) -> None:
    """`joinery uninstall --nodes keep` writes that where the doors cannot."""
    succeeded(world, request("Create"))
    succeeded(world, request("Create", CONNECTION))
    world.objects.put(CLAIM)
    world.objects.patch(MARKED, {"metadata": {"annotations": {UNINSTALLING: "keep"}}})
    succeeded(world, request("Delete", CONNECTION))

    assert world.objects.read(WEBHOOK) is None


def test_whoever_deploys_after_an_uninstalling_that_was_stopped_is_asked_about_nodes_again(world: World) -> None:
    """What was said of the nodes of that day is not said of those that are launched since."""
    succeeded(world, request("Create"))
    succeeded(world, request("Create", CONNECTION))
    world.objects.patch(MARKED, {"metadata": {"annotations": {UNINSTALLING: "keep"}}})
    succeeded(world, request("Update"))
    world.objects.put(CLAIM)

    assert "The cluster still has 1 NodeClaim" in refused(world, request("Delete", CONNECTION))


def test_an_installation_that_failed_is_rolled_back_whoevers_nodes_there_are(world: World) -> None:
    """They are another controller's: this installation has launched nothing."""
    succeeded(world, request("Create"))
    succeeded(world, request("Create", CONNECTION))
    world.objects.patch(WEBHOOK, {"metadata": {"annotations": {APPLIED: None}}})
    world.objects.put(CLAIM)
    succeeded(world, request("Delete", CONNECTION))


# --- the nodes' role ---


def test_the_nodes_role_goes_with_the_last_node(world: World) -> None:
    """CloudFormation keeps it, so the installer removes it."""
    succeeded(world, request("Create", **ROLE))
    succeeded(world, request("Delete", **ROLE))

    assert "remove_node_role nodes-1 profile-1" in world.account.calls


def test_a_role_that_the_stack_did_not_make_is_not_removed(world: World) -> None:
    """A user's own."""
    succeeded(world, request("Create"))
    succeeded(world, request("Delete"))

    assert not [call for call in world.account.calls if call.startswith("remove_node_role")]


def test_nodes_that_are_left_keep_their_role(world: World) -> None:
    """Without it they would lose the cluster."""
    succeeded(world, request("Create", **ROLE))
    world.objects.put({"kind": "NodeClaim", "metadata": {"name": "default-1"}})
    notes = succeeded(world, request("Delete", **ROLE))["Notes"]

    assert "the role of the nodes is kept, because 1 NodeClaims are left" in notes
    assert not [call for call in world.account.calls if call.startswith("remove_node_role")]


def test_a_role_that_something_else_holds_is_kept(world: World) -> None:
    """Another instance profile, for instance: no reason to keep the stack."""
    succeeded(world, request("Create", **ROLE))
    world.account.failures["remove_node_role"] = ConflictError("IAM DeleteRole nodes-1: DeleteConflict")

    assert "something else holds it" in succeeded(world, request("Delete", **ROLE))["Notes"]


def test_the_nodes_role_goes_where_the_cluster_is_gone(world: World) -> None:
    """No node can be left in it."""
    succeeded(world, request("Create", **ROLE))
    world.account.clusters.clear()
    succeeded(world, request("Delete", **ROLE))

    assert "remove_node_role nodes-1 profile-1" in world.account.calls
