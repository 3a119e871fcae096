"""How to reach a cluster: from a kubeconfig file, or for EKS from nothing but the cluster's name.

For EKS the endpoint and its authority come from DescribeCluster, and the bearer token is a presigned GetCallerIdentity
request that the cluster sends to STS to learn who we are. EKS takes such a token for fifteen minutes, whatever the
sixty seconds in its URL say, so it is renewed before that. Requests are signed with botocore's signer alone: a boto3
client would load service models for half a second.
"""

import base64
import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from joinery.gateways.aws import cluster_of, error
from joinery.gateways.kubernetes.connection import Connection, connection
from joinery.gateways.partitions import endpoint
from joinery.objects.errors import ConfigurationError, NotFoundError, UnavailableError, UnreachableError

TOKEN_PREFIX = "k8s-aws-v1."
TOKEN_LIFE = timedelta(minutes=14)
TIMEOUT = 10.0  # seconds


def from_kubeconfig(path: Path | str | None = None, *, context: str | None = None) -> Connection:
    """The connection of a kubeconfig's context. Raises ``ConfigurationError`` naming the file.

    Without ``path``: ``$KUBECONFIG``, else ``~/.kube/config``, as kubectl does. Exec plugins, refreshed tokens, client
    certificates and proxies work, because the official client reads the file. It comes with the command line,
    and no layer has it.
    """
    from kubernetes import config
    from kubernetes.client.configuration import Configuration
    from kubernetes.client.rest import RESTClientObject

    configuration = Configuration()
    try:
        config.load_kube_config(
            config_file=str(path) if path else None, context=context, client_configuration=configuration,
            persist_config=False,
        )  # fmt: skip
    except (config.ConfigException, OSError) as error:
        file = str(path or os.environ.get("KUBECONFIG") or "~/.kube/config")
        is_there = any(Path(one).expanduser().exists() for one in file.split(os.pathsep))
        why = str(error).rstrip(".") if is_there else "No such file or directory"
        raise ConfigurationError(f"kubeconfig {file}: {why}") from error

    def authorization() -> str | None:
        bearer = configuration.auth_settings().get("BearerToken")
        return bearer["value"] if bearer else None

    return Connection(configuration.host, lambda: RESTClientObject(configuration).pool_manager, authorization)


def for_eks(
    cluster: str, region: str, *, now: Callable[[], datetime], credentials: Callable[[], Any] | None = None
) -> Connection:
    """The connection to an EKS cluster, by one DescribeCluster call. Its token renews itself.

    ``credentials``: gives botocore's of whoever connects; without it they are the function's own.

    Raises ``NotFoundError`` for a cluster that is not there, ``ConfigurationError`` without permission,
    ``UnavailableError``.
    """
    credentials = credentials or _credentials
    description = _describe(cluster, region, credentials())
    authority = None
    if description["endpoint"].startswith("https:"):
        authority = base64.b64decode(description["certificateAuthority"]["data"]).decode()
    token = Token(cluster, region, now=now, make=lambda cluster, region: presigned(cluster, region, credentials()))
    token.value()  # so that a function without credentials fails here, where the error says why
    return connection(description["endpoint"], authority=authority, authorization=lambda: f"Bearer {token.value()}")


def presigned(cluster: str, region: str, credentials: Any = None) -> str:
    """A fresh token: ``k8s-aws-v1.`` and the base64 of a presigned URL. ``credentials``: if not the function's own.

    The URL is a GetCallerIdentity request to STS; its signature covers a header with the cluster's name, so that the
    token is good for that cluster only (aws-iam-authenticator, "API Authorization from Outside a Cluster").
    """
    from botocore.auth import SigV4QueryAuth
    from botocore.awsrequest import AWSRequest

    url = f"{endpoint('sts', region)}/?Action=GetCallerIdentity&Version=2011-06-15"
    request = AWSRequest(method="GET", url=url, headers={"x-k8s-aws-id": cluster})
    SigV4QueryAuth(credentials or _credentials(), "sts", region, expires=60).add_auth(request)
    return TOKEN_PREFIX + base64.urlsafe_b64encode(str(request.url).encode()).decode().rstrip("=")


def _describe(cluster: str, region: str, credentials: Any) -> dict[str, Any]:
    import urllib3
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    request = AWSRequest(method="GET", url=f"{_eks_endpoint(region)}/clusters/{cluster}", data=b"")
    SigV4Auth(credentials, "eks", region).add_auth(request)
    try:
        with urllib3.PoolManager() as pool:
            answer = pool.request(
                "GET", str(request.url), headers=dict(request.headers.items()), timeout=TIMEOUT, retries=2
            )
    except urllib3.exceptions.HTTPError as failed:
        raise UnreachableError(f"EKS DescribeCluster {cluster}: {failed}") from failed
    return described(cluster, answer.status, answer.data, kind=answer.headers.get("x-amzn-errortype", ""))


def described(cluster: str, status: int, body: bytes, *, kind: str = "") -> dict[str, Any]:
    """The cluster's description in an answer of EKS. ``kind``: the header that names an error.

    Raises ``NotFoundError`` for no such cluster, ``UnavailableError`` for one that is being created and has no endpoint
    yet, and otherwise what the error code means (``joinery.gateways.aws``).
    """
    doing = f"EKS DescribeCluster {cluster}"
    text = body[:200].decode(errors="replace")
    if status == 404:
        raise NotFoundError(f"{doing}: {status} {text}")
    if status != 200:
        raise error(kind.partition(":")[0] or str(status), text, doing=doing, status=status)
    try:
        answer = json.loads(body)
    except ValueError as wrong:
        raise UnavailableError(f"{doing}: the answer is not JSON: {text}") from wrong
    description: dict[str, Any] = cluster_of(answer, cluster)
    return description


def _eks_endpoint(region: str) -> str:
    # The same variables that every AWS SDK reads: a local stand-in for AWS is named there.
    override = os.environ.get("AWS_ENDPOINT_URL_EKS") or os.environ.get("AWS_ENDPOINT_URL")
    return (override or endpoint("eks", region)).rstrip("/")


def _credentials() -> Any:
    """The function's own credentials.

    Lambda puts them into the environment; a botocore session would look in seven places.
    """
    key, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    if key and secret:
        from botocore.credentials import Credentials

        return Credentials(key, secret, os.environ.get("AWS_SESSION_TOKEN"))
    import botocore.session

    credentials = botocore.session.get_session().get_credentials()
    if credentials is None:
        raise ConfigurationError("there are no AWS credentials")
    return credentials


class Token:
    """An EKS bearer token that is made again before it expires. ``make`` makes one, from cluster and region."""

    def __init__(
        self, cluster: str, region: str, *, now: Callable[[], datetime], make: Callable[[str, str], str] = presigned
    ) -> None:
        self._cluster_and_region = (cluster, region)
        self._now = now
        self._make = make
        self._made: datetime | None = None
        self._value = ""

    def value(self) -> str:
        """The token to send now."""
        moment = self._now()
        if self._made is None or moment - self._made >= TOKEN_LIFE:
            self._value, self._made = self._make(*self._cluster_and_region), moment
        return self._value
