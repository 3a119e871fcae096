"""Launch nodes for the pods that fit nowhere.

Invoked by the provisioning queue (FIFO): bells of the webhook, of other doors, and of the schedule that rings once a
minute. A bell carries no data: whatever the batch holds, the cluster is read once.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from joinery import bootstrap
from joinery.controllers.telemetry import logger, metrics
from joinery.gateways.doorbell.gateway import Bell


@logger.inject_lambda_context(clear_state=True)
@metrics.sent_at_the_end
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    invocation, door = bootstrap.invocation(context), bootstrap.door("provisioning", event)
    return door.dispatcher.answer(event, Bell.PROVISIONING, lambda: bootstrap.provisioning(door).reconcile(invocation))
