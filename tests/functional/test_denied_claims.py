"""What admission denies takes down nothing but its cause, with whatever code,
and also where it cannot be asked by dry runs.
"""

from typing import Any

import pytest

from joinery.objects.errors import ConfigurationError, UnavailableError
from simulator import builders
from tests.functional.guarded import Admission, guarded
from tests.functional.stand import Stand

GOOD = {"pod-0", "pod-1", "pod-2"}
TEAM = {"team": "x"}
SIZE = {"key": "karpenter.k8s.aws/instance-size", "operator": "In", "values": ["xlarge"]}

WEBHOOK = 'admission webhook "validate.kyverno.svc-fail" denied the request: '
POLICY = (
    "nodeclaims.karpenter.sh \"n\" is forbidden: ValidatingAdmissionPolicy 'few' with binding 'few' denied request: "
)
RIGHTS = (
    'nodeclaims.karpenter.sh is forbidden: User "joinery" cannot create resource "nodeclaims" in API group '
    '"karpenter.sh"'
)
DOWN = (
    'Internal error occurred: failed calling webhook "x": failed to call webhook: Post "https://x": connection refused'
)
NO_DRY_RUN = 'admission webhook "x" does not support dry run'

DENIALS = [
    (400, WEBHOOK + "no team x"),
    (401, POLICY + "no team x"),
    (403, WEBHOOK + "no team x"),
    (403, POLICY + "no team x"),
    (409, WEBHOOK + "no team x"),
    (413, "no team x"),
    (422, POLICY + "no team x"),
    (429, WEBHOOK + "no team x"),
    (500, DOWN),
    (503, WEBHOOK + "no team x"),
    (403, 'nodeclaims.karpenter.sh "n" is forbidden: no team x'),
    (400, "no team x"),
]


def _asks_for_team(claim: dict[str, Any]) -> bool:
    rules = claim["spec"]["requirements"]
    return any(rule["key"] == "team" and rule.get("values") == ["x"] for rule in rules) or (
        claim["metadata"]["labels"].get("team") == "x"
    )


def _against_team(code: int, message: str, *, dry_run: tuple[int, str] | None = None) -> Admission:
    """Deny what is for the team; dry runs may be answered otherwise."""

    def judge(claim: dict[str, Any], is_dry: bool) -> tuple[int, str] | None:
        if is_dry and dry_run is not None:
            return dry_run
        return (code, message) if _asks_for_team(claim) else None

    return judge


def _with_team(admission: Admission, count: int = 1) -> Stand:
    """Three pods of nobody and some of the team in one NodePool that leaves the team open."""
    stand, _ = guarded(admission)
    stand.world.cluster.add(
        builders.node_pool("open", requirements=[{"key": "team", "operator": "Exists"}, SIZE], weight=100)
    )
    stand.live()
    stand.pods(3, cpu="400m")
    for number in range(count):
        stand.world.cluster.add(builders.pod(f"bad-{number}", cpu="400m", node_selector=TEAM))
    return stand


@pytest.mark.parametrize(("code", "message"), DENIALS)
def test_what_is_denied_is_left_out_and_the_rest_is_bought_in_the_same_run(code: int, message: str) -> None:
    """Webhooks deny with a code of their own, policies with that of their reason."""
    stand = _with_team(_against_team(code, message))
    stand.provision()
    assert set(stand.messages("Nominated")) == GOOD
    assert set(stand.messages("FailedScheduling")) == {"bad-0"}
    assert len(stand.alive) == len(stand.claims) > 0


@pytest.mark.parametrize("answer", [(400, NO_DRY_RUN), (503, "busy"), (404, "no"), (401, "Unauthorized"), (405, "no")])
@pytest.mark.parametrize("count", [1, 5])
def test_where_dry_runs_tell_nothing_the_cause_is_found_by_writing(answer: tuple[int, str], count: int) -> None:
    """Also where most pods are at fault: those that had to give way to them get their nodes after all."""
    stand = _with_team(_against_team(403, WEBHOOK + "no team x", dry_run=answer), count)
    stand.provision()
    assert set(stand.messages("Nominated")) == GOOD
    assert set(stand.messages("FailedScheduling")) == {f"bad-{number}" for number in range(count)}
    assert len(stand.alive) == len(stand.claims) > 0


def test_a_dry_run_that_tells_nothing_is_not_repeated() -> None:
    """A server that does not answer would be asked for minutes."""
    stand, transport = guarded(_against_team(403, WEBHOOK + "no", dry_run=(503, "busy")))
    stand.pods(3)
    stand.world.cluster.add(builders.node_pool("open", labels=TEAM, weight=100))
    stand.live()
    stand.provision()
    assert transport.dry_runs == 1


def test_a_right_that_is_missing_is_nobody_s_fault() -> None:
    """RBAC's refusal is about every claim: it is raised, no pod is blamed, and the door rings again."""
    stand, _ = guarded(lambda claim, is_dry: (403, RIGHTS))
    stand.pods(3)
    with pytest.raises(UnavailableError, match="cannot create resource"):
        stand.provision()
    assert stand.messages("FailedScheduling") == {}
    assert stand.claims == []


def _after(count: int, code: int, message: str) -> Admission:
    """Let some claims pass, and no more."""
    seen: list[str] = []

    def judge(claim: dict[str, Any], is_dry: bool) -> tuple[int, str] | None:
        seen.append(claim["metadata"]["name"])
        return (code, message) if len(seen) > count else None

    return judge


@pytest.mark.parametrize(("code", "message"), [(403, RIGHTS), (503, "busy"), (401, "Unauthorized"), (500, "etcd")])
def test_what_was_written_is_launched_and_said_though_the_rest_fails(code: int, message: str) -> None:
    """And the failure is raised, so that the rest is tried again."""
    stand, _ = guarded(_after(1, code, message))
    stand.pods(6, cpu="2")
    with pytest.raises(UnavailableError, match=message.partition('"')[0]):
        stand.provision()
    assert len(stand.claims) == len(stand.alive) == 1
    assert len(stand.messages("Nominated")) > 0


def test_a_pool_whose_claims_are_denied_leaves_the_pods_to_another() -> None:
    """By a webhook that answers 403."""
    stand, _ = guarded(_against_team(403, WEBHOOK + "no team x"))
    stand.world.cluster.add(builders.node_pool("team", labels=TEAM, weight=100))
    stand.live()
    stand.pods(3)
    with pytest.raises(ConfigurationError, match="no team x"):
        stand.provision()
    assert set(stand.messages("Nominated")) == GOOD


def test_tenants_are_told_the_cause_and_not_the_whole_refusal() -> None:
    """The log has the rest."""
    long = "no team x. " + "Ask the platform team, who will look at it. " * 20
    stand = _with_team(_against_team(403, POLICY + long))
    stand.provision()
    message = stand.messages("FailedScheduling")["bad-0"]
    assert "no team x" in message
    assert "platform team" not in message
    assert len(message) < 300
