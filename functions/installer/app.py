"""Install Joinery in the cluster, bring it to another release, and remove it.

Invoked by CloudFormation about the stack's two custom resources, and with ``{"operation": ...}`` by a person or a
schedule. The cluster's rights that it needs are there only while it works.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from joinery import bootstrap
from joinery.controllers.telemetry import logger, metrics


@logger.inject_lambda_context(clear_state=True)
@metrics.sent_at_the_end
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return bootstrap.installer().handle(event, bootstrap.invocation(context))
