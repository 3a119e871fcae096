"""The installer in the simulated cluster and account: what CloudFormation asks of it, and what it is told."""

import json

import pytest

from joinery.account.gateway import LONGEST_CALL
from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.apis.labels import VERSION
from joinery.apis.nodepool import NodePool
from joinery.aws import error as aws_error
from joinery.controllers.installer.access import RUN, UNTIL
from joinery.controllers.installer.controller import KEPT_SECONDS
from joinery.errors import ConflictError, UnavailableError
from joinery.installation.objects import APPLIED, LEASE, MARKED, STACK, WEBHOOK
from joinery.installation.references import Reference
from joinery.installation.removal import UNINSTALLING
from joinery.installation.requests import NOTHING_MADE
from simulator.doors.doors import TOKEN, Killed
from simulator.world import CLUSTER, World
from tests.functional.fuse import Fuse, crashes
from tests.functional.installing import (
    CONNECTION,
    OTHER_STACK,
    URL,
    answered,
    refused,
    request,
    succeeded,
)
from tests.functional.installing import STACK as OUR_STACK

NODE_POOLS = Reference("CustomResourceDefinition", "nodepools.karpenter.sh")


def test_a_new_stack_prepares_the_cluster(world: World) -> None:
    """Definitions, rights, policies and the Lease are there, and the account has EC2's role for spot."""
    succeeded(world, request("Create"))

    kinds = [name.partition(" ")[0] for name in world.objects.names()]
    assert kinds.count("CustomResourceDefinition") == 3
    assert {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ValidatingAdmissionPolicy"} < set(kinds)
    assert world.objects.read(LEASE)
    assert world.account.has_spot_role


def test_a_right_is_never_there_without_its_fence(world: World) -> None:
    """Definitions first, policies before the roles that they fence in, bindings of roles last."""
    succeeded(world, request("Create"))
    order = [write.split()[1] for write in world.objects.writes]

    assert order.index("ValidatingAdmissionPolicyBinding") < order.index("ClusterRole")
    assert max(i for i, kind in enumerate(order) if kind == "CustomResourceDefinition") < order.index("ClusterRole")
    assert order.index("ClusterRole") < order.index("ClusterRoleBinding")


def test_the_installer_has_rights_only_while_it_works(world: World) -> None:
    """Its access entry is made first and removed last, before CloudFormation is answered."""
    succeeded(world, request("Create"))

    assert world.account.calls == ["grant_access", "ensure_spot_role", "revoke_access", "answer"]
    assert not world.account.entries


def test_a_stack_connects_the_cluster_to_its_doors(world: World) -> None:
    """The webhook configuration calls the door's address, and the catalogue is read at once."""
    succeeded(world, request("Create", CONNECTION, CatalogFunction="catalog-1"))

    configuration = world.objects.read(WEBHOOK)
    assert configuration
    assert {webhook["clientConfig"]["url"] for webhook in configuration["webhooks"]} == {f"{URL}{TOKEN}"}
    assert "refresh_catalog catalog-1" in world.account.calls


def test_what_is_deleted_is_what_was_made(world: World) -> None:
    """Definitions stay, because all objects would go with them."""
    succeeded(world, request("Create"))
    succeeded(world, request("Create", CONNECTION))
    succeeded(world, request("Delete", CONNECTION))
    succeeded(world, request("Delete"))

    assert [name for name in world.objects.names() if not name.startswith("CustomResourceDefinition")] == []
    assert len(world.objects.names()) == 3


def test_a_first_node_pool_is_made_where_it_is_asked_for(world: World) -> None:
    """By the tags of discovery, with the instance profile that the stack has made."""
    succeeded(world, request("Create", CONNECTION, StarterNodePool="true", NodeInstanceProfile="profile-1"))

    node_class = EC2NodeClass.model_validate(world.objects.read(Reference("EC2NodeClass", "default")))
    assert node_class.spec.instance_profile == "profile-1"
    assert [term.tags for term in node_class.spec.subnet_selector_terms] == [{"karpenter.sh/discovery": CLUSTER}]
    assert NodePool.model_validate(world.objects.read(Reference("NodePool", "default"))).spec.limits


def test_subnets_and_groups_of_the_first_node_class_may_be_named(world: World) -> None:
    """Not every subnet has a tag for discovery."""
    given = {"StarterSubnetIds": "subnet-1,subnet-2", "StarterSecurityGroupIds": "sg-1", "NodeRole": "nodes"}
    succeeded(world, request("Create", CONNECTION, StarterNodePool="true", **given))

    spec = EC2NodeClass.model_validate(world.objects.read(Reference("EC2NodeClass", "default"))).spec
    assert [term.id for term in spec.subnet_selector_terms] == ["subnet-1", "subnet-2"]
    assert [term.id for term in spec.security_group_selector_terms] == ["sg-1"]
    assert spec.role == "nodes"


def test_a_first_node_pool_that_was_deleted_does_not_come_back(world: World) -> None:
    """It is the user's: an upgrade neither makes it again nor changes it."""
    created = request("Create", CONNECTION, StarterNodePool="true", NodeRole="nodes")
    succeeded(world, created)
    world.objects.remove(Reference("NodePool", "default"))
    upgrade = request("Update", CONNECTION, StarterNodePool="true", NodeRole="nodes", Version="2")
    succeeded(world, {**upgrade, "OldResourceProperties": created["ResourceProperties"]})

    assert world.objects.read(Reference("NodePool", "default")) is None


def test_a_node_pool_that_is_there_is_left_as_it_is(world: World) -> None:
    """A cluster that comes from Karpenter has one of the same name."""
    theirs = {"kind": "NodePool", "metadata": {"name": "default"}, "spec": {"limits": {"cpu": "7"}}}
    world.objects.put(theirs)
    notes = succeeded(world, request("Create", CONNECTION, StarterNodePool="true", NodeRole="nodes"))["Notes"]

    assert "NodePool default was there already" in notes
    assert world.objects.read(Reference("NodePool", "default")) == theirs


# --- the nodes' role ---

ROLE = {"NodeRole": "nodes-1", "NodeInstanceProfile": "profile-1"}


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


# --- what is refused, and in which words ---


def test_a_cluster_has_one_stack(world: World) -> None:
    """A second stack is refused in plain words, and its rollback takes nothing away from the first."""
    succeeded(world, request("Create"))
    reason = refused(world, request("Create", stack=OTHER_STACK))
    before = world.objects.names()
    made = world.account.answers[-1][1]["PhysicalResourceId"]
    succeeded(world, request("Delete", stack=OTHER_STACK, physical_id=made))

    assert "Cluster simulated is run by another stack" in reason
    assert OUR_STACK in reason
    assert made == NOTHING_MADE
    assert world.objects.names() == before


def test_of_two_stacks_that_are_made_at_once_one_is_refused(world: World) -> None:
    """Both found a cluster without marks. Whoever wrote them last has it, and the other hears of it at its next step,
    before its doors are rung.
    """
    succeeded(world, request("Create"))
    marks = world.objects.read(MARKED)
    assert marks is not None
    marks["metadata"]["annotations"][STACK] = OTHER_STACK
    world.objects.apply(marks, force=True)

    assert "is run by another stack" in refused(world, request("Create", CONNECTION))
    assert world.objects.read(WEBHOOK) is None
    succeeded(world, request("Create", CONNECTION, stack=OTHER_STACK))


def test_another_stack_s_deletion_takes_nothing(world: World) -> None:
    """Also where it claims to have made something."""
    succeeded(world, request("Create"))
    before = world.objects.names()
    succeeded(world, request("Delete", stack=OTHER_STACK))

    assert world.objects.names() == before


def test_a_stack_cannot_move_to_another_cluster(world: World) -> None:
    """Its physical ID stays the same: CloudFormation would delete what it takes for replaced."""
    succeeded(world, request("Create"))
    moved = request("Update")
    moved["ResourceProperties"]["ClusterName"] = "other"
    body = answered(world, moved)

    assert body["Status"] == "FAILED"
    assert "ClusterName cannot be changed from simulated to other" in body["Reason"]
    assert body["PhysicalResourceId"] == f"{CLUSTER}/preparation"


def test_a_refused_move_is_rolled_back(world: World) -> None:
    """CloudFormation then asks for the old name again."""
    succeeded(world, request("Create"))
    back = request("Update")
    succeeded(world, {**back, "OldResourceProperties": {"ClusterName": "other"}})


def test_an_old_kubernetes_is_refused(world: World) -> None:
    """Admission policies are stable from 1.30 on: before that, rights would be unfenced."""
    world.objects.version = (1, 29)

    assert "runs Kubernetes 1.29. Joinery needs 1.30 or newer" in refused(world, request("Create"))
    assert world.objects.writes == []


def test_a_cluster_that_is_not_there_is_named(world: World) -> None:
    """A misspelt name is the commonest mistake of all."""
    wrong = request("Create")
    wrong["ResourceProperties"]["ClusterName"] = "blu"

    assert refused(world, wrong).startswith("There is no EKS cluster blu in this account and region")


def test_deleting_in_a_cluster_that_is_gone_succeeds(world: World) -> None:
    """Whoever deletes the cluster first can still delete the stack."""
    succeeded(world, request("Create"))
    world.account.clusters.clear()

    succeeded(world, request("Delete", CONNECTION))
    succeeded(world, request("Delete"))


# --- CloudFormation is always answered ---


@pytest.mark.parametrize("event", [
    request("Repaint"),
    request("Create") | {"ResourceType": "Custom::Other"},
    request("Create") | {"ResourceProperties": {}},
    request("Create") | {"ResourceProperties": None},
    {"ResponseURL": "https://answers.example/1?signature"},
], ids=["unknown request", "unknown type", "no cluster", "no properties", "nothing at all"])  # fmt: skip
def test_a_request_that_is_not_understood_is_answered(event: object, world: World) -> None:
    """It fails at once, and not after the hour that CloudFormation would wait."""
    assert refused(world, event)
    assert world.objects.writes == []


@pytest.mark.parametrize("name", ["server_version", "read", "labelled", "apply", "is_administrator"])
def test_whatever_fails_is_told_and_leaves_no_rights(name: str, world: World) -> None:
    """Any call of the cluster may fail in any way, a mistake of ours too."""
    world.objects.failures[name] = ZeroDivisionError("unexpected")

    assert "unexpected" in refused(world, request("Create"))
    assert not world.account.entries


def test_a_reason_says_what_failed_on_which_object(world: World) -> None:
    """It is all that whoever deploys will see."""
    world.objects.failures["apply"] = UnavailableError("PATCH ...: etcd is full (500)")

    assert refused(world, request("Create")).startswith(
        "Trying CustomResourceDefinition ec2nodeclasses.karpenter.k8s.aws: PATCH"
    )


def test_a_run_without_time_answers_before_it_ends(world: World) -> None:
    """A cluster that never knows the installer: the run waits for as long as it may, and no longer."""
    world.objects.unknown_for = 10_000
    begun = world.clock.now()

    assert "does not know the installer's access entry yet" in refused(world, request("Create"))
    assert 200 < (world.clock.now() - begun).total_seconds() < 260
    assert not world.account.entries


def test_an_answer_fits_into_what_cloudformation_takes(world: World) -> None:
    """4,096 bytes, however long an error is."""
    world.objects.failures["server_version"] = UnavailableError("ä" * 10_000)
    refused(world, request("Create"))

    assert len(json.dumps(world.account.answers[-1][1], ensure_ascii=False).encode()) <= 4096


def test_notes_fit_into_an_answer_too(world: World) -> None:
    """An answer that is too long is a failure to CloudFormation."""
    world.account.failures["ensure_spot_role"] = UnavailableError("x" * 10_000)
    succeeded(world, request("Create"))

    assert len(json.dumps(world.account.answers[-1][1])) <= 4096


# --- its own access ---


def test_an_entry_that_a_killed_run_left_is_taken_over(world: World) -> None:
    """Lambda repeats a killed run under the same ID; and after a while whoever comes next may take it."""
    later = world.clock.now().timestamp() + 300
    world.account.grant_access(CLUSTER, {RUN: "run-1", UNTIL: str(int(later))})

    succeeded(world, request("Create"))
    assert not world.account.entries


def test_an_entry_whose_time_is_over_is_taken_over(world: World) -> None:
    """No run outlives its timeout."""
    world.account.grant_access(CLUSTER, {RUN: "other", UNTIL: str(int(world.clock.now().timestamp()) - 1)})

    succeeded(world, request("Create"))
    assert not world.account.entries


def test_an_entry_is_its_run_s_until_that_has_removed_it(world: World) -> None:
    """At its end a run still has a call to make. An entry that somebody else made meanwhile would go with it."""
    begun = world.clock.now().timestamp()
    with pytest.raises(Killed):
        answered(world, request("Create"), fuse=Fuse(1))

    until = int(world.account.entries[CLUSTER].tags[UNTIL])
    assert begun + 300 - KEPT_SECONDS + LONGEST_CALL <= until <= begun + 300


def test_a_run_waits_for_another_that_is_at_work(world: World) -> None:
    """Or it would remove the other's rights."""
    begun = world.clock.now().timestamp()
    world.account.grant_access(CLUSTER, {RUN: "other", UNTIL: str(int(begun) + 60)})

    succeeded(world, request("Create"))
    assert world.clock.now().timestamp() >= begun + 60


def test_the_installer_waits_until_the_cluster_knows_it(world: World) -> None:
    """EKS takes some seconds to tell the API servers."""
    world.objects.unknown_for = 3
    begun = world.clock.now()
    succeeded(world, request("Create"))

    assert 0 < (world.clock.now() - begun).total_seconds() < 10


def test_an_entry_without_its_rights_is_removed(world: World) -> None:
    """It was made, and then the access policy was refused."""
    world.account.failures["grant_access"] = aws_error("AccessDeniedException", "no", doing="EKS AssociateAccessPolicy")

    assert "permission boundary" in refused(world, request("Create"))
    assert not world.account.entries


def test_a_run_that_is_throttled_leaves_the_entry_of_another_at_work(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not know whose entry is there, and without it the other would be a stranger halfway through."""
    world.account.grant_access(CLUSTER, {RUN: "other", UNTIL: str(int(world.clock.now().timestamp()) + 250)})

    def throttled(*_: object) -> None:
        raise UnavailableError("EKS CreateAccessEntry: ThrottlingException: slow down")

    monkeypatch.setattr(world.account, "grant_access", throttled)
    assert "slow down" in refused(world, request("Update"))
    assert world.account.entries[CLUSTER].tags[RUN] == "other"


def test_a_right_that_iam_does_not_know_yet_is_waited_for(world: World) -> None:
    """A new stack's policy was attached a moment ago. Whoever is denied for good hears of it within a minute."""
    world.account.failures["grant_access"] = aws_error("AccessDeniedException", "no", doing="EKS CreateAccessEntry")
    begun = world.clock.now()
    refused(world, request("Create"))
    denied_after = (world.clock.now() - begun).total_seconds()
    world.account.calls.clear()
    world.account.succeeds_after = 3
    succeeded(world, request("Create"))

    assert 30 < denied_after < 60
    assert world.account.calls.count("grant_access") == 4
    assert not world.account.entries


def test_rights_that_could_not_be_removed_are_a_failure(world: World) -> None:
    """Somebody must look: nobody is to be an administrator for longer than a deployment."""
    world.account.failures["revoke_access"] = UnavailableError("EKS DeleteAccessEntry: ServerException: no")

    assert "EKS DeleteAccessEntry" in refused(world, request("Create"))


@pytest.mark.parametrize(("method", "name"), [("ensure_spot_role", "Preparation"), ("refresh_catalog", CONNECTION)])
def test_what_can_be_done_without_is_noted_and_no_failure(method: str, name: str, world: World) -> None:
    """A private subnet may have no way to IAM, nor to Lambda."""
    world.account.failures[method] = UnavailableError("no route")

    assert "no route" in succeeded(world, request("Create", name, CatalogFunction="catalog-1"))["Notes"]


def test_without_access_entries_the_cluster_is_left_to_a_person(world: World) -> None:
    """A cluster with aws-auth cannot let the installer in."""
    assert answered(world, request("Create"), has_access_entries=False)["Status"] == "SUCCESS"
    assert world.account.calls == ["answer"]
    assert world.objects.names() == []


# --- a run that is killed ---


def test_a_run_that_is_killed_anywhere_is_simply_repeated(pytestconfig: pytest.Config) -> None:
    """Lambda calls the function again with the same request: everything is there, once, and no rights are left."""
    whole, undisturbed = World(seed=1), Fuse()
    succeeded(whole, request("Create"), fuse=undisturbed)
    for writes in crashes(undisturbed.writes, pytestconfig):
        world, fuse = World(seed=1), Fuse(writes)
        with pytest.raises(Killed):
            answered(world, request("Create"), fuse=fuse)
        succeeded(world, request("Create"))

        assert world.objects.names() == whole.objects.names()
        assert world.objects.read(MARKED) == whole.objects.read(MARKED)
        assert not world.account.entries


# --- upgrades, rollbacks, and what others have edited ---


def test_applying_again_changes_nothing(world: World) -> None:
    """The same release, the same parameters: every object is as it was."""
    succeeded(world, request("Create"))
    before = {name: world.objects.read(reference) for name, reference in _references(world)}
    succeeded(world, request("Update"))

    assert {name: world.objects.read(reference) for name, reference in _references(world)} == before


def test_an_edit_stops_an_upgrade_before_it_writes_anything(world: World) -> None:
    """Who edited what is said, and what to do."""
    succeeded(world, request("Create"))
    world.objects.edit(MARKED, "rules", [])
    written = len(world.objects.writes)
    reason = refused(world, request("Update"), version="2.0.0")

    assert "ClusterRole joinery: .rules by kubectl-edit" in reason
    assert "ForceConflicts=true" in reason
    assert len(world.objects.writes) == written


def test_an_edit_does_not_stop_the_rollback_of_that_upgrade(world: World) -> None:
    """The release that is rolled back to is there already: the edit is left, and noted."""
    succeeded(world, request("Create"))
    world.objects.edit(MARKED, "rules", [])
    notes = succeeded(world, request("Update"))["Notes"]

    assert "ClusterRole joinery was left as it is: kubectl-edit changed it" in notes
    stored = world.objects.read(MARKED)
    assert stored
    assert stored["rules"] == []


def test_the_rollback_of_the_update_that_brought_the_installer_takes_nothing(world: World) -> None:
    """The doors of the release before need the rights that somebody had applied by hand."""
    succeeded(world, request("Create"))
    before = world.objects.names()
    world.account.status = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    notes = succeeded(world, request("Delete"))["Notes"]

    assert "the stack stays" in notes
    assert world.objects.names() == before


def test_a_stack_that_cannot_be_asked_about_is_deleted(world: World) -> None:
    """A subnet may have no way to CloudFormation."""
    succeeded(world, request("Create"))
    world.account.failures["stack_status"] = UnavailableError("no route")
    succeeded(world, request("Delete"))

    assert world.objects.read(MARKED) is None


def test_edits_are_overwritten_where_that_is_asked_for(world: World) -> None:
    """As kubectl apply --force-conflicts does it."""
    succeeded(world, request("Create"))
    world.objects.edit(MARKED, "rules", [])
    succeeded(world, request("Update", ForceConflicts="true"), version="2.0.0")

    stored = world.objects.read(MARKED)
    assert stored
    assert stored["rules"]


def test_what_a_person_deleted_comes_back(world: World) -> None:
    """A fence that is gone is a right without a fence."""
    succeeded(world, request("Create"))
    fence = Reference("ValidatingAdmissionPolicyBinding", "joinery-pods")
    world.objects.remove(fence)
    succeeded(world, request("Update"))

    assert world.objects.read(fence)


def test_what_others_add_stays(world: World) -> None:
    """A label of somebody's own is none of ours, and conflicts with nothing."""
    succeeded(world, request("Create"))
    world.objects.edit(MARKED, "metadata.labels.team", "platform")
    succeeded(world, request("Update", Version="2"))

    stored = world.objects.read(MARKED)
    assert stored
    assert stored["metadata"]["labels"]["team"] == "platform"


def test_karpenter_s_definitions_are_left_to_karpenter(world: World) -> None:
    """They say by which generator they were made."""
    theirs = {
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NODE_POOLS.name, "annotations": {"controller-gen.kubebuilder.io/version": "v0.19.0"}},
        "spec": {},
    }
    world.objects.put(theirs)
    notes = succeeded(world, request("Create"))["Notes"]

    assert world.objects.read(NODE_POOLS) == theirs
    assert "nodepools.karpenter.sh is Karpenter's and stays" in notes


def test_a_definition_is_never_replaced_by_an_older_one(world: World) -> None:
    """A rollback keeps the newer definitions: older ones would lose the fields that they do not know."""
    succeeded(world, request("Create"), version="1.10.0")
    notes = succeeded(world, request("Update"), version="1.9.0")["Notes"]

    definition, role = world.objects.read(NODE_POOLS), world.objects.read(MARKED)
    assert definition
    assert role
    assert definition["metadata"]["annotations"][VERSION] == "1.10.0"
    assert role["metadata"]["annotations"][VERSION] == "1.9.0"
    assert "is of the newer release 1.10.0 and stays" in notes


def test_what_a_release_no_longer_ships_is_removed(world: World) -> None:
    """By the labels that say who wrote it. What a person made stays."""
    succeeded(world, request("Create"))
    ours = {"app.kubernetes.io/managed-by": "joinery-installer", "joinery.dev/part": "preparation"}
    world.objects.put({"kind": "ClusterRole", "metadata": {"name": "joinery-older", "labels": ours}})
    world.objects.put({"kind": "ClusterRole", "metadata": {"name": "joinery-mine", "labels": {}}})
    succeeded(world, request("Update"))

    assert world.objects.read(Reference("ClusterRole", "joinery-older")) is None
    assert world.objects.read(Reference("ClusterRole", "joinery-mine"))


def test_a_webhook_that_is_no_longer_wanted_is_removed(world: World) -> None:
    """WebhookEndpoint=none: the schedule alone rings."""
    succeeded(world, request("Create", CONNECTION))
    succeeded(world, request("Update", CONNECTION, Url=""))

    assert world.objects.read(WEBHOOK) is None


def test_the_marks_say_which_stack_runs_the_cluster_and_what_was_applied(world: World) -> None:
    """On an object that no door may write."""
    succeeded(world, request("Create"))
    stored = world.objects.read(MARKED)

    assert stored
    annotations = stored["metadata"]["annotations"]
    assert annotations[STACK] == OUR_STACK
    assert len(annotations[APPLIED]) == 32
    assert annotations[VERSION] == "1.0.0"


def _references(world: World) -> list[tuple[str, Reference]]:
    return [(name, Reference(*name.replace(" in ", " ").split())) for name in world.objects.names()]


# --- what deleting the stack alone may do ---

CLAIM = {"kind": "NodeClaim", "metadata": {"name": "default-1"}}


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
