"""The AWS account as the installer uses it, in memory: implements ``Account``."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from joinery.gateways.account.gateway import AccessEntry, StoredSecret
from joinery.objects.errors import ConflictError, NotFoundError
from joinery.objects.kubernetes.webhook_secret import WebhookSecret
from simulator.clock import START

ROLE = "arn:aws:iam::123456789012:role/installer"


class InMemoryAccount:
    """Implements ``Account``.

    ``clusters``: those that are there. ``entries``: the installer's access entry in each that has one. ``answers``:
    the answers to CloudFormation, by URL. ``calls``: the names of all calls that change something, in order.
    ``status``: what CloudFormation does with the stack. ``failures``: what the methods of these names raise, after they
    have done what they do. ``succeeds_after``: so many failures, and then there are no more of them.
    """

    def __init__(self, *clusters: str, now: Callable[[], datetime] = lambda: START, role: str = ROLE) -> None:
        """``role``: the ARN of the installer's."""
        self._now, self._role = now, role
        self.clusters = set(clusters)
        self.entries: dict[str, AccessEntry] = {}
        self.has_spot_role = False
        self.answers: list[tuple[str, dict[str, Any]]] = []
        self.calls: list[str] = []
        self.status = "DELETE_IN_PROGRESS"
        self.failures: dict[str, Exception] = {}
        self.secret = StoredSecret(WebhookSecret("simulated-token-of-more-than-32-characters").text, "1", START)
        self.succeeds_after: int | None = None

    def access(self, cluster: str) -> AccessEntry | None:
        return self.entries.get(cluster)

    def grant_access(self, cluster: str, tags: Mapping[str, str]) -> None:
        self.calls.append("grant_access")
        if cluster not in self.clusters:
            raise NotFoundError(
                f"EKS CreateAccessEntry for {self._role} in {cluster}: ResourceNotFoundException: No cluster"
            )
        if cluster in self.entries:
            raise ConflictError(f"EKS CreateAccessEntry for {self._role} in {cluster}: there is one already")
        self.entries[cluster] = AccessEntry(self._role, dict(tags))
        self._fail("grant_access")

    def revoke_access(self, cluster: str) -> None:
        self.calls.append("revoke_access")
        self.entries.pop(cluster, None)
        self._fail("revoke_access")

    def ensure_spot_role(self) -> bool:
        self.calls.append("ensure_spot_role")
        made, self.has_spot_role = not self.has_spot_role, True
        self._fail("ensure_spot_role")
        return made

    def refresh_catalog(self, function: str) -> None:
        self.calls.append(f"refresh_catalog {function}")
        self._fail("refresh_catalog")

    def remove_node_role(self, cluster: str, role: str, profile: str) -> None:
        self.calls.append(f"remove_node_role {role} {profile}")
        self._fail("remove_node_role")

    def webhook_secret(self) -> StoredSecret:
        return self.secret

    def put_webhook_secret(self, text: str, *, after: str) -> None:
        self.calls.append("put_webhook_secret")
        if after != self.secret.version:
            raise ConflictError("SecretsManager PutSecretValue: another run has changed it since")
        self.secret = StoredSecret(text, str(int(after) + 1), self._now())

    def stack_status(self, stack: str) -> str:
        self._fail("stack_status")
        return self.status

    def answer(self, url: str, body: bytes) -> None:
        self.calls.append("answer")
        self.answers.append((url, json.loads(body)))

    def _fail(self, method: str) -> None:
        if method not in self.failures or self.succeeds_after == 0:
            return
        if self.succeeds_after is not None:
            self.succeeds_after -= 1
        raise self.failures[method]
