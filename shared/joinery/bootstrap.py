"""What the functions are made of: the only place of theirs that constructs adapters and reads the environment.

One cached function a controller: a cold start builds what its door needs and nothing else, a warm one builds nothing.
Every import is inside the function that needs it, because what a door does not import it does not pay for.

``JOINERY_GATEWAYS`` names what builds the gateways: the real ones here, or the simulator's.
"""

import gc
import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from joinery.objects import settings as settings_module
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
    from joinery.controllers.triggers.dispatcher import Dispatcher
    from joinery.controllers.webhook import WebhookController
    from joinery.gateways.bundles import Gateways, InstallerGateways
    from joinery.gateways.doorbell.gateway import Doorbell, Tokens
    from joinery.gateways.ec2.gateway import Cloud
    from joinery.gateways.kubernetes.adapter import KubernetesCluster
    from joinery.gateways.kubernetes.gateway import Objects, Recorder
    from joinery.gateways.memory.bucket import Store
    from joinery.gateways.memory.unavailable import RefusedRequests, UnavailableOfferings

#: The gateways of Lambda.
AWS = "joinery.bootstrap:aws"

# Garbage is looked for after so many new objects. Python's 700 would look at all modules again while the next load: a
# tenth of a cold start.
gc.set_threshold(200_000)


@cache
def settings(door: str = "") -> Settings:
    """The environment's settings; for a door over the real gateways, with everything it needs."""
    config = settings_module.read(os.environ, door)
    return config.check(door) if door and config.gateways == AWS else config


@cache
def webhook() -> "WebhookController":
    from joinery.controllers.webhook import WebhookController

    config = settings("webhook")
    return WebhookController(_doorbell(), _tokens(config), now=_clock(), enabled=config.enabled)


@cache
def provisioning() -> "ProvisioningController":
    from joinery.controllers.provisioning import ProvisioningController

    return ProvisioningController(_gateways_for("provisioning"), settings("provisioning"))


@cache
def interruption() -> "InterruptionController":
    from joinery.controllers.interruption import InterruptionController
    from joinery.objects.policies import Rebalance

    rebalance = Rebalance(settings("interruption").rebalance)
    return InterruptionController(_gateways_for("interruption"), rebalance, now=_clock())


@cache
def expiration() -> "ExpirationController":
    from joinery.controllers.expiration import ExpirationController

    obeys_budgets = settings("expiration").expiration_obeys_budgets
    return ExpirationController(_gateways_for("expiration"), obeys_budgets=obeys_budgets)


@cache
def disruption() -> "DisruptionController":
    from joinery.controllers.disruption import DisruptionController

    _choose_metrics()
    return DisruptionController(_gateways_for("disruption"), settings("disruption"))


@cache
def lifecycle() -> "LifecycleController":
    from joinery.controllers.lifecycle import LifecycleController

    _choose_metrics()
    return LifecycleController(_gateways_for("lifecycle"), settings("lifecycle"))


@cache
def catalog() -> "CatalogController":
    from joinery.controllers.catalog import CatalogController

    return CatalogController(_gateways_for("catalog"), _now, settings("catalog").commitment_share)


@cache
def installer() -> "InstallerController":
    from joinery.controllers.installer.controller import InstallerController

    config = settings("installer")
    gateways = _installer_gateways(config)
    return InstallerController(gateways, config.cluster, has_access_entries=config.access_entries)


@cache
def dispatcher(door: str) -> "Dispatcher":
    """How a door other than the webhook answers what woke it."""
    from joinery.controllers.triggers.dispatcher import Dispatcher

    return Dispatcher(_doorbell(), settings(door), now=_clock())


def _choose_metrics() -> None:
    from joinery.controllers.telemetry import metrics
    from joinery.objects.policies import MetricsDetail

    metrics.with_node_pools = settings().metrics == MetricsDetail.NODE_POOLS


def invocation(context: Any) -> "Invocation":
    """What a run may know of its call. ``context`` is Lambda's."""
    from joinery.controllers.acting.invocation import Invocation

    return Invocation(context.aws_request_id, lambda: context.get_remaining_time_in_millis() / 1000)


def _gateways_for(door: str) -> "Gateways":
    """What a door's controller reads and acts through. Raises ``ConfigurationError`` if the door lacks a setting.

    This is the only place that asks for ``observe`` mode.
    """
    if not settings(door).observing:
        return gateways()
    from joinery.gateways.observing import read_only

    return read_only(gateways())


@cache
def gateways() -> "Gateways":
    """The six gateways, from the dotted path in the settings. Raises ``ImportError`` if the path leads nowhere."""
    module, _, name = settings().gateways.partition(":")
    build: Callable[[Settings], Gateways] = getattr(import_module(module), name)
    return build(settings())


def aws(config: Settings) -> "Gateways":
    """The real gateways. Nothing is imported, opened or asked before it is first used."""
    from joinery.gateways.bundles import Gateways
    from joinery.gateways.workers import MOST_WORKERS, Threads

    cluster = cast("KubernetesCluster", _Deferred(lambda: _kubernetes(config)))
    return Gateways(
        cluster=cluster,
        recorder=cast("Recorder", _Deferred(lambda: _recorder(cluster))),
        cloud=cast("Cloud", _Deferred(lambda: _ec2(config))),
        doorbell=_doorbell(),
        store=cast("Store", _Deferred(lambda: _s3(config))),
        unavailable=cast("UnavailableOfferings", _Deferred(lambda: _dynamodb(config))),
        workers=Threads(MOST_WORKERS),
        refusals=cast("RefusedRequests", _Deferred(lambda: _refusals(config))),
    )


