"""The webhook's door: a review in, bells rung, and always an answer that lets the change pass."""

import base64
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.controllers.telemetry import metrics
from joinery.controllers.triggers.admission import LARGEST_BODY
from joinery.controllers.webhook import WebhookController
from joinery.gateways.doorbell.gateway import DELAYS, Bell, Doorbell, Tokens
from joinery.gateways.doorbell.tokens import FixedTokens
from joinery.objects.errors import ConfigurationError, JoineryError, UnavailableError
from joinery.objects.karpenter import labels
from simulator.aws import InMemoryDoorbell
from simulator.clock import START, Clock

EVENTS = Path(__file__).parents[2] / "events"
PROVISIONING, LIFECYCLE = Bell.PROVISIONING, Bell.LIFECYCLE
Call = dict[str, Any]


def sample(name: str) -> Call:
    """A sample call of the Function URL."""
    loaded: Call = json.loads((EVENTS / f"webhook_{name}.json").read_text())
    return loaded


TOKEN = sample("failed_scheduling")["rawPath"][1:]
NEXT = "the-token-that-is-to-follow-in-a-rotation"


class TwoTokens:
    """The tokens in the middle of a rotation."""

    def valid(self) -> frozenset[str]:
        """Both."""
        return frozenset({TOKEN, NEXT})


def door(doorbell: Doorbell, tokens: Tokens | None = None, *, enabled: bool = True) -> WebhookController:
    """The webhook's controller, at the start of time."""
    return WebhookController(doorbell, tokens or FixedTokens(TOKEN), now=lambda: START, enabled=enabled)


class BrokenDoorbell:
    """A doorbell that cannot be rung."""

    def __init__(self, error: JoineryError) -> None:
        self._error = error

    def ring(self, bell: Bell, not_before: datetime | None = None) -> None:
        raise self._error


@pytest.fixture
def doorbell() -> InMemoryDoorbell:
    """A doorbell that remembers who rang."""
    return InMemoryDoorbell(Clock(START))


@pytest.fixture
def webhook(doorbell: InMemoryDoorbell) -> WebhookController:
    """The controller behind the webhook's door."""
    return door(doorbell)


@pytest.fixture
def counted() -> Callable[[], dict[str, float]]:
    """What was counted in this test, by metric."""
    metrics.forget()
    return metrics.totals


def rung(doorbell: InMemoryDoorbell) -> set[Bell]:
    """Which bells were rung."""
    return {bell for _, bell in doorbell.rings}


class _FailsOnce:
    """A doorbell whose first ring gets no answer."""

    def __init__(self, doorbell: Doorbell) -> None:
        self._doorbell = doorbell
        self._has_failed = False

    def ring(self, bell: Bell, not_before: datetime | None = None) -> None:
        if not self._has_failed:
            self._has_failed = True
            raise UnavailableError("SQS was silent")
        self._doorbell.ring(bell, not_before)


def request(call: Call) -> dict[str, Any]:
    """The request of a call's review."""
    found: dict[str, Any] = json.loads(call["body"])["request"]
    return found


def changed(call: Call, change: Callable[[dict[str, Any]], object]) -> Call:
    """The call with its review's request changed in place."""
    review = json.loads(call["body"])
    change(review["request"])
    return {**call, "body": json.dumps(review)}


def with_body(body: str, **more: Any) -> Call:
    """A call with another body."""
    return {**sample("failed_scheduling"), "body": body, **more}


def assert_allowed(answer: dict[str, Any], uid: str) -> None:
    """The answer is an AdmissionReview v1 that allows the request of this UID."""
    review = json.loads(answer["body"])
    assert answer["statusCode"] == 200
    assert review == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": uid, "allowed": True},
    }


@pytest.mark.parametrize(
    ("name", "bells"),
    [
        ("failed_scheduling", {PROVISIONING}),
        ("failed_scheduling_core", {PROVISIONING}),
        ("node_ready", {LIFECYCLE}),
        ("node_claim_deleted", {PROVISIONING, LIFECYCLE}),
        ("node_pool_changed", {PROVISIONING, LIFECYCLE}),
        ("node_class_created", {PROVISIONING, LIFECYCLE}),
    ],
)
def test_each_kind_of_change_rings_the_bells_it_is_worth(
    name: str, bells: set[Bell], webhook: WebhookController, doorbell: InMemoryDoorbell
) -> None:
    """Every sample review is allowed by its own UID and wakes exactly the doors that have something to do."""
    call = sample(name)

    answer = webhook.answer(call)

    assert_allowed(answer, request(call)["uid"])
    assert rung(doorbell) == bells


