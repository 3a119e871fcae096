"""What CloudFormation is told of a request that fails, is refused or is not understood."""

import json

import pytest

from joinery.decisions.installation.objects import MARKED, STACK, WEBHOOK
from joinery.decisions.installation.requests import NOTHING_MADE
from joinery.objects.errors import UnavailableError
from simulator.world import CLUSTER, World
from tests.functional.installing import (
    CONNECTION,
    OTHER_STACK,
    answered,
    refused,
    request,
    succeeded,
)
from tests.functional.installing import STACK as OUR_STACK


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
        "Trying CustomResourceDefinition capacitybuffers.autoscaling.x-k8s.io: PATCH"
    )


def test_a_run_without_time_answers_before_it_ends(world: World) -> None:
    """A cluster that never knows the installer: the run waits for as long as it may, and no longer."""
    world.objects.unknown_for = 10_000
    begun = world.clock.now()

    assert "does not know the installer's access entry yet" in refused(world, request("Create"))
    assert 200 < (world.clock.now() - begun).total_seconds() < 260
    assert not world.account.entries


@pytest.mark.parametrize("letter", ["x", "ä", "語", "💥", '"', "\x00"])
def test_an_answer_fits_into_what_cloudformation_takes(letter: str, world: World) -> None:
    """4,096 bytes, however long an error is, and whatever its letters take as JSON."""
    world.objects.failures["server_version"] = UnavailableError(letter * 10_000)
    refused(world, request("Create"))

    assert len(json.dumps(world.account.answers[-1][1], ensure_ascii=False).encode()) <= 4096


def test_notes_fit_into_an_answer_too(world: World) -> None:
    """An answer that is too long is a failure to CloudFormation."""
    world.account.failures["ensure_spot_role"] = UnavailableError("x" * 10_000)
    succeeded(world, request("Create"))

    assert len(json.dumps(world.account.answers[-1][1])) <= 4096
