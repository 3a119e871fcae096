"""How a door answers what woke it: bells are rung again, messages are redelivered, sweeps are raised."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from joinery.controllers.triggers.dispatcher import Dispatcher
from joinery.decisions.interruption.envelope import MalformedNoticeError
from joinery.decisions.interruption.notice import Notice, parse
from joinery.decisions.interruption.ownership import EarlyNoticeError
from joinery.gateways.doorbell.gateway import DELAYS, LONGEST_REST, Bell, message
from joinery.objects.errors import (
    ConfigurationError,
    ConflictError,
    DeniedError,
    JoineryError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    together,
)
from joinery.objects.settings import Settings
from simulator.aws import InMemoryDoorbell
from simulator.clock import START, Clock

EVENTS = Path(__file__).parents[2] / "events"


@pytest.fixture
def doorbell() -> InMemoryDoorbell:
    """A doorbell that remembers who rang."""
    return InMemoryDoorbell(Clock(START))


@pytest.fixture
def dispatcher(doorbell: InMemoryDoorbell) -> Dispatcher:
    """What every door but the webhook answers with."""
    return Dispatcher(doorbell, lambda: Settings(cluster="blue"), now=lambda: START)


Run = Callable[[], dict[str, Any]]


def bells(*moments: datetime | None) -> dict[str, Any]:
    """A batch of a bell's messages, by what they say of when to look."""
    records = [{"messageId": str(number), "body": message(moment)} for number, moment in enumerate(moments)]
    return {"Records": records}


def test_a_bell_for_later_is_passed_on_until_then(doorbell: InMemoryDoorbell) -> None:
    """Nothing is read, and the chain goes on."""
    clock, runs = doorbell.clock, list[datetime]()
    dispatcher = Dispatcher(doorbell, lambda: Settings(cluster="blue"), now=clock.now)
    doorbell.ring(Bell.LIFECYCLE, START + timedelta(seconds=12))

    def run() -> dict[str, Any]:
        runs.append(clock.now())
        return {}

    while not runs:
        assert doorbell.next_due is not None
        clock.move_to(doorbell.next_due)
        delivered = [{"messageId": "1", "body": ring.body} for ring in doorbell.due()]
        dispatcher.answer({"Records": delivered}, Bell.LIFECYCLE, run)
    assert runs == [START + timedelta(seconds=15)]


def test_a_bell_is_not_passed_on_for_longer_than_any_of_ours(doorbell: InMemoryDoorbell) -> None:
    """Whoever may send a message does not silence a door for ever: the schedule rings once a minute, and so does it."""
    clock = doorbell.clock
    dispatcher = Dispatcher(doorbell, lambda: Settings(cluster="blue"), now=clock.now)
    body = message(START.replace(year=9999))
    while (answer := dispatcher.answer({"Records": [{"messageId": "1", "body": body}]}, Bell.LIFECYCLE, dict)) != {
        "outcome": "done"
    }:
        assert answer == {"outcome": "rests"}
        assert doorbell.next_due is not None
        clock.move_to(doorbell.next_due)
        (ring,) = doorbell.due()
        body = ring.body
    assert clock.now() <= START + LONGEST_REST + DELAYS[Bell.LIFECYCLE]


@pytest.mark.parametrize(
    "event", [bells(START + timedelta(seconds=12), None), bells(START), bells(), {}, {"Records": {}}]
)
def test_whoever_says_look_now_is_answered_at_once(
    event: dict[str, Any], dispatcher: Dispatcher, doorbell: InMemoryDoorbell
) -> None:
    """So is what has become due, and a schedule, which says nothing of moments."""
    assert dispatcher.answer(event, Bell.LIFECYCLE, dict)["outcome"] == "done"
    assert not doorbell.rings


def failing(error: Exception) -> Run:
    """A run that fails."""

    def run() -> dict[str, Any]:
        raise error

    return run


def batch(*names: str) -> dict[str, Any]:
    """The records of several sample events in one SQS batch."""
    samples = [json.loads((EVENTS / f"interruption_{name}.json").read_text()) for name in names]
    return {"Records": [record for sample in samples for record in sample["Records"]]}


def failures(answer: dict[str, Any]) -> list[str]:
    """The messages that the queue delivers again."""
    return [item["itemIdentifier"] for item in answer["batchItemFailures"]]


def test_a_bell_that_was_answered_is_not_rung_again(
    dispatcher: Dispatcher, doorbell: InMemoryDoorbell, counted: Callable[[], dict[str, float]]
) -> None:
    """A run that succeeds ends there; the next bell comes from whoever has news."""
    answer = dispatcher.answer({}, Bell.PROVISIONING, lambda: {"launched": 2})

    assert answer == {"outcome": "done", "launched": 2}
    assert not doorbell.rings
    assert counted() == {}