def _room(request: dict[str, Any], operation: str, after: dict[str, Any], before: dict[str, Any]) -> None:
    resource = {"group": "autoscaling.x-k8s.io", "version": "v1beta1", "resource": "capacitybuffers"}
    request |= {"resource": resource, "operation": operation, "object": after, "oldObject": before}


@pytest.mark.parametrize(
    ("operation", "after", "before", "rings"),
    [
        ("CREATE", {"spec": {"replicas": 2}}, {}, True),
        ("UPDATE", {"spec": {"replicas": 3}}, {"spec": {"replicas": 2}}, True),
        ("UPDATE", {"metadata": {"annotations": {"joinery.dev/buffer-schedule": "x"}}}, {}, True),
        ("UPDATE", {"spec": {"replicas": 2}, "status": {"replicas": 2}}, {"spec": {"replicas": 2}}, False),
        ("UPDATE", {"metadata": {"labels": {"a": "b"}}}, {}, False),
        ("UPDATE", {"metadata": {"deletionTimestamp": "2026-08-24T08:00:00Z"}}, {}, False),
        ("DELETE", {}, {"spec": {"replicas": 2}}, False),
    ],
)
def test_room_that_is_asked_for_wakes_provisioning(
    operation: str,
    after: dict[str, Any],
    before: dict[str, Any],
    rings: bool,
    webhook: WebhookController,
    doorbell: InMemoryDoorbell,
) -> None:
    """A CapacityBuffer that is new or asks for something else; not what Joinery writes into its status."""
    webhook.answer(changed(sample("node_pool_changed"), lambda own: _room(own, operation, after, before)))
    assert rung(doorbell) == ({PROVISIONING} if rings else set())


def test_a_wrong_token_gets_403_and_nothing_else(webhook: WebhookController, doorbell: InMemoryDoorbell) -> None:
    """Who does not know the path learns nothing and wakes nobody."""
    stranger = {**sample("failed_scheduling"), "rawPath": f"/{TOKEN[:-1]}x"}

    assert webhook.answer(stranger) == {"statusCode": 403}
    assert not doorbell.rings


def test_in_a_rotation_both_tokens_are_known(doorbell: InMemoryDoorbell) -> None:
    """API servers learn of a new webhook configuration one after the other."""
    webhook, call = door(doorbell, TwoTokens()), sample("failed_scheduling")
    codes = [webhook.answer({**call, "rawPath": f"/{token}"})["statusCode"] for token in (TOKEN, NEXT, "x" * 43)]
    assert codes == [200, 200, 403]


def test_a_refusal_looks_at_nothing_but_the_path(doorbell: InMemoryDoorbell) -> None:
    """Whoever sends megabytes, or what cannot be unwrapped, has not even these looked at."""
    unreadable = {"rawPath": "/x", "body": object(), "isBase64Encoded": object()}
    assert door(doorbell).answer(unreadable) == {"statusCode": 403}


def test_a_flood_is_told_once_a_minute(doorbell: InMemoryDoorbell) -> None:
    """Each line of a log is paid for; the first refusal is told at once, for the alarm."""
    clock = Clock(START)
    webhook = WebhookController(doorbell, FixedTokens(TOKEN), now=clock.now)
    metrics.forget()
    told = []
    for _ in range(3):
        for _ in range(100):
            webhook.answer({"rawPath": "/stranger"})
        told.append(metrics.totals())
        metrics.forget()
        clock.advance(timedelta(minutes=1))
    name = "joinery_reviews_forbidden_total"
    assert told == [{name: 1.0}, {name: 100.0}, {name: 100.0}]


def test_while_the_secret_cannot_be_read_nobody_is_judged(
    doorbell: InMemoryDoorbell, capsys: pytest.CaptureFixture[str]
) -> None:
    """The API server goes on without an answer, and the log has one line without a traceback."""

    class Unreadable:
        def valid(self) -> frozenset[str]:
            raise UnavailableError("reading the webhook's secret: 503")

    assert door(doorbell, Unreadable()).answer(sample("failed_scheduling")) == {"statusCode": 503}
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert "exception" not in json.loads(lines[0])


@pytest.mark.parametrize("conditions", [5, "x", [5], [None], {"a": 1}, [{"type": {}}]])
def test_a_node_whose_conditions_are_no_list_is_answered(conditions: Any, webhook: WebhookController) -> None:
    """Anybody with the token may send anything; what it costs is one answer."""
    call = sample("node_ready") if (EVENTS / "webhook_node_ready.json").exists() else sample("failed_scheduling")
    review = json.loads(call["body"])
    review["request"] |= {
        "resource": {"group": "", "version": "v1", "resource": "nodes"}, "operation": "UPDATE",
        "object": {"status": {"conditions": conditions}}, "oldObject": {},
    }  # fmt: skip
    assert_allowed(webhook.answer({**call, "body": json.dumps(review), "isBase64Encoded": False}), request(call)["uid"])


