"""What the functions are made of: the only place of theirs that reads the environment, and that knows of clusters.

The real gateways are constructed in ``joinery.adapters``.

One controller a door: a cold start builds what its door needs and nothing else, a warm one builds nothing. Every import
is inside the function that needs it, because what a door does not import it does not pay for.

``JOINERY_GATEWAYS`` names what builds the gateways: the real ones here, or the simulator's.
"""

import gc
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

from joinery import adapters
from joinery.objects import settings as settings_module
from joinery.objects.errors import NotFoundError
from joinery.objects.settings import Settings

if TYPE_CHECKING:
    from joinery.controllers.acting.invocation import Invocation
    from joinery.controllers.catalog import CatalogController
    from joinery.controllers.disruption import DisruptionController
    from joinery.controllers.expiration import ExpirationController
    from joinery.controllers.installer.controller import InstallerController
    from joinery.controllers.interruption import InterruptionController
    from joinery.controllers.lifecycle import LifecycleController
    from joinery.controllers.provisioning import ProvisioningController
    from joinery.controllers.triggers.dispatcher import Dispatcher, Handle
    from joinery.controllers.webhook import WebhookController
    from joinery.decisions.interruption.notice import Notice
    from joinery.gateways.bundles import Gateways, InstallerGateways
    from joinery.gateways.doorbell.gateway import Doorbell
    from joinery.gateways.memory.members import KnownMembers, Register
    from joinery.objects.member import Member

#: What stands for the gateways of Lambda.
AWS = "joinery.bootstrap:aws"
#: How many members a function keeps warm at most.
MOST_WARM = 50
T = TypeVar("T")

# Garbage is looked for after so many new objects. Python's 700 would look at all modules again while the next load: a
# tenth of a cold start.
gc.set_threshold(200_000)


class Door:
    """One function's work for one cluster. Each part is made when it is first used, and kept until something else is
    chosen for the cluster.

    ``cluster``: a member of the stack; without one it is the stack's own. A member's is read again at the start of each
    run, and the stack's own is in the environment.
    """

    def __init__(self, name: str, cluster: str = "") -> None:
        self.name, self.cluster = name, cluster
        self._registered: Member | None = None
        self._controller: Any = None

    def in_force(self) -> Settings | None:
        """The settings for the run that begins; None for a cluster that nobody has registered."""
        if self.cluster and self.registered(_register().get(self.cluster)) is None:
            return None
        _choose_metrics(self.settings)
        return self.settings

    @cached_property
    def settings(self) -> Settings:
        """With everything that the door needs, over the real gateways. Raises ``ConfigurationError``."""
        if not self.cluster:
            config = settings_module.read(os.environ, self.name)
            return config.check(self.name) if config.gateways == AWS else config
        if self._registered is None:
            raise NotFoundError(f"cluster {self.cluster} is not registered")
        return settings_module.of_member(door(self.name).settings, self._registered, self.name)

    @cached_property
    def dispatcher(self) -> "Dispatcher":
        """How it answers what woke it."""
        from joinery.controllers.triggers.dispatcher import Dispatcher

        return Dispatcher(self.doorbell, self.in_force, now=_clock(), member=self.cluster)

    @cached_property
    def doorbell(self) -> "Doorbell":
        """The doorbell alone: the webhook must not import five other gateways to ring one."""
        own = door(self.name).settings
        # A member's bells ring before anybody has read what was chosen for it.
        config = replace(own, cluster=self.cluster) if self.cluster else own
        return adapters.doorbell(config) if config.gateways == AWS else _built(config).doorbell

    @cached_property
    def gateways(self) -> "Gateways":
        """What its controller reads and acts through. This is the only place that asks for ``observe`` mode.

        Raises ``ImportError`` if the dotted path in the settings leads nowhere.
        """
        config = self.settings
        if config.gateways == AWS:
            gateways = adapters.gateways(self.name, config, self.doorbell, self._registered)
        else:
            gateways = _built(config)
        if not config.observing:
            return gateways
        from joinery.gateways.observing import read_only

        return read_only(gateways)

    def made(self, make: Callable[[], T]) -> T:
        """What the door has only one of: its controller."""
        if self._controller is None:
            self._controller = make()
        controller: T = self._controller
        return controller

    def registered(self, member: "Member | None") -> "Member | None":
        """What is registered of it. If that is something else, everything is made anew that depends on it."""
        if member != self._registered:
            self._controller = None
            for name in ("settings", "gateways"):
                vars(self).pop(name, None)
        self._registered = member
        return member


