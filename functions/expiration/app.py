"""Retire the NodeClaims that are older than their NodePool's ``expireAfter``.

Invoked by a schedule, once a minute. The claims are only deleted here; provisioning replaces them and lifecycle drains
them.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from joinery import bootstrap
from joinery.controllers.telemetry import logger, metrics


@logger.inject_lambda_context(clear_state=True)
@metrics.sent_at_the_end
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    invocation, door = bootstrap.invocation(context), bootstrap.door("expiration", event)
    return door.dispatcher.sweep(lambda: bootstrap.expiration(door).reconcile(invocation))