@pytest.mark.parametrize("path", ["", "/", "/é\ud800", f"/{TOKEN}/", f"//{TOKEN}", f"/{TOKEN.upper()}"])
def test_only_the_exact_path_is_known(path: str, webhook: WebhookController) -> None:
    """There is no path but the secret one, whatever characters it is made of."""
    assert webhook.answer({**sample("failed_scheduling"), "rawPath": path}) == {"statusCode": 403}


def test_without_a_configured_token_nobody_is_known(doorbell: InMemoryDoorbell) -> None:
    """A door that was given no secret does not take the empty path for one."""
    open_door = door(doorbell, FixedTokens(""))

    assert open_door.answer({**sample("failed_scheduling"), "rawPath": "/"}) == {"statusCode": 403}


def test_a_thousand_events_are_one_message_a_slot() -> None:
    """Each is paid for. The last Event of a slot is not lost: the message is delivered when the slot is over."""
    clock = Clock(START)
    doorbell, call = InMemoryDoorbell(clock), sample("failed_scheduling")
    webhook = WebhookController(doorbell, FixedTokens(TOKEN), now=clock.now)
    for _ in range(1_000):
        webhook.answer(call)
        clock.advance(timedelta(milliseconds=3))
    assert 3 <= len(doorbell.rings) <= 4
    last = clock.now() - timedelta(milliseconds=3)
    assert max(at for at, _ in doorbell.rings) + DELAYS[PROVISIONING] > last


def test_a_bell_that_could_not_be_rung_is_rung_by_the_next_event() -> None:
    """Of the same slot: only what was sent stands for others."""
    clock = Clock(START)
    doorbell = InMemoryDoorbell(clock)
    webhook = WebhookController(_FailsOnce(doorbell), FixedTokens(TOKEN), now=clock.now)
    for _ in range(3):
        webhook.answer(sample("failed_scheduling"))
    assert len(doorbell.rings) == 1


@pytest.mark.parametrize("key", ["reportingController", "reportingComponent"])
def test_our_own_events_do_not_wake_us(key: str, webhook: WebhookController, doorbell: InMemoryDoorbell) -> None:
    """An Event that Joinery itself reports never rings, so that explaining a decision does not start the next."""
    call = changed(sample("failed_scheduling"), lambda r: r["object"].update({key: labels.REPORTER}))

    webhook.answer(call)

    assert not doorbell.rings


def test_other_events_do_not_ring(webhook: WebhookController, doorbell: InMemoryDoorbell) -> None:
    """Only a pod that fits nowhere is worth a look at the whole cluster."""
    webhook.answer(changed(sample("failed_scheduling"), lambda r: r["object"].update(reason="Scheduled")))

    assert not doorbell.rings


def test_a_dry_run_rings_nothing(webhook: WebhookController, doorbell: InMemoryDoorbell) -> None:
    """What does not happen needs no reaction (sideEffects: NoneOnDryRun)."""
    for path in EVENTS.glob("webhook_*.json"):
        call = changed(json.loads(path.read_text()), lambda r: r.update(dryRun=True))
        assert_allowed(webhook.answer(call), request(call)["uid"])

    assert not doorbell.rings