class Members:
    """The members' doors of one function that are kept warm: those that were used last.

    ``most``: how many at most. ``is_full``: whether the process runs out of memory; then fewer are kept, for a cluster
    that is kept takes what its objects take. The stack's own door is not among them, and is always kept.
    """

    def __init__(self, name: str, *, most: int, is_full: Callable[[], bool]) -> None:
        self._name, self._most, self._is_full = name, most, is_full
        self._doors: OrderedDict[str, Door] = OrderedDict()

    def door(self, cluster: str) -> Door:
        """The member's door, which is the one that was used last from now on."""
        found = self._doors.pop(cluster, None) or Door(self._name, cluster)
        while len(self._doors) >= self._most:
            self._doors.popitem(last=False)
        if self._doors and self._is_full():
            self._doors.popitem(last=False)
            gc.collect()
        self._doors[cluster] = found
        return found

    @property
    def warm(self) -> tuple[str, ...]:
        """The clusters that are kept, the one used last at the end."""
        return tuple(self._doors)


def door(name: str, event: Mapping[str, Any] | None = None) -> Door:
    """The door of a function for the cluster that an event is for. Without an event, of the stack's own cluster.

    Of a batch that is for several, the others' bells are rung again, so that none waits for another's run.
    """
    own = _own(name)
    if not event or not own.settings.has_members:
        return own
    from joinery.controllers.triggers.clusters import clusters_of

    first, *others = (_of(own, cluster) for cluster in clusters_of(event, own.settings.cluster))
    for other in others:
        _ring_again(other)
    return first


def _of(own: Door, cluster: str) -> Door:
    return own if cluster == own.settings.cluster else _members(own.name).door(cluster)


def _ring_again(other: Door) -> None:
    from joinery.gateways.doorbell.gateway import Bell

    other.doorbell.ring(Bell(other.name))


@cache
def _own(name: str) -> Door:
    return Door(name)


@cache
def _members(name: str) -> Members:
    from joinery.gateways import process

    return Members(name, most=MOST_WARM, is_full=process.is_full)


def provisioning(this: Door) -> "ProvisioningController":
    from joinery.controllers.provisioning import ProvisioningController

    return this.made(lambda: ProvisioningController(this.gateways, this.settings))


def interruption(this: Door) -> "InterruptionController":
    from joinery.controllers.interruption import InterruptionController
    from joinery.objects.policies import Rebalance

    rebalance = Rebalance(this.settings.rebalance)
    return this.made(lambda: InterruptionController(this.gateways, rebalance, now=_clock()))


def interruptions(this: Door, invocation: "Invocation") -> "Handle[Notice]":
    """How notices are answered that came for a cluster: for the stack's own, also those that are its members'."""
    if this.cluster or not this.settings.has_members:
        return lambda notices: interruption(this).reconcile(notices, invocation)
    from joinery.controllers.dealing import Dealing

    gateways = this.gateways
    return Dealing(
        lambda notices: interruption(this).reconcile(notices, invocation),
        lambda instances: _owners(gateways, instances),
        lambda named: _handles(invocation, named),
        gateways.workers,
    ).handle


def _owners(gateways: "Gateways", instances: Sequence[str]) -> Mapping[str, str]:
    from joinery.gateways.ec2.nodeclass.tags import cluster_of

    return {one.instance_id: cluster_of(one.tags or {}) for one in gateways.cloud.look_up(instances)}


def _handles(invocation: "Invocation", named: Sequence[str] | None) -> Mapping[str, "Handle[Notice]"]:
    """How the members answer notices: those that are named, or all."""
    known = _known_members()
    members = known.all() if named is None else [known.find(name) for name in named if name]
    return {one.cluster: _handle(_members("interruption").door(one.cluster), invocation) for one in members if one}


