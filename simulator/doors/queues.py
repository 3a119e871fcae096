"""SQS and EventBridge between those who ring and the doors: delays, batches, redelivery, dead letters, schedules."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any

from joinery.apis.labels import OWN_GROUP
from joinery.doorbell.gateway import DELAYS, Bell
from simulator.aws import InMemoryDoorbell
from simulator.doors.doors import Doors
from simulator.engine import Engine, Turn

MINUTE = timedelta(minutes=1)
CATALOG_EVERY = timedelta(minutes=15)
#: EventBridge to SQS to Lambda.
TRANSIT = timedelta(milliseconds=400)
VISIBILITY = timedelta(seconds=36)
TRIES = 5
#: What the template's InstanceStatusSchedule sends.
STATUS_POLL = {"source": OWN_GROUP, "detail-type": "Instance Status Poll", "detail": {}}


class BellQueues:
    """Delivers bells to their doors when their delay is over. Schedules ring every bell once a minute."""

    def __init__(self, engine: Engine, doorbell: InMemoryDoorbell, doors: Doors) -> None:
        self._engine = engine
        self._doorbell = doorbell
        self._doors = doors
        self._planned: set[datetime] = set()
        self._number = 0
        engine.after_each(self._plan)

    def start(self) -> None:
        """Start EventBridge Scheduler's schedules."""
        self._engine.every(MINUTE, Turn.SCHEDULES, self._ring_every_bell)
        self._engine.every(MINUTE, Turn.SCHEDULES, lambda: self._sweep("expiration"))
        self._engine.every(MINUTE, Turn.SCHEDULES, lambda: self._sweep("interruption", STATUS_POLL))
        self._engine.every(CATALOG_EVERY, Turn.SCHEDULES, lambda: self._sweep("catalog"))

    def _plan(self) -> None:
        due = self._doorbell.next_due
        if due is not None and due not in self._planned:
            self._planned.add(due)
            self._engine.at(due, Turn.DOORS, self._deliver)

    def _deliver(self) -> None:
        self._planned.discard(self._engine.clock.now())
        for bell in dict.fromkeys(self._doorbell.due()):
            self._wake(bell, {"bell": bell.value})

    def _ring_every_bell(self) -> None:
        for bell in Bell:
            body = self._scheduled()
            self._engine.after(DELAYS[bell], Turn.DOORS, self._waker(bell, body))

    def _waker(self, bell: Bell, body: dict[str, str]) -> Callable[[], None]:
        return lambda: self._wake(bell, body)

    def _wake(self, bell: Bell, body: dict[str, str]) -> None:
        self._number += 1
        queue = f"joinery-{bell.value}.fifo"
        self._doors.invoke(bell.value, {"Records": [record(f"bell-{self._number}", queue, body, group="simulated")]})

    def _sweep(self, door: str, event: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._doors.invoke(door, {**self._scheduled(), **event})

    def _scheduled(self) -> dict[str, str]:
        return {"schedule": self._engine.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")}


class InterruptionQueue:
    """A standard queue with partial batch responses.

    A message that failed is delivered again, and after five tries it is among the ``dead_letters``. ``journeys`` says
    of the next message how long each of its copies is on the way: usually there is one, but a standard queue may
    deliver a message twice, late, or after a later one.
    """

    def __init__(self, engine: Engine, doors: Doors) -> None:
        self._engine = engine
        self._doors = doors
        self._number = 0
        self.dead_letters: list[dict[str, Any]] = []
        self.journeys: Callable[[], Sequence[timedelta]] = lambda: (TRANSIT,)

    def send(self, envelope: dict[str, Any]) -> None:
        self._number += 1
        message = record(f"message-{self._number}", "joinery-interruptions", envelope)
        for journey in self.journeys():
            self._engine.after(journey, Turn.DOORS, lambda: self._deliver(message, 1))

    def redrive(self) -> int:
        """Deliver the dead letters again, as a person makes it happen (``aws sqs start-message-move-task``). How many
        there were.
        """
        resting, self.dead_letters = self.dead_letters, []
        for message in resting:
            self._engine.after(TRANSIT, Turn.DOORS, partial(self._deliver, message, 1))
        return len(resting)

    def _deliver(self, message: dict[str, Any], tries: int) -> None:
        call = self._doors.invoke("interruption", {"Records": [message]})
        failed = call.error or (call.result or {}).get("batchItemFailures")
        if failed and tries >= TRIES:
            self.dead_letters.append(message)
        elif failed:
            self._engine.after(VISIBILITY, Turn.DOORS, lambda: self._deliver(message, tries + 1))


def record(message_id: str, queue: str, body: dict[str, Any], *, group: str = "") -> dict[str, Any]:
    """An SQS record as a Lambda event source mapping delivers it."""
    return {
        "messageId": message_id,
        "receiptHandle": f"handle-{message_id}",
        "body": json.dumps(body),
        "attributes": {"ApproximateReceiveCount": "1", **({"MessageGroupId": group} if group else {})},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
        "awsRegion": "us-east-1",
    }
