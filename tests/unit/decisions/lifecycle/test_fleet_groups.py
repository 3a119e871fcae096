"""Which claims share a call, and what becomes of them."""

from typing import Any

import pytest

from joinery.decisions.lifecycle.launching.fleet_groups import (
    FleetGroup,
    FleetOutcome,
    after_launch,
    fleet_groups,
    unlaunchable,
)
from joinery.objects.actions import Announce, DeleteClaim, MarkUnavailable, UpdateClaim
from joinery.objects.karpenter.labels import CAPACITY_TYPE, INSTANCE_TYPE, LAUNCH_TOKEN, ZONE
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.instances import Instance
from joinery.objects.snapshot.offerings import OfferingKey
from simulator import builders
from simulator.clock import START

KIND = builders.instance_type("m7a.large")
CLASS = builders.node_class()


def _claim(name: str, token: str = "t", **given: Any) -> NodeClaim:
    claim = builders.node_claim(name, annotations={LAUNCH_TOKEN: token}, **{"conditions": (), **given})
    return claim.model_copy(update={"metadata": claim.metadata.model_copy(update={"uid": f"uid-{name}"})})


def _instance(number: int) -> Instance:
    return Instance(f"i-{number}", "m7a.large", "us-east-1b", "spot", "pending", START, image_id="ami-1")


def _settle(group: FleetGroup, **outcome: Any) -> list[Any]:
    gains, losses = after_launch(group, FleetOutcome(**outcome), CLASS, {"m7a.large": KIND}, START)
    chains = (*gains, *losses)
    return [command for chain in chains for command in chain if not isinstance(command, Announce)]


def test_claims_of_one_token_share_a_call() -> None:
    """Ten identical nodes are one request to EC2, not ten."""
    claims = [_claim("a"), _claim("b"), _claim("c", token="u")]
    assert [[claim.metadata.name for claim in group.claims] for group in fleet_groups(claims, claims)] == [
        ["a", "b"],
        ["c"],
    ]


def test_a_repeated_call_has_the_same_token_whoever_repeats_it() -> None:
    """A claim that got its instance before the crash still counts, or EC2 would be asked for more."""
    fresh, served = (_claim("a"), _claim("b")), (_claim("a", conditions=("Launched",)), _claim("b"))
    (first,), (second,) = fleet_groups(fresh, fresh), fleet_groups(served[1:], served)
    assert first.token == second.token
    assert len(first.token) <= 64


def test_other_claims_are_another_call() -> None:
    """The token derives from the claims' UIDs: a namesake that was created anew is not the same claim."""
    assert FleetGroup((_claim("a"),)).token != FleetGroup((_claim("b"),)).token


def test_a_claim_of_another_controller_is_launched_alone() -> None:
    """It carries no token; its name stands in."""
    claims = [builders.node_claim(name, conditions=()) for name in ("a", "b")]
    assert [len(group.claims) for group in fleet_groups(claims, claims)] == [1, 1]


def test_a_served_claim_says_what_it_got() -> None:
    """Provider ID, image, resources, and the labels that only the instance decides; the claim's own labels win."""
    (update,) = _settle(FleetGroup((_claim("a", labels={"kubernetes.io/os": "mine"}),)), instances=(_instance(1),))
    after = update.after
    assert after.status.provider_id == "aws:///us-east-1b/i-1"
    assert (after.status.image_id, after.status.capacity["cpu"]) == ("ami-1", "2")
    assert {key: after.metadata.labels[key] for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE)} == {
        INSTANCE_TYPE: "m7a.large", ZONE: "us-east-1b", CAPACITY_TYPE: "spot",
    }  # fmt: skip
    assert after.metadata.labels["kubernetes.io/os"] == "mine"
    assert after.is_true("Launched")


def test_a_served_claim_keeps_annotations_that_say_nothing() -> None:
    """A NodePool's template may have some without a value, and its nodes have them too."""
    claim = builders.node_claim("a", annotations={"example.com/keep": ""}, conditions=())
    (update,) = _settle(FleetGroup((claim,)), instances=(_instance(1),))
    assert update.after.metadata.annotations["example.com/keep"] == ""