def _handle(this: Door, invocation: "Invocation") -> "Handle[Notice]":
    return lambda notices: this.dispatcher.handle(
        notices, lambda notices: interruption(this).reconcile(notices, invocation)
    )


def expiration(this: Door) -> "ExpirationController":
    from joinery.controllers.expiration import ExpirationController

    obeys_budgets = this.settings.expiration_obeys_budgets
    return this.made(lambda: ExpirationController(this.gateways, obeys_budgets=obeys_budgets))


def disruption(this: Door) -> "DisruptionController":
    from joinery.controllers.disruption import DisruptionController

    return this.made(lambda: DisruptionController(this.gateways, this.settings))


def lifecycle(this: Door) -> "LifecycleController":
    from joinery.controllers.lifecycle import LifecycleController

    return this.made(lambda: LifecycleController(this.gateways, this.settings))


def catalog(this: Door) -> "CatalogController":
    from joinery.controllers.catalog import CatalogController

    return this.made(lambda: CatalogController(this.gateways, adapters.now, this.settings.commitment_share))


def webhook(call: Mapping[str, Any]) -> "WebhookController":
    """The webhook of the cluster that the path of a call names."""
    from joinery.controllers.webhook import WebhookController

    this = _called(door("webhook"), call)
    return this.made(
        lambda: WebhookController(
            this.doorbell,
            adapters.tokens(this.settings),
            now=_clock(),
            enabled=this.settings.enabled,
            member=this.cluster,
        )
    )


def _called(own: Door, call: Mapping[str, Any]) -> Door:
    """The member's door whose name is in the path; the stack's own, which knows nobody there, if that is none's."""
    if not own.settings.has_members:
        return own
    from joinery.controllers.triggers.admission import path_of
    from joinery.controllers.triggers.clusters import member_called

    name = member_called(path_of(call))
    member = _known_members().find(name) if name else None
    if member is None:
        return own
    this = _members("webhook").door(name)
    this.registered(member)
    return this


@cache
def _known_members() -> "KnownMembers":
    from joinery.gateways.memory.members import KnownMembers

    return KnownMembers(_register(), now=_clock(), log=adapters.log_left_out)


@cache
def installer() -> "InstallerController":
    from joinery.controllers.installer.controller import InstallerController

    config = door("installer").settings
    gateways = cast("InstallerGateways", _source().installer_gateways(config))
    return InstallerController(gateways, config.cluster, has_access_entries=config.access_entries)


def _choose_metrics(config: Settings) -> None:
    from joinery.controllers.telemetry import metrics
    from joinery.objects.policies import MetricsDetail

    metrics.with_node_pools = config.metrics == MetricsDetail.NODE_POOLS


def invocation(context: Any) -> "Invocation":
    """What a run may know of its call. ``context`` is Lambda's."""
    from joinery.controllers.acting.invocation import Invocation

    return Invocation(context.aws_request_id, lambda: context.get_remaining_time_in_millis() / 1000)


def _built(config: Settings) -> "Gateways":
    """The gateways that the dotted path in the settings makes. Raises ``ImportError`` if it leads nowhere."""
    module, _, name = config.gateways.partition(":")
    build: Callable[[Settings], Gateways] = getattr(import_module(module), name)
    return build(config)


@cache
def _register() -> "Register":
    """Which members there are."""
    return cast("Register", _source().register(settings_module.read(os.environ)))


def _clock() -> Callable[[], datetime]:
    return cast("Callable[[], datetime]", _source().now)


def _source() -> Any:
    """What has the clock, the register and the installer's gateways: the real ones, or those of the simulator."""
    path = os.environ.get(settings_module.variable("gateways")) or AWS
    return adapters if path == AWS else import_module(path.partition(":")[0])


_CACHED = (_own, _members, _register, _known_members, adapters.bucket, adapters.table, installer)


def reset() -> None:
    """Forget everything built, as a new execution environment would: for the simulator, which has many."""
    for function in _CACHED:
        function.cache_clear()
