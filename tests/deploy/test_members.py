"""Both built templates, deployed on the stand-in: one stack's functions serve the cluster of another."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from joinery.objects.karpenter import labels as keys
from tests.deploy.living import instance_of
from tests.deploy.member_story import MemberStory

Record = Callable[[str, Any], None]


@pytest.fixture(autouse=True)
def figures(member_story: MemberStory, record_property: Record) -> None:
    """The seconds of each part, for the summary."""
    for part, seconds in member_story.seconds.items():
        record_property(f"seconds: {part}", seconds)


def test_a_member_is_a_stack_of_its_own(member_story: MemberStory) -> None:
    """Made by the home's installer, in the name of the member's role."""
    assert member_story.statuses == ["CREATE_COMPLETE", "CREATE_COMPLETE"]


def test_the_home_knows_its_member_by_the_register(member_story: MemberStory) -> None:
    """By the roles of its stack, and what was chosen for it."""
    item = member_story.item
    roles = json.loads(item["roles"])
    assert set(roles) == {"provisioning", "interruption", "expiration", "disruption", "lifecycle"}
    assert all(":role/joinery-green-" in role for role in roles.values())
    assert (item["mode"], item["settings"]) == ("act", "MaxLaunches=7")


def test_pods_of_a_member_get_nodes_by_the_home_s_functions(member_story: MemberStory) -> None:
    """From its scheduler's Event over the webhook's second path to an instance and its node, all in its own name."""
    assert member_story.first is not None
    claims = member_story.first.node_claims
    assert claims
    assert all(claim.metadata.labels[keys.CAPACITY_TYPE] == keys.SPOT for claim in claims)


def test_a_spot_warning_about_a_member_s_node_is_the_member_s(member_story: MemberStory) -> None:
    """The queue is the account's, and a tag says whose the instance is."""
    assert member_story.interrupted is not None
    assert member_story.second is not None
    assert instance_of(member_story.interrupted) not in {instance_of(one) for one in member_story.second.node_claims}


def test_a_home_is_not_left_before_its_members(member_story: MemberStory) -> None:
    """CloudFormation refuses to delete what is imported, and the command says it before anything is switched off."""
    assert "joinery-green" in member_story.home_deleted
    assert member_story.home_uninstalled.startswith("2 ")
    assert "is the home of green" in " ".join(member_story.home_uninstalled.split())


def test_a_member_leaves_nothing_behind(member_story: MemberStory) -> None:
    """Account and cluster hold what they held when the home was alone, and the home serves nobody else."""
    results = {step["step"]: step["result"] for step in member_story.uninstalled["steps"]}
    assert results["whatever buys or disrupts"] == "its home no longer does provisioning, disruption for it"
    assert results["stack"] == "removed"
    assert member_story.after - member_story.home_alone == set()
    assert member_story.home_alone - member_story.after == set()
    assert member_story.left == {}