def test_a_heartbeat_does_not_ring(webhook: WebhookController, doorbell: InMemoryDoorbell) -> None:
    """A kubelet reports every few seconds; as long as no condition changes there is nothing to do."""

    def heartbeat(review: dict[str, Any]) -> None:
        review["oldObject"] = json.loads(json.dumps(review["object"]))
        review["object"]["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-03-04T05:06:57Z"

    webhook.answer(changed(sample("node_ready"), heartbeat))

    assert not doorbell.rings


def claim_update(**annotations: str) -> Call:
    """A NodeClaim that gains annotations."""

    def update(review: dict[str, Any]) -> None:
        after = json.loads(json.dumps(review["oldObject"]))
        after["metadata"]["annotations"] = annotations
        review.update(operation="UPDATE", object=after)

    return changed(sample("node_claim_deleted"), update)


def test_an_interrupted_claim_wakes_provisioning_before_it_drains(
    webhook: WebhookController, doorbell: InMemoryDoorbell
) -> None:
    """The mark that EC2 takes an instance away starts the search for a replacement at once."""
    webhook.answer(claim_update(**{labels.INTERRUPTED_AT: "2026-03-04T05:06:07Z"}))

    assert rung(doorbell) == {PROVISIONING, LIFECYCLE}


def test_a_replacement_that_was_launched_wakes_only_the_lifecycle(
    webhook: WebhookController, doorbell: InMemoryDoorbell
) -> None:
    """The drain may start; there is nothing to plan."""
    webhook.answer(claim_update(**{labels.REPLACEMENT_LAUNCHED: "2026-03-04T05:06:09Z"}))

    assert rung(doorbell) == {LIFECYCLE}


def test_a_claim_s_status_does_not_ring(webhook: WebhookController, doorbell: InMemoryDoorbell) -> None:
    """Lifecycle writes conditions all the time: it must not wake itself by it."""

    def progress(review: dict[str, Any]) -> None:
        after = json.loads(json.dumps(review["oldObject"]))
        after["status"]["conditions"] = [{"type": "Registered", "status": "True"}]
        review.update(operation="UPDATE", object=after)

    webhook.answer(changed(sample("node_claim_deleted"), progress))

    assert not doorbell.rings


def test_a_body_over_one_mebibyte_is_allowed_and_counted_and_wakes_nobody(
    webhook: WebhookController, doorbell: InMemoryDoorbell, counted: Callable[[], dict[str, float]]
) -> None:
    """An enormous object costs no parsing, and is still answered by its UID."""
    call = changed(sample("failed_scheduling"), lambda r: r["object"].update(note="x" * LARGEST_BODY))

    assert_allowed(webhook.answer(call), request(call)["uid"])
    assert not doorbell.rings
    assert counted() == {"joinery_reviews_too_large_total": 1}


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "[]",
        "{}",
        "{",
        '"review"',
        '{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        "[" * 100_000,
    ],
    ids=["empty", "null", "list", "object", "broken", "text", "no request", "deep"],
)
def test_a_malformed_review_is_allowed_and_counted_and_wakes_nobody(
    body: str,
    webhook: WebhookController,
    doorbell: InMemoryDoorbell,
    counted: Callable[[], dict[str, float]],
) -> None:
    """What cannot be read is let through, told to the operator, and changes nothing."""
    assert_allowed(webhook.answer(with_body(body)), "")
    assert not doorbell.rings
    assert counted() == {"joinery_reviews_malformed_total": 1}


def test_an_older_review_version_is_malformed(webhook: WebhookController, doorbell: InMemoryDoorbell) -> None:
    """Only admission.k8s.io/v1 is spoken."""
    call = sample("failed_scheduling")
    review = {**json.loads(call["body"]), "apiVersion": "admission.k8s.io/v1beta1"}

    webhook.answer(with_body(json.dumps(review)))

    assert not doorbell.rings


def test_a_base64_body_is_the_same_body(webhook: WebhookController, doorbell: InMemoryDoorbell) -> None:
    """Function URLs wrap a body whose content type they do not know."""
    call = sample("failed_scheduling")
    wrapped = with_body(base64.b64encode(call["body"].encode()).decode(), isBase64Encoded=True)

    assert_allowed(webhook.answer(wrapped), request(call)["uid"])
    assert rung(doorbell) == {PROVISIONING}


def test_a_body_that_claims_to_be_base64_and_is_not_is_malformed(webhook: WebhookController) -> None:
    """A wrapper that cannot be opened is let through like any other malformed review."""
    assert_allowed(webhook.answer(with_body("not base64!", isBase64Encoded=True)), "")


@pytest.mark.parametrize("error", [UnavailableError("timed out"), ConfigurationError("AccessDenied")])
def test_a_bell_that_cannot_be_rung_never_blocks_the_cluster(
    error: JoineryError, counted: Callable[[], dict[str, float]]
) -> None:
    """SQS may be down, or out of bounds; the API server is still answered,
    the failure is counted, and the schedule rings later.
    """
    call = sample("failed_scheduling")

    assert_allowed(door(BrokenDoorbell(error)).answer(call), request(call)["uid"])
    assert counted() == {"joinery_runs_failed_total": 1}


def test_a_webhook_that_is_switched_off_allows_and_rings_nothing(doorbell: InMemoryDoorbell) -> None:
    """The off-switch silences the doorbell without touching the cluster's webhook configuration."""
    off = door(doorbell, enabled=False)
    call = sample("failed_scheduling")

    assert_allowed(off.answer(call), request(call)["uid"])
    assert not doorbell.rings


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(
    field=st.sampled_from(["object", "oldObject", "resource", "operation", "dryRun", "namespace"]),
    value=JSON,
    path=st.sampled_from(sorted(EVENTS.glob("webhook_*.json"))),
)
def test_whatever_a_review_holds_it_is_allowed(field: str, value: object, path: Path) -> None:
    """No value in any field of a review makes the webhook fail or refuse."""
    call = changed(json.loads(path.read_text()), lambda r: r.update({field: value}))

    assert_allowed(door(InMemoryDoorbell(Clock(START))).answer(call), request(call)["uid"])
