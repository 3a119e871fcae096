"""Keep the catalogue current: instance types, what is sold in which zone, and at which price.

Invoked by a schedule. Every other door reads the catalogue from the bucket, so that none of them waits for EC2's many
pages.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from joinery import bootstrap
from joinery.controllers.telemetry import logger, metrics


@logger.inject_lambda_context(clear_state=True)
@metrics.sent_at_the_end
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    door = bootstrap.door("catalog")
    return door.dispatcher.sweep(lambda: bootstrap.catalog(door).reconcile())
