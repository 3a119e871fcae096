"""``{"operation": "rotate-token"}``: one step of a rotation of the webhook's token (``installation.rotation``).

The schedule asks every hour, with ``days``: a rotation begins when the token is older. Without ``days`` it begins now.
Most calls find nothing to do, so the installer lets itself into the cluster only for the step that writes there.
"""

import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

from joinery.controllers.installer.run import InstallerRun
from joinery.decisions.installation import objects, shipped
from joinery.decisions.installation.rotation import next_step
from joinery.gateways.account.gateway import StoredSecret
from joinery.gateways.kubernetes.gateway import Objects
from joinery.objects.errors import ConfigurationError
from joinery.objects.kubernetes.webhook_secret import WebhookSecret, parse

Access = Callable[[], AbstractContextManager[Objects]]
#: Of randomness in a token, which is 43 URL-safe characters then.
_TOKEN_BYTES = 32


def rotate(run: InstallerRun, event: Mapping[str, Any], access: Access, now: datetime) -> Mapping[str, Any]:
    """One step. Returns what was done, and after how many seconds the next one is due; none at the end.

    Raises ``ConflictError`` if another run was faster.
    """
    run.begin("Reading the webhook's secret")
    stored = run.account.webhook_secret()
    step = next_step(read(stored), now, fresh=secrets.token_urlsafe(_TOKEN_BYTES), is_due=_is_due(event, stored, now))
    if step.configured:
        with access() as run.objects:
            _configure(run, step.configured)
    if step.stored is not None:
        run.begin("Writing the webhook's secret")
        run.account.put_webhook_secret(step.stored.text, after=stored.version)
    again = {} if step.wait is None else {"again_in": max(1, int(step.wait.total_seconds()))}
    return {"step": step.text, **again}


def read(stored: StoredSecret) -> WebhookSecret:
    """The secret, if it can be read; else ``ConfigurationError``, which does not quote it."""
    try:
        return parse(stored.text)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def _is_due(event: Mapping[str, Any], stored: StoredSecret, now: datetime) -> bool:
    days = str(event.get("days", ""))
    if not days:
        return True
    if not days.isdecimal():
        raise ConfigurationError(f"days is {days!r}: expected a whole number")
    return now - stored.made >= timedelta(days=int(days))


def _configure(run: InstallerRun, token: str) -> None:
    """Write the token into the webhook configuration. Nothing is done where there is none (WebhookEndpoint=none)."""
    run.begin(f"Reading {objects.WEBHOOK}")
    configuration = run.objects.read(objects.WEBHOOK)
    if configuration is None:
        return
    url = str(configuration["webhooks"][0]["clientConfig"]["url"])
    wanted = objects.connection(shipped.webhook(), f"{url.rpartition('/')[0]}/{token}", version=run.version)
    # Forced, over other people's edits of the URL: what they wrote has the former token, which is void soon.
    run.apply(wanted, objects.WEBHOOK, force=True)
