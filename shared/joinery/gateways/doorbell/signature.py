"""AWS Signature Version 4 for one kind of request: a POST of a JSON body to a service's root.

botocore signs anything, and its import would take most of the 130 ms that the webhook has in all (docs/decisions/0005).
What makes the algorithm long, paths, queries and odd header values, does not occur here. A test compares it with
botocore's.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

_ALGORITHM = "AWS4-HMAC-SHA256"


class Credentials(NamedTuple):
    """Keys of a role's session, or of a user without a token."""

    access_key: str
    secret_key: str
    token: str = ""


class Scope(NamedTuple):
    """What a signature is for."""

    region: str
    service: str
    at: datetime

    @property
    def day(self) -> str:
        return self.at.astimezone(UTC).strftime("%Y%m%d")

    @property
    def moment(self) -> str:
        return self.at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")

    @property
    def text(self) -> str:
        return f"{self.day}/{self.region}/{self.service}/aws4_request"


def signed(headers: Mapping[str, str], body: bytes, *, credentials: Credentials, scope: Scope) -> dict[str, str]:
    """The headers with date, token and signature added. They must hold ``Host``, and values without odd spaces."""
    session = {"X-Amz-Security-Token": credentials.token} if credentials.token else {}
    result = {**headers, "X-Amz-Date": scope.moment, **session}
    sealed = {name.lower(): value for name, value in result.items()}
    names = ";".join(sorted(sealed))
    lines = [f"{name}:{sealed[name]}" for name in sorted(sealed)]
    request = "\n".join(["POST", "/", "", *lines, "", names, hashlib.sha256(body).hexdigest()])
    digest = hashlib.sha256(request.encode()).hexdigest()
    signature = _hmac(_key(credentials, scope), f"{_ALGORITHM}\n{scope.moment}\n{scope.text}\n{digest}").hex()
    who = f"{credentials.access_key}/{scope.text}"
    return result | {"Authorization": f"{_ALGORITHM} Credential={who}, SignedHeaders={names}, Signature={signature}"}


def _key(credentials: Credentials, scope: Scope) -> bytes:
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (scope.day, scope.region, scope.service, "aws4_request"):
        key = _hmac(key, part)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
