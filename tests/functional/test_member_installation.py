"""A member is installed by its home's installer in the name of its own role, and is known when all else is there."""

from typing import Any

import pytest

from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.installer.controller import InstallerController
from joinery.decisions.installation.objects import MARKED, WEBHOOK, stack_of
from joinery.objects.kubernetes.webhook_secret import parse
from joinery.objects.member import Member
from simulator.world import CLUSTER, World, installer_role
from tests.functional import installing
from tests.functional.fuse import Fuse, wired_installer
from tests.functional.installing import CONNECTION, OTHER_STACK, PREPARATION, STACK

ROLES = '{"provisioning": "arn:provisioning", "lifecycle": "arn:lifecycle"}'


@pytest.fixture
def home() -> World:
    """The stack that serves the others."""
    return World()


@pytest.fixture
def green(home: World) -> World:
    """The cluster that becomes a member."""
    return World(home=home, name="green")


def request(kind: str, name: str = PREPARATION, *, cluster: str = "green", stack: str = STACK, **given: str) -> Any:
    """What CloudFormation sends about a custom resource of a member's stack."""
    properties = {"ClusterName": cluster, "InstallerRole": installer_role("green"), "AccessEntries": "true"}
    if name == CONNECTION:
        properties |= {
            "Roles": ROLES,
            "Mode": "act",
            "WebhookSecret": "arn:secret",
            "Url": "https://door.example/green/",
        }
    return installing.request(
        kind, name, stack=stack, physical_id=f"{cluster}/{name.lower()}", **{**properties, **given}
    )


def answered(home: World, event: Any, *, fuse: Fuse | None = None, version: str = "1.0.0") -> Any:
    """What CloudFormation is told by the home's installer."""
    gateways = wired_installer(home.installer_gateways, (fuse or Fuse()).through)
    controller = InstallerController(gateways, CLUSTER, has_access_entries=True, version=version)
    controller.handle(event, Invocation("run-1", lambda: 300.0))
    return home.account.answers[-1][1]


def succeeds(home: World, event: Any) -> Any:
    """The answer to a request that must succeed."""
    body = answered(home, event)
    assert body["Status"] == "SUCCESS", body
    return body


def reason(home: World, event: Any, *, version: str = "1.0.0") -> str:
    """Why a request failed that must fail."""
    body = answered(home, event, version=version)
    assert body["Status"] == "FAILED"
    return str(body["Reason"])


def test_a_member_is_entered_in_the_name_of_its_own_role(home: World, green: World) -> None:
    """The home's own role gets no access entry, in this cluster or in that one."""
    succeeds(home, request("Create"))
    assert stack_of(green.objects.read(MARKED)) == STACK
    assert home.objects.read(MARKED) is None
    assert "grant_access" in green.account.calls
    assert green.account.entries == {}
    assert home.account.calls == ["answer"]


def test_a_member_is_registered_when_all_else_is_there(home: World, green: World) -> None:
    """With its roles, mode, settings and secret, which the functions read at their next run."""
    succeeds(home, request("Create"))
    assert home.register.members == {}
    succeeds(home, request("Create", CONNECTION, MaxLaunches="7"))
    member = home.register.members["green"]
    assert member.roles == {"provisioning": "arn:provisioning", "lifecycle": "arn:lifecycle"}
    assert (member.mode, member.secret, member.stack, member.version) == ("act", "arn:secret", STACK, "1.0.0")
    assert "MaxLaunches=7" in member.settings
    stored = green.objects.read(WEBHOOK)
    assert stored is not None
    token = parse(green.account.secret.text).token
    assert stored["webhooks"][0]["clientConfig"]["url"] == f"https://door.example/green/{token}"


def test_a_changed_mode_is_registered(home: World, green: World) -> None:
    """By an update of the member's stack alone."""
    succeeds(home, request("Create", CONNECTION))
    succeeds(home, request("Update", CONNECTION, Mode="observe"))
    assert home.register.members["green"].mode == "observe"


def test_a_member_that_could_not_be_installed_is_not_served(home: World, green: World) -> None:
    """The register is written last, and what was made is removed by the deletion that follows."""
    green.account.failures = {"grant_access": RuntimeError("no")}
    body = answered(home, request("Create", CONNECTION))
    assert body["Status"] == "FAILED"
    assert home.register.members == {}


