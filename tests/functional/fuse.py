"""A fuse in the wires to the gateways: what is called goes through to the simulator until the fuse blows."""

from collections.abc import Callable, Sequence, Sized
from typing import Any, cast

import pytest

from joinery.gateways.bundles import Gateways, InstallerGateways
from joinery.objects.errors import JoineryError
from simulator.latency import Killed

WRITES = frozenset(
    {
        "create_node_claim", "update_node_claim", "delete_node_claim", "update_node", "delete_node", "update_node_pool",
        "update_node_overlay", "update_capacity_buffer",
        "update_provisioning_request",
        "update_node_class", "reject", "update_pod", "tolerate", "evict", "restart", "delete_pod", "acquire_lease",
        "release_lease", "emit", "prepare", "launch", "terminate", "reboot", "tag", "ring", "put_catalog",
        "put_paid_for", "record", "mark", "forget", "remove_unused",
    }
)  # fmt: skip
#: The same of the installer's gateways.
INSTALLER_WRITES = frozenset(
    {
        "grant_access",
        "revoke_access",
        "ensure_spot_role",
        "refresh_catalog",
        "remove_node_role",
        "answer",
        "apply",
        "create",
        "patch",
        "remove",
    }
)
#: The methods of the gateways that change nothing.
READS = frozenset(
    {
        "snapshot", "claims_snapshot", "buffer_sources", "pod_templates",
        "node", "node_claim", "node_pool", "replica_set", "deployment",
        "catalog", "paid_for", "bought",
        "status_of", "instance_types", "instances", "look_up", "impaired", "shifted_zones", "at", "is_news",
    }
)  # fmt: skip


Through = Callable[[str, Callable[[], Any], Any], Any]
"""What every call goes through: its name as ``gateway.method``, the call itself, and its first argument."""


def wired(gateways: Gateways, through: Through) -> Gateways:
    """The same gateways, whose every call goes through that."""
    wires = {
        name: _Wire(name, gateway, through)
        for name, gateway in vars(gateways).items()
        if name not in ("workers", "refusals")
    }
    return Gateways(**cast("dict[str, Any]", wires), workers=gateways.workers, refusals=gateways.refusals)


def wired_installer(gateways: InstallerGateways, through: Through) -> InstallerGateways:
    """The same gateways of the installer, whose every call goes through that."""
    return InstallerGateways(
        account=cast("Any", _Wire("account", gateways.account, through)),
        objects=lambda cluster: cast("Any", _Wire("objects", gateways.objects(cluster), through)),
        sleep=gateways.sleep,
        now=gateways.now,
        register=cast("Any", _Wire("register", gateways.register, through)),
        as_member=lambda role, secret: wired_installer(gateways.as_member(role, secret), through),
    )


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
        error: BaseException | None = None,
        about: Callable[[Any], bool] = lambda _: True,
    ) -> None:
        self.writes: list[str] = []
        self.calls: list[str] = []
        self.is_blown = False
        self._after = after
        self._of = ""
        self._failing = failing
        self._error = error
        self._about = about

    def protect(self, gateways: Gateways) -> Gateways:
        """The same gateways, behind this fuse."""
        return wired(gateways, self.through)

    def replace(self) -> None:
        """A new process, which nothing kills."""
        self.is_blown, self._after = False, None

    def kill_after(self, writes: int, of: str = "") -> None:
        """Kill the process right after so many writes from here on: of any kind, or of one (``gateway.method``)."""
        self._of = of
        self._after = len(self._counted()) + writes

    def _counted(self) -> Sequence[str]:
        return [write for write in self.writes if self._of in ("", write)]

    def outlives(self, door: Callable[[], object]) -> bool:
        """Whether a run of the door ended well. If it was killed, a new process takes over."""
        try:
            door()
        except Killed:
            self.replace()
            return False
        except JoineryError:
            return False
        return True

    def through(self, name: str, call: Callable[[], Any], about: Any = None) -> Any:
        """One call, if the process still lives. ``about``: its first argument."""
        if self.is_blown:
            raise Killed
        self.calls.append(name)
        if self._error is not None and name == self._failing and self._about(about):
            raise self._error
        answer = call()
        if name.partition(".")[2] in WRITES | INSTALLER_WRITES:
            self.writes.append(name)
            self.is_blown = self._of in ("", name) and len(self._counted()) == self._after
        if self.is_blown:
            raise Killed
        return answer


def crashes(writes: Sized, config: pytest.Config) -> range:
    """After which writes to kill a run: one in ten of what an undisturbed one writes, all of them in `make soak`."""
    return range(1, len(writes) + 1, 1 if config.getoption("soak") else 10)


class _Wire:
    def __init__(self, name: str, gateway: Any, through: Through) -> None:
        self._name = name
        self._gateway = gateway
        self._through = through

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._gateway, method)
        return lambda *args, **kwargs: self._through(
            f"{self._name}.{method}", lambda: call(*args, **kwargs), next(iter(args), None)
        )
