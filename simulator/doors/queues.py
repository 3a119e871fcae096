"""SQS and EventBridge between those who ring and the doors: delays, batches, redelivery, dead letters, schedules."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any

from joinery.gateways.doorbell.gateway import DELAYS, Bell
from joinery.objects.karpenter.labels import OWN_GROUP
from simulator.aws import InMemoryDoorbell
from simulator.doors.doors import Doors
from simulator.engine import Engine, Turn

MINUTE = timedelta(minutes=1)
CATALOG_EVERY = timedelta(minutes=15)
#: EventBridge to SQS to Lambda.
TRANSIT = timedelta(milliseconds=400)
#: Of the interruption queue, as the template sets them.
VISIBILITY, TRIES, BATCH = timedelta(seconds=36), 5, 10
#: With how many Lambda begins to poll a standard queue (Lambda Developer Guide, "Amazon SQS event source mappings").
POLLERS = 5
#: What the template's InstanceStatusSchedule sends.
STATUS_POLL = {"source": OWN_GROUP, "detail-type": "Instance Status Poll", "detail": {}}


#: Of a message, as it is before it is written as JSON.
Body = dict[str, Any]


class BellQueues:
    """Delivers bells to their doors when their delay is over. Schedules ring every bell once a minute.

    A queue's messages of one group are handled one after another: what comes while a run is under way waits for its
    end. The bells of a cluster are a group, and so are the messages of its schedules. ``member``: the cluster, if it is
    not the stack's own.
    """

    def __init__(self, engine: Engine, doorbell: InMemoryDoorbell, doors: Doors, *, member: str = "") -> None:
        self._engine = engine
        self._doorbell = doorbell
        self._doors = doors
        self._group = member or doors.world.name
        self._named = {"cluster": member} if member else {}
        self._planned: set[datetime] = set()
        self._free: dict[tuple[Bell, str], datetime] = {}
        self._waiting: dict[tuple[Bell, str], list[Body]] = {}
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
        bodies: dict[Bell, list[Body]] = defaultdict(list)
        for ring in self._doorbell.due():
            bodies[ring.bell].append(json.loads(ring.body))
        for bell, delivered in bodies.items():
            self._wake(bell, self._group, delivered)

    def _ring_every_bell(self) -> None:
        for bell in Bell:
            self._engine.after(
                DELAYS[bell], Turn.DOORS, partial(self._wake, bell, f"{self._group}-schedule", [self._scheduled()])
            )

    def _wake(self, bell: Bell, group: str, bodies: Sequence[Body] = ()) -> None:
        now, key = self._engine.clock.now(), (bell, group)
        if self._free.get(key, now) > now:
            # One batch takes all that waits, and is one run.
            if key not in self._waiting:
                self._engine.at(self._free[key], Turn.DOORS, partial(self._wake, bell, group))
            self._waiting.setdefault(key, []).extend(bodies)
            return
        batch = [*self._waiting.pop(key, ()), *bodies]
        records = [self._record(bell, body, group) for body in batch]
        call = self._doors.invoke(bell.value, {"Records": records})
        self._free[key] = now + timedelta(seconds=call.lasted)

    def _record(self, bell: Bell, body: Body, group: str) -> dict[str, Any]:
        self._number += 1
        return record(f"bell-{self._number}", f"joinery-{bell.value}.fifo", body, group=group)

    def _sweep(self, door: str, event: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._doors.invoke(door, {**self._scheduled(), **event})

    def _scheduled(self) -> Body:
        return {**self._named, "schedule": self._engine.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")}


@dataclass(frozen=True)
class _Message:
    """``tries``: how often it has been delivered."""

    record: dict[str, Any]
    tries: int = 0


class InterruptionQueue:
    """A standard queue that Lambda polls, with partial batch responses.

    So many pollers take what is there, some messages each, and wait for their function's answer. A message that failed
    is delivered again, and after five tries it is among the ``dead_letters``. ``journeys`` says of the next message how
    long each of its copies is on the way: usually there is one, but a standard queue may deliver a message twice, late,
    or after a later one.
    """

    def __init__(self, engine: Engine, doors: Doors) -> None:
        self._engine = engine
        self._doors = doors
        self._number = 0
        self._visible: list[_Message] = []
        self._idle = POLLERS
        self.dead_letters: list[dict[str, Any]] = []
        self.journeys: Callable[[], Sequence[timedelta]] = lambda: (TRANSIT,)

    def send(self, envelope: dict[str, Any]) -> None:
        self._number += 1
        message = _Message(record(f"message-{self._number}", "joinery-interruptions", envelope))
        for journey in self.journeys():
            self._engine.after(journey, Turn.DOORS, partial(self._show, message))

    def redrive(self) -> int:
        """Deliver the dead letters again, as a person makes it happen (``aws sqs start-message-move-task``). How many
        there were.
        """
        resting, self.dead_letters = self.dead_letters, []
        for message in resting:
            self._engine.after(TRANSIT, Turn.DOORS, partial(self._show, _Message(message)))
        return len(resting)

    def _show(self, message: _Message) -> None:
        self._visible.append(message)
        # After all that become visible at this moment.
        self._engine.after(timedelta(0), Turn.DOORS, self._poll)

    def _poll(self) -> None:
        while self._visible and self._idle:
            batch, self._visible = self._visible[:BATCH], self._visible[BATCH:]
            self._idle -= 1
            call = self._doors.invoke("interruption", {"Records": [message.record for message in batch]})
            self._engine.after(timedelta(seconds=call.lasted), Turn.DOORS, self._rest)
            failed = {failure["itemIdentifier"] for failure in (call.result or {}).get("batchItemFailures", ())}
            for message in batch:
                if call.error or message.record["messageId"] in failed:
                    self._keep(message)

    def _rest(self) -> None:
        self._idle += 1
        self._poll()

    def _keep(self, message: _Message) -> None:
        tries = message.tries + 1
        if tries >= TRIES:
            self.dead_letters.append(message.record)
        else:
            self._engine.after(VISIBILITY, Turn.DOORS, partial(self._show, _Message(message.record, tries)))


def record(message_id: str, queue: str, body: Body, *, group: str = "") -> dict[str, Any]:
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
