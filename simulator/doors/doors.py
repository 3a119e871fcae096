"""The doors, opened here as Lambda opens them: the real ``functions/*/app.py``, with events as AWS writes them.

Every app is called ``app``, so they are loaded by path. Settings come from the environment, as in Lambda:
``Doors.open`` sets it for as long as the simulation lasts, and makes its world the one that
``simulator.world:gateways`` gives out.
"""

import io
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from joinery import bootstrap
from joinery.objects.settings import environment
from simulator.latency import Killed
from simulator.world import World

NAMES = ("webhook", "provisioning", "interruption", "expiration", "disruption", "lifecycle", "catalog", "installer")
#: The timeouts that are not a minute; those of the template.
_SECONDS = {"webhook": 5, "interruption": 30, "expiration": 30, "disruption": 300, "catalog": 300, "installer": 300}
TOKEN = "simulated-token-of-more-than-32-characters"
FUNCTIONS = Path(__file__).resolve().parents[2] / "functions"
Handler = Callable[[dict[str, Any], "Context"], Any]


@dataclass(frozen=True)
class Context:
    """What a handler may ask Lambda about its invocation."""

    function_name: str
    aws_request_id: str
    memory_limit_in_mb: int = 1769
    remaining: Callable[[], float] = lambda: 60.0
    function_version: str = "$LATEST"

    @property
    def invoked_function_arn(self) -> str:
        return f"arn:aws:lambda:us-east-1:123456789012:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        return int(self.remaining() * 1000)


@dataclass(frozen=True)
class Call:
    """One invocation: what woke the door and what it answered, or how it failed. ``lasted``: seconds."""

    at: datetime
    door: str
    event: Mapping[str, Any]
    result: Any = None
    error: str = ""
    log: str = ""
    lasted: float = 0.0


class Doors:
    """Invokes doors in one world. ``calls`` is every invocation so far, ``active`` the door that is at work now."""

    def __init__(self, world: World, **settings: str) -> None:
        self.world = world
        self.calls: list[Call] = []
        self.when_called: list[Callable[[Call], None]] = []
        self.active = ""
        self._settings = settings

    @contextmanager
    def open(self) -> Iterator["Doors"]:
        """Set the environment of the doors inside the ``with``, and restore it afterwards."""
        ours = self._environment()
        before = {name: os.environ.get(name) for name in ours}
        os.environ.update(ours)
        bootstrap.reset()
        try:
            with self.world.installed():
                yield self
        finally:
            bootstrap.reset()
            _restore(before)

    def invoke(self, door: str, event: dict[str, Any]) -> Call:
        """Call a door's handler. What it raises is what Lambda would see: it is in ``error``.

        After a kill the next invocation is a cold start.
        """
        call_id = f"00000000-0000-4000-8000-{len(self.calls):012x}"
        timeout = float(_SECONDS.get(door, 60))
        remaining = self._begin(timeout)
        context = Context(f"joinery-{door}", call_id, remaining=remaining)
        printed = io.StringIO()
        result, error = None, ""
        self.active = door
        with redirect_stdout(printed), warnings.catch_warnings():
            # Powertools warns of a run that counted nothing: one that was killed.
            warnings.filterwarnings("ignore", "No application metrics")
            try:
                result = handler(door)(event, context)
            except Exception as problem:
                error = f"{type(problem).__name__}: {problem}"
            except Killed:
                error = "killed"
                bootstrap.reset()
        self.active = ""
        lasted = timeout - max(remaining(), 0.0)
        call = Call(self.world.clock.now(), door, event, result, error, printed.getvalue(), lasted)
        self.calls.append(call)
        for listener in self.when_called:
            listener(call)
        return call

    def _begin(self, timeout: float) -> Callable[[], float]:
        """A new run, also in the worlds of members. How many of its seconds are left."""
        latencies = [world.latency for world in (self.world, *self.world.members) if world.latency]
        begun = [latency.begin(timeout) for latency in latencies]
        return lambda: min((run.remaining() for run in begun), default=timeout)

    def _environment(self) -> dict[str, str]:
        return {
            "JOINERY_CLUSTER": self.world.name,
            "JOINERY_GATEWAYS": "simulator.world:gateways",
            "JOINERY_WEBHOOK_TOKEN": TOKEN,
            "POWERTOOLS_SERVICE_NAME": "joinery",
            "POWERTOOLS_METRICS_NAMESPACE": "Joinery/simulated",
            **environment(self._settings),
        }


def _restore(before: Mapping[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


@cache
def handler(door: str) -> Handler:
    """A door's handler. Raises ``FileNotFoundError`` for a door that is not there."""
    spec = spec_from_file_location(f"functions_{door}_app", FUNCTIONS / door / "app.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(FUNCTIONS / door / "app.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    entry_point: Handler = module.handler
    return entry_point
