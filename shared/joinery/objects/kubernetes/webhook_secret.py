"""The webhook's secret: the tokens by which the door knows the API server, and how they follow each other.

It is one JSON document, so that a door reads it with one request and never sees half of a change. CloudFormation
generates the first one, which has a token and nothing else. While tokens change, two are valid: the one that the
webhook configuration carries, and the one that it will carry or has carried.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

#: The shortest token that a door accepts: 32 URL-safe characters are 190 bits.
SHORTEST_TOKEN = 32
#: What a path may hold as it is (RFC 3986, unreserved). A URL with anything else is refused by the API server, which
#: quotes it, and an error goes into logs and to CloudFormation.
_TOKEN = re.compile(rf"[0-9A-Za-z._~-]{{{SHORTEST_TOKEN},}}")
#: How long a door goes by what it has read.
REMEMBERED = timedelta(minutes=5)


@dataclass(frozen=True)
class WebhookSecret:
    """``token``: in the webhook configuration. ``next``: the one that is to follow, ``former``: the one before; at most
    one of them is there. ``since``: when that one was added, RFC3339.
    """

    token: str
    next: str = ""
    former: str = ""
    since: str = ""

    @property
    def valid(self) -> frozenset[str]:
        """The tokens by which a caller is known."""
        return frozenset({self.token, self.next, self.former} - {""})

    @property
    def changed_at(self) -> datetime | None:
        """When the second token was added; None where there is none."""
        return datetime.fromisoformat(self.since) if self.since else None

    @property
    def text(self) -> str:
        """As it is stored."""
        return json.dumps({name: value for name, value in asdict(self).items() if value})


def parse(text: str) -> WebhookSecret:
    """The stored secret. Raises ``ValueError``, whose message does not quote it."""
    stored = _object(text)
    fields = {name: stored.get(name, "") for name in ("token", "next", "former", "since")}
    tokens = [fields["token"], *filter(None, (fields["next"], fields["former"]))]
    if not all(isinstance(value, str) for value in fields.values()) or not all(map(_TOKEN.fullmatch, tokens)):
        raise ValueError(
            f"the webhook's secret has no token of {SHORTEST_TOKEN} characters or more (A-Z a-z 0-9 . _ ~ -)"
        )
    secret = WebhookSecret(**fields)
    if not _says_when(secret):
        raise ValueError("the webhook's secret does not say since when it has two tokens: a moment with its time zone")
    return secret


def _says_when(secret: WebhookSecret) -> bool:
    """Whether its ``since`` is there where it must be, and is a moment where it is there."""
    try:
        moment = secret.changed_at
    except ValueError:  # which quotes it, and nobody knows what somebody has written there
        return False
    return len(secret.valid) == 1 if moment is None else moment.tzinfo is not None


def _object(text: str) -> Mapping[str, Any]:
    try:
        stored = json.loads(text)
    except ValueError:
        stored = None
    if not isinstance(stored, dict):
        raise ValueError("the webhook's secret is no JSON object")
    return stored
