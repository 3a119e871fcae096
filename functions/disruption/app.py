"""Retire the nodes that are empty, have drifted, or cost more than they are worth.

Invoked by the disruption queue (FIFO): bells of lifecycle, its own, and the schedule that rings once a minute. The
commands are only begun here; lifecycle carries them out.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from joinery import bootstrap
from joinery.controllers.telemetry import logger, metrics
from joinery.gateways.doorbell.gateway import Bell


@logger.inject_lambda_context(clear_state=True)
@metrics.sent_at_the_end
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    invocation, door = bootstrap.invocation(context), bootstrap.door("disruption", event)
    return door.dispatcher.answer(event, Bell.DISRUPTION, lambda: bootstrap.disruption(door).reconcile(invocation))
