"""Retire the nodes that EC2 will take away, replacements first.

Invoked by the interruption queue, fed by six EventBridge rules: Spot interruption warnings, rebalance recommendations,
AWS Health scheduled changes, instance state changes, capacity reservation interruptions and capacity blocks that end.
Each cluster that is concerned is read once a batch. Each message is answered by itself: those that fail are reported,
and the queue delivers them again. Once a minute a schedule invokes it without a queue, to ask EC2 what is wrong with
instances.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from joinery import bootstrap
from joinery.controllers.telemetry import logger, metrics
from joinery.decisions.interruption.notice import parse


@logger.inject_lambda_context(clear_state=True)
@metrics.sent_at_the_end
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    invocation, door = bootstrap.invocation(context), bootstrap.door("interruption", event)
    return door.dispatcher.deliver(event, parse, bootstrap.interruptions(door, invocation))
