"""The simulator's parts, wired: one clock, one cluster, one cloud, and the gateways that controllers are given.

In the demo and in tests the doors get their gateways from here, through the setting
``JOINERY_GATEWAYS=simulator.world:gateways``: ``with world.installed():`` makes a world the one they find.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from joinery.gateways.bundles import Gateways, InstallerGateways
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.kubernetes.gateway import Event
from joinery.gateways.memory.unavailable import RememberedRefusals, UnavailableOfferings, UnavailableToMember
from joinery.objects.karpenter.labels import REPORTER
from joinery.objects.settings import Settings
from joinery.objects.snapshot.default_spreads import SpreadFiller
from simulator.aws import InMemoryDoorbell, InMemoryRegister, InMemoryStore, InMemoryUnavailableOfferings
from simulator.clock import START, Clock
from simulator.cloud.account import ROLE, InMemoryAccount
from simulator.cloud.cloud import InMemoryCloud
from simulator.cloud.market import market
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.objects import InMemoryObjects
from simulator.latency import Latency

#: How long an Event is no news whose text has changed, and one whose text has not.
QUIET, UNCHANGED = timedelta(minutes=2), timedelta(minutes=30)
CLUSTER = "simulated"
_installed: list["World"] = []


def installer_role(member: str) -> str:
    """Of a member: the ARN of the role that its home's installer takes."""
    return f"arn:aws:iam::123456789012:role/joinery-{member}-installer"


class World:
    """Everything that a controller can reach, in memory. Two worlds of one seed behave alike."""

    def __init__(
        self, seed: int = 0, *, catalog: Catalog | None = None, start: datetime = START, home: "World | None" = None,
        name: str = CLUSTER,
    ) -> None:  # fmt: skip
        """``home``: the world whose stack serves this one as a member; they share the clock, the bucket and the table.
        ``name``: the cluster's.
        """
        self.seed, self.name = seed, name
        self.members: list[World] = []
        if home:
            home.members.append(self)
        self.clock: Clock = home.clock if home else Clock(start)
        self.cluster = InMemoryCluster(self.clock, seed=seed)
        self.recorder = InMemoryRecorder(self.clock, self.cluster)
        beside = home.cloud if home else None
        self.cloud: InMemoryCloud = InMemoryCloud(self.clock, catalog or market(), cluster=name, beside=beside)
        self.doorbell = InMemoryDoorbell(self.clock)
        self.store: InMemoryStore = home.store.of_member(name) if home else InMemoryStore()
        self.unavailable: UnavailableOfferings = (
            UnavailableToMember(home.unavailable, name) if home else InMemoryUnavailableOfferings()
        )
        self.register: InMemoryRegister = home.register if home else InMemoryRegister()
        self.refusals = RememberedRefusals()
        self.store.put_catalog(self.cloud.catalog())
        self.account = InMemoryAccount(name, now=self.clock.now, role=installer_role(name) if home else ROLE)
        self.objects = InMemoryObjects()
        #: What charges the calls of gateways. Without it they take no time.
        self.latency: Latency | None = None

    @property
    def gateways(self) -> Gateways:
        if self.latency is not None:
            return self.latency.gateways
        return Gateways(
            cluster=self.cluster,
            recorder=self.recorder,
            cloud=self.cloud,
            doorbell=self.doorbell,
            store=self.store,
            unavailable=self.unavailable,
            refusals=self.refusals,
        )

    @property
    def installer_gateways(self) -> InstallerGateways:
        return InstallerGateways(
            account=self.account,
            objects=lambda _: self.objects,
            sleep=self._sleep,
            now=self.clock.now,
            register=self.register,
            as_member=lambda role, _: self._installed_by(role).installer_gateways,
        )

    def _installed_by(self, role: str) -> "World":
        return next(member for member in self.members if installer_role(member.name) == role)

    def _sleep(self, seconds: float) -> None:
        self.clock.advance(timedelta(seconds=seconds))

    @contextmanager
    def installed(self) -> Iterator["World"]:
        """Make this the world that ``gateways`` gives out."""
        _installed.append(self)
        try:
            yield self
        finally:
            _installed.remove(self)


def gateways(settings: Settings) -> Gateways:
    """What ``JOINERY_GATEWAYS=simulator.world:gateways`` names:
    the gateways of the installed world, or of a new one; or of its member, if the cluster is one.
    """
    own = _current()
    world = next((member for member in own.members if member.name == settings.cluster), own)
    world.cluster.spreads = SpreadFiller(settings.default_spread)
    return world.gateways


def register(settings: Settings) -> InMemoryRegister:
    """Which members the installed world has."""
    return _current().register


def now() -> datetime:
    """The same world's clock."""
    return _current().clock.now()


def installer_gateways(settings: Settings) -> InstallerGateways:
    """The same world's gateways of the installer."""
    return _current().installer_gateways


def _current() -> World:
    if not _installed:
        _installed.append(World())
    return _installed[-1]


class InMemoryRecorder:
    """The gateway ``Recorder`` in memory: keeps what was emitted in ``events``, and in the cluster if there is one.

    What is no news is dropped.
    """

    def __init__(self, clock: Clock, cluster: InMemoryCluster | None = None) -> None:
        self.events: list[Event] = []
        self._clock = clock
        self._cluster = cluster
        self._last: dict[tuple[str, str, str], tuple[datetime, str]] = {}

    def is_news(self, event: Event) -> bool:
        at, message = self._last.get(_identity(event), (None, ""))
        if at is None:
            return True
        return self._clock.now() - at >= (UNCHANGED if message == event.message else QUIET)

    def emit(self, events: Iterable[Event]) -> None:
        for event in events:
            if self.is_news(event):
                self._keep(event)

    def _keep(self, event: Event) -> None:
        self._last[_identity(event)] = (self._clock.now(), event.message)
        self.events.append(event)
        if self._cluster is not None:
            self._cluster.emit(event, reporter=REPORTER)


def _identity(event: Event) -> tuple[str, str, str]:
    return (event.uid or f"{event.kind}/{event.namespace}/{event.name}", event.reason, event.kind)
