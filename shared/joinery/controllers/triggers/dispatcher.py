"""Dispatcher: what a door does with the message that woke it, and with a failure.

Three things wake a door, and each fails in its own way:

- a **bell** carries no data, so none is worth blocking a queue for. A failed run is logged and counted, the message is
  completed, and the bell is rung again, ever less often (``controllers.triggers.backoff``). What would fail again in
  the same way (a cap, a user's mistake, a missing right) is left to the schedule, which rings the bell every minute.
- a **message** carries data (an interruption). A failure is reported for that one message, its queue delivers it again,
  and after some tries it rests in the dead-letter queue until a person has looked. An event that comes without a queue
  is raised where it fails: Lambda tries it again.
- a **sweep** is a schedule's own call. A failure is counted and raised; the next minute brings the next sweep.

A bell that its door rang for later is passed on unanswered until then (``gateways.doorbell.gateway``).

A door that is switched off completes whatever wakes it. So does one whose cluster is unknown: its stack is gone, or is
still being made, and its schedule rings again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeGuard, TypeVar

from joinery.controllers.telemetry import (
    BELL,
    DETAIL_TYPE,
    ERROR,
    MESSAGE_ID,
    OUTCOME,
    REASON,
    SOURCE,
    Count,
    count,
    in_mode,
    logger,
    nonempty,
    of_member,
)
from joinery.controllers.triggers.backoff import Backoff
from joinery.decisions.interruption.envelope import Ignored, MalformedNoticeError, detail_type, is_event, opened
from joinery.decisions.interruption.ownership import EarlyNoticeError
from joinery.gateways.doorbell.gateway import Bell, Doorbell, not_before
from joinery.objects.errors import A_PERSON_MUST_ACT, ConflictError, JoineryError
from joinery.objects.settings import Settings

#: A run in figures, for the log.
Summary = Mapping[str, Any]
Notice = TypeVar("Notice")
Parse = Callable[[Mapping[str, Any]], Notice | Ignored]
Handle = Callable[[Sequence[Notice]], Sequence[Summary | Exception]]
#: What was chosen for the run that begins; None for a cluster that is unknown. Raises ``JoineryError``.
InForce = Callable[[], Settings | None]

#: The key of a partial batch response (Lambda Developer Guide, "Handling errors for an SQS event source").
_FAILURES = "batchItemFailures"


class Dispatcher:
    """How a door answers what woke it. ``in_force`` gives the door's settings, ``now`` the moment of a call.
    ``member``: the cluster, if it is not the stack's own.
    """

    def __init__(self, doorbell: Doorbell, in_force: InForce, *, now: Callable[[], datetime], member: str = "") -> None:
        self._doorbell = doorbell
        self._in_force = in_force
        self._now = now
        self._member = member
        self._backoff = Backoff()

    def answer(self, event: Mapping[str, Any], bell: Bell, run: Callable[[], Summary]) -> dict[str, Any]:
        """Run once for all the bells of a batch. Raises only if the bell cannot even be rung again."""
        of_member(self._member)
        begun = self._now()
        later = _not_before(event.get("Records"), begun)
        if later is not None and later > begun:
            self._doorbell.ring(bell, later)
            return {OUTCOME: "rests"}
        if self._backoff.delays(bell, begun):
            if self._backoff.may_pass(bell):
                self._doorbell.ring(bell)
            return {OUTCOME: "backing off"}
        try:
            answer = self._done(run()) if self._opens() else {OUTCOME: "off"}
        except A_PERSON_MUST_ACT as error:
            self._backoff.failed(bell, begun, error)
            count(Count.REFUSALS)
            _log_failure("refused", bell, error)
            return {OUTCOME: "refused", ERROR: str(error)}
        except ConflictError as error:
            count(Count.CONFLICTS)
            return self._paced(bell, begun, error)
        except Exception as error:
            count(Count.RUNS_FAILED)
            return self._paced(bell, begun, error)
        self._backoff.passed(bell)
        return answer

    def _paced(self, bell: Bell, begun: datetime, error: Exception) -> dict[str, Any]:
        """Ring again after what may pass by itself; the schedule does, where it has not passed for a while."""
        is_worth_it = self._backoff.failed(bell, begun, error)
        what = "failed; ringing again" if is_worth_it else "failed again; the schedule rings within a minute"
        _log_failure(what, bell, error)
        return self._ring_again(bell, error) if is_worth_it else {OUTCOME: "failed", ERROR: str(error)}

    def sweep(self, run: Callable[[], Summary]) -> dict[str, Any]:
        """Run once for a schedule. Whatever fails is counted, and raised for the log and the alarm."""
        of_member(self._member)
        try:
            return self._done(run()) if self._opens() else {OUTCOME: "off"}
        except Exception:
            count(Count.RUNS_FAILED)
            raise

    def deliver(self, event: Mapping[str, Any], parse: Parse[Notice], handle: Handle[Notice]) -> dict[str, Any]:
        """Handle the messages of an SQS batch together: the partial batch response names those to deliver again.

        ``handle`` gets the notices of the batch, and gives for each what came of it, or what went wrong with it; what
        it raises went wrong with all of them. It is not called for a batch without notices.

        An event that EventBridge, or a person, hands to the function without a queue is handled too. Its failure is
        raised, so that Lambda tries an asynchronous call again. Raises ``MalformedNoticeError`` for a call that is
        neither: what it was to tell would be lost without a trace.
        """
        of_member(self._member)
        try:
            if not self._opens():
                return {_FAILURES: []}
        except Exception:
            count(Count.RUNS_FAILED)
            raise
        records = event.get("Records")
        if _are_messages(records):
            failed = self._batch(records, parse, handle)
            return {_FAILURES: [{"itemIdentifier": message_id} for message_id in failed]}
        if is_event(event):
            return self._single(event, parse, handle)
        count(Count.RUNS_FAILED)
        raise MalformedNoticeError("the call holds neither SQS messages nor an EventBridge event")

    def handle(self, notices: Sequence[Notice], handle: Handle[Notice]) -> Sequence[Summary | Exception]:
        """What became of notices that are this cluster's, in a batch of the stack's own."""
        of_member(self._member)
        return handle(notices) if self._opens() else [{OUTCOME: "off"}] * len(notices)

    def _batch(
        self, records: Iterable[Mapping[str, Any]], parse: Parse[Notice], handle: Handle[Notice]
    ) -> Iterable[str]:
        """The ids of the messages that the queue has to deliver again."""
        notices: list[tuple[str, Notice]] = []
        for record in records:
            message_id = record["messageId"]
            logger.append_keys(**{MESSAGE_ID: message_id})
            try:
                envelope = opened(record.get("body"))
                notice = envelope if isinstance(envelope, Ignored) else parse(envelope)
            except Exception as error:
                _failed(error)
                yield message_id
                continue
            if isinstance(notice, Ignored):
                _ignored(notice, {} if isinstance(envelope, Ignored) else envelope)
            else:
                notices.append((message_id, notice))
        logger.remove_keys([MESSAGE_ID])
        answered = answers([notice for _, notice in notices], handle)
        for (message_id, _), answer in zip(notices, answered, strict=True):
            logger.append_keys(**{MESSAGE_ID: message_id})
            if isinstance(answer, Exception):
                _failed(answer)
                yield message_id
            else:
                self._done(answer)

    def _single(self, event: Mapping[str, Any], parse: Parse[Notice], handle: Handle[Notice]) -> dict[str, Any]:
        try:
            notice = parse(event)
            if isinstance(notice, Ignored):
                _ignored(notice, event)
                return {OUTCOME: "ignored", REASON: notice.reason}
            (answer,) = handle([notice])
            if isinstance(answer, Exception):
                raise answer
        except Exception:
            count(Count.RUNS_FAILED)
            raise
        return self._done(answer)

    def _done(self, outcome: Summary) -> dict[str, Any]:
        logger.info("done", extra=nonempty(outcome=dict(outcome)))
        return {OUTCOME: "done", **outcome}

    def _ring_again(self, bell: Bell, error: Exception) -> dict[str, Any]:
        self._doorbell.ring(bell)
        count(Count.BELLS_RUNG)
        return {OUTCOME: "rung again", ERROR: str(error)}

    def _opens(self) -> bool:
        """Whether the door is switched on, and its cluster known.

        The first step of every run, so it also labels the lines that the run will log.
        """
        settings = self._in_force()
        if settings is None:
            logger.warning("no stack has registered this cluster: it is gone, or not yet there")
            return False
        in_mode(settings.mode)
        if not settings.enabled:
            count(Count.SWITCHED_OFF)
            logger.warning("this door is switched off")
        return settings.enabled


def _are_messages(records: object) -> TypeGuard[list[Mapping[str, Any]]]:
    """Whether these are records as Lambda takes them from a queue (Lambda Developer Guide, "Using Lambda with SQS")."""
    return isinstance(records, list) and all(
        isinstance(record, Mapping) and isinstance(record.get("messageId"), str) for record in records
    )


def _not_before(records: object, now: datetime) -> datetime | None:
    """The earliest moment that the bells of a batch say; None if any of them says "look now", as schedules do."""
    moments = [not_before(record.get("body"), now) for record in records] if _are_messages(records) else []
    return min((moment for moment in moments if moment), default=None) if all(moments) else None


def _ignored(ignored: Ignored, envelope: Mapping[str, Any]) -> None:
    """Log why nothing is done about an event. It is completed: delivering it again would not change that."""
    about = {DETAIL_TYPE: detail_type(envelope), SOURCE: envelope.get("source"), REASON: ignored.reason}
    tell = logger.warning if ignored.is_broken else logger.info
    tell("event ignored", extra=nonempty(**about))


def answers(notices: Sequence[Notice], handle: Handle[Notice]) -> Sequence[Summary | Exception]:
    """For each notice what came of it, or what went wrong. Raises nothing: what does went wrong with all of them."""
    try:
        return handle(notices) if notices else ()
    except Exception as error:
        return [error] * len(notices)


def _log_failure(what: str, bell: Bell, error: Exception) -> None:
    """One line. Where an error is none of ours, the place where it happened belongs to it."""
    bug = None if isinstance(error, JoineryError) else error
    # That somebody else wrote first is how it should be, once.
    say = logger.info if isinstance(error, ConflictError) else logger.error
    say(what, exc_info=bug, extra={BELL: bell.value, ERROR: str(error)})


def _failed(error: Exception) -> None:
    if isinstance(error, EarlyNoticeError):
        count(Count.NOTICES_EARLY)
        logger.info("too early; the queue delivers it again", extra={REASON: str(error)})
        return
    count(Count.RUNS_FAILED)
    logger.error("failed; the queue delivers it again", exc_info=error, extra={ERROR: str(error)})
