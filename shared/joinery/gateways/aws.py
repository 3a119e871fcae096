"""AWS clients made when first used, and AWS's errors as ours.

A client of boto3 costs tens of milliseconds and a cold start should pay only for those it needs. Every call is made
inside ``translated``, so that nothing of botocore escapes an adapter: a caller catches what it should do, not what
happened.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache, cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from joinery.gateways.answers import Log, at, needed, unlogged
from joinery.gateways.deadlines import in_time
from joinery.gateways.partitions import pricing_region
from joinery.gateways.throttling import Throttling
from joinery.gateways.workers import MOST_WORKERS
from joinery.objects.codes import NOT_FOUND, TRANSIENT, is_capacity
from joinery.objects.errors import (
    CapacityError,
    ConfigurationError,
    JoineryError,
    NotFoundError,
    UnavailableError,
    UnreachableError,
)

if TYPE_CHECKING:
    from boto3.session import Session
    from botocore.config import Config
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_pricing import PricingClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_ssm import SSMClient


#: How long a call may take: so many attempts, and a wait of at most a second between two of them (botocore, "Standard
#: retry mode"). Together less than ``gateways.ec2.gateway.LONGEST_CALL``, which no run outlasts. A CreateFleet call
#: that takes longer is repeated with its token, and gets what the first one got.
ATTEMPTS, CONNECT_SECONDS, READ_SECONDS = 2, 2, 10
LONGEST_REQUEST = ATTEMPTS * (CONNECT_SECONDS + READ_SECONDS) + 1.0
#: HTTP's own words for "later", which a proxy says without a code of the service: timed out, too many requests.
_AGAIN = (408, 429)
#: How much of an answer that is none is shown.
_SHOWN_CHARS = 200


def error(code: str, message: str, *, doing: str, status: int = 400) -> JoineryError:
    """Our error for one of AWS's. ``doing`` says what was tried; ``status`` is HTTP's."""
    ours = _kind(code, message, status)(f"{doing}: {code}: {message}")
    ours.code = code
    return ours


def _kind(code: str, message: str, status: int) -> type[JoineryError]:
    if code in NOT_FOUND:
        return NotFoundError
    if is_capacity(code, message):
        return CapacityError
    if code in TRANSIENT or status in _AGAIN or status >= 500:
        return UnavailableError
    return ConfigurationError


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Run AWS calls. Raises one of our errors, with the original as cause; ``CapacityError`` for a launch alone.

    Raises ``TimeIsOverError`` before them where the limits of ``joinery.gateways.deadlines`` leave no time for one.
    """
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        ConnectionError,
        ConnectTimeoutError,
        EndpointConnectionError,
        HTTPClientError,
        IncompleteReadError,
    )
    from botocore.parsers import ResponseParserError

    in_time(doing, LONGEST_REQUEST)
    try:
        yield
    except ClientError as refused:
        raise error(code(refused), _message(refused), doing=doing, status=_status(refused)) from refused
    except (EndpointConnectionError, ConnectTimeoutError) as failed:
        raise UnreachableError(f"{doing}: {failed}") from failed
    except (HTTPClientError, ConnectionError, IncompleteReadError) as failed:
        raise UnavailableError(f"{doing}: {failed}") from failed
    except ResponseParserError as garbled:
        # A load balancer's page, or an answer that was cut off.
        shown = " ".join(str(garbled).split())[:_SHOWN_CHARS]
        raise UnavailableError(f"{doing}: {shown}") from garbled
    except BotoCoreError as wrong:
        raise ConfigurationError(f"{doing}: {wrong}") from wrong


def cluster_of(answer: Any, name: str) -> Any:
    """The cluster in an answer of EKS's DescribeCluster for that name. Raises as ``reachable`` does."""
    call = f"EKS DescribeCluster {name}"
    cluster = needed(answer, "cluster", call=call)
    described = reachable({**cluster, "name": at(cluster, "name") or name})
    if str(described["endpoint"]).startswith("https:"):
        needed(described, "certificateAuthority.data", call=call)
    return described


