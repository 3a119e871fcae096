"""An invocation: what a run may know of the call that it is part of."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Invocation:
    """One call of a door.

    ``id``: Lambda's request id. Every delivery of a message has another, so no two runs that overlap share one.
    """

    id: str
