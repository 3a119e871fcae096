"""Reading AWS's answers: of a missing field there is one line, which names the call and the field.

Nearly every member of an answer may be absent by the services' own models, and some are while a thing is being made. An
entry of a list that lacks a field that is needed is left out and logged, and the other entries count. Where nothing
can be done without the field, the call counts as failed (``needed``). Null and empty count as absent: botocore leaves
nulls out, plain JSON does not.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from joinery.objects.errors import UnavailableError

Answer = Mapping[str, Any]
#: What to do with a line about an entry that is left out.
Log = Callable[[str], None]


def unlogged(line: str) -> None:
    """Log nothing."""


def at(answer: object, path: str) -> Any:
    """What an answer has at a path (``State.Name``); None where that is absent, null or empty."""
    for field in path.split("."):
        answer = answer.get(field) if isinstance(answer, Mapping) else None
    return None if answer in (None, "", [], {}) else answer


def needed(answer: object, path: str, *, call: str) -> Any:
    """The same. Raises ``UnavailableError`` for what is absent: the same call may say it in a moment."""
    value = at(answer, path)
    if value is None:
        raise UnavailableError(f"{call}: the answer has no {path}")
    return value


def entries(answer: object, field: str, *needs: str, call: str, log: Log = unlogged) -> Iterator[Answer]:
    """The entries of a list that have all the paths they are needed for; the first one is what an entry goes by."""
    listed = [entry for entry in at(answer, field) or () if isinstance(entry, Mapping)]
    for number, entry in enumerate(listed):
        lacking = next((path for path in needs if at(entry, path) is None), None)
        if lacking is not None:
            log(f"{call}: {field}[{at(entry, needs[0]) or number}] has no {lacking} and is left out")
        else:
            yield entry
