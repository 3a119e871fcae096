"""The installer's rights in the cluster: there while it works, and gone whenever it ends."""

import pytest

from joinery.controllers.installer.access import RUN, UNTIL
from joinery.controllers.installer.controller import KEPT_SECONDS
from joinery.decisions.installation.objects import MARKED
from joinery.gateways.account.gateway import LONGEST_CALL
from joinery.gateways.aws import error as aws_error
from joinery.objects.errors import UnavailableError
from simulator.latency import Killed
from simulator.world import CLUSTER, World
from tests.functional.fuse import Fuse, crashes
from tests.functional.installing import (
    CONNECTION,
    answered,
    refused,
    request,
    succeeded,
)


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


def test_an_entry_that_says_that_its_run_lasts_for_years_is_taken_over(world: World) -> None:
    """Lambda ends every run after a quarter of an hour; nobody waits for a tag that says more."""
    begun = world.clock.now().timestamp()
    world.account.grant_access(CLUSTER, {RUN: "other", UNTIL: str(int(begun) + 10**9)})

    succeeded(world, request("Create"))
    assert not world.account.entries
    assert world.clock.now().timestamp() < begun + 60


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
