"""The webhook door in a process of its own, as Lambda runs it, behind HTTPS that a real API server trusts.

The API server calls while another door writes, so the two must not share a process: Powertools' instruments and
standard output belong to one invocation at a time. What the door rings comes back through a queue, with the review that
it rang for.
"""

import io
import json
import multiprocessing
import os
import queue
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from multiprocessing.queues import Queue
from threading import Lock
from typing import Any, cast

from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.settings import Settings
from simulator.clock import START
from simulator.doors.doors import TOKEN, Context, handler
from tests.controlplane.webhook import function_url

START_SECONDS = 30
_rung: list[Bell] = []
_minutes = count()


@dataclass(frozen=True)
class Review:
    """One call of the API server: what it was about, and the bells that the door rang for it."""

    kind: str
    name: str
    reason: str
    reporter: str
    bells: tuple[Bell, ...]


@dataclass(frozen=True)
class WebhookDoor:
    """The running door: where it is, the PEM certificate to trust it by, and the reviews that came since last asked."""

    url: str
    authority: bytes
    _reviews: "Queue[Review]"

    def take(self) -> list[Review]:
        """The reviews answered since the last call, in their order."""
        reviews = []
        while True:
            try:
                reviews.append(self._reviews.get_nowait())
            except queue.Empty:
                return reviews


@contextmanager
def webhook_door() -> Iterator[WebhookDoor]:
    """``functions/webhook/app.py``, served until the end of the ``with``."""
    context = multiprocessing.get_context("spawn")
    started: Queue[tuple[str, bytes]] = context.Queue()
    reviews: Queue[Review] = context.Queue()
    ended = context.Event()
    process = context.Process(target=_serve, args=(started, reviews, ended), daemon=True)
    process.start()
    try:
        yield WebhookDoor(*started.get(timeout=START_SECONDS), reviews)
    finally:
        ended.set()
        process.join()
        started.close()
        reviews.close()


def gateways(settings: Settings) -> Gateways:
    """What ``JOINERY_GATEWAYS`` names in the door's process: a doorbell, and nothing else that it could reach."""
    nothing = cast(Any, None)
    return Gateways(
        cluster=nothing, recorder=nothing, cloud=nothing, doorbell=_Doorbell(), store=nothing, unavailable=nothing
    )


def now() -> datetime:
    """A minute later each time: the clock of the doors jumps, so that every call is in a slot of its own."""
    return START + next(_minutes) * timedelta(minutes=1)


class _Doorbell:
    def ring(self, bell: Bell, not_before: datetime | None = None) -> None:
        _rung.append(bell)


def _serve(started: "Queue[tuple[str, bytes]]", reviews: "Queue[Review]", ended: Any) -> None:
    os.environ |= {
        "JOINERY_CLUSTER": "real",
        "JOINERY_GATEWAYS": "tests.controlplane.door:gateways",
        "JOINERY_WEBHOOK_TOKEN": TOKEN,
        "POWERTOOLS_SERVICE_NAME": "webhook",
        "POWERTOOLS_METRICS_NAMESPACE": "Joinery/test",
    }
    one_at_a_time = Lock()

    def answer(event: dict[str, Any]) -> dict[str, Any]:
        with one_at_a_time:
            _rung.clear()
            given: dict[str, Any] = handler("webhook")(event, Context("joinery-webhook", "request"))
            reviews.put(_review(json.loads(event["body"])["request"], tuple(_rung)))
            return given

    with redirect_stdout(io.StringIO()), function_url(answer) as server:
        started.put((server.url, server.authority))
        ended.wait()


def _review(request: Mapping[str, Any], bells: tuple[Bell, ...]) -> Review:
    about = request.get("object") or request.get("oldObject") or {}
    reporter = about.get("reportingController") or about.get("reportingComponent") or ""
    name = str(request.get("name") or about.get("metadata", {}).get("name", ""))
    return Review(request["kind"]["kind"], name, about.get("reason", ""), reporter, bells)
