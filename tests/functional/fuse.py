"""A fuse in the wires to the gateways: what is called goes through to the simulator until the fuse blows."""

from collections.abc import Callable
from typing import Any, cast

from joinery.gateways import Gateways

WRITES = frozenset(
    {
        "create_node_claim", "update_node_claim", "delete_node_claim", "update_node", "delete_node", "update_node_pool",
        "update_node_class", "reject", "tolerate", "evict", "delete_pod", "acquire_lease", "release_lease", "emit",
        "launch", "terminate", "reboot", "tag", "ring", "put_catalog", "record", "mark",
    }
)  # fmt: skip
#: The methods of the gateways that change nothing.
READS = frozenset({"snapshot", "claims_snapshot", "node", "catalog", "status_of", "instance_types", "instances", "at"})


class Crash(BaseException):
    """The process is killed: no handler of errors sees it, and what still runs cannot reach anything."""


class Fuse:
    """Kills the process right after its ``after``-th write, or fails ``failing`` calls of one method with an error.

    ``about``: says of a call's first argument whether that call fails; all fail without it. ``writes`` are those that
    went through, as ``gateway.method``; ``calls`` are all that were made, reads included.
    """

    def __init__(
        self,
        after: int | None = None,
        *,
        failing: str = "",
        error: Exception | None = None,
        about: Callable[[Any], bool] = lambda _: True,
    ) -> None:
        self.writes: list[str] = []
        self.calls: list[str] = []
        self.is_blown = False
        self._after = after
        self._failing = failing
        self._error = error
        self._about = about

    def protect(self, gateways: Gateways) -> Gateways:
        """The same gateways, behind this fuse."""
        wired = {name: _Wire(self, name, gateway) for name, gateway in vars(gateways).items() if name != "workers"}
        return Gateways(**cast("dict[str, Any]", wired), workers=gateways.workers)

    def replace(self) -> None:
        """A new process, which nothing kills."""
        self.is_blown, self._after = False, None

    def through(self, name: str, call: Callable[[], Any], about: Any = None) -> Any:
        """One call, if the process still lives. ``about``: its first argument."""
        if self.is_blown:
            raise Crash
        self.calls.append(name)
        if self._error is not None and name == self._failing and self._about(about):
            raise self._error
        answer = call()
        if name.partition(".")[2] in WRITES:
            self.writes.append(name)
            self.is_blown = len(self.writes) == self._after
        if self.is_blown:
            raise Crash
        return answer


class _Wire:
    def __init__(self, fuse: Fuse, name: str, gateway: Any) -> None:
        self._fuse = fuse
        self._name = name
        self._gateway = gateway

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._gateway, method)
        return lambda *args, **kwargs: self._fuse.through(
            f"{self._name}.{method}", lambda: found(*args, **kwargs), next(iter(args), None)
        )
