"""Ring the bell that a change in the cluster is worth.

Invoked by the Function URL, which the Kubernetes API server calls as an admission webhook: FailedScheduling Events, and
changes of Nodes, NodeClaims, NodePools and EC2NodeClasses. It always allows.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from joinery import bootstrap
from joinery.controllers.telemetry import logger, metrics


@logger.inject_lambda_context(clear_state=True)
@metrics.sent_at_the_end
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return bootstrap.webhook(event).answer(event)
