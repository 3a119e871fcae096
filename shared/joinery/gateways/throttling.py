"""What AWS has throttled is asked for again later, and ever later while it is: by one run as by the next.

Each action of an API has a bucket of its own (EC2 API, "Request throttling"), which everybody in the account empties.
botocore's adaptive mode waits inside of a call, which a run has no time for, and begins anew with each client. So what
was throttled is remembered for as long as the process lives, and not asked for until its time is over: whoever wants it
fails at once and does the rest. A call that is answered ends it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from joinery.gateways.answers import at
from joinery.objects.codes import THROTTLED
from joinery.objects.errors import UnavailableError

#: How long an action is left alone the first time, and at most: a bucket has a few tokens more each second.
SHORTEST, LONGEST = timedelta(seconds=2), timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class _Pause:
    """``until``: when the action may be asked for again. ``lasts``: how long it waits. ``code``: AWS's for it."""

    until: datetime
    lasts: timedelta
    code: str


class Throttling:
    """Watches clients of botocore. Safe to use from several threads."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = Lock()
        self._pauses: dict[str, _Pause] = {}

    def watch(self, client: Any) -> None:
        """From now on its calls wait for their time. They raise ``UnavailableError`` before that."""
        client.meta.events.register("provide-client-params", self._before)
        client.meta.events.register("after-call", self._after)

    def _before(self, model: Any, **_: Any) -> None:
        action, now = _action(model), self._now()
        with self._lock:
            pause = self._pauses.get(action)
        # Whose end is further ahead than any of ours was written by a clock that was wrong.
        if pause is not None and timedelta() < pause.until - now <= LONGEST:
            seconds = (pause.until - now).total_seconds()
            error = UnavailableError(f"{action}: {pause.code}: not asked again for {seconds:.0f} s", is_answer=True)
            error.code = pause.code
            raise error

    def _after(self, model: Any, parsed: Mapping[str, Any], **_: Any) -> None:
        action, code, now = _action(model), at(parsed, "Error.Code"), self._now()
        with self._lock:
            if code not in THROTTLED:
                self._pauses.pop(action, None)
                return
            before = self._pauses.get(action)
            # Calls that were under way together have met one bucket.
            if before is None or now >= before.until:
                lasts = min(2 * before.lasts, LONGEST) if before else SHORTEST
                self._pauses[action] = _Pause(now + lasts, lasts, code)


def _action(model: Any) -> str:
    """Such as ``EC2 CreateFleet``."""
    return f"{model.service_model.service_id} {model.name}"
