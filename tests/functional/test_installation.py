"""The installer in the simulated cluster and account: what it writes, and what an upgrade does with others' edits."""

from joinery.decisions.installation.objects import APPLIED, LEASE, MARKED, STACK, WEBHOOK
from joinery.objects.errors import UnavailableError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import VERSION
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.references import Reference
from simulator.doors.doors import TOKEN
from simulator.world import CLUSTER, World
from tests.functional.installing import (
    CONNECTION,
    URL,
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
    assert kinds.count("CustomResourceDefinition") == 5
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
    assert len(world.objects.names()) == 5


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


def test_a_wrong_setting_is_refused_before_anything_is_written(world: World) -> None:
    """CloudFormation takes any, and doors would not start with it."""
    reason = refused(world, request("Create", NodeRepair="restart"))

    assert "NodeRepair is 'restart': expected one of off, replace, reboot" in reason
    assert not world.objects.writes
    assert "there is no setting Xyzzy" in refused(world, request("Create", Settings="Xyzzy=1"))


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