def test_instances_are_given_out_in_a_fixed_order() -> None:
    """Whoever repeats the call gives each claim the same instance."""
    group = FleetGroup((_claim("a"), _claim("b")))
    first, second = _settle(group, instances=(_instance(2), _instance(1)))
    assert (first.before.metadata.name, first.after.status.provider_id[-3:]) == ("a", "i-1")
    again = FleetGroup((first.after, _claim("b")))
    (rest,) = _settle(again, instances=(_instance(2), _instance(1)))
    assert rest.after.status.provider_id == second.after.status.provider_id


def test_successes_are_written_before_anything_is_given_up() -> None:
    """A crash in between must find the instances taken."""
    out = OfferingKey("m7a.large", "us-east-1a", "spot")
    found = _settle(FleetGroup((_claim("a"), _claim("b"))), instances=(_instance(1),), out_of=frozenset({out}))
    assert [type(command) for command in found] == [UpdateClaim, MarkUnavailable, DeleteClaim]


def test_without_capacity_a_claim_is_given_up() -> None:
    """Its pods are planned anew without the pools that EC2 was out of."""
    (command,) = _settle(FleetGroup((_claim("a"),)))
    assert isinstance(command, DeleteClaim)


def test_a_claim_whose_instance_is_lost_is_given_up_and_its_neighbour_served() -> None:
    """A repeated call would bring the lost instance again, and a new token a second one for whoever still has it."""
    found = _settle(FleetGroup((_claim("a"), _claim("b"))), instances=(_instance(1),), loss="EC2 ended i-2")
    assert [type(command) for command in found] == [UpdateClaim, DeleteClaim]
    assert found[1].reason == "EC2 ended i-2"


def test_another_problem_is_written_down_and_tried_again_with_a_new_token() -> None:
    """EC2 would repeat its failure for the old one."""
    claim = _claim("a", token="default-x")
    (command,) = _settle(FleetGroup((claim,)), problem="UnauthorizedOperation: " + "x" * 400)
    assert command.after.condition("Launched").reason == "LaunchFailed"
    assert len(command.after.condition("Launched").message) == 300
    assert command.after.metadata.annotations[LAUNCH_TOKEN] == "default-x/2"
    (third,) = _settle(FleetGroup((command.after,)), problem="again")
    assert third.after.metadata.annotations[LAUNCH_TOKEN] == "default-x/3"


@pytest.mark.parametrize("token", ["default/x", "/", "a/b/c", "a/-1", f"a/{'9' * 5000}", "a/²"])
def test_a_token_that_somebody_has_edited_is_made_anew(token: str) -> None:
    """Any other than the old one will do, and it stays as short as ours."""
    claim = _claim("a", token=token)
    (command,) = _settle(FleetGroup((claim,)), problem="UnauthorizedOperation")
    renewed = command.after.metadata.annotations[LAUNCH_TOKEN]
    assert renewed != token
    (again,) = _settle(FleetGroup((command.after,)), problem="UnauthorizedOperation")
    assert again.after.metadata.annotations[LAUNCH_TOKEN] not in {token, renewed}


def test_a_class_that_is_not_ready_ends_the_claim() -> None:
    """A launch would fail, and planning knows better once the status says so."""
    ready = [{"type": "Ready", "status": "False", "reason": "SubnetsNotFound", "observedGeneration": 1}]
    broken = CLASS.model_copy(update={"status": CLASS.status.model_validate({"conditions": ready})})
    assert [type(command) for command in unlaunchable(_claim("a"), broken, START)] == [DeleteClaim]
    assert DeleteClaim in [type(command) for command in unlaunchable(_claim("a"), None, START)]
    assert unlaunchable(_claim("a"), CLASS, START) == ()


def test_a_class_that_nobody_has_looked_at_is_waited_for() -> None:
    """Lifecycle will look; the claim keeps its token, because EC2 was not asked."""
    (command,) = unlaunchable(_claim("a"), builders.node_class(ready=False), START)
    assert isinstance(command, UpdateClaim)
    assert command.after.metadata.annotations[LAUNCH_TOKEN] == "t"
    waiting = command.after.condition("Launched")
    assert waiting is not None
    assert waiting.reason == "NodeClassReadinessUnknown"


def test_a_claim_that_is_given_up_says_what_ec2_said() -> None:
    """A quota is for a person to raise, an empty pool is not: EC2's words tell them apart."""
    shortage = "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 64 allows"
    _, ((told, _),) = after_launch(FleetGroup((_claim("a"),)), FleetOutcome(shortage=shortage), CLASS, {}, START)
    assert isinstance(told, Announce)
    assert told.message == f"EC2 is out of every instance type that it may use: {shortage}"
