"""The rotation of the webhook's token: whenever it is stopped, it goes on, and no call is refused meanwhile."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.installer.controller import InstallerController
from joinery.decisions.installation.objects import WEBHOOK
from joinery.decisions.installation.rotation import SPREAD_TIME, next_step
from joinery.gateways.account.gateway import StoredSecret
from joinery.objects.errors import ConfigurationError, ConflictError
from joinery.objects.kubernetes.webhook_secret import REMEMBERED, WebhookSecret, parse
from simulator.clock import START
from simulator.world import CLUSTER, World
from tests.functional.installing import CONNECTION, URL, request, succeeded
from tools.rotate_token import rotate as make_rotate_token

OLD, NEW = "o" * 43, "n" * 43
SECOND = timedelta(seconds=1)


def ask(world: World, *, has_access_entries: bool = True, **event: str) -> Mapping[str, Any]:
    """What the installer answers to the operation."""
    controller = InstallerController(world.installer_gateways, CLUSTER, has_access_entries=has_access_entries)
    return controller.handle({"operation": "rotate-token", **event}, Invocation("run-1", lambda: 300.0))


def configured(world: World) -> str:
    """The token that the API server calls with."""
    stored = world.objects.read(WEBHOOK)
    assert stored is not None
    url = str(stored["webhooks"][0]["clientConfig"]["url"])
    assert url.startswith(URL)
    return url.rpartition("/")[2]


def secret(world: World) -> WebhookSecret:
    """As it is stored."""
    return parse(world.account.secret.text)


@pytest.fixture
def world() -> World:
    """A cluster whose webhook configuration carries the first token."""
    world = World()
    succeeded(world, request("Create"))
    succeeded(world, request("Create", CONNECTION))
    return world


def test_a_rotation_takes_three_steps(world: World) -> None:
    """Both tokens are valid while the API server goes from one to the other; then the old one is void."""
    first = configured(world)
    seen = []
    for _ in range(3):
        step = ask(world)
        seen.append((configured(world) == first, len(secret(world).valid), "again_in" in step))
        world.clock.advance(SPREAD_TIME)
    assert seen == [(True, 2, True), (False, 2, True), (False, 1, False)]
    assert secret(world).valid == {configured(world)}
    assert configured(world) != first


def test_a_step_that_comes_too_soon_changes_nothing(world: World) -> None:
    """A person and the schedule may both ask."""
    ask(world)
    world.account.calls.clear()
    world.clock.advance(SPREAD_TIME - SECOND)
    assert ask(world)["again_in"] == 1
    assert world.account.calls == []


def test_an_hourly_look_lets_nobody_into_the_cluster(world: World) -> None:
    """Nothing is due, or the next step writes the secret alone: no access entry comes and goes."""
    world.account.calls.clear()
    assert ask(world, days="90")["step"] == "nothing is due"
    world.clock.advance(timedelta(days=90))
    assert "again_in" in ask(world, days="90")
    assert world.account.calls == ["put_webhook_secret"]


def test_a_rotation_that_began_goes_on_though_its_token_is_young(world: World) -> None:
    """Whoever stops ``make rotate-token`` leaves the rest to the schedule."""
    ask(world)
    for _ in range(2):
        world.clock.advance(timedelta(hours=1))
        ask(world, days="90")
    assert len(secret(world).valid) == 1


@pytest.mark.parametrize("steps_before", [0, 1, 2])
def test_a_person_who_asks_gets_a_newer_token_than_that_of_now(
    steps_before: int, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also while another rotation is under way: ending that one alone would keep a token that has leaked since."""
    for _ in range(steps_before):
        ask(world)
        world.clock.advance(SPREAD_TIME)
    leaked = secret(world).valid
    make_rotate_token(
        lambda event: ask(world, **({"days": event["days"]} if "days" in event else {})),
        lambda seconds: world.clock.advance(timedelta(seconds=seconds)),
    )
    assert secret(world).valid == {configured(world)}
    assert not leaked & secret(world).valid
    assert capsys.readouterr().out.endswith("the former token is void\n")


def test_of_two_runs_that_read_one_secret_the_second_is_told(world: World) -> None:
    """It must not take away a token that the first has given to the API server."""
    read = world.account.webhook_secret()
    ask(world)
    with pytest.raises(ConflictError):
        world.account.put_webhook_secret(WebhookSecret(OLD, next=NEW, since=START.isoformat()).text, after=read.version)


def test_without_access_entries_a_rotation_is_refused(world: World) -> None:
    """The installer could not write the webhook configuration, and would wait for nothing."""
    with pytest.raises(ConfigurationError, match="AccessEntries is false"):
        ask(world, has_access_entries=False)


