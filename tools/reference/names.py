"""Names of Joinery's own: Events, and annotations, taints and conditions below ``joinery.dev``."""

from collections.abc import Iterator, Mapping

from joinery.objects.events import EVENTS
from joinery.objects.own_keys import FOR_PEOPLE, OF_JOINERY, OwnKey


def events() -> Iterator[str]:
    """A row for each reason. What wants a person comes first, because that is what somebody looks up."""
    yield "| Event | type | on | meaning | what to do |"
    yield "|---|---|---|---|---|"
    for reason, event in sorted(EVENTS.items(), key=lambda pair: (not pair[1].remedy, pair[0])):
        kind = "Warning" if event.is_warning else "Normal"
        yield f"| `{reason}` | {kind} | {', '.join(event.about)} | {event.meaning} | {event.remedy} |"


def for_people() -> Iterator[str]:
    """What people set."""
    yield "| set by you | on | values and meaning |"
    yield from _rows(FOR_PEOPLE)


def of_joinery() -> Iterator[str]:
    """What Joinery writes."""
    yield "| set by Joinery | on | meaning |"
    yield from _rows(OF_JOINERY)


def _rows(keys: Mapping[str, OwnKey]) -> Iterator[str]:
    yield "|---|---|---|"
    for name, key in keys.items():
        yield f"| `{name}` | {', '.join(key.about)} | {key.meaning} |"
