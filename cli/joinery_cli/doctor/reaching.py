"""The doctor's gateways over boto3, the kubeconfig's API server, and urllib3."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from joinery.gateways.aws import Clients, translated
from joinery.gateways.kubernetes.auth import for_eks, from_kubeconfig
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.errors import UnavailableError

_SECONDS = 10.0
#: An API server that does not answer is not waited for by every check.
_PATIENCE = 5.0


class Boto:
    """Implements ``Aws``."""

    def __init__(self, region: str) -> None:
        self._clients = Clients(region)

    def ask(self, service: str, operation: str, **parameters: Any) -> Mapping[str, Any]:
        with translated(f"{service} {operation}"):
            client = self._clients.of(service)
            if client.can_paginate(operation):
                pages: Mapping[str, Any] = client.get_paginator(operation).paginate(**parameters).build_full_result()
                return pages
            answer: Mapping[str, Any] = getattr(client, operation)(**parameters)
            return answer


class ClusterApi:
    """Implements ``Api``."""

    def __init__(self, connect: Callable[[], Transport]) -> None:
        self._connect = connect
        self._transport: Transport | None = None
        self._lock = Lock()

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Mapping[str, Any]]:
        with self._lock:
            self._transport = self._transport or self._connect()
        answer = self._transport.ask(method, path, body, attempts=2)
        try:
            document = json.loads(answer.body or b"{}")
        except ValueError:
            document = {"message": answer.body[:200].decode(errors="replace")}
        return answer.code, document if isinstance(document, dict) else {}


class Http:
    """Implements ``Web``."""

    def post(self, url: str, body: bytes) -> tuple[int, bytes]:
        import urllib3

        # The path is a secret, so an error names the host alone.
        host = url.split("/")[2] if url.count("/") > 2 else url
        with urllib3.PoolManager() as pool:
            try:
                answer = pool.request(
                    "POST",
                    url,
                    body=body,
                    timeout=_SECONDS,
                    retries=False,
                    headers={"Content-Type": "application/json"},
                )
            except urllib3.exceptions.HTTPError as error:
                raise UnavailableError(f"POST https://{host}: {type(error).__name__}") from None
            return answer.status, answer.data


def connected(cluster: str, region: str, *, is_current: bool) -> Transport:
    """A transport to the cluster: by the kubeconfig where its context is about it, else by what EKS says of it."""
    if is_current:
        return Transport(from_kubeconfig(), patience=_PATIENCE)
    from joinery_cli.sources import moment

    return Transport(for_eks(cluster, region, now=lambda: moment(None)), patience=_PATIENCE)


def current_cluster() -> tuple[str, str]:
    """Name and region of the EKS cluster that the kubeconfig's context is about, empty where nothing says so.

    ``aws eks update-kubeconfig`` writes the cluster's ARN, eksctl ``NAME.REGION.eksctl.io``.
    """
    import yaml

    try:
        path = os.environ.get("KUBECONFIG", "").partition(os.pathsep)[0] or "~/.kube/config"
        document = yaml.safe_load(Path(path).expanduser().read_text())
        current = document["current-context"]
        (context,) = (one["context"] for one in document["contexts"] if one["name"] == current)
        name = str(context["cluster"])
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return "", ""
    if name.startswith("arn:") and name.count(":") >= 5:
        return name.rpartition("/")[2], name.split(":")[3]
    if name.endswith(".eksctl.io"):
        cluster, region, *_ = name.split(".")
        return cluster, region
    return "", ""