def test_what_cannot_be_registered_is_undone(home: World, green: World) -> None:
    """A creation that fails at its last step counts as made, so CloudFormation deletes it."""
    body = answered(home, request("Create", CONNECTION), fuse=Fuse(failing="register.put", error=RuntimeError("no")))
    assert (body["Status"], body["PhysicalResourceId"]) == ("FAILED", "green/connection")


def test_a_member_that_is_removed_is_served_no_more(home: World, green: World) -> None:
    """Its item goes with the Connection, which is deleted before roles and schedules."""
    succeeds(home, request("Create"))
    succeeds(home, request("Create", CONNECTION))
    succeeds(home, request("Delete", CONNECTION))
    assert home.register.members == {}
    assert green.objects.read(WEBHOOK) is None
    succeeds(home, request("Delete"))
    assert green.objects.read(MARKED) is None


def test_a_member_whose_deletion_is_refused_is_served_on(home: World, green: World) -> None:
    """As long as there are nodes, every function works for them."""
    succeeds(home, request("Create"))
    succeeds(home, request("Create", CONNECTION))
    claim = {
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "a"},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}},
    }  # fmt: skip
    green.objects.create(claim)
    assert "NodeClaim" in reason(home, request("Delete", CONNECTION))
    assert "green" in home.register.members


def test_a_member_whose_cluster_is_gone_is_taken_out_all_the_same(home: World, green: World) -> None:
    """Nobody can be served there any more."""
    succeeds(home, request("Create", CONNECTION))
    green.account.clusters.clear()
    succeeds(home, request("Delete", CONNECTION))
    assert home.register.members == {}


def test_a_member_without_access_entries_is_registered_and_removed(home: World, green: World) -> None:
    """What is in its cluster is left to a person."""
    body = succeeds(home, request("Create", CONNECTION, AccessEntries="false"))
    assert "apply the manifests by hand" in body["Data"]["Notes"]
    assert green.account.calls == []
    assert "green" in home.register.members
    succeeds(home, request("Delete", CONNECTION, AccessEntries="false"))
    assert home.register.members == {}


@pytest.mark.parametrize("name", [PREPARATION, CONNECTION])
def test_the_home_s_own_cluster_is_no_member(home: World, green: World, name: str) -> None:
    """Two would decide about its nodes."""
    assert "run by this home itself" in reason(home, request("Create", name, cluster=CLUSTER))


@pytest.mark.parametrize("name", [PREPARATION, CONNECTION])
def test_a_member_is_that_of_one_stack(home: World, green: World, name: str) -> None:
    """A second one would take its roles away, and its deletion must not take the first one out."""
    home.register.put(Member("green", {}, stack=OTHER_STACK))
    assert OTHER_STACK in reason(home, request("Create", name))
    succeeds(home, request("Delete", CONNECTION))
    assert home.register.members["green"].stack == OTHER_STACK


def test_a_member_of_a_newer_release_than_its_home_is_refused(home: World, green: World) -> None:
    """The code is the home's. An older one goes on: that is how a failed update is rolled back."""
    said = reason(home, request("Create", Version="1.1.0"), version="1.0.9")
    assert "deploy the home first (make deploy CLUSTER=simulated)" in said
    succeeds(home, request("Create", Version="0.9.0"))


def test_roles_that_cannot_be_read_are_refused(home: World, green: World) -> None:
    """An item that no function can read would be a cluster that nobody serves."""
    assert "Roles" in reason(home, request("Create", CONNECTION, Roles="none"))
    assert home.register.members == {}


def test_a_member_of_a_home_without_a_webhook_has_none(home: World, green: World) -> None:
    """Its pods wait for the schedule."""
    succeeds(home, request("Create", CONNECTION, Url="nonegreen/"))
    assert green.objects.read(WEBHOOK) is None
    assert "green" in home.register.members


def test_a_member_s_token_is_rotated_in_its_own_secret(home: World, green: World) -> None:
    """The schedule of its stack says by which role."""
    succeeds(home, request("Create", CONNECTION))
    before = home.account.secret
    controller = InstallerController(home.installer_gateways, CLUSTER, has_access_entries=False)
    event = {
        "operation": "rotate-token", "cluster": "green", "role": installer_role("green"), "secret": "arn:secret",
    }  # fmt: skip
    step = controller.handle(event, Invocation("run-2", lambda: 300.0))
    assert step["step"] == "a new token is valid beside the present one"
    assert parse(green.account.secret.text).next
    assert home.account.secret == before
