"""Refused requests, as one process remembers them."""

from collections.abc import Iterable
from datetime import datetime

from joinery.objects.refusals import Refusal, Refusals


class RememberedRefusals:
    """Implements ``RefusedRequests``, until the process ends."""

    def __init__(self) -> None:
        self._known: dict[str, Refusal] = {}

    def at(self, now: datetime) -> Refusals:
        self._known = {request: known for request, known in self._known.items() if known.is_remembered(now)}
        return self._known

    def note(self, refusals: Iterable[Refusal]) -> None:
        self._known |= {refusal.request: refusal for refusal in refusals}

    def forget(self, requests: Iterable[str]) -> None:
        for request in requests:
            self._known.pop(request, None)
