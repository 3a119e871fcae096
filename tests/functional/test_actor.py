"""How commands are carried out: side by side, in batches, and only as far as the run's time goes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from joinery.controllers.acting.actor import Actor
from joinery.controllers.acting.invocation import Invocation
from joinery.gateways.workers import Threads
from joinery.objects.actions import Announce, DeleteClaim, MarkUnavailable, TagInstance, TerminateInstance
from joinery.objects.errors import ConfigurationError, ConflictError, UnavailableError
from joinery.objects.snapshot.offerings import OfferingKey
from simulator import builders
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand


def _claims(stand: Stand, count: int) -> list[Any]:
    stand.world.cluster.add(*(builders.node_claim(f"claim-{number}") for number in range(count)))
    return stand.claims


def _kept(stand: Stand) -> list[str]:
    """The claims that nobody deleted."""
    return [claim.metadata.name for claim in stand.claims if not claim.is_deleting]


def _actor(stand: Stand, fuse: Fuse, **given: Any) -> Actor:
    gateways = replace(fuse.protect(stand.gateways), **given)
    return Actor(gateways, stand.world.clock.now(), stand.invocation())


def test_the_log_is_in_the_order_of_the_chains(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    """Whichever thread was first."""
    claims = _claims(stand, 20)
    capsys.readouterr()
    actor = _actor(stand, Fuse(), workers=Threads(10))
    actor.carry_out(*((DeleteClaim(claim, "it is old"),) for claim in claims))
    told = capsys.readouterr().out
    at = [told.index(f'"DeleteClaim {claim.metadata.name}"') for claim in claims]
    assert (at, actor.attempted) == (sorted(at), 20)


def test_instances_of_many_chains_end_by_one_call(stand: Stand) -> None:
    """And what comes after it in a chain is still carried out."""
    fuse = Fuse()
    claims = _claims(stand, 150)
    actor = _actor(stand, fuse)
    actor.carry_out(*((TerminateInstance(f"i-{n}", "old"), DeleteClaim(c, "old")) for n, c in enumerate(claims)))
    assert fuse.calls.count("cloud.terminate") == 2
    assert not _kept(stand)


def test_offerings_are_marked_by_one_call_a_reason(stand: Stand) -> None:
    """The reason is kept with each of them."""
    fuse, offerings = Fuse(), [OfferingKey("m7a.large", f"us-east-1{zone}", "spot") for zone in "abc"]
    actor = _actor(stand, fuse)
    actor.carry_out(*((MarkUnavailable(offering, "out of it"),) for offering in offerings))
    assert fuse.calls == ["unavailable.mark"]
    assert stand.world.unavailable.at(stand.world.clock.now()) == frozenset(offerings)


def test_a_run_ends_before_it_is_killed(
    stand: Stand, counted: Callable[[], dict[str, float]], capsys: pytest.CaptureFixture[str]
) -> None:
    """No call is begun that may outlast it. What is left is told, and is no failure."""
    claims = _claims(stand, 5)
    left = iter([60.0, 30.0, 13.5, 12.9, 12.8, 12.7, 12.6])
    actor = Actor(stand.gateways, stand.world.clock.now(), Invocation("a", lambda: next(left)))
    failures = actor.carry_out(*((DeleteClaim(claim, "it is old"),) for claim in claims))
    actor.conclude()
    assert [bool(failed) for failed in failures] == [False, False, False, True, True]
    assert (actor.is_cut_short, actor.attempted, len(_kept(stand))) == (True, 3, 2)
    assert counted()["joinery_runs_cut_short_total"] == 1
    assert "2 chains are left to the next run" in capsys.readouterr().out


def test_a_call_of_the_cloud_needs_more_time_than_one_of_the_cluster(stand: Stand) -> None:
    """EC2 is given longer to answer."""
    (claim,) = _claims(stand, 1)
    actor = Actor(stand.gateways, stand.world.clock.now(), Invocation("a", lambda: 20.0))
    actor.carry_out((TagInstance("i-1", {}, "it has a node"),), (DeleteClaim(claim, "it is old"),))
    assert (actor.is_cut_short, _kept(stand)) == (True, [])


def test_a_mistake_of_our_own_stops_its_chain_alone(stand: Stand) -> None:
    """It is raised when everything else is done."""
    claims = _claims(stand, 2)
    fuse = Fuse(
        failing="cluster.delete_node_claim",
        error=KeyError("a bug"),
        about=lambda claim: claim.metadata.name == "claim-0",
    )
    actor = _actor(stand, fuse)
    actor.carry_out(*((DeleteClaim(claim, "it is old"),) for claim in claims))
    assert _kept(stand) == ["claim-0"]
    with pytest.raises(UnavailableError, match="a bug"):
        actor.conclude()


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ([ConflictError("a"), ConflictError("b")], ConflictError),
        ([ConflictError("a"), ConfigurationError("b")], UnavailableError),
    ],
)
def test_failures_are_raised_as_what_they_have_in_common(
    stand: Stand, errors: list[Exception], kind: type[Exception]
) -> None:
    """The door tries again, unless trying again would fail in the same way."""
    actor = _actor(stand, Fuse())
    for error in errors:
        actor.note("it failed", error)
    with pytest.raises(kind, match="2 failed, first: a"):
        actor.conclude()


def test_events_about_one_thing_are_sent_once(stand: Stand) -> None:
    """The API server would be asked for each, and would answer that it is there already."""
    (claim,) = _claims(stand, 1)
    fuse = Fuse()
    _actor(stand, fuse).carry_out((Announce("GivenUp", "one", claim), Announce("GivenUp", "two", claim)))
    assert fuse.calls == ["recorder.emit"]
