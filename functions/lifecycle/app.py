"""Bring every NodeClaim one step further: launch, registration, initialization, drain, deletion.

Invoked by the lifecycle queue (a delayed FIFO): its own ticks while anything is in progress, bells of other doors, and
the schedule that rings once a minute. No run waits for the world; the next tick looks again.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from joinery import bootstrap
from joinery.controllers.telemetry import logger, metrics
from joinery.gateways.doorbell.gateway import Bell


@logger.inject_lambda_context(clear_state=True)
@metrics.sent_at_the_end
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    invocation, door = bootstrap.invocation(context), bootstrap.door("lifecycle", event)
    return door.dispatcher.answer(event, Bell.LIFECYCLE, lambda: bootstrap.lifecycle(door).reconcile(invocation))