@pytest.mark.parametrize("error", [UnavailableError("throttled"), KeyError("a bug")])
def test_a_failed_bell_is_completed_and_rung_again(
    error: Exception, dispatcher: Dispatcher, doorbell: InMemoryDoorbell, counted: Callable[[], dict[str, float]]
) -> None:
    """A bell blocks no queue: the failure is told, and a new bell takes the old one's place."""
    answer = dispatcher.answer({}, Bell.LIFECYCLE, failing(error))

    assert answer["outcome"] == "rung again"
    assert [bell for _, bell in doorbell.rings] == [Bell.LIFECYCLE]
    assert counted() == {"joinery_runs_failed_total": 1, "joinery_bells_rung_total": 1}


def test_whoever_gives_up_the_lease_rings_again(
    dispatcher: Dispatcher, doorbell: InMemoryDoorbell, counted: Callable[[], dict[str, float]]
) -> None:
    """A conflict is no failure, and its bell is not lost."""
    dispatcher.answer({}, Bell.PROVISIONING, failing(ConflictError("held by another")))

    assert [bell for _, bell in doorbell.rings] == [Bell.PROVISIONING]
    assert counted() == {"joinery_conflicts_total": 1, "joinery_bells_rung_total": 1}


@pytest.mark.parametrize(
    "error",
    [
        RefusedError("above the cap"),
        ConfigurationError("no such bucket"),
        NotFoundError("no catalogue yet"),
        DeniedError("joinery may not list pods (403)"),
    ],
)
def test_what_would_fail_again_waits_for_the_schedule(
    error: JoineryError, dispatcher: Dispatcher, doorbell: InMemoryDoorbell, counted: Callable[[], dict[str, float]]
) -> None:
    """A cap or a user's mistake is told to a person, and not tried again every second."""
    answer = dispatcher.answer({}, Bell.PROVISIONING, failing(error))

    assert answer == {"outcome": "refused", "error": str(error)}
    assert not doorbell.rings
    assert counted() == {"joinery_refusals_total": 1}


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ([ConfigurationError("no right to tag"), DeniedError("no right to evict")], ConfigurationError),
        ([ConfigurationError("no right to tag"), ConflictError("written meanwhile")], UnavailableError),
        ([ConfigurationError("no right to tag"), UnavailableError("throttled")], UnavailableError),
        ([DeniedError("no right to evict")], DeniedError),
        ([KeyError("a bug")], UnavailableError),
    ],
)
def test_what_a_person_must_mend_does_not_make_a_run_worth_repeating(errors: list[Exception], kind: type) -> None:
    """A tag that is refused for good would have the bell rung every five seconds, for good."""
    assert type(together(errors)) is kind


class BrokenDoorbell:
    """A doorbell whose queues do not answer."""

    def ring(self, bell: Bell, not_before: datetime | None = None) -> None:
        raise UnavailableError(f"{bell.value}: timed out")


def test_a_bell_that_cannot_be_rung_again_is_left_to_its_queue() -> None:
    """If SQS takes no new bell, the old one must stay."""
    with pytest.raises(UnavailableError, match="lifecycle"):
        Dispatcher(BrokenDoorbell(), lambda: Settings(cluster="blue"), now=lambda: START).answer(
            {}, Bell.LIFECYCLE, failing(KeyError("a bug"))
        )


def test_a_door_that_is_off_completes_what_wakes_it(
    doorbell: InMemoryDoorbell, counted: Callable[[], dict[str, float]]
) -> None:
    """The off-switch stops runs, not queues."""
    off = Dispatcher(doorbell, lambda: Settings(cluster="blue", enabled=False), now=lambda: START)
    never = failing(AssertionError("a door that is off ran"))

    assert off.answer({}, Bell.PROVISIONING, never) == {"outcome": "off"}
    assert off.sweep(never) == {"outcome": "off"}
    assert off.deliver(batch("spot_warning"), parse, lambda notices: [never()]) == {"batchItemFailures": []}
    assert counted() == {"joinery_switched_off_total": 3}


def test_a_sweep_that_fails_is_raised(dispatcher: Dispatcher, counted: Callable[[], dict[str, float]]) -> None:
    """A schedule's own call carries nothing to keep: Lambda's error count tells a person, the next minute retries."""
    with pytest.raises(UnavailableError):
        dispatcher.sweep(failing(UnavailableError("throttled")))

    assert counted() == {"joinery_runs_failed_total": 1}


def test_only_the_message_that_failed_is_delivered_again(
    dispatcher: Dispatcher, counted: Callable[[], dict[str, float]]
) -> None:
    """One bad notice of a batch never costs the others their handling."""
    event = batch("spot_warning", "scheduled_change", "instance_stopping")
    handled: list[Notice] = []

    def handle(notices: Sequence[Notice]) -> list[dict[str, Any] | Exception]:
        handled.extend(notices)
        down = UnavailableError("the API server is down")
        return [down if len(notice.instances) == 2 else {"retired": 1} for notice in notices]

    answer = dispatcher.deliver(event, parse, handle)

    assert failures(answer) == [event["Records"][1]["messageId"]]
    assert len(handled) == 3
    assert counted() == {"joinery_runs_failed_total": 1}