def _installer_gateways(config: Settings) -> "InstallerGateways":
    """The installer's gateways: the real ones, or those of the simulator, which are beside its others."""
    if config.gateways != AWS:
        module = import_module(config.gateways.partition(":")[0])
        return cast("InstallerGateways", module.installer_gateways(config))
    import time

    from joinery.gateways.account.aws import AwsAccount
    from joinery.gateways.bundles import InstallerGateways

    return InstallerGateways(
        account=AwsAccount(config.region, config.installer_role, config.webhook_secret),
        objects=lambda cluster: _objects(cluster, config.region),
        sleep=time.sleep,
        now=_now,
    )


def _objects(cluster: str, region: str) -> "Objects":
    from joinery.gateways.kubernetes.auth import for_eks
    from joinery.gateways.kubernetes.objects import KubernetesObjects
    from joinery.gateways.kubernetes.transport import Transport

    return KubernetesObjects(Transport(for_eks(cluster, region, now=_now)))


class _Deferred:
    """Stands in for an adapter until somebody wants something of it.

    A door may fail to reach its cluster: inside its run, where a bell is rung again, and not while it is being built.
    """

    def __init__(self, build: Callable[[], object]) -> None:
        self._build = build
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        # Two threads must not build two: cached_property has no lock.
        with self._lock:
            adapter = self._adapter
        return getattr(adapter, name)

    @cached_property
    def _adapter(self) -> object:
        return self._build()


def _kubernetes(config: Settings) -> "KubernetesCluster":
    from joinery.gateways.kubernetes.adapter import KubernetesCluster
    from joinery.gateways.kubernetes.auth import for_eks
    from joinery.gateways.kubernetes.legacy import LegacyApis
    from joinery.gateways.kubernetes.transport import Transport
    from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass

    transport = Transport(for_eks(config.cluster, config.region, now=_now))
    legacy = LegacyApis(transport, EC2NodeClass, default_profile=config.default_instance_profile)
    return KubernetesCluster(
        transport,
        now=_now,
        node_class=EC2NodeClass,
        legacy=legacy if config.legacy_objects else None,
        default_spreads=config.default_spread,
        log=_log_missed,
    )


def _log_missed(line: str) -> None:
    """Say that a read of the cluster had missed something, which a later one has found."""
    from joinery.controllers.telemetry import REASON, Count, count, logger

    count(Count.READS_MISSED)
    logger.warning("missed", extra={REASON: line})


def _recorder(cluster: "KubernetesCluster") -> "Recorder":
    from joinery.gateways.kubernetes.events import KubernetesRecorder

    return KubernetesRecorder(cluster.transport, now=_now)


def _ec2(config: Settings) -> "Cloud":
    from joinery.gateways.ec2.adapter import Ec2Cloud
    from joinery.gateways.ec2.instancetypes.capacity import NodeAssumptions
    from joinery.objects.policies import OnDemandPrices

    return Ec2Cloud(
        config.cluster,
        config.region,
        now=_now,
        log=_log_left_out,
        zonal_shift=config.zonal_shift,
        prices_are_estimated=config.on_demand_prices == OnDemandPrices.ESTIMATED,
        dry_runs=config.dry_runs,
        assumed=NodeAssumptions.of(config),
    )


def _log_left_out(line: str) -> None:
    """Say that a part of an answer of AWS could not be used."""
    from joinery.controllers.telemetry import REASON, logger

    logger.warning("left out", extra={REASON: line})


def _s3(config: Settings) -> "Store":
    from joinery.gateways.memory.s3 import S3Store

    return S3Store(config.bucket, config.region)


def _dynamodb(config: Settings) -> "UnavailableOfferings":
    from joinery.gateways.memory.dynamodb import DynamoUnavailableOfferings

    return DynamoUnavailableOfferings(config.table, config.region)


def _refusals(config: Settings) -> "RefusedRequests":
    """A door without the table remembers by itself."""
    from joinery.gateways.memory.dynamodb import DynamoRefusals
    from joinery.gateways.memory.unavailable import RememberedRefusals

    return DynamoRefusals(config.table, config.region) if config.table else RememberedRefusals()


@cache
def _doorbell() -> "Doorbell":
    """The doorbell alone: the webhook must not import five other gateways to ring one."""
    config = settings()
    return _sqs(config) if config.gateways == AWS else gateways().doorbell


def _sqs(config: Settings) -> "Doorbell":
    from joinery.gateways.doorbell.sqs import SqsDoorbell

    return SqsDoorbell(config, now=_now)


def _tokens(config: Settings) -> "Tokens":
    from joinery.gateways.doorbell.tokens import FixedTokens, SecretTokens

    return SecretTokens(config, now=_now) if config.webhook_secret else FixedTokens(config.webhook_token)


def _clock() -> Callable[[], datetime]:
    """The real one, or that of the simulator, which is beside its gateways."""
    config = settings()
    if config.gateways == AWS:
        return _now
    return cast("Callable[[], datetime]", import_module(config.gateways.partition(":")[0]).now)


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the one clock, handed to every adapter


_CACHED = (
    settings, webhook, provisioning, interruption, expiration, disruption, lifecycle, catalog, installer, dispatcher,
    gateways, _doorbell,
)  # fmt: skip


def reset() -> None:
    """Forget everything built, as a new execution environment would: for the simulator, which has many."""
    for function in _CACHED:
        function.cache_clear()
