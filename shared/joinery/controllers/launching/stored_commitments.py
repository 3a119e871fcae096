"""What is paid for already, as the bucket has it, in the problem that a function decides."""

from joinery.controllers.telemetry import ERROR, logger
from joinery.decisions.scheduling.paid import with_paid_for
from joinery.decisions.scheduling.paid_for import Sold
from joinery.decisions.scheduling.problem import Problem
from joinery.gateways.memory.bucket import Store
from joinery.objects.errors import JoineryError, NotFoundError


def with_stored_commitments(problem: Problem, store: Store, sold: Sold, *, is_voluntary: bool = False) -> Problem:
    """The problem with them; as it is where nobody has stored any.

    ``is_voluntary``: whether nothing has to be bought. Then it raises where they cannot be read, because nodes that are
    paid for would be left; else that is a line in the log.
    """
    try:
        return with_paid_for(problem, store.paid_for(), sold)
    except NotFoundError:
        return problem
    except JoineryError as error:
        if is_voluntary:
            raise
        logger.error("what is paid for cannot be learned", extra={ERROR: str(error)})
        return problem
