"""The built template, deployed by `sam deploy` on a stand-in of the account beside a real control plane."""

from collections.abc import Callable
from typing import Any

import pytest

from joinery import __version__
from joinery.objects.karpenter import labels as keys
from tests.deploy.living import instance_of
from tests.deploy.story import NEXT_RELEASE, Story

Record = Callable[[str, Any], None]


@pytest.fixture(autouse=True)
def figures(story: Story, record_property: Record) -> None:
    """The seconds of each part, for the summary."""
    for part, seconds in story.seconds.items():
        record_property(f"seconds: {part}", seconds)


def test_one_command_installs_account_and_cluster(story: Story) -> None:
    """Nothing was applied by hand: definitions, rights, policies, the webhook and the first NodePool are there."""
    made = story.deployed - story.before
    assert story.statuses["deployed"] == "CREATE_COMPLETE"
    for name in (
        "CustomResourceDefinition//nodeclaims.karpenter.sh",
        "ClusterRole//joinery",
        "ValidatingWebhookConfiguration//joinery",
        "NodePool//default",
        "EC2NodeClass//default",
        "lease.coordination.k8s.io/joinery-decisions",
    ):
        assert name in made


def test_the_installer_has_no_access_entry_once_it_is_done(story: Story) -> None:
    """Its rights are there only while it works: five doors and the nodes are left."""
    entries = [line for line in story.deployed if line.startswith("access entry/")]
    assert not [entry for entry in entries if "InstallerRole" in entry]
    assert len(entries) == 6


def test_pods_that_wait_are_running_without_anybody_waking_a_function(story: Story) -> None:
    """From the real scheduler's Event over webhook, queues and functions to an instance and its node."""
    assert story.first is not None
    names = {node.metadata.name for node in story.first.nodes}
    assert {pod.spec.node_name for pod in story.first.pods} <= names
    assert all(claim.metadata.labels[keys.CAPACITY_TYPE] == keys.SPOT for claim in story.first.node_claims)


def test_a_spot_warning_brings_a_replacement_and_retires_the_node(story: Story) -> None:
    """Its pods run elsewhere, its instance is gone, and no dead letter was left."""
    assert story.interrupted is not None
    assert story.second is not None
    assert instance_of(story.interrupted) not in {instance_of(claim) for claim in story.second.node_claims}
    assert story.interrupted.status.node_name not in {node.metadata.name for node in story.second.nodes}


def test_a_changed_parameter_reaches_the_functions(story: Story) -> None:
    """In place: the stack is updated, not replaced."""
    assert story.statuses["updated"] == "UPDATE_COMPLETE"
    assert story.variables["updated"]["JOINERY_SETTINGS"] == "WebhookConcurrency=2; MaxLaunches=7"


def test_another_release_brings_the_cluster_to_itself(story: Story) -> None:
    """Its custom resources carry the version, so that each release updates them; its own installer writes it."""
    assert story.statuses["upgraded"] == "UPDATE_COMPLETE"
    assert story.versions["deployed"] == __version__
    assert story.versions["upgraded"] == NEXT_RELEASE


def test_a_failed_update_is_rolled_back_to_a_stack_that_works(story: Story) -> None:
    """Functions and cluster have what they had before, and pods that come afterwards get nodes, by the code of the
    release before.
    """
    assert "Broken" in story.failed_update
    assert story.statuses["rolled back"] == "UPDATE_ROLLBACK_COMPLETE"
    assert story.variables["rolled back"] == story.variables["upgraded"]
    assert story.versions["rolled back"] == NEXT_RELEASE
    assert story.second is not None
    assert story.rolled_back is not None
    assert story.third is not None
    old = {claim.metadata.name for claim in story.rolled_back.node_claims}
    launched = [claim for claim in story.third.node_claims if claim.metadata.name not in old]
    assert {claim.metadata.annotations[keys.VERSION] for claim in launched} == {NEXT_RELEASE}
    assert {claim.metadata.annotations[keys.VERSION] for claim in story.second.node_claims} == {__version__}


def test_deleting_the_stack_alone_is_refused_while_nodes_run(story: Story) -> None:
    """In a moment, saying what to run, and nothing is missing afterwards."""
    assert story.statuses["deleted too early"] == "DELETE_FAILED"
    assert "whose instances would be left to nobody" in story.deleted_too_early
    assert "make undeploy CLUSTER=blue NODES=retire" in story.deleted_too_early
    assert story.after_refusal == set()


def test_nothing_is_left_behind(story: Story) -> None:
    """Account and cluster hold what they held before the first command."""
    assert story.after - story.before == set()
    assert story.before - story.after == set()


def test_uninstalling_says_what_it_did(story: Story) -> None:
    """Each step with its result, as JSON."""
    results = {step["step"]: step["result"] for step in story.uninstalled["steps"]}
    assert results["nodes"] == "no NodeClaim is left"
    assert results["stack"] == "removed"
    assert results["definitions"] == "5 removed, with all their objects"


def test_nodes_that_are_kept_run_on_as_karpenter_knows_them(story: Story) -> None:
    """The same instances, nodes and pods; Karpenter's finalizers and labels on them, and no mark of Joinery's."""
    assert story.fourth is not None
    assert story.kept is not None
    before, after = story.instances
    assert before == after != set()
    assert {pod.key: pod.spec.node_name for pod in story.kept.pods} == {
        pod.key: pod.spec.node_name for pod in story.fourth.pods
    }
    for kept, known in ((story.kept.node_claims, story.fourth.node_claims), (story.kept.nodes, story.fourth.nodes)):
        assert [each.metadata.name for each in kept] == [each.metadata.name for each in known] != []
        for each in kept:
            assert each.metadata.finalizers == [keys.TERMINATION_FINALIZER]
            assert each.metadata.deletion_timestamp is None
            assert {keys.NODE_POOL, keys.CAPACITY_TYPE, keys.INSTANCE_TYPE} <= set(each.metadata.labels)
            marks = {*each.metadata.annotations, *each.metadata.labels}
            assert not [mark for mark in marks if mark.startswith(keys.OWN_GROUP)]
    for node in story.kept.nodes:
        assert (node.metadata.labels[keys.REGISTERED], node.metadata.labels[keys.INITIALIZED]) == ("true", "true")
        assert node.spec.taints == []


def test_uninstalling_names_what_stays_for_kept_nodes(story: Story) -> None:
    """By their names: somebody has to delete them when the last node is gone."""
    results = {step["step"]: step["result"] for step in story.handed_over["steps"]}
    named = {line.rpartition("/")[2] for line in story.left if line.startswith(("role/", "instance profile/"))}
    assert len(named) == 2
    assert all(name in results["role of the nodes"] for name in named)
    retired = {step["step"]: step["result"] for step in story.uninstalled["steps"]}
    assert retired["role of the nodes"] == "none of the stack's is left"


def test_nothing_but_nodes_and_what_they_need_is_left_with_kept_nodes(story: Story) -> None:
    """Of the account: instances with their role and profile. Of the cluster: Karpenter's own kinds."""
    of_the_user = {"Deployment", "ReplicaSet", "Pod"}
    kinds = {line.partition("/")[0] for line in story.left} - of_the_user
    assert kinds == {
        "instance", "instance profile", "role", "access entry",
        "CustomResourceDefinition", "EC2NodeClass", "Node", "NodeClaim", "NodePool",
    }  # fmt: skip
    (role,) = [line for line in story.left if line.startswith("role/")]
    assert "NodeRole" in role
