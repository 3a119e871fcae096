"""The Events, from ``joinery.objects.events``."""

from collections.abc import Iterator

from joinery.objects.events import EVENTS


def table() -> Iterator[str]:
    """One row a reason. What wants a person comes first, because that is what somebody looks up."""
    yield "| Event | type | on | meaning | what to do |"
    yield "|---|---|---|---|---|"
    for reason, event in sorted(EVENTS.items(), key=lambda pair: (not pair[1].remedy, pair[0])):
        kind = "Warning" if event.is_warning else "Normal"
        yield f"| `{reason}` | {kind} | {', '.join(event.about)} | {event.meaning} | {event.remedy} |"