def test_a_notice_that_comes_too_early_is_no_failure(
    dispatcher: Dispatcher, counted: Callable[[], dict[str, float]]
) -> None:
    """It is delivered again, and counted by itself: nothing went wrong."""
    event = batch("spot_warning")

    answer = dispatcher.deliver(event, parse, lambda notices: [EarlyNoticeError("no claim knows i-1")])

    assert failures(answer) == [event["Records"][0]["messageId"]]
    assert counted() == {"joinery_notices_early_total": 1}


def test_what_fails_for_all_is_delivered_again_for_all(
    dispatcher: Dispatcher, counted: Callable[[], dict[str, float]]
) -> None:
    """Without the cluster's claims no notice can be answered. One that needs nothing is done with all the same."""
    event = batch("spot_warning", "instance_running", "instance_stopping")

    def handle(notices: Sequence[Notice]) -> list[dict[str, Any] | Exception]:
        raise UnavailableError("the API server is down")

    answer = dispatcher.deliver(event, parse, handle)

    assert failures(answer) == [event["Records"][0]["messageId"], event["Records"][2]["messageId"]]
    assert counted() == {"joinery_runs_failed_total": 2}


def test_an_unknown_event_is_counted_and_dropped(
    dispatcher: Dispatcher, counted: Callable[[], dict[str, float]]
) -> None:
    """Events that nobody acts on, and bodies that are no events, are completed: waiting would not make them known."""
    event = batch("instance_running", "spot_warning", "rebalance_recommendation")
    event["Records"][1]["body"] = "not JSON"
    event["Records"][2]["body"] = '["not", "an", "event"]'

    answer = dispatcher.deliver(event, parse, failing_notice)

    assert failures(answer) == []
    assert counted() == {}


def failing_notice(notices: Sequence[Notice]) -> list[dict[str, Any] | Exception]:
    """No notice should come this far."""
    raise AssertionError(notices)


def event_of(name: str) -> dict[str, Any]:
    """A sample event as EventBridge hands it to a function that is itself the target of a rule."""
    envelope: dict[str, Any] = json.loads(batch(name)["Records"][0]["body"])
    return envelope


def test_an_event_without_a_queue_is_handled(dispatcher: Dispatcher, counted: Callable[[], dict[str, float]]) -> None:
    """A rule may have the function itself as its target, and a person may invoke it with an event."""
    handled: list[Notice] = []

    def handle(notices: Sequence[Notice]) -> list[dict[str, Any] | Exception]:
        handled.extend(notices)
        return [{"claims": 1}]

    answer = dispatcher.deliver(event_of("spot_warning"), parse, handle)

    assert answer == {"outcome": "done", "claims": 1}
    assert [notice.kind.value for notice in handled] == ["spot_interrupted"]
    assert counted() == {}


def test_an_event_without_a_queue_that_fails_is_raised(
    dispatcher: Dispatcher, counted: Callable[[], dict[str, float]]
) -> None:
    """There is no queue to deliver it again: Lambda tries an asynchronous call again if it raises."""

    def handle(notices: Sequence[Notice]) -> list[dict[str, Any] | Exception]:
        return [UnavailableError("the API server is down")]

    with pytest.raises(UnavailableError, match="is down"):
        dispatcher.deliver(event_of("spot_warning"), parse, handle)
    assert counted() == {"joinery_runs_failed_total": 1}


def test_an_event_without_a_queue_that_needs_nothing_says_why(dispatcher: Dispatcher) -> None:
    """Whoever invoked the function reads the reason in the answer."""
    answer = dispatcher.deliver(event_of("instance_running"), parse, failing_notice)

    assert answer == {"outcome": "ignored", "reason": "an instance that is running stays"}


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"Records": None},
        {"Records": [{"Sns": {"Message": "{}"}}]},
        {"detail": {"instance-id": "i-1"}},
        {"bell": "x"},
    ],
)
def test_a_call_that_is_neither_messages_nor_an_event_is_raised(
    event: dict[str, Any], dispatcher: Dispatcher, counted: Callable[[], dict[str, float]]
) -> None:
    """Whatever was to be told is lost otherwise, and nobody would know."""
    with pytest.raises(MalformedNoticeError, match="neither SQS messages nor an EventBridge event"):
        dispatcher.deliver(event, parse, failing_notice)
    assert counted() == {"joinery_runs_failed_total": 1}


def test_an_empty_batch_is_answered(dispatcher: Dispatcher) -> None:
    """It holds no message that could fail."""
    assert dispatcher.deliver({"Records": []}, parse, failing_notice) == {"batchItemFailures": []}


def test_a_known_event_that_cannot_be_read_is_completed_with_a_line(
    dispatcher: Dispatcher, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning without its instance would say no more at its next delivery, and would end among the dead letters."""
    event = batch("spot_warning")
    event["Records"][0]["body"] = json.dumps({**json.loads(event["Records"][0]["body"]), "detail": {}})

    assert failures(dispatcher.deliver(event, parse, failing_notice)) == []
    assert [line.levelname for line in caplog.records if line.message == "event ignored"] == ["WARNING"]
