"""The real gateways, constructed from settings. Nothing is imported, opened or asked before it is first used.

What is the stack's (queues, bucket, table) is asked as the function itself, for whichever cluster. What is a member's
is asked as the member's role for that function, so that AWS and the cluster refuse it what is another's.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from joinery.objects.errors import ConfigurationError
from joinery.objects.settings import NEEDS, Settings

if TYPE_CHECKING:
    from boto3.session import Session

    from joinery.gateways.bundles import Gateways, InstallerGateways
    from joinery.gateways.doorbell.gateway import Doorbell, Tokens
    from joinery.gateways.ec2.gateway import Cloud
    from joinery.gateways.kubernetes.adapter import KubernetesCluster
    from joinery.gateways.kubernetes.gateway import Objects, Recorder
    from joinery.gateways.kubernetes.transport import Transport
    from joinery.gateways.memory.bucket import Store
    from joinery.gateways.memory.dynamodb import DynamoUnavailableOfferings
    from joinery.gateways.memory.members import Register
    from joinery.gateways.memory.s3 import S3Store
    from joinery.gateways.memory.unavailable import RefusedRequests, UnavailableOfferings
    from joinery.objects.member import Member

    #: Gives a session of another role.
    As = Callable[[], Session]


def gateways(door: str, config: Settings, doorbell: "Doorbell", member: "Member | None") -> "Gateways":
    """What a door's controller reads and acts through. ``member``: whose cluster it is, if not the stack's own.

    Raises ``ConfigurationError`` for a member that has no role for the door.
    """
    from joinery.gateways.bundles import Gateways
    from joinery.gateways.workers import MOST_WORKERS, Threads

    session, named = _session(door, config, member), member.cluster if member else ""
    cluster = cast("KubernetesCluster", _Deferred(lambda: _kubernetes(config, session)))
    return Gateways(
        cluster=cluster,
        recorder=cast("Recorder", _Deferred(lambda: _recorder(cluster))),
        cloud=cast("Cloud", _Deferred(lambda: _ec2(config, session))),
        doorbell=doorbell,
        store=cast("Store", _Deferred(lambda: _store(config, named))),
        unavailable=cast("UnavailableOfferings", _Deferred(lambda: _unavailable(config, named))),
        workers=Threads(MOST_WORKERS),
        refusals=cast("RefusedRequests", _Deferred(lambda: _refusals(door, config, named))),
    )


def _session(door: str, config: Settings, member: "Member | None") -> "As | None":
    """A session of the member's role for this door; None for the function's own."""
    if member is None:
        return None
    role = member.roles.get(door, "")
    if not role:
        raise ConfigurationError(f"cluster {member.cluster} has no role for {door}")
    return cache(lambda: _assumed(role, config.region, door))


def _assumed(role: str, region: str, name: str) -> "Session":
    from joinery.gateways.credentials import assumed

    return assumed(role, region, name=name, now=now)


def register(config: Settings) -> "Register":
    """Which members there are."""
    from joinery.gateways.memory.register import DynamoRegister

    return DynamoRegister(config.table, config.region, now=now)


def installer_gateways(config: Settings, role: str = "", secret: str = "") -> "InstallerGateways":
    """The installer's. ``role``, ``secret``: a member's, in whose name everything is asked then."""
    import time

    from joinery.gateways.account.aws import AwsAccount
    from joinery.gateways.bundles import InstallerGateways

    session = cache(lambda: _assumed(role, config.region, "installer")) if role else None
    return InstallerGateways(
        account=AwsAccount(
            config.region, role or config.installer_role, secret or config.webhook_secret, session=session
        ),
        objects=lambda cluster: _objects(cluster, config.region, session),
        sleep=time.sleep,
        now=now,
        register=cast("Register", _Deferred(lambda: register(config))),
        as_member=lambda role, secret: installer_gateways(config, role, secret),
    )


def _objects(cluster: str, region: str, session: "As | None") -> "Objects":
    from joinery.gateways.kubernetes.objects import KubernetesObjects

    return KubernetesObjects(_transport(cluster, region, session))


def _transport(cluster: str, region: str, session: "As | None") -> "Transport":
    from joinery.gateways.kubernetes.auth import for_eks
    from joinery.gateways.kubernetes.transport import Transport

    credentials = (lambda: session().get_credentials()) if session else None
    return Transport(for_eks(cluster, region, now=now, credentials=credentials))


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


def _kubernetes(config: Settings, session: "As | None") -> "KubernetesCluster":
    from joinery.gateways.kubernetes.adapter import KubernetesCluster
    from joinery.gateways.kubernetes.legacy import LegacyApis
    from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass

    transport = _transport(config.cluster, config.region, session)
    legacy = LegacyApis(transport, EC2NodeClass, default_profile=config.default_instance_profile)
    return KubernetesCluster(
        transport,
        now=now,
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

    return KubernetesRecorder(cluster.transport, now=now)


def _ec2(config: Settings, session: "As | None") -> "Cloud":
    from joinery.gateways.ec2.adapter import Ec2Cloud
    from joinery.gateways.ec2.instancetypes.capacity import NodeAssumptions
    from joinery.objects.policies import OnDemandPrices

    return Ec2Cloud(
        config.cluster,
        config.region,
        now=now,
        log=log_left_out,
        zonal_shift=config.zonal_shift,
        prices_are_estimated=config.on_demand_prices == OnDemandPrices.ESTIMATED,
        dry_runs=config.dry_runs,
        assumed=NodeAssumptions.of(config),
        session=session,
    )


def log_left_out(line: str) -> None:
    """Say that a part of an answer of AWS could not be used."""
    from joinery.controllers.telemetry import REASON, logger

    logger.warning("left out", extra={REASON: line})


def _store(config: Settings, member: str) -> "Store":
    store = bucket(config.bucket, config.region)
    return store.of_member(member) if member else store


@cache
def bucket(name: str, region: str) -> "S3Store":
    """One a process."""
    from joinery.gateways.memory.s3 import S3Store

    return S3Store(name, region)


def _unavailable(config: Settings, member: str) -> "UnavailableOfferings":
    from joinery.gateways.memory.unavailable import UnavailableToMember

    marks = table(config.table, config.region)
    return UnavailableToMember(marks, member) if member else marks


@cache
def table(name: str, region: str) -> "DynamoUnavailableOfferings":
    """One a process."""
    from joinery.gateways.memory.dynamodb import DynamoUnavailableOfferings

    return DynamoUnavailableOfferings(name, region)


def _refusals(door: str, config: Settings, member: str) -> "RefusedRequests":
    """A door that needs the table for nothing else remembers by itself."""
    from joinery.gateways.memory.dynamodb import DynamoRefusals
    from joinery.gateways.memory.unavailable import RememberedRefusals

    if "table" not in NEEDS[door]:
        return RememberedRefusals()
    return DynamoRefusals(table(config.table, config.region), member)


def doorbell(config: Settings) -> "Doorbell":
    """The doorbell."""
    from joinery.gateways.doorbell.sqs import SqsDoorbell

    return SqsDoorbell(config, now=now)


def tokens(config: Settings) -> "Tokens":
    """By what the webhook knows its caller."""
    from joinery.gateways.doorbell.tokens import FixedTokens, SecretTokens

    return SecretTokens(config, now=now) if config.webhook_secret else FixedTokens(config.webhook_token)


def now() -> datetime:
    """The time."""
    return datetime.now(UTC)  # noqa: TID251 - the one clock, handed to every adapter
