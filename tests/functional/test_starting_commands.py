"""Disruption commands begin whole or not at all."""

from collections.abc import Callable
from typing import Any

import pytest

from joinery.controllers.acting.actor import Actor
from joinery.controllers.launching.supply import read_supply
from joinery.controllers.starting_commands import MOST_AT_ONCE, CommandStarter
from joinery.decisions.lifecycle.disrupting.new_commands import NewCommand
from joinery.objects.annotations.disruption import Readiness
from joinery.objects.errors import UnavailableError
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.snapshot.offerings import OfferingKey
from tests.functional.disrupting import disrupt, others, running, stays
from tests.functional.fuse import wired
from tests.functional.stand import Stand


def test_a_claim_is_in_one_command_at_most(stand: Stand) -> None:
    """A second door that decided from the same snapshot does not start."""
    (old,) = running(stand)
    disrupt(stand, old)
    claims = len(stand.claims)
    assert "in a command already" in str(disrupt(stand, old).why_not)
    assert len(stand.claims) == claims


def test_a_claim_that_goes_is_no_candidate(stand: Stand) -> None:
    """Whoever deleted it has a reason of its own."""
    (old,) = running(stand)
    stand.world.cluster.delete_node_claim(old)
    assert "leaving already" in str(disrupt(stand, old).why_not)


def test_replacements_are_bought_under_the_caps(stand: Stand) -> None:
    """A command that does not fit is not started, and nothing is marked."""
    (old,) = running(stand)
    capped = Stand(stand.world, gateways=stand.gateways, max_launches=0)
    assert "MaxLaunches" in str(disrupt(capped, old).why_not)
    assert stays(stand, old)


@pytest.mark.parametrize("is_observed", [False, True])
def test_a_command_charges_the_caps_with_the_claims_that_it_writes(stand: Stand, is_observed: bool) -> None:
    """Also where they are launched later, or written in no other mode than ``act``: observe mode says what it does."""
    (old,) = running(stand)
    started = disrupt(stand.observing() if is_observed else stand, old, waits_for=Readiness.WRITTEN)
    assert started.why_not is None
    assert started.caps.launched == len(started.command.replacements) == 1
    assert started.caps.hourly > 0


def _sell_out(stand: Stand) -> None:
    pools = [OfferingKey(o.instance_type, o.zone, o.capacity_type) for o in stand.world.cloud.catalog().offerings]
    stand.world.unavailable.mark(pools, now=stand.world.clock.now(), reason="EC2 is out of it")


def test_a_command_whose_replacements_nobody_sells_any_more_is_not_started(stand: Stand) -> None:
    """It would count as nothing under the caps, and be rolled back."""
    (old,) = running(stand)
    assert "is on sale" in str(disrupt(stand, old, meanwhile=lambda: _sell_out(stand)).why_not)
    assert stays(stand, old)


def test_a_command_that_ends_its_node_first_is_charged_though_nothing_is_sold_now(stand: Stand) -> None:
    """What has ended may be on sale again."""
    (old,) = running(stand)
    started = disrupt(stand, old, waits_for=Readiness.WRITTEN, meanwhile=lambda: _sell_out(stand))
    assert started.why_not is None
    assert started.caps.hourly > 0


def test_the_lease_is_held_for_some_dozens_of_commands(stand: Stand) -> None:
    """Pods that wait for nodes do not wait for the end of all commands; the next run goes on."""
    snapshot, invocation = stand.gateways.cluster.snapshot(), stand.invocation()
    actor = Actor(stand.gateways, snapshot.now, invocation)
    supply = read_supply(stand.gateways, snapshot)
    starter = CommandStarter(stand.gateways, actor, snapshot, supply, invocation)
    commands = [NewCommand(reason=DisruptionReason.DRIFTED, candidates=())] * (MOST_AT_ONCE + 1)
    *begun, left = starter.start(commands, door="test", caps=stand.settings.caps)
    assert {started.why_not for started in begun} == {"it has no candidates"}
    assert left.why_not == "it is left to the next run"
    assert actor.is_cut_short


def test_observe_mode_starts_nothing(stand: Stand) -> None:
    """It decides, and writes nowhere."""
    (old,) = running(stand)
    disrupt(stand.observing(), old)
    assert stays(stand, old)
    assert len(stand.claims) == len(stand.alive) == 1


def _unanswered(name: str, go: Callable[[], Any], _: Any) -> Any:
    """The API server stores a claim, and its answer is lost."""
    answer = go()
    if name == "cluster.create_node_claim":
        raise UnavailableError("the connection was reset")
    return answer


def test_a_replacement_that_was_written_without_an_answer_is_launched_at_once(stand: Stand) -> None:
    """If its command were taken back, the next run would launch it all the same, and it would end unused."""
    (old,) = running(stand)
    deaf = Stand(stand.world, gateways=wired(stand.gateways, _unanswered))
    assert not disrupt(deaf, old).why_not
    (new,) = others(stand, [old])
    assert new.status.provider_id
    assert len(stand.alive) == 2
