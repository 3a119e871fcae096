"""EC2: sends EventBridge events about instances, and says when an instance runs and when it is gone."""

from collections.abc import Callable, Sequence
from datetime import datetime
from email.utils import format_datetime
from typing import Any

from simulator.actors.base import Stage
from simulator.cloud.cloud import STARTS_IN, STOPS_IN
from simulator.engine import Turn

Envelope = dict[str, Any]
ACCOUNT, REGION = "123456789012", "us-east-1"


class Ec2:
    """Follows every instance of the simulated cloud.

    ``publish`` is EventBridge. ``when_running`` and ``when_gone`` are called with the instance's id.
    """

    def __init__(self, stage: Stage, publish: Callable[[Envelope], None]) -> None:
        self._stage = stage
        self._publish = publish
        self.instances: list[str] = []
        self._ending: dict[str, datetime] = {}
        self._number = 0
        self.when_running: list[Callable[[str], None]] = []
        self.when_gone: list[Callable[[str], None]] = []
        stage.cloud.watch(self._notice)

    def interrupt(self, instance_id: str) -> None:
        """EC2 wants a spot instance back: the warning now, the instance two minutes later."""
        self._stage.cloud.interrupt(instance_id)
        self._publish(warning(instance_id, self._next_id(), self._stage.clock.now()))

    def recommend(self, instance_id: str) -> None:
        """A spot instance is at a higher risk; it may be interrupted later, at once, or never."""
        detail = {"instance-id": instance_id}
        kind = "EC2 Instance Rebalance Recommendation"
        self._publish(_envelope(kind, self._next_id(), instance_id, detail, self._stage.clock.now()))

    def retire(self, starts: datetime, *instance_ids: str) -> None:
        """The hardware under instances will be taken away from then on: AWS Health says so, and sends no other word."""
        self._publish(scheduled_change(instance_ids, starts, self._next_id(), self._stage.clock.now()))

    def stop(self, instance_id: str) -> None:
        """Somebody stops an instance."""
        self._stage.cloud.stop(instance_id)
        self._changed(instance_id, "stopping")
        stopped = self._stage.clock.now() + STOPS_IN
        self._stage.engine.at(stopped, Turn.CLOUD, lambda: self._changed(instance_id, "stopped"))

    def _notice(self, instance_id: str) -> None:
        engine, clock = self._stage.engine, self._stage.clock
        if instance_id not in self.instances:
            self.instances.append(instance_id)
            engine.at(clock.now() + STARTS_IN, Turn.CLOUD, lambda: self._run(instance_id))
            return
        ends_at = self._stage.cloud.look(instance_id)[1]
        if ends_at is not None and ends_at != self._ending.get(instance_id):
            self._ending[instance_id] = ends_at
            engine.at(ends_at, Turn.CLOUD, lambda: self._shut_down(instance_id, ends_at))

    def _run(self, instance_id: str) -> None:
        if self._stage.cloud.look(instance_id)[0].state == "running":
            self._changed(instance_id, "running")
            for listener in self.when_running:
                listener(instance_id)

    def _shut_down(self, instance_id: str, decided: datetime) -> None:
        if self._ending[instance_id] == decided:
            self._changed(instance_id, "shutting-down")
            self._stage.engine.at(decided + STOPS_IN, Turn.CLOUD, lambda: self._terminate(instance_id))

    def _terminate(self, instance_id: str) -> None:
        self._changed(instance_id, "terminated")
        for listener in self.when_gone:
            listener(instance_id)

    def _changed(self, instance_id: str, state: str) -> None:
        detail = {"instance-id": instance_id, "state": state}
        kind = "EC2 Instance State-change Notification"
        self._publish(_envelope(kind, self._next_id(), instance_id, detail, self._stage.clock.now()))

    def _next_id(self) -> str:
        self._number += 1
        return f"00000000-0000-4000-8000-{self._number:012x}"


def warning(instance_id: str, event_id: str, now: datetime) -> Envelope:
    """The event of EventBridge that tells of a spot interruption."""
    detail = {"instance-id": instance_id, "instance-action": "terminate"}
    return _envelope("EC2 Spot Instance Interruption Warning", event_id, instance_id, detail, now)


def scheduled_change(instance_ids: Sequence[str], starts: datetime, event_id: str, now: datetime) -> Envelope:
    """The event of AWS Health about a retirement (AWS Health User Guide, "Event format for AWS Health Events")."""
    code = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
    detail = {
        "eventArn": f"arn:aws:health:{REGION}::event/EC2/{code}/{code}_{event_id}",
        "service": "EC2",
        "eventTypeCode": code,
        "eventTypeCategory": "scheduledChange",
        "eventScopeCode": "ACCOUNT_SPECIFIC",
        "communicationId": event_id,
        "statusCode": "upcoming",
        "eventRegion": REGION,
        "startTime": format_datetime(starts, usegmt=True),
        "endTime": format_datetime(starts, usegmt=True),
        "lastUpdatedTime": format_datetime(now, usegmt=True),
        "eventDescription": [{"language": "en_US", "latestDescription": "The hardware is being retired."}],
        "affectedEntities": [{"entityValue": name, "status": "PENDING"} for name in instance_ids],
        "page": "1",
        "totalPages": "1",
        "affectedAccount": ACCOUNT,
    }
    envelope = _envelope("AWS Health Event", event_id, "", detail, now)
    return {**envelope, "source": "aws.health", "resources": list(instance_ids)}


def _envelope(kind: str, event_id: str, instance_id: str, detail: dict[str, Any], now: datetime) -> Envelope:
    return {
        "version": "0",
        "id": event_id,
        "detail-type": kind,
        "source": "aws.ec2",
        "account": ACCOUNT,
        "time": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": REGION,
        "resources": [f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{instance_id}"],
        "detail": detail,
    }