def test_an_update_of_the_stack_in_the_middle_refuses_no_call(world: World) -> None:
    """It writes the token that the secret calls the present one, which is valid in every step."""
    for version in range(4):
        ask(world)
        succeeded(world, request("Update", CONNECTION, ForceConflicts="true"), version=f"1.0.{version}")
        assert configured(world) in secret(world).valid
        world.clock.advance(SPREAD_TIME)


class _Doors:
    """Doors that read the secret at moments of their own, and never later than they may."""

    def __init__(self, world: World, phases: list[int]) -> None:
        self._world = world
        self._due = [START + timedelta(seconds=phase) for phase in phases]
        self._known = [secret(world).valid for _ in phases]

    def refuse(self, token: str) -> bool:
        """Whether any door would refuse the token now."""
        now = self._world.clock.now()
        for number, due in enumerate(self._due):
            if now >= due:
                self._known[number] = secret(self._world).valid
                self._due[number] = now + REMEMBERED
        return any(token not in known for known in self._known)


class _Killed(BaseException):
    """The run ends here, whatever it was doing."""


@given(
    phases=st.lists(st.integers(0, 299), min_size=1, max_size=4),
    stops=st.lists(st.sampled_from(["", "before the secret", "after the secret"]), min_size=12, max_size=12),
    lag=st.integers(0, 30),
)
def test_whenever_a_run_is_killed_no_call_is_refused(phases: list[int], stops: list[str], lag: int) -> None:
    """Doors read every five minutes, API servers learn of a configuration seconds later, and runs are killed."""
    world = World()
    succeeded(world, request("Create"))
    succeeded(world, request("Create", CONNECTION))
    doors, carried = _Doors(world, phases), configured(world)
    for stop in stops:
        _ask_and_be_killed(world, stop)
        for _ in range(14):
            assert not doors.refuse(carried)
            world.clock.advance(timedelta(seconds=30))
            carried = configured(world) if lag < 30 else carried
        carried = configured(world)
    for _ in range(3):
        ask(world, days="99999")
        world.clock.advance(SPREAD_TIME)
    assert secret(world).valid == {configured(world)}


def _ask_and_be_killed(world: World, stop: str) -> None:
    put = world.account.put_webhook_secret

    def killed(text: str, *, after: str) -> None:
        if stop == "after the secret":
            put(text, after=after)
        raise _Killed

    if stop:
        world.account.put_webhook_secret = killed  # type: ignore[method-assign]
    try:
        ask(world)
    except _Killed:
        world.account.revoke_access(CLUSTER)
    finally:
        world.account.put_webhook_secret = put  # type: ignore[method-assign]


def test_a_moment_far_ahead_delays_a_step_for_minutes_only() -> None:
    """Somebody's clock was wrong, or somebody edited the secret."""
    odd = WebhookSecret(OLD, next=NEW, since="2126-01-01T00:00:00+00:00")
    step = next_step(odd, START, fresh=NEW, is_due=False)
    assert step.wait == SPREAD_TIME


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "[]", "{}", '{"token": "short"}', '{"token": 5}', '{"token": null}',
     f'{{"token": "{OLD}", "next": "{NEW}"}}', f'{{"token": "{OLD}", "next": "{NEW}", "since": "yesterday"}}',
     f'{{"token": "{OLD}", "next": "{NEW}", "since": "2026-01-01T00:00:00"}}',
     f'{{"token": "{OLD}", "since": "2026-01-01T00:00:00"}}', f'{{"token": "{OLD}", "since": "{OLD}"}}'],
)  # fmt: skip
def test_a_secret_that_somebody_has_broken_is_named_and_not_quoted(text: str, world: World) -> None:
    """The log of the installer is not a place for tokens."""
    world.account.secret = replace(world.account.secret, text=text)
    with pytest.raises(ConfigurationError, match="the webhook's secret") as refused:
        ask(world)
    assert OLD not in str(refused.value)


@pytest.mark.parametrize("days", ["soon", "-1", "1.5"])
def test_days_that_are_no_number_are_refused(days: str, world: World) -> None:
    """Nothing is rotated by mistake."""
    with pytest.raises(ConfigurationError, match="days is"):
        ask(world, days=days)


def test_the_first_token_is_cloudformations() -> None:
    """It generates a token and nothing else."""
    made = StoredSecret(f'{{"token":"{OLD}"}}', "1", START)
    assert parse(made.text).valid == {OLD}