def reachable(cluster: Any) -> Any:
    """A cluster as EKS's DescribeCluster gives it. Raises ``UnavailableError`` for one that cannot be spoken to yet."""
    if at(cluster, "endpoint") is None:
        status = at(cluster, "status") or "in an unknown state"
        raise UnavailableError(f"EKS DescribeCluster: {at(cluster, 'name')} is {status} and has no endpoint yet")
    return cluster


def code(refused: Any) -> str:
    """The error code of a ``ClientError``."""
    return str(refused.response.get("Error", {}).get("Code", ""))


def _message(refused: Any) -> str:
    return str(refused.response.get("Error", {}).get("Message", refused))


def _status(refused: Any) -> int:
    return int(refused.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))


@cache
def session(region: str) -> "Session":
    """One a process: AWS's service descriptions are read from disk once, whoever asks."""
    from boto3.session import Session

    return Session(region_name=region)


#: Of what a session makes, one thing at a time: clients, and those who fetch credentials.
MAKING = Lock()


class Clients:
    """The clients of one region. Endpoints and credentials are boto3's own business (``AWS_ENDPOINT_URL``, roles).

    ``log`` hears of parts of answers that could not be used. ``read_seconds``: how long an answer may take. ``now``:
    the clock by which what was throttled waits (``gateways.throttling``); None where each call is tried. ``session``:
    gives that of another role (``gateways.credentials``); without it they are the process' own.
    """

    def __init__(
        self,
        region: str,
        log: Log = unlogged,
        *,
        read_seconds: int = READ_SECONDS,
        now: Callable[[], datetime] | None = None,
        session: "Callable[[], Session] | None" = None,
    ) -> None:
        self.region, self.log, self.session = region, log, session
        self._read_seconds = read_seconds
        self._throttling = Throttling(now) if now else None
        self._others: dict[str, Any] = {}

    def _client(self, service: str, region: str) -> Any:
        # Clients may be shared by threads, a session may not (boto3, "Multithreading or multiprocessing"). Where two
        # threads are first at once, both get a client.
        with MAKING:
            client = self._session.client(service, region_name=region, config=self._config)  # type: ignore[call-overload]
        if self._throttling is not None:
            self._throttling.watch(client)
        return client

    def of(self, service: str) -> Any:
        """The client of any service, by botocore's name of it: for the command line, which asks many."""
        client = self._others.get(service)
        if client is None:
            client = self._others[service] = self._client(service, self.region)
        return client

    @property
    def _session(self) -> "Session":
        return self.session() if self.session else session(self.region)

    @cached_property
    def _config(self) -> "Config":
        from botocore.config import Config

        return Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=self._read_seconds,
            max_pool_connections=MOST_WORKERS,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        )

    @cached_property
    def ec2(self) -> "EC2Client":
        client: EC2Client = self._client("ec2", self.region)
        return client

    @cached_property
    def eks(self) -> "EKSClient":
        client: EKSClient = self._client("eks", self.region)
        return client

    @cached_property
    def ssm(self) -> "SSMClient":
        client: SSMClient = self._client("ssm", self.region)
        return client

    @cached_property
    def iam(self) -> Any:
        return self._client("iam", self.region)

    @cached_property
    def secrets(self) -> Any:
        return self._client("secretsmanager", self.region)

    @cached_property
    def stacks(self) -> Any:
        """CloudFormation."""
        return self._client("cloudformation", self.region)

    @cached_property
    def functions(self) -> Any:
        """Lambda."""
        return self._client("lambda", self.region)

    @cached_property
    def arc(self) -> Any:
        """Application Recovery Controller, which knows zonal shifts."""
        return self._client("arc-zonal-shift", self.region)

    @cached_property
    def s3(self) -> "S3Client":
        client: S3Client = self._client("s3", self.region)
        return client

    @cached_property
    def dynamodb(self) -> "DynamoDBClient":
        client: DynamoDBClient = self._client("dynamodb", self.region)
        return client

    @cached_property
    def pricing(self) -> "PricingClient":
        """The price list is answered from a few regions only (Price List API, endpoints)."""
        client: PricingClient = self._client("pricing", pricing_region(self.region))
        return client
