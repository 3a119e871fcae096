"""Runs that take time: every call of a gateway is charged with seconds of simulated time, and nothing sleeps.

A run may last as long as its function's timeout, and is killed then, as Lambda would. Calls that are made side by side
are charged as so many workers would need for them: each takes the next call as soon as it is free.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from joinery.controllers.acting.invocation import Invocation
from joinery.gateways.bundles import Gateways
from joinery.gateways.workers import MOST_WORKERS
from joinery.objects.errors import JoineryError

T = TypeVar("T")
#: Seconds of one request to the API server, of a question to AWS, and of a CreateFleet call.
KUBERNETES, AWS, CREATE_FLEET = 0.01, 0.1, 2.5
#: How many objects one page of a list holds (``joinery.gateways.kubernetes.lists``).
_PAGE = 500
#: How many requests a whole snapshot takes one after another: the nodes, then the other kinds, four at a time.
_SNAPSHOT = 5
#: What finding out what a node class selects takes.
_CALLS_A_CLASS = 9


class Killed(BaseException):
    """The process is killed: no handler of errors sees it, and nothing that it kept in memory survives."""


class Latency:
    """Charges the calls of one process. Implements ``Workers``.

    ``spent``: the seconds of the run so far. ``calls``: how often each method was called, as ``gateway.method``.
    ``answers``: what to answer in place of the simulator, by that name; None lets a call through.
    """

    def __init__(self, gateways: Gateways, *, workers: int = MOST_WORKERS) -> None:
        self.spent = 0.0
        self.calls: Counter[str] = Counter()
        self.answers: dict[str, Callable[..., Any]] = {}
        self._gateways = gateways
        self._workers = workers
        self._limit = 0.0
        self._runs = 0

    @property
    def gateways(self) -> Gateways:
        """The gateways whose calls are charged."""
        wires = {
            name: _Wire(self, name, one)
            for name, one in vars(self._gateways).items()
            if name not in ("workers", "refusals")
        }
        return Gateways(**cast("dict[str, Any]", wires), workers=self, refusals=self._gateways.refusals)

    def begin(self, timeout: float) -> Invocation:
        """A new run, which is killed after so many seconds."""
        self.spent, self._limit, self._runs = 0.0, timeout, self._runs + 1
        return Invocation(f"run-{self._runs}", lambda: self._limit - self.spent)

    def run(self, calls: Sequence[Callable[[], T]]) -> list[T | JoineryError]:
        lanes = [self.spent] * max(1, min(self._workers, len(calls)))
        answers: list[T | JoineryError] = []
        for call in calls:
            self.spent = heapq.heappop(lanes)
            try:
                answers.append(call())
            except JoineryError as error:
                answers.append(error)
            heapq.heappush(lanes, self.spent)
        self.spent = max(lanes)
        return answers

    def charge(self, seconds: float) -> None:
        """Let so much time pass. Raises ``Killed`` when the run's time is over."""
        self.spent += seconds
        if self.spent > self._limit:
            raise Killed


class _Wire:
    def __init__(self, latency: Latency, name: str, gateway: Any) -> None:
        self._latency, self._name, self._gateway = latency, name, gateway

    def __getattr__(self, method: str) -> Any:
        name, through = f"{self._name}.{method}", getattr(self._gateway, method)

        def call(*args: Any, **kwargs: Any) -> Any:
            latency = self._latency
            latency.calls[name] += 1
            answered = latency.answers.get(name)
            answer = answered(*args) if answered else None
            answer = through(*args, **kwargs) if answer is None else answer
            latency.charge(_seconds(name, answer))
            return answer

        return call


def _seconds(name: str, answer: Any) -> float:
    """What a call takes. That of a list grows with its pages."""
    gateway, _, method = name.partition(".")
    if method == "is_news":
        return 0.0  # it asks nobody
    if method == "snapshot":
        return KUBERNETES * (_SNAPSHOT + len(answer.pods) // _PAGE)
    if method == "claims_snapshot":
        return KUBERNETES * (1 + len(answer.node_claims) // _PAGE)
    if gateway == "cloud":
        return _SECONDS_OF_THE_CLOUD.get(method, AWS)
    return KUBERNETES


_SECONDS_OF_THE_CLOUD: Mapping[str, float] = {
    "launch": CREATE_FLEET,
    "status_of": AWS * _CALLS_A_CLASS,
    "prepare": AWS * _CALLS_A_CLASS,
}
